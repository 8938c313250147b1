"""A step infers the bounds of what it changes, and takes over all else: schedules are made in time linear in their
steps, and the nest of a state is the one that it has by itself."""

import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

import loopwright as lw
from loopwright import te
from loopwright.lowering.nest import regions
from loopwright.lowering.nest.finished import UnfinishedError
from loopwright.lowering.report import nest_text
from loopwright.lowering.stage import After


def by_itself(s):
    """The nest of a state that knows nothing of those before it."""
    return nest_text(replace(s.state))


@pytest.fixture
def inferred(monkeypatch):
    """The names of the stages whose bounds were inferred, one entry each time."""
    names = []
    infer_stage = regions._Bounds._infer

    def recorded(bounds, state, stage, basis):
        names.append(stage.name)
        infer_stage(bounds, state, stage, basis)

    monkeypatch.setattr(regions._Bounds, "_infer", recorded)
    return names


def chain(length):
    """Stages that read three neighbours of the one before each."""
    tensors = [te.placeholder((4096,), "float32", name="A")]
    for k in range(length):
        A = tensors[-1]
        extent = 4096 - 2 * (k + 1)
        tensors.append(te.compute((extent,), lambda i, *, A=A: A[i] + A[i + 1] + A[i + 2], name=f"B{k}"))
    return tensors


def scheduled_in_tiles(length):
    *_, result = tensors = chain(length)
    s = lw.create_schedule(result)
    outer, inner = s[result].split(s[result].op.axis[0], factor=64)
    s[result].unroll(s[result].split(inner, factor=8)[0])
    for tensor in reversed(tensors[1:-1]):
        s[tensor].compute_at(s[result], outer)
        vector, lanes = s[tensor].split(s[tensor].op.axis[0], factor=8)
        s[tensor].vectorize(lanes)
        s[tensor].unroll(vector)
    return s


def test_steps_infer_the_stage_that_they_change(inferred):
    counts = []
    for length in (6, 12):
        inferred.clear()
        s = scheduled_in_tiles(length)
        counts.append(len(inferred) / len(s.trace))
        assert nest_text(s.state) == by_itself(s)
    assert counts[0] <= 2
    assert counts[1] <= 2


def test_a_change_of_a_reader_reaches_what_it_reads(inferred):
    *_, B0, B1, B2 = chain(3)
    s = lw.create_schedule(B2)
    outer, _ = s[B2].split(s[B2].op.axis[0], factor=64)
    s[B1].compute_at(s[B2], outer)
    s[B0].compute_at(s[B2], outer)
    before = nest_text(s.state)
    inferred.clear()
    s[B1].split(s[B1].op.axis[0], factor=7)
    assert nest_text(s.state) == by_itself(s) != before
    assert {*inferred} == {"B0", "B1", "B2"}  # the last one of the state by itself
    assert inferred.count("B2") == 1


@pytest.mark.parametrize("late", ["split", "reorder", "compute_root", "compute_inline", "cache_read", "round_up"])
def test_late_steps_give_the_nest_that_the_state_has_by_itself(late):
    A = te.placeholder((40, 56), "float32", name="A")
    B = te.compute((40, 56), lambda i, j: A[i, j] * 2.0, name="B")
    C = te.compute((38, 54), lambda i, j: B[i, j] + B[i + 1, j + 1] + B[i + 2, j + 2], name="C")
    D = te.compute((38, 54), lambda i, j: C[i, j] - 1.0, name="D")
    s = lw.create_schedule(D)
    i, j = s[D].op.axis
    yo, xo, yi, xi = s[D].tile(i, j, 8, 16)
    s[C].compute_at(s[D], xo)
    s[B].compute_at(s[D], yo)
    s[B].vectorize(s[B].split(s[B].op.axis[1], factor=8)[1])
    nest_text(s.state)
    match late:
        case "split":
            s[D].split(yi, factor=3)
        case "reorder":
            s[D].reorder(xi, yi)
        case "compute_root":
            s[B].compute_root()
        case "compute_inline":
            s[C].compute_inline()
        case "cache_read":
            s.cache_read(A, "local", [B])
        case "round_up":
            s.cache_read(A, "local", [B], pad=0)
            s[C].round_up(s[C].op.axis[1], factor=8)
    assert nest_text(s.state) == by_itself(s)


@pytest.fixture
def often_switching():
    """Threads take turns after microseconds."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def test_threads_lower_one_schedule_at_once(often_switching):
    for _ in range(10):
        _, *between, result = chain(8)
        s = lw.create_schedule(result)
        outer, _ = s[result].split(s[result].op.axis[0], factor=64)
        for tensor in reversed(between):
            s[tensor].compute_at(s[result], outer)
        with ThreadPoolExecutor(8) as pool:
            found = list(pool.map(lambda _, s=s: regions.infer(s.state), range(8)))
        assert all(set(known.memory) == set(known.regions) == {f"B{k}" for k in range(8)} for known in found)
        assert nest_text(s.state) == by_itself(s)


def test_an_illegal_state_is_refused_each_time_it_is_asked():
    A = te.placeholder((64,), "float32", name="A")
    B = te.compute((64,), lambda i: A[i] * 3.0, name="B")
    C = te.compute((64,), lambda i: B[i] + B[63 - i], name="C")
    s = lw.create_schedule(C)
    outer, _ = s[B].split(s[B].op.axis[0], factor=16)
    state = s.state.with_stage(replace(s.state.stage("C"), place=After("B", outer.id)))
    for _ in range(3):
        with pytest.raises(UnfinishedError):
            regions.infer(state)
    with pytest.raises(lw.ScheduleError, match="finishes a part of dimension 0 only"):
        s[C].reverse_compute_at(s[B], outer)


def test_a_scan_and_what_follows_its_producer_are_inferred_with_each_state():
    X = te.placeholder((10, 32), "float32", name="X")
    S = te.scan_state((10, 32), name="S")
    first = te.compute((1, 32), lambda _, j: X[0, j], name="first")
    step = te.compute((10, 32), lambda t, j: S[t - 1, j] + X[t, j], name="step")
    total = te.scan(first, step, S, name="total")
    out = te.compute((10, 32), lambda t, j: total[t, j] * 2.0, name="out")
    s = lw.create_schedule(out)
    s[step].split(s[step].op.axis[1], factor=8)
    o, _ = s[out].split(s[out].op.axis[1], factor=4)
    assert nest_text(s.state) == by_itself(s)
    B = te.compute((64,), lambda i: X[0, i % 32] * 3.0, name="B")
    C = te.compute((64,), lambda i: B[i] + 1.0, name="C")
    s = lw.create_schedule(C)
    o, _ = s[B].split(s[B].op.axis[0], factor=16)
    s[C].reverse_compute_at(s[B], o)
    s[C].vectorize(s[C].split(s[C].op.axis[0], factor=8)[1])
    assert nest_text(s.state) == by_itself(s)

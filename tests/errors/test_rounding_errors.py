"""What cannot be rounded up: nothing is read beyond a tensor that has no more, or computed where there is no room."""

import pytest

import loopwright as lw
from loopwright import te
from loopwright.lowering.nest.regions import loops_of


def refused(message):
    return pytest.raises(lw.ScheduleError, match=message)


def doubled(n=10):
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: A[i] * 2.0, name="B")
    C = te.compute((n,), lambda i: B[i] + 1.0, name="C")
    return lw.create_schedule(C), A, B, C


def test_an_input_is_not_read_beyond_its_end_and_the_advice_cures_it():
    s, _, B, _ = doubled()
    with refused("B would read A.i. beyond the ends of A, along dimension 0: up to index 11, of 10") as caught:
        s[B].split(s[B].loops[0], 4, tail="round_up")
    advice = next(line for line in str(caught.value).splitlines() if "s.cache_read" in line)
    eval(advice[advice.index("s.cache_read") : advice.index(";")], {"s": s})
    s[B].split(s[B].loops[0], 4, tail="round_up")
    assert "B: float32[12]" in str(s)


def test_a_copy_without_padding_reads_the_input_itself():
    s, A, B, _ = doubled()
    s.cache_read(A, "local", [B])
    with refused("A.local would read A"):
        s[B].round_up(s[B].loops[0], 4)


def test_an_output_is_the_callers():
    s, _, _, C = doubled()
    with refused('C cannot be rounded up: it is an output(.|\n)*s.cache_write."C", "local".'):
        s[C].round_up(s[C].loops[0], 4)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "either factor or to"),
        ({"factor": 4, "to": 16}, "either factor or to"),
        ({"factor": 0}, "factor must be a positive integer, found 0"),
        ({"to": 2.5}, "to must be a positive integer, found 2.5"),
        ({"to": 9}, "to 9: it has 10 iterations"),
    ],
)
def test_round_up_needs_a_factor_or_an_extent(arguments, message):
    s, _, B, _ = doubled()
    with refused(message):
        s[B].round_up(s[B].loops[0], **arguments)


def test_the_inner_loop_of_a_tile_ends_where_the_next_tile_begins():
    s, A, B, _ = doubled(n=24)
    s.cache_read(A, "local", [B], pad=0)
    _, inner = s[B].split(s[B].loops[0], 6)
    with refused("cannot round up loop i_inner of B: it runs inside tiles of 6"):
        s[B].split(inner, 4, tail="round_up")
    s[B].split(inner, 3, tail="round_up")


def test_indices_that_run_backwards_or_are_read_from_memory_have_no_end():
    A, K = te.placeholder((10,), name="A"), te.placeholder((10,), "int32", name="K")
    backwards = te.compute((10,), lambda i: A[9 - i], name="B")
    gathered = te.compute((10,), lambda i: A[K[i]], name="B")
    for B in (backwards, gathered):
        s = lw.create_schedule(te.compute((10,), lambda i: B[i], name="C"))  # noqa: B023  it is called at once
        for source in dict.fromkeys(t.op.name for t in B.op.inputs):
            s.cache_read(source, "local", ["B"], pad=0)
        with refused("the indices there depend on memory, or run backwards"):
            s["B"].round_up(s["B"].loops[0], 4)


def test_externs_scans_and_intrinsics_know_nothing_of_what_lies_beyond():
    A = te.placeholder((10,), name="A")
    B = te.compute((10,), lambda i: A[i] * 2.0, name="B")

    def copy(ins, outs):
        ib = te.IRBuilder()
        source, target = ib.buffer_ptr(ins[0]), ib.buffer_ptr(outs[0])
        with ib.for_range(0, 10, name="k") as k:
            target[k] = source[k]
        return ib.get()

    s = lw.create_schedule(te.extern((10,), [B], copy, name="E"))
    s.cache_read(A, "local", [B], pad=0)
    with refused("B cannot be rounded up: E reads or computes it"):
        s[B].round_up(s[B].loops[0], 4)


def test_a_stage_computed_after_its_producer_is_not_rounded_up():
    s, A, B, C = doubled(n=12)
    D = te.compute((12,), lambda i: C[i] * 3.0, name="D")
    s = lw.create_schedule(D)
    s.cache_read(A, "local", [B], pad=0)
    outer, _ = s[B].split(s[B].loops[0], 4)
    s[C].reverse_compute_at(s[B], outer)
    with refused("C cannot be rounded up: it is computed after its producer"):
        s[C].round_up(s[C].loops[0], 8)


def test_the_steps_of_a_scan_that_come_later_do_not_exist_yet():
    A = te.placeholder((5, 6), name="A")
    state = te.scan_state((5, 6), name="state")
    first = te.compute((1, 6), lambda t, i: A[t, i], name="first")
    cell = te.compute((5, 6), lambda t, i: state[t - 1, i] + A[t, i], name="cell")
    step = te.compute((5, 6), lambda t, i: cell[t, i] * 2.0, name="step")
    s = lw.create_schedule(te.scan(first, step, state, name="S"))
    copy = s.cache_read(cell, "local", [step], pad=0)
    with refused("cell.local cannot be rounded up along ax0, the time of the scan S: later steps do not exist yet"):
        s[copy].round_up(s[copy].loops[0], 2)


def test_a_stage_that_is_inlined_has_no_loops_to_ask_for():
    s, A, B, C = doubled()
    D = te.compute((10,), lambda i: C[i] * 3.0, name="D")
    s = lw.create_schedule(D)
    s.cache_read(A, "local", [B], pad=0)
    s[B].round_up(s[B].loops[0], 4)
    s[C].compute_inline()
    with refused("C is inlined"):
        s[C].vectorize("i")
    assert loops_of(s.state, s.state.stage("C")).extents


@pytest.mark.parametrize("pad", ["zero", [], 1j])
def test_padding_is_a_number(pad):
    s, A, B, _ = doubled()
    with refused("cannot cache_read A with pad="):
        s.cache_read(A, "local", [B], pad=pad)


def test_padding_is_a_number_that_the_dtype_can_hold():
    A = te.placeholder((10,), "uint8", name="A")
    B = te.compute((10,), lambda i: A[i] + A[i], name="B")
    s = lw.create_schedule(B)
    for pad in (-1, 0.5, float("inf")):
        with refused(f"cannot cache_read A with pad=.*{pad}"):
            s.cache_read(A, "local", [B], pad=pad)

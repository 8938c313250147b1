"""What a schedule may not do with scans and externs: each refusal says why, and names what to schedule instead."""

import pytest

import loopwright as lw
from loopwright import te


def refused(message):
    return pytest.raises(lw.ScheduleError, match=message)


@pytest.fixture
def scan():
    X = te.placeholder((5, 20), name="X")
    state = te.scan_state((5, 20), name="state")
    first = te.compute((1, 20), lambda t, i: X[0, i], name="first")
    half = te.compute((5, 20), lambda t, i: state[t - 1, i] * 0.5, name="half")
    step = te.compute((5, 20), lambda t, i: half[t, i] + X[t, i], name="step")
    S = te.scan(first, step, state, name="S")
    B = te.compute((5, 20), lambda t, i: S[t, i] + 1.0, name="B")
    return lw.create_schedule(B), X, state, first, half, step, S, B


@pytest.mark.parametrize(
    "primitive",
    [
        lambda stage, t: stage.parallel(t),
        lambda stage, t: stage.vectorize(t),
        lambda stage, t: stage.split(t, factor=2),
        lambda stage, t: stage.reorder(t),
    ],
)
def test_the_time_loop_of_a_scan_stays_one_serial_loop(scan, primitive):
    s, *_, S, _B = scan
    with refused("loop t of S runs over the steps of a scan: each reads what those before it wrote") as caught:
        primitive(s[S], S.op.scan_axis)
    assert "those of its update, step" in str(caught.value)
    assert "for t in range(4):  # <-- here" in str(caught.value)


def test_parts_of_a_scan_stay_in_their_place(scan):
    s, _X, state, first, half, step, _S, B = scan
    for part in (first, step):
        for act in (
            lambda part=part: s[part].compute_at(s[B], B.op.axis[0]),
            lambda part=part: s[part].compute_inline(),
            lambda part=part: s[part].compute_root(),
        ):
            with refused("it writes the output of the scan S"):
                act()
    with refused("state is the state of a scan, and has no loops"):
        s[state].compute_root()
    with refused("state is the state of a scan, and has no loops"):
        s[state].parallel("state#0")
    with refused("state is computed at loop t of S, but half would read it outside"):
        s[half].compute_root()
    with refused("step reads it outside that loop"):
        s[half].compute_at(s[B], B.op.axis[0])


def test_a_scan_is_not_computed_in_the_loops_of_its_first_steps(scan):
    s, _X, _state, first, *_, S, B = scan
    s[S].compute_at(s[B], B.op.axis[0])
    with refused("cannot compute S at loop i of first: B reads it outside that loop") as caught:
        s[S].compute_at(s[first], first.op.axis[1])
    assert 's["S"].compute_at(s["B"], "B#1")' in str(caught.value)


def test_a_stage_read_by_the_init_is_not_computed_in_the_time_loop():
    N = te.compute((4,), lambda t: te.cast(t, "float32"), name="N")
    state = te.scan_state((4,), name="state")
    first = te.compute((1,), lambda t: N[t], name="first")
    step = te.compute((4,), lambda t: state[t - 1] + N[t], name="step")
    S = te.scan(first, step, state, name="S")
    s = lw.create_schedule(S)
    with refused("first reads it outside that loop"):
        s[N].compute_at(s[S], S.op.scan_axis)
    s[N].compute_root()


def test_a_stage_of_the_time_loop_has_no_readers_outside(scan):
    s, X, _state, _first, half, step, S, _B = scan
    C = s.cache_read(X, "local", [step])
    s[C].compute_at(s[S], S.op.scan_axis)
    with refused("C|X.local is computed at loop t of S"):
        s.cache_read(C, "global", [step])
    s[half].compute_at(s[step], step.op.axis[1])


def test_caches_of_the_parts_of_a_scan(scan):
    s, _X, state, first, half, step, S, B = scan
    with refused("it is the state of the scan S, and grows as it is read"):
        s.cache_read(state, "local", [half])
    with refused("first is the init of the scan S|it is the init of the scan S"):
        s.cache_write(first, "local")
    with refused("S is a scan, whose loop over time runs step by step"):
        s.cache_write(S, "local")
    with refused("S is a scan"):
        s.cache_read(step, "local", [S])
    s.cache_read(S, "local", [B])


def test_the_memory_of_a_scan_is_one_and_lies_as_it_is(scan):
    s, _X, state, first, half, step, S, _B = scan
    for part in (state, first, step):
        with refused("has no memory but that of the scan S"):
            s[part].set_scope("global")
    with refused("S is an extern or a scan"):
        s[S].transform_layout(lambda t, i: (i, t))
    s[S].set_scope("local")
    s[half].transform_layout(lambda t, i: (i, t))


def test_what_an_extern_reads_and_writes_lies_as_it_is(extern):
    s, _A, N, E, _B = extern
    for stage in (N, E):
        with refused("E is an extern or a scan"):
            s[stage].transform_layout(lambda i: (i // 4, i % 4))
        with refused("E is an extern or a scan"):
            s[stage].storage_align(0, factor=4)


def test_a_scan_is_not_inlined(scan):
    s, *_, S, _B = scan
    with refused("S is a scan"):
        s[S].compute_inline()


def recurrence(read):
    """A scan, and ``read`` of its parts beside it."""
    state = te.scan_state((4,), name="state")
    first = te.compute((1,), lambda t: te.const(0.0, "float32"), name="first")
    half = te.compute((4,), lambda t: state[t - 1] * 0.5, name="half")
    step = te.compute((4,), lambda t: half[t] + 1.0, name="step")
    S = te.scan(first, step, state, name="S")
    return S, read(state, first, half, step)


@pytest.mark.parametrize(
    ("read", "message"),
    [
        (lambda state, first, half, step: half, "half is computed step by step inside the scan S"),
        (lambda state, first, half, step: step, "step is computed step by step inside the scan S"),
        (lambda state, first, half, step: first, "first is computed step by step inside the scan S"),
        (lambda state, first, half, step: te.compute((4,), lambda t: step[t], name="Z"), "Z is computed step by step"),
        (lambda state, first, half, step: te.compute((4,), lambda t: state[t], name="Z"), "Z is computed step by step"),
        (lambda state, first, half, step: te.compute((1,), lambda t: first[t], name="Z"), "Z reads the init of the"),
        (lambda state, first, half, step: te.scan(first, step, state, name="R"), "first is part of two scans"),
    ],
)
def test_parts_of_a_scan_are_not_needed_outside_of_it(read, message):
    with refused(message):
        lw.create_schedule(recurrence(read))


def test_a_state_without_its_scan_is_refused():
    state = te.scan_state((4,), name="state")
    B = te.compute((4,), lambda t: state[t], name="B")
    with refused("state is the state of a scan that is not computed here"):
        lw.create_schedule(B)


def copy(ins, outs):
    ib = te.IRBuilder()
    A, B = ib.buffer_ptr(ins[0]), ib.buffer_ptr(outs[0])
    with ib.for_range(0, 8, name="i") as i:
        B[i] = A[i]
    return ib.get()


@pytest.fixture
def extern():
    A = te.placeholder((8,), name="A")
    N = te.compute((8,), lambda i: A[i] + 1.0, name="N")
    E = te.extern((8,), [N], copy, name="E")
    B = te.compute((8,), lambda i: E[i] * 2.0, name="B")
    return lw.create_schedule(B), A, N, E, B


@pytest.mark.parametrize(
    "primitive",
    [
        lambda s, E, B: s[E].split("E#0", factor=2),
        lambda s, E, B: s[E].vectorize("E#0"),
        lambda s, E, B: s[E].reorder("E#0"),
        lambda s, E, B: s[E].compute_inline(),
        lambda s, E, B: s[B].compute_at(s[E], "E#0"),
    ],
)
def test_an_extern_has_no_loops(extern, primitive):
    s, _A, _N, E, B = extern
    with refused("E is an extern: it runs as its statement is written, and has no loops to schedule"):
        primitive(s, E, B)


def test_what_an_extern_reads_is_not_inlined(extern):
    s, _A, N, E, B = extern
    with refused("the extern E reads it from memory"):
        s[N].compute_inline()
    with refused("E reads it outside that loop"):
        s[N].compute_at(s[B], B.op.axis[0])
    s[E].compute_at(s[B], B.op.axis[0])
    s[N].compute_at(s[B], B.op.axis[0])


def test_outputs_of_different_shapes_have_no_common_copy():
    A = te.placeholder((8,), name="A")
    E, _ = te.extern([(8,), (4,)], [A], copy, name="E")
    s = lw.create_schedule(E)
    with refused("its outputs have different shapes"):
        s.cache_write(E, "local")


def test_a_scan_is_not_computed_at_a_loop_of_its_own_init():
    """Found by random schedules: looking for advice, a ring of places through the init ended in a KeyError."""
    X = te.placeholder((6, 4), name="X")
    state = te.scan_state((6, 4), name="state")
    first = te.compute((1, 4), lambda _, i: X[0, i], name="first")
    cell = te.compute((6, 4), lambda t, i: state[t - 1, i] + X[t, i], name="cell")
    step = te.compute((6, 4), lambda t, i: cell[t, i] * 2.0, name="step")
    sums = te.scan(first, step, state, name="sums")
    out = te.compute((6, 4), lambda t, i: sums[t, i] + 1.0, name="out")
    s = lw.create_schedule(out)
    s[sums].compute_at(s[out], s[out].op.axis[0])
    with pytest.raises(lw.ScheduleError, match="out reads it outside that loop"):
        s[sums].compute_at(s[first], s[first].loops[0])


def test_what_an_extern_reads_and_writes_keeps_its_axes(extern):
    s, _A, N, E, _B = extern
    with refused("cannot cache_read N with axes for E, which reads elements where they are\nLeave axes out"):
        s.cache_read(N, "local", E, axes="lambda i: (i // 4, i % 4)")
    with refused("cannot cache_write E with axes: it is an extern"):
        s.cache_write(E, "local", axes="lambda i: (i // 4, i % 4)")


def test_what_depends_on_the_state_of_a_scan_keeps_its_axes(scan):
    """The step of such a copy is told by an axis of its own; ``t * 32 + i`` hides it."""
    s, _X, _state, _first, half, step, _S, _B = scan
    for act in (
        lambda: s.cache_read(half, "local", step, pad=0, axes=lambda t, i: (t * 32 + i,)),
        lambda: s.cache_write(half, "local", axes=lambda t, i: (t * 32 + i,)),
    ):
        with refused("half with axes: it depends on the state of a scan, whose steps go along an axis of their own"):
            act()

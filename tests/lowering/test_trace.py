"""Traces: what is replayed from JSON or from the printed Python is the same schedule, for every primitive there is."""

import json
import subprocess
import sys

import pytest
from same_state import same_state

import loopwright as lw
from loopwright import te
from loopwright.ir.expr import Load
from loopwright.ir.stmt import Store, seq
from loopwright.lowering.primitives import primitives
from loopwright.lowering.schedule import Schedule


def matmul(n=12, k=7, m=20):
    A = te.placeholder((n, k), name="A")
    B = te.placeholder((k, m), name="B")
    r = te.reduce_axis((0, k), name="r")
    C = te.compute((n, m), lambda i, j: te.sum(A[i, r] * B[r, j], axis=r), name="C")
    D = te.compute((n, m), lambda i, j: C[i, j] + 1.0, name="D")
    return A, C, D


def split(s, A, C, D):
    i, j = s[C].op.axis
    _, inner = s[C].split(i, factor=5)
    s[C].split(j, nparts=3)
    s[C].split(inner, factor=2)


def fuse(s, A, C, D):
    inner = s[D].split(D.op.axis[1], factor=4)[1]
    outer = s[D].fuse(*s[D].loops[:2])
    s[D].fuse(outer, inner)


def reorder(s, A, C, D):
    s[C].reorder(*s[C].op.reduce_axis, C.op.axis[1], C.op.axis[0])


def vectorize(s, A, C, D):
    s[D].vectorize(s[D].split(D.op.axis[1], factor=8)[1])


def unroll(s, A, C, D):
    s[C].unroll(C.op.reduce_axis[0])


def parallel(s, A, C, D):
    s[D].parallel(D.op.axis[0])


def compute_at(s, A, C, D):
    outer, _ = s[D].split(D.op.axis[0], factor=4)
    s[C].compute_at(s[D], outer)


def compute_inline(s, A, C, D):
    s[s.cache_read(C, "local", [D])].compute_inline()


def reverse_compute_at(s, A, C, D):
    outer = s[C].tile(*C.op.axis, 5, 4)[1]
    s[D].reverse_compute_at(s[C], outer)
    s[D].vectorize(D.op.axis[1])


def compute_root(s, A, C, D):
    compute_at(s, A, C, D)
    s[C].compute_root()


def cache_read(s, A, C, D):
    copy = s.cache_read(A, "local", [C])
    s[copy].compute_at(s[C], C.op.axis[0])


def round_up(s, A, C, D):
    copy = s.cache_read(A, "local", [C], pad=float("-inf"))
    s[C].round_up(C.op.axis[0], 8)
    s[copy].unroll(s[copy].loops[1])


def cache_write(s, A, C, D):
    s[C].parallel(C.op.axis[0])
    L = s.cache_write(D, "local")
    s[L].reorder(L.op.axis[1], L.op.axis[0])
    s[D].split(s[D].op.axis[1], factor=4)


def tensorize(s, A, C, D):
    x = te.placeholder((4,), name="x")
    y = te.compute((4,), lambda i: x[i] + 1.0, name="y")
    each = [te.const(i, "index") for i in range(4)]
    lw.declare_intrinsic(
        "add_one", y, lambda x, y: seq(*(Store(y, (i,), Load(x, (i,)) + 1.0) for i in each)), override=True
    )
    s[D].tensorize(s[D].split(D.op.axis[1], factor=4)[1], "add_one")


def prefetch(s, A, C, D):
    s[C].prefetch(A, C.op.axis[0], 2)


def annotate(s, A, C, D):
    s[C].annotate(C.op.axis[0], "mine.note", "x")


def set_scope(s, A, C, D):
    s[C].set_scope("global")


def storage_align(s, A, C, D):
    s[C].storage_align(C.op.axis[0], 16, offset=1)


def transform_layout(s, A, C, D):
    s[C].transform_layout(lambda i, j: (j // 4, i, j % 4))


def rfactor(s, A, C, D):
    _, inner = s[C].split(C.op.reduce_axis[0], factor=4)
    s[C].parallel(C.op.axis[0])
    partial = s.rfactor(C, inner, factor_axis=1)
    s[partial].vectorize(s[partial].op.axis[1])


def decide(s, A, C, D):
    s.decide("rows", [1, 2, 4], 2, value=4)
    s.decide("order", ["C#0", "s"], "s")
    s.decide("pack", [False, True], True, reorders_sum=True)


def accumulate(s, A, C, D):
    s[D].accumulate(D.op.axis[1])


CASES = [
    split,
    fuse,
    reorder,
    vectorize,
    unroll,
    parallel,
    compute_at,
    compute_inline,
    reverse_compute_at,
    compute_root,
    cache_read,
    cache_write,
    round_up,
    set_scope,
    storage_align,
    transform_layout,
    tensorize,
    prefetch,
    annotate,
    decide,
    rfactor,
    accumulate,
]
"""A schedule for each primitive, named for it: ``C`` is a matrix product of ``A``, and ``D`` reads it."""


def running_sums(C):
    def element(i, j):
        k = te.reduce_axis((0, j + 1), name="k")
        return te.sum(C[i, k], axis=k)

    return te.compute(C.shape, element, name="D")


def made(case, *shape):
    A, C, D = matmul(*shape)
    D = running_sums(C) if case is accumulate else D
    s = lw.create_schedule(D)
    case(s, A, C, D)
    return s


def fresh(s):
    return Schedule(s.trace.start)


def test_a_process_that_has_made_no_schedule_reads_traces():
    """Public names are imported when they are asked for, and with them should be all that they need."""
    s = made(split)
    code = "import sys, loopwright as lw; print(lw.Trace.from_json(sys.stdin.read()).to_json(), end='')"
    child = [sys.executable, "-c", code]
    again = subprocess.run(child, input=s.trace.to_json(), capture_output=True, text=True, check=True)
    assert again.stdout == s.trace.to_json()


def test_every_primitive_has_a_case_here():
    assert set(primitives()) == {case.__name__ for case in CASES}, "write a case for a new primitive"


@pytest.mark.parametrize("case", CASES)
def test_a_trace_comes_back_from_json_and_replays_to_the_same_state(case):
    s = made(case)
    assert case.__name__ in {step.primitive for step in s.trace}
    trace = lw.Trace.from_json(s.trace.to_json())
    assert trace == s.trace
    again = fresh(s)
    again.replay(trace)
    assert same_state(again.state, s.state)
    assert str(again) == str(s)
    assert again.trace.to_json() == s.trace.to_json()


@pytest.mark.parametrize("case", CASES)
def test_a_trace_prints_as_python_that_makes_the_same_schedule(case):
    s = made(case)
    for text in (s.trace.python(), lw.Trace.from_json(s.trace.to_json()).python()):
        again = fresh(s)
        exec(text, {"s": again})
        assert again.trace == s.trace, text
        assert same_state(again.state, s.state), text


@pytest.mark.parametrize("case", CASES)
def test_a_trace_replays_on_computes_made_anew_and_of_another_shape(case):
    s, anew, other = made(case), made(case), made(case, 9, 5, 13)
    assert same_state(anew.state, s.state)
    assert not same_state(other.state, s.state)
    replayed = fresh(other)
    replayed.replay(s.trace)
    assert same_state(replayed.state, other.state)


@pytest.mark.parametrize("case", CASES)
def test_a_state_differs_from_the_one_a_step_before(case):
    s = made(case)
    assert not same_state(s.trace.before(1), s.state)


def test_the_python_of_a_trace_names_loops_as_the_nest_does():
    A, C, D = matmul()
    s = lw.create_schedule(D)
    outer, _ = s[D].split(D.op.axis[0], factor=4)
    s[C].compute_at(D, outer)
    s[C].split(C.op.axis[0], nparts=2)
    s[D].fuse(*s[D].loops[1:])
    copy = s.cache_read(A, "local", [C])
    s[copy].parallel(copy.op.axis[0])
    assert str(s.trace).splitlines() == [
        'i, j = s["D"].loops',
        'i_outer, i_inner = s["D"].split(i, factor=4)',
        's["C"].compute_at("D", i_outer)',
        'i_1, j_1, r = s["C"].loops',
        'i_outer_1, i_inner_1 = s["C"].split(i_1, nparts=2)',
        'i_inner_j_fused = s["D"].fuse(i_inner, j)',
        's.cache_read("A", "local", ["C"])',
        'ax0, ax1 = s["A.local"].loops',
        's["A.local"].parallel(ax0)',
    ]
    assert str(s.trace[0]) == 's["D"].split("D#0", factor=4)'


def test_traces_of_the_first_version_are_read_and_replayed():
    s = made(split)
    old = s.trace.to_json().replace('"version": 2', '"version": 1')
    again = fresh(s)
    again.replay(lw.Trace.from_json(old))
    assert same_state(again.state, s.state)


def test_the_json_of_a_trace_has_one_step_a_line():
    s = made(reorder)
    assert s.trace.to_json().splitlines() == [
        '{"version": 2, "steps": [',
        '  {"primitive": "reorder", "stage": "C", "loops": ["C#2", "C#1", "C#0"]}',
        "]}",
    ]
    assert lw.create_schedule(matmul()[2]).trace.to_json() == '{"version": 2, "steps": []}\n'


def test_a_trace_that_is_illegal_for_another_shape_names_the_step_and_changes_nothing():
    _A, C, D = matmul(8, 8, 8)
    s = lw.create_schedule(D)
    s[C].parallel(C.op.axis[0])
    s[D].vectorize(D.op.axis[1])
    s[D].parallel(D.op.axis[0])
    other = lw.create_schedule(matmul(8, 8, 1000)[2])
    before = other.state
    with pytest.raises(lw.TraceError) as caught:
        other.replay(s.trace)
    assert caught.value.step == 2
    message = str(caught.value)
    assert message.startswith(
        'step 2 of 3, s["D"].vectorize("D#1"), is not legal for this schedule: loop j of D cannot'
    )
    assert "its extent is 1000" in message
    assert other.state is before
    assert len(other.trace) == 0


def test_a_trace_of_other_computes_names_the_stage_that_is_not_there():
    s = made(parallel)
    X = te.placeholder((4, 4), name="X")
    Y = te.compute((4, 4), lambda i, j: X[i, j], name="Y")
    with pytest.raises(lw.TraceError, match=r"step 1 of 1, .* the schedule has no stage 'D'; there are X, Y"):
        lw.create_schedule(Y).replay(s.trace)


def test_diff_shows_what_the_last_step_changed():
    X = te.placeholder((8,), name="X")
    Y = te.compute((8,), lambda i: X[i] * 2.0, name="Y")
    s = lw.create_schedule(Y)
    assert s.diff(0) == ""
    s[Y].split(Y.op.axis[0], factor=4)
    s[Y].vectorize(s[Y].loops[1])
    assert s.diff().splitlines() == [
        "--- before",
        '+++ s["Y"].vectorize("Y#2")',
        "@@ -1,3 +1,3 @@",
        " for i_outer in range(2):",
        "-    for i_inner in range(4):",
        "+    for i_inner in vectorized(4):",
        "         Y[i_outer * 4 + i_inner] = X[i_outer * 4 + i_inner] * 2.0",
    ]
    assert '+++ s["Y"].split("Y#0", factor=4); s["Y"].vectorize("Y#2")' in s.diff(2)
    assert "-for i in range(8):" in s.diff(2)
    naive = lw.create_schedule(Y)
    assert s.diff(naive).splitlines()[:2] == ["--- other", "+++ this"]
    assert s.diff(s.copy()) == ""


def step(**changes):
    fields = {"primitive": "split", "stage": "C", "loop": "C#0", "factor": 4} | changes
    return json.dumps({"version": 1, "steps": [{k: v for k, v in fields.items() if v != "absent"}]})


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{", "not the JSON text of a trace"),
        ("[" * 100_000, "not the JSON text of a trace"),
        (b"\xff\xfe", "not the JSON text of a trace"),
        ("[]", r"a JSON object with 'version' and 'steps', found \[\]"),
        ('{"steps": []}', "reads traces up to version 2, found version null"),
        ('{"version": 3, "steps": []}', "reads traces up to version 2, found version 3"),
        ('{"version": 0, "steps": []}', "reads traces up to version 2, found version 0"),
        ('{"version": true, "steps": []}', "found version true"),
        ('{"version": 1, "steps": "split"}', 'are an array, found "split"'),
        ('{"version": 1, "steps": [], "shape": 3}', "only, found 'shape'"),
        ('{"version": 1, "steps": [7]}', "step 1: expected an object, found 7"),
        ('{"version": 1, "steps": [{}]}', "step 1: there is no primitive null; there are accumulate, annotate, "),
        (step(primitive="spilt"), "step 1: there is no primitive \"spilt\"; did you mean 'split'?"),
        (step(primitive=["split"]), r'there is no primitive \["split"\]'),
        (step(loop="absent"), "step 1, split: the field 'loop' is missing"),
        (step(speed=9), "step 1, split: there is no field 'speed'; there are stage, loop, factor"),
        (step(factor="4"), "the field 'factor' is an integer or null, found \"4\""),
        (step(factor=4.0), "the field 'factor' is an integer or null, found 4.0"),
        (step(factor=True), "the field 'factor' is an integer or null, found true"),
        (step(stage=None), "the field 'stage' is a string, found null"),
        (step(loop=["x" * 100]), r'the field \'loop\' is a string, found \["x{50,60}\.\.\.'),
        (
            '{"version": 1, "steps": [{"primitive": "reorder", "stage": "C", "loops": ["C#0", 1]}]}',
            "the field 'loops' is an array of \\(a string\\), found",
        ),
    ],
)
def test_what_is_no_trace_is_refused_with_the_reason(text, problem):
    with pytest.raises(lw.TraceError, match=problem):
        lw.Trace.from_json(text)


def test_fields_with_defaults_may_be_left_out():
    (read,) = lw.Trace.from_json(json.loads(step()))
    assert str(read) == 's["C"].split("C#0", factor=4)'


def test_replay_and_diff_say_what_they_take():
    s = made(split)
    with pytest.raises(lw.ScheduleError, match="replay takes a trace"):
        fresh(s).replay([*s.trace])
    for wrong in (4, -1, True, "C", 1.0):
        with pytest.raises(lw.ScheduleError, match="a number of steps to go back, of 3 there are, or a schedule, not"):
            s.diff(wrong)
    with pytest.raises(lw.ScheduleError, match="does not know the state that it started from"):
        lw.Trace.from_json(s.trace.to_json()).before(1)

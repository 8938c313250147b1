"""Reductions are refused where a schedule would race on them, or change what they give; the error says what to do."""

import re

import numpy as np
import pytest

import loopwright as lw
from loopwright import te

A = te.placeholder((4, 300), name="A")


def reduction(reduce=te.sum, **options):
    r = te.reduce_axis((0, 300), name="r")
    outputs = te.compute((4,), lambda i: reduce(A[i, r], axis=r, **options), name="C")
    C = outputs if isinstance(outputs, te.Tensor) else outputs[0]
    return lw.create_schedule(C), r, C


def refused(message):
    return pytest.raises(lw.ScheduleError, match=message)


def combine(name, function, identity=0):
    fold = te.reducer(
        name, lambda a, b: (function(a[0], b[0]),), lambda kinds: [te.const(identity, kind) for kind in kinds]
    )
    return lambda source, axis: fold((source,), axis=axis)[0]


@pytest.mark.parametrize("primitive", ["vectorize", "parallel"])
@pytest.mark.parametrize("factor", [None, 100, 280])
@pytest.mark.parametrize("reduce", [te.sum, te.argmin])
def test_the_advice_for_a_reduction_is_a_schedule_that_works(primitive, factor, reduce):
    s, r, C = reduction(reduce)
    loop = r if factor is None else s[C].split(r, factor=factor)[1]
    with refused("all write the same elements") as caught:
        getattr(s[C], primitive)(loop)
    advice = re.search(r"a stage of its own: (.*)\n", str(caught.value))
    exec(advice.group(1), {"s": s})
    assert s.trace[-1].primitive == primitive
    lw.lower(s, [A, *C.op.outputs])


def test_what_rfactor_would_refuse_is_not_advised():
    s, r, C = reduction(combine("difference", lambda a, b: a - b))
    with refused("all write the same elements\nVectorize a loop over a spatial axis.\nThe loop nest"):
        s[C].vectorize(r)


def test_a_reduction_stays_one_after_split_fuse_and_reorder():
    s, r, C = reduction()
    outer, inner = s[C].split(r, factor=4)
    s[C].reorder(inner, outer, C.op.axis[0])
    for loop in (outer, inner, s[C].fuse(inner, outer)):
        with refused("all write the same elements|is stale"):
            s[C].parallel(loop)


def test_rfactor_takes_a_serial_reduction_loop():
    s, r, C = reduction()
    with refused("does not run over a reduction axis\nName a reduction loop of C; there are: r."):
        s.rfactor(C, C.op.axis[0])
    outer, inner = s[C].split(r, factor=4)
    with refused("loop r .* is stale"):
        s.rfactor(C, r)
    s[C].unroll(inner)
    with refused("it is unrolled already"):
        s.rfactor(C, inner)
    s.rfactor(C, outer)
    with refused(r"loop r_inner \(C#3\) of C is stale: an earlier step \(rfactor\) moved it to C.rf, and left r_outer"):
        s[C].split(inner, factor=2)


@pytest.mark.parametrize("axis", [2, -3, 1.0, True, "0"])
def test_the_factored_axis_is_a_position_among_the_axes(axis):
    s, r, C = reduction()
    with refused("expected a position among 2 axes"):
        s.rfactor(C, r, factor_axis=axis)


def test_rfactor_comes_before_what_is_computed_in_the_loops():
    B = te.compute((4, 300), lambda i, j: A[i, j] + 1.0, name="B")
    r = te.reduce_axis((0, 300), name="r")
    C = te.compute((4,), lambda i: te.sum(B[i, r], axis=r), name="C")
    s = lw.create_schedule(C)
    s[B].compute_at(s[C], C.op.axis[0])
    with refused("B is computed in its loops\nrfactor first"):
        s.rfactor(C, r)
    s[B].compute_root()
    partial = s.rfactor(C, r)
    s[B].compute_at(s[partial], s[partial].op.axis[0])


def test_rfactor_needs_an_associative_and_commutative_reducer_with_a_neutral_identity():
    for function, identity, reason in (
        (lambda a, b: a - b, 0, r"a ⊕ b = \S+, but b ⊕ a = "),
        (lambda a, b: (a + b) / 2.0, 0, r"\(a ⊕ b\) ⊕ c = \S+, but a ⊕ \(b ⊕ c\) = "),
        (lambda a, b: a + b, 5, r"identity ⊕ a = \S+, but a = "),
    ):
        s, r, C = reduction(combine("fold", function, identity))
        with refused("fold has to be associative and commutative.*" + reason):
            s.rfactor(C, r)


def test_the_first_of_equals_wins_in_no_other_order():
    first = te.reducer(
        "first_max",
        lambda a, b: (te.select(a[0] >= b[0], a[0], b[0]), te.select(a[0] >= b[0], a[1], b[1])),
        lambda kinds: [te.min_value(kinds[0]), te.const(-1, kinds[1])],
    )
    s, r, C = reduction(lambda x, axis: first((x, te.cast(axis, "int32")), axis=axis))
    outer, inner = s[C].split(r, factor=10)
    with refused("cannot change their order: the result of first_max depends on it; for a = "):
        s[C].reorder(inner, outer)
    with refused("first_max has to be associative and commutative"):
        s.rfactor(C, inner)
    s[C].reorder(outer, C.op.axis[0], inner)


def test_strict_precision_keeps_the_order_of_definition():
    def factored(s, C, outer, inner):
        s.rfactor(C, inner)

    def reordered(s, C, outer, inner):
        s[C].reorder(inner, outer)

    for change, reason in ((factored, "in groups, in C.rf"), (reordered, "not in the order of its axes")):
        for reduce in (te.sum, te.max):
            s, r, C = reduction(reduce)
            change(s, C, *s[C].split(r, factor=8))
            if reduce is te.max:
                lw.build(s, [A, C], precision="strict")  # only rounding depends on the order
                continue
            lw.build(s, [A, C])
            with refused(f"strict precision .* in C .*{reason}"):
                lw.build(s, [A, C], precision="strict")


def test_strict_precision_takes_loops_that_keep_the_order():
    p, q = te.reduce_axis((0, 10), name="p"), te.reduce_axis((0, 30), name="q")
    C = te.compute((4,), lambda i: te.sum(A[i, p * 30 + q], axis=[p, q]), name="C")
    s = lw.create_schedule(C)
    fused = s[C].fuse(p, q)
    outer, inner = s[C].split(fused, factor=7)
    s[C].reorder(outer, C.op.axis[0], inner)
    s[C].vectorize(C.op.axis[0])
    kernel = lw.build(s, [A, C], precision="strict")
    a = np.random.default_rng(0).standard_normal((4, 300), np.float32)
    c, total = np.zeros(4, np.float32), np.zeros(4, np.float32)
    for k in range(300):
        total += a[:, k]
    kernel(a, c)
    np.testing.assert_array_equal(c, total)


def test_a_reducer_computes_from_its_arguments():
    B = te.placeholder((4,), name="B")
    n = te.var("n")
    for foreign in (B[0], te.cast(n, "float32")):
        with pytest.raises(lw.ExpressionError, match="give it to the reduction as a source of its own"):
            reduction(combine("shifted", lambda a, b, foreign=foreign: a + b + foreign))


def test_the_default_schedule_leaves_reducers_that_need_their_order_in_it():
    _, _, C = reduction(combine("halving", lambda a, b: (a + b) / 2.0))
    s = lw.default_schedule(C)
    a = np.random.default_rng(0).standard_normal((4, 300), np.float32)
    c, expected = np.zeros(4, np.float32), np.zeros(4, np.float32)
    lw.build(s, [A, C], precision="strict")(a, c)
    for k in range(300):
        expected = (expected + a[:, k]) / np.float32(2)
    np.testing.assert_array_equal(c, expected)

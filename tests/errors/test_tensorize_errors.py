"""Intrinsics that do not do what they declare, and loops that do not compute what an intrinsic does, are refused."""

import numpy as np
import pytest

import loopwright as lw
from loopwright import te
from loopwright.ir.build import make_buffer
from loopwright.ir.constants import const
from loopwright.ir.expr import Load
from loopwright.ir.makers import as_index, cast
from loopwright.ir.stmt import For, Store, seq


def at(*indices):
    return tuple(as_index(i) for i in indices)


def refused(message):
    return pytest.raises(lw.ScheduleError, match=message)


def dot_compute(kind="int8", size=4):
    a, b = te.placeholder((size,), kind, name="a"), te.placeholder((size,), kind, name="b")
    k = te.reduce_axis((0, size), name="k")
    return te.compute((), lambda: te.sum(te.cast(a[k], "int32") * te.cast(b[k], "int32"), axis=k), name="c")


def dot(terms=4, accumulate=True, widen=True, place=()):
    def update(a, b, c):
        total = Load(c, at(*place)) if accumulate else const(0, "int32")
        for i in range(terms):
            x, y = Load(a, at(i)), Load(b, at(i))
            total = total + (cast("int32", x) * cast("int32", y) if widen else cast("int32", x * y))
        return Store(c, at(*place), total)

    return update


def declare(update=None, **options):
    return lw.declare_intrinsic("dot", dot_compute(), update or dot(), override=True, **options)


@pytest.mark.parametrize(
    "update",
    [
        dot(3),
        dot(accumulate=False),
        dot(widen=False),
        lambda a, b, c: seq(),
        lambda a, b, c: seq(dot()(a, b, c), dot()(a, b, c)),
    ],
    ids=["a term too few", "no accumulation", "products that wrap", "nothing", "twice"],
)
def test_code_that_differs_from_its_compute_is_refused_with_a_counterexample(update):
    with refused(r"intrinsic dot: its code does not do what its compute says: c\[\(\)\] should become") as caught:
        declare(update)
    numbers = {line.split(" = ")[0].strip(): line.split(" = ")[1] for line in str(caught.value).splitlines()[1:]}
    a, b = (np.array(numbers[x].strip("[]").split(), int) for x in "ab")
    assert f"should become {int(numbers['c']) + int(a @ b)}" in str(caught.value)


def add_compute(size=4):
    x = te.placeholder((size,), name="x")
    return te.compute((size,), lambda i: x[i] + 1.0, name="y")


def add(x, y):
    return seq(*(Store(y, at(i), Load(x, at(i)) + 1.0) for i in range(4)))


def test_code_that_relies_on_strides_is_refused():
    def packed(x, y):
        memory = make_buffer("m", (4,), "float32", data=y.data)
        return seq(*(Store(memory, at(i), Load(x, at(i)) + 1.0) for i in range(4)))

    with refused("accesses memory through the buffers that it was given only"):
        lw.declare_intrinsic("add", add_compute(), packed)


def test_code_that_leaves_its_buffers_is_refused():
    def beyond(x, y):
        return seq(add(x, y), Store(y, at(4), const(0.0, "float32")))

    with refused("its code fails where its compute does not: out of bounds: y.4."):
        lw.declare_intrinsic("add", add_compute(), beyond)


def test_float_code_may_round_otherwise_but_not_compute_otherwise():
    x = te.placeholder((8,), name="x")
    k = te.reduce_axis((0, 8), name="k")
    total = te.compute((), lambda: te.sum(x[k], axis=k), name="total")

    def pairs(wrong):
        def update(x, total):
            terms = [Load(x, at(i)) for i in range(8)]
            while len(terms) > 1:
                terms = [a + b for a, b in zip(terms[::2], terms[1::2], strict=True)]
            return Store(total, (), Load(total, ()) + terms[0] * const(1.0 + wrong, "float32"))

        return update

    lw.declare_intrinsic("pairwise", total, pairs(0.0), override=True)
    with refused("does not do what its compute says"):
        lw.declare_intrinsic("pairwise", total, pairs(1e-4), override=True)


def test_a_reset_stores_the_identity():
    with refused("does not do what its compute says"):
        declare(reset=lambda c: Store(c, (), const(1, "int32")))
    with refused("reset stores the identity of a reduction, and its compute is none"):
        lw.declare_intrinsic("add", add_compute(), add, reset=lambda y: seq())


def test_declarations_are_checked():
    n = te.var("n")
    A = te.placeholder((n,), name="A")
    with refused("its shapes are positive constants"):
        lw.declare_intrinsic("f", te.compute((n,), lambda i: A[i], name="B"), add)
    X = te.placeholder((4,), name="X")
    with refused("reads placeholders only"):
        lw.declare_intrinsic("f", te.compute((4,), lambda i: add_compute()[i], name="B"), add)
    with refused("no conditions on what is read"):
        lw.declare_intrinsic("f", te.compute((4,), lambda i: te.if_then_else(i < 2, X[i], 0.0), name="B"), add)
    for read in (lambda i: X[3 - i], lambda i: X[i // 2], lambda i: X[i * 2 % 4]):
        with refused("expected sums of axes"):
            lw.declare_intrinsic("f", te.compute((4,), read, name="B"), add)
    with refused("run over the whole of X"):
        lw.declare_intrinsic("f", te.compute((3,), lambda i: X[i], name="B"), add)
    with refused("a compute with one output"):
        lw.declare_intrinsic("f", X, add)
    with refused("a compute with one output"):
        lw.declare_intrinsic("f", "dot", add)
    with refused("is an identifier"):
        lw.declare_intrinsic("a b", add_compute(), add)
    with refused("update is a function"):
        lw.declare_intrinsic("f", add_compute(), None)
    with refused("update gave None, expected a statement"):
        lw.declare_intrinsic("f", add_compute(), lambda x, y: None)
    with refused("update is not legal: .*store into x"):
        lw.declare_intrinsic("f", add_compute(), lambda x, y: Store(x, at(0), const(0.0, "float32")))
    with refused("has a parallel loop"):
        var = te.var("i")
        lw.declare_intrinsic(
            "f",
            add_compute(),
            lambda x, y: For(var, as_index(0), as_index(4), "parallel", Store(y, (var,), Load(x, (var,)) + 1.0)),
        )


def test_a_name_is_declared_once_unless_it_is_meant():
    lw.declare_intrinsic("once", add_compute(), add, override=True)
    with refused("there is an intrinsic once already"):
        lw.declare_intrinsic("once", add_compute(), add)


def matmul(left="int8", extent=8, factor=4, body=None):
    declare()
    A, B = te.placeholder((6, extent), left, name="A"), te.placeholder((extent, 5), "int8", name="B")
    r = te.reduce_axis((0, extent), name="r")

    def product(i, j):
        return te.sum(te.cast(A[i, r], "int32") * te.cast(B[r, j], "int32"), axis=r)

    C = te.compute((6, 5), body(A, B, r) if body else product, name="C")
    D = te.compute((6, 5), lambda i, j: C[i, j] + 1, name="D")
    s = lw.create_schedule(D)
    ro, ri = s[C].split(r, factor=factor)
    return s, A, B, C, D, ro, ri


def assert_refused(s, act, message):
    before = s.state
    with refused(message) as caught:
        act()
    assert s.state is before
    return str(caught.value)


def test_the_comparison_shows_both_computes():
    s, _A, _B, C, _D, _ro, ri = matmul(
        body=lambda A, B, r: lambda i, j: te.sum(te.cast(A[i, r] * B[r, j], "int32"), axis=r)
    )
    text = assert_refused(s, lambda: s[C].tensorize(ri, "dot"), "dot cannot take the place of loop r_inner of C")
    assert (
        "  declared: for k < 4 (reduced): c[()] = c[()] + int32(a[k]) * int32(b[k])\n"
        "  found:    for r < 4 (reduced): C[i, j] = C[i, j] + int32(A[i, r_outer * 4 + r] * B[r_outer * 4 + r, j])\n"
    ) in text
    assert "for r_inner in range(4):  # <-- here" in text


@pytest.mark.parametrize(
    "body",
    [
        lambda A, B, r: lambda i, j: te.sum(te.cast(A[i, r], "int32") - te.cast(B[r, j], "int32"), axis=r),
        lambda A, B, r: lambda i, j: te.max(te.cast(A[i, r], "int32") * te.cast(B[r, j], "int32"), axis=r),
        lambda A, B, r: lambda i, j: te.sum(te.cast(A[i, r], "int32") * te.cast(r, "int32"), axis=r),
        lambda A, B, r: lambda i, j: te.sum(te.cast(A[i, r // 2], "int32") * te.cast(B[r, j], "int32"), axis=r),
    ],
)
def test_other_computes_are_refused(body):
    s, _A, _B, C, _D, _ro, ri = matmul(body=body)
    assert_refused(s, lambda: s[C].tensorize(ri, "dot"), "the loops do not compute what dot does")


def test_other_extents_dtypes_and_loops_are_refused():
    s, _A, _B, C, _D, _ro, ri = matmul(factor=8)
    assert_refused(s, lambda: s[C].tensorize(ri, "dot"), r"for r < 8 \(reduced\)")
    s, _A, _B, C, _D, _ro, ri = matmul(left="uint8")
    assert_refused(s, lambda: s[C].tensorize(ri, "dot"), "the loops do not compute what dot does")
    s, _A, _B, C, _D, ro, ri = matmul(extent=16)
    s[C].reorder(ri, ro)
    assert_refused(s, lambda: s[C].tensorize(ro, "dot"), "the loops do not run over elements that are neighbours")
    s, _A, _B, C, _D, ro, ri = matmul()
    fused = s[C].fuse(*C.op.axis)
    s[C].reorder(ro, ri, fused)
    assert_refused(s, lambda: s[C].tensorize(ri, "dot"), "not affine in i_j_fused: tensorize before fusing")
    n = te.var("n")
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: A[i] + 1.0, name="B")
    lw.declare_intrinsic("add", add_compute(), add, override=True)
    s = lw.create_schedule(B)
    assert_refused(s, lambda: s[B].tensorize(B.op.axis[0], "add"), "loop i has extent n, expected a positive constant")


def test_a_condition_on_the_terms_is_refused():
    def body(A, B, r):
        return lambda i, j: te.sum(te.cast(A[i, r], "int32") * te.cast(B[r, j], "int32"), axis=r, where=A[i, r] > 0)

    s, _A, _B, C, _D, _ro, ri = matmul(body=body)
    assert_refused(s, lambda: s[C].tensorize(ri, "dot"), "chooses among the iterations of the loops")


def test_several_outputs_are_refused():
    declare()
    A = te.placeholder((4,), "int32", name="A")
    r = te.reduce_axis((0, 4), name="r")
    value, index = te.compute((), lambda: te.argmax(A[r], axis=r), name="m")
    s = lw.create_schedule([value, index])
    assert_refused(s, lambda: s[value].tensorize(r, "dot"), "has several outputs, an intrinsic has one")


def test_an_intrinsic_is_known_by_name():
    s, _A, _B, C, _D, _ro, ri = matmul()
    assert_refused(s, lambda: s[C].tensorize(ri, "none_such"), "there is no intrinsic 'none_such'; there are .*dot")


def test_tensorized_loops_are_not_scheduled_further():
    s, _A, _B, C, D, ro, ri = matmul()
    s[C].tensorize(ri, "dot")
    s.cache_read(_A, "local", [C])
    for act in (
        lambda: s[C].split(ri, factor=2),
        lambda: s[C].reorder(ri, ro),
        lambda: s[C].unroll(ri),
        lambda: s[C].fuse(ro, ri),
        lambda: s["A.local"].compute_at(s[C], ri),
    ):
        assert_refused(s, act, "loop r_inner of C is part of the intrinsic dot")
    assert_refused(s, lambda: s[C].tensorize(ro, "dot"), "its inner loops are those of dot already")
    assert_refused(s, lambda: s[C].vectorize(C.op.axis[1]), "loop j of C cannot be vectorized around the intrinsic dot")
    assert_refused(s, lambda: s.rfactor(C, ro), "would take loops of C away|does not compute|do not compute")
    s["A.local"].compute_at(s[C], ro)
    s[C].compute_at(s[D], D.op.axis[0])


def test_loops_that_hold_stages_or_annotations_are_not_replaced():
    s, A, _B, C, _D, _ro, ri = matmul()
    s[C].unroll(ri)
    assert_refused(s, lambda: s[C].tensorize(ri, "dot"), "cannot tensorize loop r_inner of C: it is unrolled already")
    s, A, _B, C, _D, _ro, ri = matmul()
    s[s.cache_read(A, "local", [C])].compute_at(s[C], ri)
    assert_refused(s, lambda: s[C].tensorize(ri, "dot"), "A.local is computed at it")


def test_steps_that_change_what_is_computed_are_refused():
    lw.declare_intrinsic("add", add_compute(), add, override=True)
    A = te.placeholder((8,), name="A")
    B = te.compute((8,), lambda i: A[i] * 2.0, name="B")
    C = te.compute((8,), lambda i: B[i] + 1.0, name="C")
    D = te.compute((8,), lambda i: C[i] + 1.0, name="D")
    s = lw.create_schedule(D)
    s[C].tensorize(s[C].split(C.op.axis[0], factor=4)[1], "add")
    text = assert_refused(s, s[B].compute_inline, "add cannot take the place of loop i_inner of C")
    assert "C[i_outer * 4 + i] = A[i_outer * 4 + i] * 2.0 + 1.0" in text
    assert_refused(s, s[C].compute_inline, "cannot inline C: add computes it, an intrinsic")
    assert_refused(
        s, lambda: s[B].transform_layout(lambda i: (i % 2, i // 2)), "the loops do not compute what add does"
    )
    s[B].transform_layout(lambda i: (i // 4, i % 4))
    E = te.compute((4,), lambda i: A[i] + 1.0, name="E")
    s = lw.create_schedule(te.compute((4,), lambda i: E[i], name="F"))
    s[E].tensorize(E.op.axis[0], "add")
    assert_refused(s, lambda: s.cache_write(E, "local"), "scheduled already")

"""Mistakes in computes and builds: each has its own error, which names the object and says what to do."""

import numpy as np
import pytest

import loopwright as lw
from loopwright import te

BAD_NAMES = ["", "a b", "1st", "n\nm", 'q"', "a..b", 5]


@pytest.fixture
def doubled():
    A = te.placeholder((8,), name="A")
    B = te.compute((8,), lambda i: A[i] * 2.0, name="B")
    return lw.create_schedule(B), A, B


def wrong(message):
    return pytest.raises(lw.ExpressionError, match=message)


def refused(message):
    return pytest.raises(lw.ScheduleError, match=message)


@pytest.mark.parametrize("build", [lw.build, lw.lower])
@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("skylak", "no cpu 'skylak' .* did you mean skylake"),
        ("llvm -mattr=+avx22", "no feature 'avx22' .* did you mean avx2"),
        ("llvm -mtriple=nowhere", "nowhere"),
        (3, "not 3"),
    ],
)
def test_unknown_targets(doubled, build, target, message):
    s, A, B = doubled
    with pytest.raises(lw.TargetError, match=message):
        build(s, [A, B], target=target)


@pytest.mark.parametrize("precision", ["quick", "", None, "STRICT"])
def test_unknown_precisions(doubled, precision):
    s, A, B = doubled
    with pytest.raises(lw.TargetError, match="there are strict, standard, fast"):
        lw.build(s, [A, B], precision=precision)


RELU = lw.Function([X := lw.var("x", (4,))], lw.nn.relu(X))


@pytest.mark.parametrize("arithmetic", ["quick", "", "DIRECT", 3])
def test_unknown_arithmetics(arithmetic):
    with pytest.raises(lw.TargetError, match=r"there is no arithmetic .*; there are direct, fast"):
        lw.compile(RELU, arithmetic=arithmetic)


@pytest.mark.parametrize("make", [lw.compile, lw.explain])
def test_strict_precision_with_fast_arithmetic(make):
    with pytest.raises(lw.TargetError, match=r"precision='strict' keeps every product .*: leave arithmetic out"):
        make(RELU, precision="strict", arithmetic="fast")


@pytest.mark.parametrize("name", ["", "a b", "1st", "größe", "a.b", 'q"', 3])
def test_names_of_functions(doubled, name):
    s, A, B = doubled
    with refused("a function's name must be an identifier"):
        lw.build(s, [A, B], name=name)


@pytest.mark.parametrize("name", ["free", "aligned_alloc", "lw_parallel_for", "main", "memcpy", "B", "printf"])
def test_names_of_functions_do_not_clash_with_symbols(name):
    n = te.var("n")
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: A[i] + 1.0, name="B")
    C = te.compute((n,), lambda i: B[i] * B[n - 1 - i], name="C")
    s = lw.create_schedule(C)
    s[C].parallel(C.op.axis[0])
    c = np.zeros(9, np.float32)
    lw.build(s, [A, C], name=name)(np.arange(9, dtype=np.float32), c)
    np.testing.assert_array_equal(c, np.arange(1, 10) * np.arange(9, 0, -1))


@pytest.mark.parametrize("name", BAD_NAMES)
def test_names_of_tensors_and_axes(name):
    with wrong("a name must be an identifier"):
        te.placeholder((3,), name=name)
    with wrong("a name must be an identifier"):
        te.compute((3,), lambda i: te.const(1.0), name=name)
    with wrong("a name must be an identifier"):
        te.var(name)
    with wrong("a name must be an identifier"):
        te.reduce_axis((0, 3), name=name)


@pytest.mark.parametrize(
    "body",
    [
        lambda A, i: A[i] if i == 0 else te.const(0.0),
        lambda A, i: te.select(i > 0 and i < 3, A[i], 0.0),
        lambda A, i: te.select(0 < i < 3, A[i], 0.0),
        lambda A, i: A[i] if not i == 0 else te.const(0.0),  # noqa: SIM201
        lambda A, i: max(A[i], 0.0),
    ],
)
def test_python_does_not_branch_on_symbols(body):
    A = te.placeholder((8,), name="A")
    with wrong("use te.select or te.if_then_else instead of `if`, `&`, `|`, `~` instead of `and`, `or`, `not`"):
        te.compute((8,), lambda i: body(A, i), name="B")


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (lambda A, i: None, "returned nothing"),
        (lambda A, i: (), "returned no expression"),
        (lambda A, i: [A[i], A[i]], "several outputs are one tuple"),
        (lambda A, i: (A[i], (A[i], A[i])), "several outputs are one tuple"),
        (lambda A, i: "x", "cannot use a str"),
        (lambda A, i: A[i] + np.ones(3), "cannot use a ndarray"),
        (lambda A, i: A, r"returned the whole tensor A: float32\[8\]: return one element of it"),
        (lambda A, i: A[i] + te.cast(i, "int32"), "float32 and int32.*te.cast"),
        (lambda A, i: A[A[i]], "an index must be an integer, found the float32"),
        (lambda A, i: A[i, i], "has 1 dimensions, but is read with 2 indices"),
        (lambda A, i: A[0:3], "not by slices"),
        (lambda A, i: list(A), "cannot be iterated over"),
        (lambda A, i: A[i + 1], "out of bounds: index 0 is 1 … 8.*extent 8"),
        (lambda A, i: A[i] // 2.0, "does not apply to float32"),
        (lambda A, i: A[i] & A[i], "does not apply to float32"),
        (lambda A, i: te.cast(A[i], "int32") / 2, "use // for integers"),
    ],
)
def test_bodies_of_computes(body, message):
    A = te.placeholder((8,), name="A")
    with wrong(message):
        te.compute((8,), lambda i: body(A, i), name="B")


def test_functions_of_computes():
    with wrong("function takes 2 indices"):
        te.compute((8,), lambda i, j: i + j)
    with wrong("needs a function"):
        te.compute((8,), te.placeholder((8,)))
    with wrong(r"write \(8,\)"):
        te.compute(8, lambda i: i)


@pytest.mark.parametrize(
    ("fold", "message"),
    [
        (lambda A, r, i: te.sum(A[i], axis=i), "axis of the compute"),
        (lambda A, r, i: te.sum(A[i], axis=()), "needs one or several different axes"),
        (lambda A, r, i: te.sum(A[r], axis=(r, r)), "needs one or several different axes"),
        (lambda A, r, i: te.sum(A[r], axis=r) + 1.0, "a reduction stands inside another expression"),
        (lambda A, r, i: te.sum(A[r], axis=r, where=A[r]), "`where` must be bool, found float32"),
        (lambda A, r, i: te.sum(A[r] > 0.0, axis=r), "does not apply to bool"),
        (lambda A, r, i: te.any(A[r], axis=r), "applies to bool, not to float32"),
        (lambda A, r, i: te.argmin(A[r], axis=r)[0], "must be all the outputs of one reduction"),
        (lambda A, r, i: te.argmin(A[r], axis=r, index_dtype="float32"), "must be an integer dtype, found float32"),
        (lambda A, r, i: te.argmin(A[r], axis=r, index_dtype="int8"), "numbers up to 299 do not fit int8"),
    ],
)
def test_reductions(fold, message):
    A, r = te.placeholder((300,), name="A"), te.reduce_axis((0, 300), name="r")
    with wrong(message):
        te.compute((8,), lambda i: fold(A, r, i), name="B")


@pytest.mark.parametrize("domain", [5, (0, 3, 5), (3, 0), (0, 1 << 60), (0, 2.5), None])
def test_domains_of_reductions(domain):
    with wrong("domain|2.5"):
        te.reduce_axis(domain)


@pytest.mark.parametrize(
    ("shape", "kind", "message"),
    [
        ((3,), "float33", "no such dtype: float33"),
        ((3,), "complex64", "unknown dtype 'complex64'"),
        ((3,), "float32x4", "elements are scalars"),
        ((3,), "handle", "elements are scalars"),
        ((3,), None, "None is no dtype"),
        ((-3,), "float32", "no negative extents"),
        ((2.5,), "float32", "2.5"),
        ("ab", "float32", "is a sequence of extents, found 'ab'"),
        ((1 << 40, 1 << 40), "int8", "too large"),
        ((1 << 45,), "float64", "too large"),
    ],
)
def test_shapes_and_dtypes(shape, kind, message):
    with wrong(message):
        te.placeholder(shape, kind)


def test_computes_over_too_large_an_extent():
    with wrong("too large"):
        te.compute((1 << 48,), lambda i: te.const(1, "int8"), name="B")


@pytest.mark.parametrize(("value", "kind"), [(300, "uint8"), (-1, "uint64"), (1.5, "int8"), (2, "bool")])
def test_constants_fit_their_dtype(value, kind):
    with wrong("does not fit|is not an integer|is not a bool"):
        te.const(value, kind)


def test_a_huge_unroll():
    A = te.placeholder((5000,), name="A")
    B = te.compute((5000,), lambda i: A[i] + 1.0, name="B")
    s = lw.create_schedule(B)
    with refused("extent is 5000, expected a constant of at most 4096"):
        s[B].unroll(B.op.axis[0])


def test_unrolls_that_are_huge_together():
    A = te.placeholder((64, 64, 64), name="A")
    B = te.compute((64, 64, 64), lambda i, j, k: A[i, j, k] + 1.0, name="B")
    s = lw.create_schedule(B)
    for axis in B.op.axis:
        s[B].unroll(axis)
    with refused("262144 statements, more than the 4096 allowed"):
        lw.build(s, [A, B])


def test_too_many_lanes():
    A = te.placeholder((257,), name="A")
    B = te.compute((257,), lambda i: A[i] + 1.0, name="B")
    s = lw.create_schedule(B)
    with refused("extent is 257, expected a constant of at most 256"):
        s[B].vectorize(B.op.axis[0])


@pytest.mark.parametrize("args", [[], ["A", "B"], "AB"])
def test_arguments_are_tensors(doubled, args):
    with refused("arguments are tensors|leave out A, B"):
        lw.build(doubled[0], args)


def test_a_schedule_is_what_create_schedule_gives(doubled):
    _, A, B = doubled
    for thing in (B, None, "s"):
        with refused("expected what create_schedule gives"):
            lw.build(thing, [A, B])


@pytest.mark.parametrize("outputs", [None, 3, "B", [None]])
def test_create_schedule_takes_tensors(outputs):
    with refused("takes a tensor, or a sequence of tensors"):
        lw.create_schedule(outputs)

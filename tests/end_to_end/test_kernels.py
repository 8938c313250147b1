"""Kernels, scheduled by hand, by default and not at all, agree with numpy and with the interpreter."""

import warnings

import ml_dtypes
import numpy as np
import pytest
from pairs import each_value

from loopwright import te

INTS = [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]
FLOATS = ["float16", "bfloat16", "float32", "float64"]
NUMBERS = [*INTS, *FLOATS]
SIZES = [(7, 13), (1, 1), (0, 5), (5, 0), (3, 17), (16, 8)]

pytestmark = pytest.mark.filterwarnings("ignore:.*encountered in:RuntimeWarning")


def numpy_dtype(kind):
    return np.dtype(ml_dtypes.bfloat16) if kind == "bfloat16" else np.dtype(kind)


def extremes(kind, shape, seed):
    """Any values of a dtype, the ends of its range, zero and its neighbours among them."""
    rng = np.random.default_rng(seed)
    numpy_type = numpy_dtype(kind)
    if numpy_type.kind == "b":
        return rng.integers(0, 2, shape).astype(bool)
    if numpy_type.kind in "iu":
        limits = np.iinfo(numpy_type)
        values = rng.integers(limits.min, limits.max, shape, numpy_type, endpoint=True)
        special = np.array([limits.min, limits.max, 0, 1, limits.min + 1, 2, limits.max - 1], numpy_type)
        if limits.min < 0:
            special = np.append(special, np.array([-1, -2, -3], numpy_type))
    else:
        values = (rng.standard_normal(shape) * 10.0 ** rng.integers(-3, 4, shape)).astype(numpy_type)
        special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, 0.5, 2.5, -1.5], numpy_type)
    return np.where(rng.random(shape) < 0.4, rng.choice(special, shape), values).astype(numpy_type)


@pytest.mark.parametrize("kind", NUMBERS)
def test_arithmetic(check, kind):
    n, m = 5, 11
    A, B = (te.placeholder((n, m), kind, name=x) for x in "AB")
    outputs = te.compute(
        (n, m),
        lambda i, j: (
            A[i, j] + B[i, j],
            A[i, j] - B[i, j],
            A[i, j] * B[i, j],
            te.minimum(A[i, j], B[i, j]),
            te.maximum(A[i, j], B[i, j]),
            -A[i, j],
            te.abs(A[i, j]),
            te.select(A[i, j] < B[i, j], A[i, j], B[i, j]),
            (A[i, j] <= B[i, j]) & (A[i, j] != B[i, j]) | (A[i, j] == 1),
        ),
        name="S",
    )
    a, b = extremes(kind, (n, m), 1), extremes(kind, (n, m), 2)
    one = numpy_dtype(kind).type(1)
    expected = [
        a + b, a - b, a * b, np.minimum(a, b), np.maximum(a, b), -a if a.dtype.kind != "u" else np.negative(a),
        np.abs(a), np.where(a < b, a, b), (a <= b) & (a != b) | (a == one),
    ]  # fmt: skip
    check([A, B], outputs, [([a, b], expected)])


@pytest.mark.parametrize("kind", INTS)
def test_integers_only(check, kind):
    """Floor division and modulo by zero and by negative numbers, shifts by any count, bits."""
    n = 83
    A, B = (te.placeholder((n,), kind, name=x) for x in "AB")
    a, b = extremes(kind, (n,), 3), extremes(kind, (n,), 4)
    b[::3] = np.random.default_rng(5).integers(0, 20, b[::3].shape)
    forms = [
        lambda x, y: x // y,
        lambda x, y: x % y,
        lambda x, y: x // 7 + x % 8,
        lambda x, y: x & y,
        lambda x, y: x | y,
        lambda x, y: x ^ y,
        lambda x, y: ~x,
        lambda x, y: x << y,
        lambda x, y: x >> y,
    ]
    if kind[0] == "i":
        forms += [lambda x, y: x // -3, lambda x, y: x % -4, lambda x, y: x // -1]
    outputs = te.compute((n,), lambda i: tuple(f(A[i], B[i]) for f in forms), name="S")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = [f(a, b) for f in forms]
    count = np.array([(int(v) & (1 << a.itemsize * 8) - 1).bit_count() for v in a], a.dtype)
    C = te.compute((n,), lambda i: te.popcount(A[i]), name="C")
    check([A, B], [*outputs, C], [([a, b], [*expected, count])])


def cast_by_hand(values, kind):
    """What ``ir/expr.py`` says of casts, number by number, in Python's integers and fractions of float64."""
    target = numpy_dtype(kind)
    if target.kind == "b":
        return values != 0
    if target.kind not in "iu":
        return values.astype(target)
    limits = np.iinfo(target)
    if values.dtype.kind in "biu":
        return np.array([(int(v) - limits.min) % (1 << limits.bits) + limits.min for v in values], target)
    lowest, highest = int(limits.min), int(limits.max)
    found = []
    for value in values.astype(np.float64):
        if np.isnan(value):
            found.append(0)
        elif value <= lowest:
            found.append(lowest)
        else:
            found.append(highest if value >= highest else int(value))
    return np.array(found, target)


@pytest.mark.parametrize("kind", ["bool", *NUMBERS])
def test_casts_wrap_and_saturate(check, kind):
    n = 61
    A = te.placeholder((n,), kind, name="A")
    wanted = [other for other in ("bool", *NUMBERS) if other != kind]
    outputs = te.compute((n,), lambda i: tuple(te.cast(A[i], other) for other in wanted), name="S")
    a = extremes(kind, (n,), 6)
    check([A], outputs, [([a], [cast_by_hand(a, other) for other in wanted])], ["naive", "guarded"])


def test_integers_are_rounded_once_to_small_floats(check):
    """Just above the middle of two bfloat16 or float16, by less than a float32 can tell."""
    values = np.array(
        [(257 << 23) + 1, (257 << 23) - 1, (1 << 40) + (1 << 32) + 1, 65519, 65520, -((257 << 50) + 1)], np.int64
    )
    A = te.placeholder((6,), "int64", name="A")
    outputs = te.compute((6,), lambda i: tuple(te.cast(A[i], kind) for kind in ("bfloat16", "float16")), name="S")
    bfloat = [258 << 23, 256 << 23, (1 << 40) + (1 << 33), 65536, 65536, -(258 << 50)]
    half = [np.inf, np.inf, np.inf, 65504, np.inf, -np.inf]
    expected = [np.array(bfloat, np.float64).astype(ml_dtypes.bfloat16), np.array(half, np.float16)]
    check([A], outputs, [([values], expected)], ["naive", "guarded"])


@pytest.mark.parametrize("op", ["&", "|", "^"])
def test_bools(check, op):
    A, B = (te.placeholder((37,), "bool", name=x) for x in "AB")
    form = {"&": lambda x, y: x & y, "|": lambda x, y: x | y, "^": lambda x, y: x ^ y}[op]
    C = te.compute((37,), lambda i: ~form(A[i], B[i]), name="C")
    a, b = extremes("bool", 37, 1), extremes("bool", 37, 2)
    check([A, B], [C], [([a, b], [~form(a, b)])])


@pytest.mark.parametrize("size", SIZES)
def test_broadcasts(check, sample, size):
    n, m = size
    A, B, C = (te.placeholder(shape, "float32", name=x) for shape, x in (((n, 1), "A"), ((m,), "B"), ((n, m), "C")))
    S = te.compute((n, m), lambda i, j: A[i, 0] * B[j] + C[i, j], name="S")
    T = te.compute((m, n), lambda j, i: S[i, j] - B[j], name="T")
    a, b, c = sample((n, 1), "float32", 1), sample((m,), "float32", 2), sample((n, m), "float32", 3)
    check([A, B, C], [T], [([a, b, c], [(a * b + c - b).T])])


@pytest.mark.parametrize("kind", ["float32", "int16", "bfloat16"])
def test_a_stencil_with_padding_of_a_symbolic_size(check, sample, kind):
    n = te.var("n")
    A = te.placeholder((n,), kind, name="A")
    P = te.compute(
        (n + 2,), lambda i: te.if_then_else(te.all(i >= 1, i < n + 1), A[i - 1], te.const(0, kind)), name="P"
    )
    S = te.compute((n,), lambda i: P[i] - P[i + 1] * 2 + P[i + 2], name="S")
    cases = []
    for size in (0, 1, 2, 3, 4, 7, 16, 31, 64):
        a = sample((size,), kind, size)
        p = np.pad(a, 1)
        cases.append(([a], [(p[:-2] - p[1:-1] * p.dtype.type(2) + p[2:]).astype(a.dtype)]))
    check([A], [S], cases)


@pytest.mark.parametrize("kind", NUMBERS)
def test_matmul(check, sample, kind):
    n, k, m = 5, 7, 11
    A, B = te.placeholder((n, k), kind, name="A"), te.placeholder((k, m), kind, name="B")
    r = te.reduce_axis((0, k), name="r")
    C = te.compute((n, m), lambda i, j: te.sum(A[i, r] * B[r, j], axis=r), name="C")
    a, b = (sample(s, kind, seed, -2, 2) for s, seed in (((n, k), 1), ((k, m), 2)))
    expected = (a.astype(np.int64) @ b.astype(np.int64)).astype(a.dtype)
    check([A, B], [C], [([a, b], [expected])])


@pytest.mark.parametrize(
    "size", [(1, 1, 1), (4, 1, 9), (1, 6, 1), (0, 3, 4), (3, 0, 4), (3, 4, 0), (8, 16, 32), (13, 5, 3)]
)
def test_matmul_of_any_size_with_symbolic_dimensions(check, sample, size):
    n, k, m = (te.var(x) for x in "nkm")
    A, B = te.placeholder((n, k), name="A"), te.placeholder((k, m), name="B")
    r = te.reduce_axis((0, k), name="r")
    C = te.compute((n, m), lambda i, j: te.sum(A[i, r] * B[r, j], axis=r), name="C")
    a, b = sample(size[:2], "float32", 1), sample(size[1:], "float32", 2)
    check([A, B], [C], [([a, b], [a @ b])], ["naive", "guarded", "default"])


def test_a_product_of_bytes_accumulates_in_words(check):
    n, k, m = 6, 40, 9
    A, B = te.placeholder((n, k), "uint8", name="A"), te.placeholder((k, m), "int8", name="B")
    r = te.reduce_axis((0, k), name="r")
    C = te.compute((n, m), lambda i, j: te.sum(te.cast(A[i, r], "int32") * te.cast(B[r, j], "int32"), axis=r), name="C")
    a, b = extremes("uint8", (n, k), 1), extremes("int8", (k, m), 2)
    check([A, B], [C], [([a, b], [a.astype(np.int32) @ b.astype(np.int32)])])


REDUCTIONS = {
    "sum": (te.sum, lambda a, axis: a.sum(axis, dtype=a.dtype)),
    "prod": (te.prod, lambda a, axis: a.prod(axis, dtype=a.dtype)),
    "min": (te.min, lambda a, axis: a.min(axis)),
    "max": (te.max, lambda a, axis: a.max(axis)),
}


@each_value(name=REDUCTIONS, kind=NUMBERS)
def test_reductions(check, sample, name, kind):
    fold, reference = REDUCTIONS[name]
    n, m = 6, 9
    A = te.placeholder((n, m), kind, name="A")
    p, q = te.reduce_axis((0, n), name="p"), te.reduce_axis((0, m), name="q")
    over = [
        te.compute((n,), lambda i: fold(A[i, q], axis=q), name="rows"),
        te.compute((m,), lambda j: fold(A[p, j], axis=p), name="columns"),
        te.compute((), lambda: fold(A[p, q], axis=(p, q)), name="whole"),
    ]
    a = sample((n, m), kind, 7, -2, 2) if kind in FLOATS or name in ("min", "max") else extremes(kind, (n, m), 8)
    if name == "prod" and kind in FLOATS:
        a = np.where(a == 0, a.dtype.type(1), a)
        a[:, ::2], a[1::2] = 1, -1
    expected = [np.asarray(reference(a, axis)).astype(a.dtype) for axis in (1, 0, None)]
    check([A], over, [([a], expected)])


@pytest.mark.parametrize("kind", FLOATS)
def test_nan_wins_minimum_and_maximum(check, kind):
    A = te.placeholder((4, 6), kind, name="A")
    r, q = te.reduce_axis((0, 6), name="r"), te.reduce_axis((0, 6), name="q")
    over = [
        te.compute((4,), lambda i: te.min(A[i, r], axis=r), name="low"),
        te.compute((4,), lambda i: te.max(A[i, q], axis=q), name="high"),
    ]
    a = np.arange(24).reshape(4, 6).astype(numpy_dtype(kind))
    a[1, 3] = a[2, 0] = np.nan
    a[3, 2], a[3, 4] = np.inf, -np.inf
    check([A], over, [([a], [a.min(1), a.max(1)])])


def test_any_and_all(check):
    n, m = 9, 5
    A = te.placeholder((n, m), "bool", name="A")
    r, q = te.reduce_axis((0, m), name="r"), te.reduce_axis((0, n), name="q")
    over = [
        te.compute((n,), lambda i: te.any(A[i, r], axis=r), name="any_"),
        te.compute((m,), lambda j: te.all(A[q, j], axis=q), name="all_"),
    ]
    a = np.random.default_rng(3).random((n, m)) < 0.4
    a[2], a[:, 1] = False, True
    check([A], over, [([a], [a.any(1), a.all(0)])])


def test_reductions_over_nothing_give_their_identity(check):
    A, B = te.placeholder((3, 0), "float32", name="A"), te.placeholder((3, 0), "bool", name="B")
    r = [te.reduce_axis((0, 0), name="r") for _ in range(6)]
    made = [
        te.compute((3,), lambda i: te.sum(A[i, r[0]], axis=r[0]), name="S"),
        te.compute((3,), lambda i: te.prod(A[i, r[1]], axis=r[1]), name="P"),
        te.compute((3,), lambda i: te.min(A[i, r[2]], axis=r[2]), name="L"),
        te.compute((3,), lambda i: te.max(A[i, r[3]], axis=r[3]), name="H"),
        te.compute((3,), lambda i: te.any(B[i, r[4]], axis=r[4]), name="E"),
        te.compute((3,), lambda i: te.all(B[i, r[5]], axis=r[5]), name="F"),
    ]
    values = [np.full(3, v, np.float32) for v in (0, 1, np.inf, -np.inf)]
    a, b = np.zeros((3, 0), np.float32), np.zeros((3, 0), bool)
    check([A, B], made, [([a, b], [*values, np.zeros(3, bool), np.ones(3, bool)])])


@pytest.mark.parametrize("kind", ["bfloat16", "float32", "float64", "int8", "uint64"])
@pytest.mark.parametrize("index_dtype", ["int32", "int64"])
def test_argmin_and_argmax_take_the_first_of_equals_and_of_nans(check, kind, index_dtype):
    n, m = 7, 12
    A = te.placeholder((n, m), kind, name="A")
    r, q = te.reduce_axis((0, m), name="r"), te.reduce_axis((0, n), name="q")
    low, low_at = te.compute((n,), lambda i: te.argmin(A[i, r], axis=r, index_dtype=index_dtype), name="low")
    high_at, high = te.compute((m,), lambda j: te.argmax(A[q, j], axis=q, index_dtype=index_dtype)[::-1], name="high")
    a = np.random.default_rng(9).integers(0, 4, (n, m)).astype(numpy_dtype(kind))
    if kind in FLOATS:
        a[1, 4] = a[1, 7] = a[3, 4] = np.nan
        a[5, 2], a[5, 9] = -np.inf, -np.inf
        wide = a.astype(np.float64)
    else:
        wide = a
    expected = [
        np.take_along_axis(a, wide.argmin(1)[:, None], 1)[:, 0],
        wide.argmin(1).astype(index_dtype),
        wide.argmax(0).astype(index_dtype),
        np.take_along_axis(a, wide.argmax(0)[None], 0)[0],
    ]
    check([A], [low, low_at, high_at, high], [([a], expected)])


def test_reducers_of_ones_own(check):
    """Sum and largest square in one pass; and a sum of exponentials that never overflows, in pairs (largest, sum)."""
    n, m = 5, 9
    A = te.placeholder((n, m), "float32", name="A")
    r, q = te.reduce_axis((0, m), name="r"), te.reduce_axis((0, m), name="q")
    both = te.reducer(
        "both",
        lambda a, b: (a[0] + b[0], te.maximum(a[1], b[1])),
        lambda kinds: (te.const(0, kinds[0]), te.min_value(kinds[1])),
    )

    def online(a, b):
        top = te.maximum(a[0], b[0])
        return top, a[1] * te.exp(a[0] - top) + b[1] * te.exp(b[0] - top)

    softmax_sum = te.reducer("softmax_sum", online, lambda kinds: (te.const(-1e30, kinds[0]), te.const(0, kinds[1])))
    total, largest = te.compute((n,), lambda i: both((A[i, r], A[i, r] * A[i, r]), axis=r), name="M")
    top, weight = te.compute((n,), lambda i: softmax_sum((A[i, q], te.const(1.0)), axis=q), name="W")
    a = np.random.default_rng(2).standard_normal((n, m)).astype(np.float32) * 100
    a64 = a.astype(np.float64)
    expected = [
        a.sum(1), (a * a).max(1), a.max(1), np.exp(a64 - a64.max(1, keepdims=True)).sum(1).astype(np.float32),
    ]  # fmt: skip
    check([A], [total, largest, top, weight], [([a], expected)], close=(1e-5, 1e-4))


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("size", [(5, 7), (1, 1), (2, 9)])
def test_convolution_with_padding(check, sample, size, stride):
    h, w = size
    channels, filters, k = 3, 4, 3
    X = te.placeholder((channels, h, w), name="X")
    W = te.placeholder((filters, channels, k, k), name="W")
    P = te.compute(
        (channels, h + 2, w + 2),
        lambda c, y, x: te.if_then_else(te.all(y >= 1, y < h + 1, x >= 1, x < w + 1), X[c, y - 1, x - 1], 0.0),
        name="P",
    )
    c, u, v = (
        te.reduce_axis((0, channels), name="c"),
        te.reduce_axis((0, k), name="u"),
        te.reduce_axis((0, k), name="v"),
    )
    out = ((h - 1) // stride + 1, (w - 1) // stride + 1)
    Y = te.compute(
        (filters, *out),
        lambda f, y, x: te.sum(P[c, y * stride + u, x * stride + v] * W[f, c, u, v], axis=(c, u, v)),
        name="Y",
    )
    x, weights = sample((channels, h, w), "float32", 1), sample((filters, channels, k, k), "float32", 2)
    windows = np.lib.stride_tricks.sliding_window_view(np.pad(x, ((0, 0), (1, 1), (1, 1))), (k, k), axis=(1, 2))
    expected = np.einsum("cyxuv,fcuv->fyx", windows[:, ::stride, ::stride], weights)
    check([X, W], [Y], [([x, weights], [np.ascontiguousarray(expected, np.float32)])])


@pytest.mark.parametrize("kind", ["int32", "int64", "uint8"])
def test_gathers(check, sample, kind):
    """Rows chosen by an array of indices; those out of range give -1."""
    n, m, count = 6, 5, 13
    A, I = te.placeholder((n, m), "float64", name="A"), te.placeholder((count,), kind, name="I")
    S = te.compute(
        (count, m),
        lambda i, j: te.if_then_else(te.all(I[i] >= 0, I[i] < n), A[I[i], j], -1.0),
        name="S",
    )
    a, index = sample((n, m), "float64"), sample((count,), kind, 1, -3, 9)
    inside = (index >= 0) & (index < n)
    expected = np.where(inside[:, None], a[np.where(inside, index, 0).astype(int)], -1.0)
    check([A, I], [S], [([a, index], [expected])])


def test_lazy_choices_guard_divisions_and_reads(check, sample):
    n, m = 4, 9
    A = te.placeholder((n, m), "int32", name="A")
    S = te.compute(
        (n, m),
        lambda i, j: te.if_then_else(j < i, te.select(A[i, j] > 0, A[i, j + 1], A[i, j]), A[i, m - 1 - j] * 2),
        name="S",
    )
    a = sample((n, m), "int32", 3)
    i, j = np.indices((n, m))
    chosen = np.where(a > 0, a[i, np.minimum(j + 1, m - 1)], a)
    check([A], [S], [([a], [np.where(j < i, chosen, a[i, m - 1 - j] * 2).astype(np.int32)])])


def test_the_value_of_an_axis_is_a_number(check):
    n = te.var("n")
    A = te.placeholder((n,), "float32", name="A")
    S = te.compute((n,), lambda i: A[i] + te.cast(i % 7 * 2 - i // 3, "float32"), name="S")
    cases = []
    for size in (0, 1, 8, 41):
        i = np.arange(size)
        cases.append(([np.ones(size, np.float32)], [(1 + i % 7 * 2 - i // 3).astype(np.float32)]))
    check([A], [S], cases)


@pytest.mark.parametrize("kind", FLOATS)
def test_math_of_all_floats(check, kind):
    n = 45
    A = te.placeholder((n,), kind, name="A")
    B = te.compute((n,), lambda i: te.tanh(A[i]) * te.exp(A[i] * 0.5), name="B")
    C = te.compute((n,), lambda i: te.sqrt(te.abs(B[i])) + te.floor(A[i]), name="C")
    a = np.random.default_rng(11).standard_normal(n).astype(numpy_dtype(kind))
    wide = a.astype(np.float64)
    expected = np.sqrt(np.abs(np.tanh(wide) * np.exp(wide * 0.5))) + np.floor(wide)
    tolerance = {"float16": (4e-3, 4e-3), "bfloat16": (3e-2, 3e-2), "float32": (2e-6, 2e-6), "float64": (1e-13, 1e-13)}
    check([A], [C], [([a], [expected.astype(a.dtype)])], close=tolerance[kind])


def test_three_stages_with_two_of_them_outputs(check, sample):
    n, m = te.var("n"), te.var("m")
    A = te.placeholder((n, m), "int32", name="A")
    B = te.compute((n, m), lambda i, j: A[i, j] * 2 + 1, name="B")
    r = te.reduce_axis((0, m), name="r")
    R = te.compute((n,), lambda i: te.sum(B[i, r], axis=r), name="R")
    C = te.compute((n, m), lambda i, j: B[i, j] - R[i], name="C")
    cases = []
    for size in SIZES:
        a = sample(size, "int32", sum(size))
        b = a * 2 + 1
        sums = b.sum(1, dtype=np.int32)
        cases.append(([a], [sums, b - sums[:, None]]))
    check([A], [R, C], cases)

"""Random tensor expressions of users' kinds: what the learned cost model is trained on.

They are of the families of ``te_computes.py``, but none of those: contractions of any axes, stencils, reductions,
normalisations, windows over channels, chains of elements. A seed repeats one; one takes some microseconds to some
milliseconds on a core.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from loopwright import te


@dataclass(frozen=True)
class RandomCompute:
    """A ``family``, the tensors that are read, and those that are computed."""

    family: str
    inputs: Sequence[te.Tensor]
    outputs: Sequence[te.Tensor]


def random_compute(seed: int) -> RandomCompute:
    """The compute of a seed."""
    rng = random.Random(seed)
    make = rng.choice(FAMILIES)
    inputs, output = make(rng)
    return RandomCompute(make.__name__, inputs, [output])


def _extent(rng: random.Random, low: int, high: int) -> int:
    """Small ones as likely as large ones; half of them are multiples of 8."""
    value = round(low * (high / low) ** rng.random())
    return max(8, value // 8 * 8) if rng.random() < 0.5 and low >= 8 else value


def _sides(rng: random.Random, rank: int) -> list[int]:
    """The extents of an array of 20,000 to a million elements."""
    total = 20_000 * 50 ** rng.random()
    sides = [max(4, round(total ** (1 / rank) * 2 ** rng.uniform(-0.8, 0.8))) for _ in range(rank)]
    return [side // 8 * 8 if side > 16 and rng.random() < 0.5 else side for side in sides]


def _finished(rng: random.Random, inputs: list[te.Tensor], X: te.Tensor) -> tuple[list[te.Tensor], te.Tensor]:
    """With a bias and an activation behind, now and then."""
    shape = tuple(int(e) for e in X.shape)
    if rng.random() < 0.6:
        return inputs, X
    bias = te.placeholder((shape[-1],), str(X.dtype), name="bias")
    kind = rng.choice(["relu", "exp", "scale"]) if str(X.dtype).startswith("float") else "scale"

    def element(*at: te.Axis) -> te.Expr:
        value = X[at] + bias[at[-1]]
        if kind == "relu":
            return te.maximum(value, 0.0)
        return te.exp(value) if kind == "exp" else value * 2

    return [*inputs, bias], te.compute(shape, element, name="Y")


def contraction(rng: random.Random) -> tuple[list[te.Tensor], te.Tensor]:
    """A product of two arrays, summed over one or two axes; their axes stand in any order."""
    extents = {"i": _extent(rng, 4, 400), "j": _extent(rng, 8, 400), "k": _extent(rng, 8, 400)}
    batch = "h" if rng.random() < 0.3 else ""
    second = "l" if rng.random() < 0.2 else ""
    extents |= {"h": _extent(rng, 2, 12), "l": _extent(rng, 2, 9)}
    names = f"ijk{batch}{second}"
    while _product(extents, names) < 2e5:
        extents[min("ijk", key=lambda name: extents[name])] *= 2
    while _product(extents, names) > 2e7:
        extents[max("ijk", key=lambda name: extents[name])] //= 2
    left, right, out = (list(f"{names}{batch}") for names in (f"ik{second}", f"kj{second}", "ij"))
    for names in (left, right, out):
        rng.shuffle(names)
    dtype = rng.choice(["float32"] * 7 + ["float64", "int8", "int8"])
    A = te.placeholder([extents[n] for n in left], dtype, name="A")
    B = te.placeholder([extents[n] for n in right], dtype, name="B")
    axes = {n: te.reduce_axis((0, extents[n]), name=n) for n in f"k{second}"}

    def element(*at: te.Axis) -> te.Expr:
        where = {**dict(zip(out, at, strict=True)), **axes}
        a, b = A[tuple(where[n] for n in left)], B[tuple(where[n] for n in right)]
        if dtype == "int8":
            a, b = te.cast(a, "int32"), te.cast(b, "int32")
        return te.sum(a * b, axis=tuple(axes.values()))

    C = te.compute([extents[n] for n in out], element, name="C")
    return _finished(rng, [A, B], C)


def _product(extents: dict[str, int], names: str) -> float:
    found = 1.0
    for name in names:
        found *= extents[name]
    return found


def stencil(rng: random.Random) -> tuple[list[te.Tensor], te.Tensor]:
    """One to three stencils behind each other: boxes, crosses or rows of points, in one to three dimensions."""
    rank = rng.choice([1, 2, 2, 2, 3])
    shape, radius = _sides(rng, rank), rng.choice([1, 1, 2])
    count = rng.choice([1, 1, 2, 3])
    taps = [_taps(rng, rank, radius) for _ in range(count)]
    X = A = te.placeholder([side + 2 * radius * count for side in shape], name="A")
    for number, points in enumerate(taps):
        left = count - number - 1
        weights = [rng.uniform(-0.4, 0.4) for _ in points]

        def element(*at: te.Axis, X: te.Tensor = X, points=points, weights=weights) -> te.Expr:
            read = [
                X[tuple(i + d for i, d in zip(at, point, strict=True))] * w
                for point, w in zip(points, weights, strict=True)
            ]
            return sum(read[1:], read[0])

        X = te.compute([side + 2 * radius * left for side in shape], element, name=f"S{number}")
    return [A], X


def _taps(rng: random.Random, rank: int, radius: int) -> list[tuple[int, ...]]:
    box = list(itertools.product(range(2 * radius + 1), repeat=rank))
    kind = rng.choice(["box", "cross", "row"])
    if kind == "box" and len(box) <= 27:
        return box
    away = [sum(d != radius for d in point) for point in box]
    if kind == "row":
        axis = rng.randrange(rank)
        return [p for p in box if all(d == radius or n == axis for n, d in enumerate(p))]
    return [p for p, d in zip(box, away, strict=True) if d <= 1]


def reduction(rng: random.Random) -> tuple[list[te.Tensor], te.Tensor]:
    """A sum or a maximum over some axes of elements, squares, products or differences."""
    rank = rng.choice([2, 2, 3])
    shape = _sides(rng, rank)
    dtype = rng.choice(["float32"] * 4 + ["float64", "int8"])
    A, B = (te.placeholder(shape, dtype, name=name) for name in "AB")
    reduced = sorted(rng.sample(range(rank), rng.choice([1, 1, rank - 1])))
    axes = {n: te.reduce_axis((0, shape[n]), name=f"r{n}") for n in reduced}
    kind = rng.choice(["plain", "square", "product", "distance"])
    fold = te.max if rng.random() < 0.25 else te.sum
    kept = [n for n in range(rank) if n not in reduced]

    def element(*at: te.Axis) -> te.Expr:
        places = dict(zip(kept, at, strict=True))
        index = tuple(axes.get(n, places.get(n)) for n in range(rank))
        a, b = A[index], B[index]
        if dtype == "int8":
            a, b = te.cast(a, "int32"), te.cast(b, "int32")
        value = {"plain": a, "square": a * a, "product": a * b, "distance": (a - b) * (a - b)}[kind]
        return fold(value, axis=tuple(axes.values()))

    S = te.compute([shape[n] for n in kept], element, name="S")
    inputs = [A, B] if kind in ("product", "distance") else [A]
    return _finished(rng, inputs, S)


def normalisation(rng: random.Random) -> tuple[list[te.Tensor], te.Tensor]:
    """Rows or columns by their sums, by the sums of their exponentials, or by their norms."""
    n, m = _sides(rng, 2)
    along_rows, kind = rng.random() < 0.65, rng.choice(["softmax", "sum", "norm"])
    A = te.placeholder((n, m), name="A")
    length, count = (m, n) if along_rows else (n, m)
    r = te.reduce_axis((0, length), name="r")

    def read(X: te.Tensor, line: te.Axis, at: te.Axis) -> te.Expr:
        return X[line, at] if along_rows else X[at, line]

    X = A
    if kind == "softmax":
        q = te.reduce_axis((0, length), name="q")
        M = te.compute((count,), lambda c: te.max(read(A, c, q), axis=q), name="M")
        X = te.compute((n, m), lambda i, j: te.exp(A[i, j] - M[i if along_rows else j]), name="E")
    square = kind == "norm"
    S = te.compute(
        (count,),
        lambda c: te.sum(read(X, c, r) * read(X, c, r) if square else read(X, c, r), axis=r),
        name="S",
    )

    def element(i: te.Axis, j: te.Axis) -> te.Expr:
        whole = S[i if along_rows else j]
        return X[i, j] / (te.sqrt(whole + 1e-5) if square else whole + 10.0)

    return [A], te.compute((n, m), element, name="Y")


def window(rng: random.Random) -> tuple[list[te.Tensor], te.Tensor]:
    """A convolution, one for each channel, or the largest of windows; channels come first or last."""
    kind = rng.choice(["conv", "conv", "depthwise", "pool"])
    size, stride = rng.choice([2, 3, 3, 5]), rng.choice([1, 1, 2])
    n, c, f = _extent(rng, 8, 60), _extent(rng, 3, 64), _extent(rng, 8, 64)
    while kind == "conv" and n * n * c * f * size * size > 3e7:
        n = max(5, n // 2)
        c = max(3, c // 2) if n == 5 else c
    side = (n - 1) * stride + size
    first = rng.random() < 0.6
    A = te.placeholder((c, side, side) if first else (side, side, c), name="A")
    p, q = te.reduce_axis((0, size), name="p"), te.reduce_axis((0, size), name="q")
    r = te.reduce_axis((0, c), name="r")
    W = te.placeholder((f, c, size, size) if kind == "conv" else (c, size, size), name="W")

    def element(*at: te.Axis) -> te.Expr:
        k, i, j = at if first else (at[2], at[0], at[1])
        channel = r if kind == "conv" else k
        y, x = i * stride + p, j * stride + q
        a = A[channel, y, x] if first else A[y, x, channel]
        if kind == "pool":
            return te.max(a, axis=(p, q))
        if kind == "conv":
            return te.sum(a * W[k, r, p, q], axis=(r, p, q))
        return te.sum(a * W[k, p, q], axis=(p, q))

    channels = f if kind == "conv" else c
    Y = te.compute((channels, n, n) if first else (n, n, channels), element, name="C")
    return _finished(rng, [A] if kind == "pool" else [A, W], Y)


def elements(rng: random.Random) -> tuple[list[te.Tensor], te.Tensor]:
    """Two or three stages of arithmetic and functions; inputs may be transposed or broadcast."""
    n, m = _sides(rng, 2)
    turned, across = rng.random() < 0.4, rng.random() < 0.4
    A = te.placeholder((m, n) if turned else (n, m), name="A")
    B = te.placeholder((m,) if across else (n, m), name="B")
    name = rng.choice(["exp", "tanh", "sqrt", ""])

    def first(i: te.Axis, j: te.Axis) -> te.Expr:
        value = (A[j, i] if turned else A[i, j]) * 0.5 + (B[j] if across else B[i, j])
        return getattr(te, name)(te.abs(value)) if name else value

    X = te.compute((n, m), first, name="X")
    if rng.random() < 0.5:
        return [A, B], te.compute((n, m), lambda i, j: X[i, j] * X[i, j] + X[i, j], name="Y")
    return [A, B], te.compute((m, n), lambda j, i: X[i, j] * 2.0 + 1.0, name="Y")


FAMILIES: tuple[Callable[[random.Random], tuple[list[te.Tensor], te.Tensor]], ...] = (
    contraction,
    contraction,
    stencil,
    reduction,
    normalisation,
    window,
    elements,
)

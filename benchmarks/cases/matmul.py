"""Matrix multiplication: square, odd, tall, flat, small; weights constant or both operands at run time; vectors;
batches of small ones; layers that any number of rows goes through."""

from __future__ import annotations

from collections.abc import Iterator

from .case import Bar, Case, dims

SQUARE = (256, 384, 512, 768, 1024, 1536, 2048)
SHAPES = {
    "odd": [(1000, 1001, 999), (127, 129, 131), (511, 513, 509)],
    "tall": [(4096, 64, 64), (2048, 256, 128)],
    "flat": [(64, 64, 4096), (64, 4096, 64), (8, 768, 3072), (128, 768, 768)],
}
SMALL = (8, 16, 24, 32, 48, 64)
VECTORS = ((1, 4096, 4096), (1, 1024, 1000), (4096, 4096, 1), (1, 9216, 4096))
BATCHES = ((64, 16, 16, 16), (96, 64, 64, 64), (12, 128, 64, 128), (256, 8, 8, 8))
LAYERS = ((1024, 1024), (768, 3072), (3072, 768), (384, 384))
ROWS = (1, 2, 4, 5, 7, 9, 12, 17, 33, 64, 100, 128)
LARGE = 512**3
OVERHEAD = "1×1×1"


def _multiplication(group: str, n: int, k: int, m: int, constant: bool, bar: Bar, overhead: str | None = None) -> Case:
    a, b = f"{dims(n, k)} a", f"{dims(k, m)} b"
    name = f"{n}×{k}×{m}" + (" constant" if constant else " run-time")
    inputs, weights = (a, b) if constant else (f"{a}, {b}", "")
    return Case(group, name, inputs, "y = MatMul (a, b)", weights, bar=bar, overhead=overhead)


def _layer(n: int, k: int, m: int) -> Case:
    """A product by a constant and what follows it, of which only a run knows how many rows there are."""
    weights = f"{dims(k, m)} w, {dims(m)} b"
    return Case(
        *("matmul-open", f"{n} rows of {k}→{m}", f"{dims(n, k)} x", "s = MatMul (x, w) y = Add (s, b)", weights),
        open_axes={"x": [0]},
    )


def _either(n: int, k: int, m: int, constant: bool) -> Case:
    large = n * k * m >= LARGE and min(n, k, m) >= 256
    share = (0.93 if constant else 0.87) if large else None
    return _multiplication("matmul", n, k, m, constant, Bar(1.05 if constant else 1.0, share))


def cases() -> Iterator[Case]:
    for constant in (True, False):
        for extent in SQUARE:
            yield _either(extent, extent, extent, constant)
        for shape in (shape for shapes in SHAPES.values() for shape in shapes):
            yield _either(*shape, constant)
        kind = "constant" if constant else "run-time"
        yield _multiplication("matmul-small", 1, 1, 1, constant, Bar(0.0))
        for extent in SMALL:
            bar = Bar(1.05 if constant else 1.0)
            overhead = f"matmul-small {OVERHEAD} {kind}"
            yield _multiplication("matmul-small", extent, extent, extent, constant, bar, overhead)
    for n, k, m in VECTORS:
        large = max(n, m) * k * 4 > 2**25
        yield _multiplication("matvec", n, k, m, m > 1, Bar(1.0, 0.9 if large else None))
    for batch, n, k, m in BATCHES:
        inputs = f"{dims(batch, n, k)} a, {dims(batch, k, m)} b"
        yield Case("matmul-batched", f"{batch}·{n}×{k}×{m}", inputs, "y = MatMul (a, b)")
    for k, m in LAYERS:
        for n in ROWS:
            yield _layer(n, k, m)

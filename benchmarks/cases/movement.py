"""Reductions along each axis, and what only moves data: transposes, gathers, concatenations."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .case import Case, dims

REDUCED = ((1024, 1024), (64, 512, 512), (1, 256, 56, 56))
SCANNED = ((1024, 1024), (128, 4096))
TRANSPOSED = {
    "2-D 1024²": ((1024, 1024), (1, 0)),
    "2-D 4096×1000": ((4096, 1000), (1, 0)),
    "NCHW→NHWC 64 56²": ((1, 64, 56, 56), (0, 2, 3, 1)),
    "NHWC→NCHW 64 56²": ((1, 56, 56, 64), (0, 3, 1, 2)),
    "NCHW→NHWC 3 224²": ((1, 3, 224, 224), (0, 2, 3, 1)),
    "NHWC→NCHW 3 224²": ((1, 224, 224, 3), (0, 3, 1, 2)),
    "heads 12 128×64": ((1, 128, 12, 64), (0, 2, 1, 3)),
}
GATHERED = ((30522, 768, 128), (1000, 64, 4096), (50000, 256, 512))
SCATTERED = ((1000, 64, 500), (10000, 256, 512))
SELECTED = ((1, 8400, 300), (1, 50257, 50), (128, 1000, 5), (64, 1024, 1024))
JOINED = {
    "channels 64+128+32+32 28²": ([(1, c, 28, 28) for c in (64, 128, 32, 32)], 1),
    "channels 256+32 56²": ([(1, c, 56, 56) for c in (256, 32)], 1),
    "rows 2·1024×1024": ([(1024, 1024)] * 2, 0),
    "columns 4·1024×256": ([(1024, 256)] * 4, 1),
}


def _name(shape: tuple[int, ...]) -> str:
    return "×".join(map(str, shape))


def _constant(axis: int) -> dict[str, object]:
    return {"axes": np.array([axis])}


def cases() -> Iterator[Case]:
    for shape in REDUCED:
        for axis in (k for k, extent in enumerate(shape) if extent > 1):
            for operator in ("Sum", "Max", "Mean"):
                nodes = f"y = Reduce{operator} <keepdims=0> (x, axes)"
                name = f"{operator.lower()} {_name(shape)} axis {axis}"
                yield Case("reduce", name, f"{dims(*shape)} x", nodes, constants=_constant(axis))
            nodes = f"y = ArgMax <axis={axis}, keepdims=0> (x)"
            yield Case("argmax", f"{_name(shape)} axis {axis}", f"{dims(*shape)} x", nodes)
    for shape in SCANNED:
        for axis in (0, 1):
            constants = {"axis": np.int64(axis)}
            name = f"{_name(shape)} axis {axis}"
            yield Case("cumsum", name, f"{dims(*shape)} x", "y = CumSum (x, axis)", constants=constants)
    for name, (shape, order) in TRANSPOSED.items():
        yield Case("transpose", name, f"{dims(*shape)} x", f"y = Transpose <perm={list(order)}> (x)")
    for rows, width, count in GATHERED:
        inputs = f"{dims(rows, width)} x, {dims(count, kind='int64')} k"
        name = f"{count} of {rows}×{width}"
        yield Case("gather", name, inputs, "y = Gather <axis=0> (x, k)", ranges={"k": (0, rows)})
    for rows, width, count in SELECTED:
        nodes = "y, i = TopK <axis=-1> (x, k)"
        name, constants = f"{count} of {rows}×{width}", {"k": np.array([count])}
        yield Case("topk", name, f"{dims(rows, width)} x", nodes, constants=constants)
    for rows, width, count in SCATTERED:
        inputs = f"{dims(rows, width)} x, {dims(count, 1, kind='int64')} k, {dims(count, width)} u"
        name = f"{count} of {rows}×{width}"
        yield Case("scatter-nd", name, inputs, "y = ScatterND (x, k, u)", ranges={"k": (0, rows)})
        inputs = f"{dims(rows, width)} x, {dims(count, width, kind='int64')} k, {dims(count, width)} u"
        nodes = 'y = ScatterElements <axis=0, reduction="add"> (x, k, u)'
        yield Case("scatter-add", name, inputs, nodes, ranges={"k": (0, rows)})
    for name, (shapes, axis) in JOINED.items():
        inputs = ", ".join(f"{dims(*shape)} x{k}" for k, shape in enumerate(shapes))
        names = ", ".join(f"x{k}" for k in range(len(shapes)))
        yield Case("concat", name, inputs, f"y = Concat <axis={axis}> ({names})")

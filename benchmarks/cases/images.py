"""What networks do to images beside convolving: pooling, resizing, local response normalisation."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .case import Case, dims

POOLS = {
    "max 3×3/2 64 112²": ((1, 64, 112, 112), "MaxPool", "kernel_shape=[3,3], strides=[2,2], pads=[1,1,1,1]"),
    "max 2×2/2 64 224²": ((1, 64, 224, 224), "MaxPool", "kernel_shape=[2,2], strides=[2,2]"),
    "max 3×3 192 28²": ((1, 192, 28, 28), "MaxPool", "kernel_shape=[3,3], pads=[1,1,1,1]"),
    "max 3×3/2 256 13²": ((1, 256, 13, 13), "MaxPool", "kernel_shape=[3,3], strides=[2,2]"),
    "average 2×2/2 128 56²": ((1, 128, 56, 56), "AveragePool", "kernel_shape=[2,2], strides=[2,2]"),
    "average 3×3 192 28²": ((1, 192, 28, 28), "AveragePool", "kernel_shape=[3,3], pads=[1,1,1,1]"),
    "global average 2048 7²": ((1, 2048, 7, 7), "GlobalAveragePool", ""),
    "global average 512 28²": ((1, 512, 28, 28), "GlobalAveragePool", ""),
}
RESIZES = {
    "nearest 2× 64 56²": ((1, 64, 56, 56), "nearest", "asymmetric", 2.0),
    "nearest 2× 256 28²": ((1, 256, 28, 28), "nearest", "asymmetric", 2.0),
    "linear 2× 64 56²": ((1, 64, 56, 56), "linear", "half_pixel", 2.0),
    "linear ½ 3 448²": ((1, 3, 448, 448), "linear", "half_pixel", 0.5),
}
NORMALISED = ((1, 96, 54, 54), (1, 64, 56, 56), (1, 256, 26, 26), (1, 192, 56, 56))


def cases() -> Iterator[Case]:
    for name, (shape, operator, attributes) in POOLS.items():
        settings = f" <{attributes}>" if attributes else ""
        yield Case("pooling", name, f"{dims(*shape)} x", f"y = {operator}{settings} (x)")
    for name, (shape, mode, coordinates, scale) in RESIZES.items():
        rounding = ', nearest_mode="floor"' if mode == "nearest" else ""
        settings = f'mode="{mode}", coordinate_transformation_mode="{coordinates}"{rounding}'
        constants = {"scales": np.array([1.0, 1.0, scale, scale], np.float32)}
        nodes = f"y = Resize <{settings}> (x, , scales)"
        yield Case("resize", name, f"{dims(*shape)} x", nodes, constants=constants)
    for shape in NORMALISED:
        name = f"5 {shape[1]} {shape[2]}²"
        yield Case("lrn", name, f"{dims(*shape)} x", "y = LRN <size=5, alpha=0.0001, beta=0.75, bias=1.0> (x)")

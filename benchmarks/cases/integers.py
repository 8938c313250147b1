"""Multiplication and convolution of bytes, unsigned by signed, summed in 32 bits."""

from __future__ import annotations

from collections.abc import Iterator

from .case import Bar, Case, dims

VNNI_GAIN = 3.0
"""Over our own float32, on a machine that multiplies and adds four bytes at once."""
CONVOLUTIONS = {
    "3×3 64→64 56²": ((1, 64, 56, 56), (64, 64, 3, 3), "pads=[1,1,1,1]"),
    "1×1 256→64 56²": ((1, 256, 56, 56), (64, 256, 1, 1), ""),
    "3×3 256→256 14²": ((1, 256, 14, 14), (256, 256, 3, 3), "pads=[1,1,1,1]"),
    "1×1 1024→256 14²": ((1, 1024, 14, 14), (256, 1024, 1, 1), ""),
}


def cases() -> Iterator[Case]:
    for constant in (True, False):
        kind = "constant" if constant else "run-time"
        for extent in (256, 512, 1024):
            a, b = dims(extent, extent, kind="uint8"), dims(extent, extent, kind="int8")
            inputs, weights = (f"{a} a", f"{b} b") if constant else (f"{a} a, {b} b", "")
            name = f"{extent}×{extent}×{extent} {kind}"
            nodes, bar = "y = MatMulInteger (a, b)", Bar(1.0, gain=VNNI_GAIN)
            yield Case("int8-matmul", name, inputs, nodes, weights, bar=bar, against=f"matmul {name}")
    for name, (x, w, attributes) in CONVOLUTIONS.items():
        settings = f" <{attributes}>" if attributes else ""
        inputs, weights = f"{dims(*x, kind='uint8')} x", f"{dims(*w, kind='int8')} w"
        yield Case("int8-conv", name, inputs, f"y = ConvInteger{settings} (x, w)", weights)

"""Multiplication of bfloat16, summed in float32 and rounded once."""

from __future__ import annotations

from collections.abc import Iterator

from .case import Bar, Case, dims

PAIRS_GAIN = 1.7
"""Over our own float32, on a machine that multiplies and adds pairs."""
ROUNDED = 2**-8
"""How far neighbours are apart, as a part of the larger one: sums in another order may be rounded to either."""


def cases() -> Iterator[Case]:
    for constant in (True, False):
        kind = "constant" if constant else "run-time"
        for extent in (256, 512, 1024):
            factor = dims(extent, extent, kind="bfloat16")
            inputs, weights = (f"{factor} a", f"{factor} b") if constant else (f"{factor} a, {factor} b", "")
            name = f"{extent}×{extent}×{extent} {kind}"
            bar = Bar(1.0, gain=PAIRS_GAIN, apart=ROUNDED)
            yield Case("bf16-matmul", name, inputs, "y = MatMul (a, b)", weights, bar=bar, against=f"matmul {name}")

"""Attention: softmax(Q·Kᵀ/√d)·V by heads, as one operator and as an exporter writes it without."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .case import Bar, Case, dims

BAR = Bar(1.2)
SHAPES = ((8, 128, 64), (12, 128, 64), (12, 197, 64), (16, 256, 64), (8, 512, 64), (12, 512, 64), (16, 1024, 64))


def cases() -> Iterator[Case]:
    for heads, length, depth in SHAPES:
        rows = dims(1, heads, length, depth)
        name = f"{heads} heads {length}×{depth}"
        inputs = f"{rows} q, {rows} k, {rows} v"
        yield Case("attention", name, inputs, "y = Attention (q, k, v)", bar=BAR, opset=23)
        nodes = (
            "t = Transpose <perm=[0,1,3,2]> (k) s = MatMul (q, t) "
            "u = Mul (s, c) p = Softmax <axis=-1> (u) y = MatMul (p, v)"
        )
        constants = {"c": np.float32(depth**-0.5)}
        yield Case("attention-written-out", name, inputs, nodes, bar=BAR, constants=constants)

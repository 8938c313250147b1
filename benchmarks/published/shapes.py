"""The sizes of the published pipelines, as arrays of numpy have them: the last dimension is dense."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

HEIGHT, WIDTH = 1536, 2560
MARGIN = 8
"""Around the image whose corners are found: what Halide's vectors may read beside what is needed."""
IMAGES, CHANNELS, ROWS, COLUMNS = 5, 128, 80, 100
SIZE = 1024

INPUTS: Mapping[str, Sequence[tuple[str, tuple[int, ...]]]] = {
    "blur": [("uint16", (HEIGHT + 2, WIDTH + 2))],
    "harris": [("float32", (3, HEIGHT + 2 * MARGIN, WIDTH + 2 * MARGIN))],
    "unsharp": [("float32", (3, HEIGHT, WIDTH))],
    "bilateral_grid": [("float32", (HEIGHT, WIDTH))],
    "conv_layer": [
        ("float32", (IMAGES, ROWS + 2, COLUMNS + 2, CHANNELS)),
        ("float32", (CHANNELS, 3, 3, CHANNELS)),
        ("float32", (CHANNELS,)),
    ],
    "matmul": [("float32", (SIZE, SIZE)), ("float32", (SIZE, SIZE))],
}
OUTPUTS: Mapping[str, tuple[str, tuple[int, ...]]] = {
    "blur": ("uint16", (HEIGHT, WIDTH)),
    "harris": ("float32", (HEIGHT, WIDTH)),
    "unsharp": ("float32", (3, HEIGHT, WIDTH)),
    "bilateral_grid": ("float32", (HEIGHT, WIDTH)),
    "conv_layer": ("float32", (IMAGES, ROWS, COLUMNS, CHANNELS)),
    "matmul": ("float32", (SIZE, SIZE)),
}


def arrays_of(name: str) -> tuple[Sequence[np.ndarray], np.ndarray]:
    """The inputs of a pipeline, between 0 and 1, or below 1024 where they are integers; and memory for its output."""
    rng = np.random.default_rng(0)
    inputs = [
        rng.integers(0, 1024, shape).astype(dtype) if dtype == "uint16" else rng.random(shape, np.float32)
        for dtype, shape in INPUTS[name]
    ]
    dtype, shape = OUTPUTS[name]
    return inputs, np.zeros(shape, dtype)

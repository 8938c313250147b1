"""Transforms of signals: rows of many lengths, and short-time transforms as models of speech begin with."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .case import Bar, Case, dims

BAR = Bar(1.0, apart=1e-3)
"""The chirps of onnxruntime, for lengths that are no power of 2, are off by some 3e-4."""
ROWS = ((1, 512), (100, 256), (100, 400), (100, 1000), (100, 1021), (1, 65536))
"""How many rows, and their length, which is a prime in one case."""
FRAMES = ((16000, 256, 64), (16000, 400, 160), (160000, 400, 160), (88200, 2048, 512))
"""The length of the signal, that of frames, and their step."""


def cases() -> Iterator[Case]:
    for rows, length in ROWS:
        for components, kind in ((1, "reals"), (2, "pairs")):
            yield Case(
                "dft",
                f"{rows}×{length} {kind}",
                f"{dims(rows, length, components)} x",
                f"y = DFT <onesided={2 - components}> (x)",
                bar=BAR,
            )
    for signal, length, step in FRAMES:
        yield Case(
            "stft",
            f"{signal} by {length}, step {step}",
            f"{dims(1, signal, 1)} x",
            "y = STFT (x, step, window)",
            constants={"step": np.int64(step), "window": np.hanning(length).astype(np.float32)},
            bar=BAR,
        )

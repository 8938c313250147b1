"""Recurrent networks: of one sample, as they serve, and of several."""

from __future__ import annotations

from collections.abc import Iterator

from .case import Bar, Case, dims

BAR = Bar(1.0)
GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
SHAPES = (
    (1, 1, 64),
    (1, 1, 512),
    (10, 1, 64),
    (100, 1, 128),
    (100, 1, 256),
    (500, 1, 64),
    (500, 1, 1024),
    (50, 8, 128),
)
"""Steps, samples, and hidden units, of which the inputs are as many."""


def cases() -> Iterator[Case]:
    for operator, gates in GATES.items():
        for time, batch, hidden in SHAPES:
            rows = gates * hidden
            yield Case(
                operator.lower(),
                f"{time}×{batch}×{hidden}",
                f"{dims(time, batch, hidden)} x",
                f"y = {operator} <hidden_size={hidden}> (x, w, r, b)",
                f"{dims(1, rows, hidden)} w, {dims(1, rows, hidden)} r, {dims(1, 2 * rows)} b",
                bar=BAR,
            )

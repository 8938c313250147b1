"""A tensor expression as users write it, with what numpy makes of the same."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from loopwright import te

Array = npt.NDArray[np.generic]


@dataclass(frozen=True)
class TeCase:
    """Inputs, outputs, and the same in numpy."""

    inputs: Sequence[te.Tensor]
    outputs: Sequence[te.Tensor]
    reference: Callable[..., Array | tuple[Array, ...]]

    def arrays(self, seed: int = 0) -> list[Array]:
        """Random inputs."""
        rng = np.random.default_rng(seed)
        return [_random(rng, [int(e) for e in t.shape], np.dtype(str(t.dtype))) for t in self.inputs]

    def results(self) -> list[Array]:
        """Memory for the outputs."""
        return [np.zeros([int(e) for e in t.shape], str(t.dtype)) for t in self.outputs]


def _random(rng: np.random.Generator, shape: Sequence[int], kind: np.dtype) -> Array:
    if kind.kind in "iu":
        info = np.iinfo(kind)
        return rng.integers(max(info.min, -100), min(info.max, 100), shape, dtype=kind, endpoint=True)
    return rng.standard_normal(shape).astype(kind)


def image(n: int, m: int) -> te.Tensor:
    """An input of rows and columns."""
    return te.placeholder((n, m), name="A")

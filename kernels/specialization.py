"""A kernel function for arrays of certain shapes and dtypes: traced, scheduled, compiled."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..base.dataclass import dataclass
from ..base.errors import RuntimeArgumentError
from ..ir.constants import const_int
from ..lowering.schedule import Schedule
from ..runtime.arrays import Array, array_text
from ..runtime.kernel import Kernel
from ..te.tensor import Tensor
from .arguments import ArrayArgument


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Specialization:
    """What a kernel function became for certain arguments: ``kernel`` is the code, ``schedule`` how it is computed.

    ``inputs`` are the tensors that stand for arrays, ``outputs`` those that the function returned. ``used`` are the
    positions, among the inputs, of those that the outputs depend on: the kernel takes these, and the outputs.
    """

    kernel: Kernel
    schedule: Schedule
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    used: tuple[int, ...]
    results: tuple[tuple[tuple[int, ...], np.dtype[Any]], ...]
    """Shape and dtype of each output, as numpy has them."""
    several: bool
    """Whether the function returned a tuple."""

    def run(self, arrays: Sequence[ArrayArgument], out: Any = None) -> Any:
        """Run the kernel on arrays of its shapes; gives new arrays, or writes ``out`` and gives it."""
        results = [np.empty(shape, kind) for shape, kind in self.results] if out is None else self._into(out)
        self.kernel(*(arrays[k].array for k in self.used), *results)
        return (out if out is not None else tuple(results)) if self.several else results[0]

    def _into(self, out: Any) -> list[Array]:
        given = list(out) if self.several and isinstance(out, (tuple, list)) else [out]
        name = self.kernel.name
        if len(given) != len(self.outputs):
            raise RuntimeArgumentError(f"kernel {name}: out should be {len(self.outputs)} arrays, found {len(given)}")
        for array, (shape, kind) in zip(given, self.results, strict=True):
            if not isinstance(array, np.ndarray) or array.shape != shape or array.dtype != kind:
                found = (
                    array_text(array) if isinstance(array, np.ndarray) else f"a value of type {type(array).__name__}"
                )
                raise RuntimeArgumentError(f"kernel {name}: out should be an array {kind}{list(shape)}, found {found}")
        return given

    def __repr__(self) -> str:
        return f"<Specialization {self.kernel!r}>"


def shape_of(tensor: Tensor) -> tuple[int, ...]:
    """The extents of a tensor, all of which are numbers."""
    extents = tuple(map(const_int, tensor.shape))
    if None in extents:
        raise RuntimeArgumentError(f"{tensor!r} has an extent that the shapes of the arguments do not tell")
    return tuple(extent for extent in extents if extent is not None)

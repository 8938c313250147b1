"""A state of a model: an output of each run that is an input of the next, and stays in memory in between."""

from __future__ import annotations

from .dataclass import dataclass


@dataclass(frozen=True, slots=True)
class State:
    """``input`` and ``output`` are the positions of both among those of the model. ``axis`` is the one along which a
    run makes the state longer; None for a state of fixed shape. ``in_place``: native code writes what is new into the
    memory of the input, which is that of the output too; the axis that grows is then the outermost one there. Else the
    output is written whole, to memory of its own."""

    input: int
    output: int
    axis: int | None = None
    in_place: bool = False

    @property
    def is_moved(self) -> bool:
        """Whether native code has the axes in another order than the model."""
        return self.in_place and self.axis is not None and self.axis > 0

    def to_native(self, rank: int) -> tuple[int, ...]:
        """The order of the model's axes in native code."""
        axis = self.axis or 0
        return (axis, *range(axis), *range(axis + 1, rank)) if self.is_moved else tuple(range(rank))

    def from_native(self, rank: int) -> tuple[int, ...]:
        """The order of native code's axes in the model."""
        axis = self.axis or 0
        return (*range(1, axis + 1), 0, *range(axis + 1, rank)) if self.is_moved else tuple(range(rank))

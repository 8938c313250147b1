"""What a run of a model gives: the list of its output arrays, which answers their names, too."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import SupportsIndex, overload

from ..base.errors import RuntimeArgumentError
from .arrays import Array


class RunOutputs(list[Array]):
    """The outputs in order: ``outputs[0]``, ``outputs["logits"]``, and ``dict(outputs)`` has all of them by name.

    It is a list in every other respect. Names stand for the positions that the outputs had at first, so what changes
    the list's order or length makes them meaningless. An unknown name is a ``RuntimeArgumentError``.
    """

    __slots__ = ("_positions",)

    def __init__(self, arrays: Iterable[Array], positions: Mapping[str, int]) -> None:
        list.__init__(self, arrays)  # at each call of an engine: `super()` takes three times as long
        self._positions = positions

    def keys(self) -> list[str]:
        """The names of the outputs, in order."""
        return list(self._positions)

    def __contains__(self, key: object) -> bool:
        return key in self._positions if isinstance(key, str) else super().__contains__(key)

    @overload
    def __getitem__(self, key: str | SupportsIndex) -> Array: ...
    @overload
    def __getitem__(self, key: slice) -> list[Array]: ...
    def __getitem__(self, key: str | SupportsIndex | slice) -> Array | list[Array]:
        if not isinstance(key, str):
            return super().__getitem__(key)
        position = self._positions.get(key)
        if position is None:
            raise RuntimeArgumentError(f"there is no output {key!r}; the outputs are {', '.join(self._positions)}")
        return super().__getitem__(position)

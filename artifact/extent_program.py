"""Many extents as numbers at once: what they share is computed once, and no formula is walked at each run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from .extents import OPERATORS, Extent, Formula


class ExtentProgram:
    """``program(dims)`` gives the numbers of the extents, in order, for values of the dimensions in the order of their
    names; ``ZeroDivisionError`` where one divides by 0."""

    def __init__(self, extents: Iterable[Extent], dims: Sequence[str]) -> None:
        places: dict[Extent, int] = {name: place for place, name in enumerate(dims)}
        numbers: list[int] = []
        code: list[tuple[Callable[[int, int], int], Extent, Extent]] = []
        extents = list(extents)
        for extent in _parts_first(extents):
            if isinstance(extent, int) and extent not in places:
                places[extent] = len(dims) + len(numbers)
                numbers.append(extent)
        for extent in _parts_first(extents):
            if isinstance(extent, Formula) and extent not in places:
                places[extent] = len(dims) + len(numbers) + len(code)
                code.append((OPERATORS[extent.op], extent.left, extent.right))
        self._numbers = tuple(numbers)
        self._code = [(function, places[left], places[right]) for function, left, right in code]
        self._results = [places[extent] for extent in extents]

    def __call__(self, dims: Sequence[int]) -> list[int]:
        values = [*dims, *self._numbers]
        for function, left, right in self._code:
            values.append(function(values[left], values[right]))
        return [values[place] for place in self._results]


def _parts_first(extents: Iterable[Extent]) -> Iterable[Extent]:
    """All extents and their parts, each behind its own."""
    for extent in extents:
        if isinstance(extent, Formula):
            yield from _parts_first(extent.parts)
        yield extent

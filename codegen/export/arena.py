"""Where intermediates of an exported model lie in its arena: numbers, or formulas over its symbolic dimensions.

``memory_plan.py`` needs the sizes to plan with. Where these are formulas, values that never live together share a
place in order of their first steps, each place as large as the largest of its values.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...artifact.extents import Extent, Formula
from ...artifact.model import CompiledModel, Intermediate
from ...base.aligned import ARENA_ALIGNMENT


@dataclass(frozen=True, slots=True)
class ArenaPlan:
    """Offsets of the intermediates, then of the slices, and the size of the arena, all in bytes."""

    offsets: tuple[Extent, ...]
    size: Extent


def plan_arena(model: CompiledModel) -> ArenaPlan:
    if not model.dims:
        return ArenaPlan(*model.arena({}))
    places = _places(model.intermediates)
    begins: list[Extent] = []
    end: Extent = 0
    for number in range(len(set(places))):
        begins.append(end)
        sizes = [value.size for value, place in zip(model.intermediates, places, strict=True) if place == number]
        end = _plus(end, _lines(_largest(sizes)))
    offsets = [begins[place] for place in places]
    slices = [_plus(offsets[part.base], part.begin) for part in model.slices]
    return ArenaPlan((*offsets, *slices), end)


def _places(values: tuple[Intermediate, ...]) -> list[int]:
    """The number of a place for each value, the lowest that is free when it is written: as few places as possible."""
    free_from: list[int] = []
    found = [0] * len(values)
    for number in sorted(range(len(values)), key=lambda k: values[k].first):
        value = values[number]
        place = next((k for k, step in enumerate(free_from) if step < value.first), len(free_from))
        free_from[place : place + 1] = [value.last]
        found[number] = place
    return found


def _largest(sizes: list[Extent]) -> Extent:
    number = max((size for size in sizes if isinstance(size, int)), default=0)
    result: Extent = number
    for size in dict.fromkeys(sizes):
        if not isinstance(size, int):
            result = size if result == 0 else Formula("max", result, size)
    return result


def _lines(size: Extent) -> Extent:
    """Whole cache lines, at least one."""
    if isinstance(size, int):
        return -(-max(size, 1) // ARENA_ALIGNMENT) * ARENA_ALIGNMENT
    return Formula("*", Formula("+", Formula("//", size, ARENA_ALIGNMENT), 1), ARENA_ALIGNMENT)


def _plus(left: Extent, right: Extent) -> Extent:
    if isinstance(left, int) and isinstance(right, int):
        return left + right
    return right if left == 0 else left if right == 0 else Formula("+", left, right)

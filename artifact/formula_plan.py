"""Where values lie in memory that is had as a whole, planned before their sizes are numbers: offsets are formulas.

``memory_plan.py`` needs the sizes to plan with. Where these are formulas, values that never live together share a
region in order of their first steps, each region as large as the largest of its values.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..base.aligned import ARENA_ALIGNMENT
from ..base.dataclass import dataclass
from .extents import Extent, Formula
from .memory_plan import Lifetime, plan_memory


@dataclass(frozen=True, slots=True)
class SizedLife:
    """The size of a value in bytes, and the steps during which it is needed, both ends counted."""

    size: Extent
    first: int
    last: int


def plan_offsets(values: Sequence[SizedLife]) -> tuple[tuple[Extent, ...], Extent]:
    """The offset of each value in bytes, a multiple of 64, and the bytes of all together; numbers if all sizes are."""
    known = {n: Lifetime(v.size, v.first, v.last) for n, v in enumerate(values) if isinstance(v.size, int)}
    if len(known) == len(values):
        offsets, size = plan_memory(known)
        return tuple(offsets[number] for number in known), size
    regions = _regions(values)
    begins: list[Extent] = []
    end: Extent = 0
    for number in range(len(set(regions))):
        begins.append(end)
        sizes = [value.size for value, region in zip(values, regions, strict=True) if region == number]
        end = plus(end, whole_lines(largest(sizes)))
    return tuple(begins[region] for region in regions), end


def _regions(values: Sequence[SizedLife]) -> list[int]:
    """The number of a region for each value, the lowest that is free when it is written: as few regions as possible."""
    free_from: list[int] = []
    found = [0] * len(values)
    for number in sorted(range(len(values)), key=lambda k: values[k].first):
        value = values[number]
        region = next((k for k, step in enumerate(free_from) if step < value.first), len(free_from))
        free_from[region : region + 1] = [value.last]
        found[number] = region
    return found


def largest(sizes: Iterable[Extent]) -> Extent:
    """The largest of sizes that are 0 or more."""
    sizes = list(sizes)
    number = max((size for size in sizes if isinstance(size, int)), default=0)
    result: Extent = number
    for size in dict.fromkeys(sizes):
        if not isinstance(size, int):
            result = size if result == 0 else Formula("max", result, size)
    return result


def whole_lines(size: Extent) -> Extent:
    """The least number of whole cache lines, in bytes, that has room for so many bytes; one line at least."""
    if isinstance(size, int):
        return -(-max(size, 1) // ARENA_ALIGNMENT) * ARENA_ALIGNMENT
    return Formula("*", Formula("+", Formula("//", size, ARENA_ALIGNMENT), 1), ARENA_ALIGNMENT)


def plus(left: Extent, right: Extent) -> Extent:
    """The sum, a number if both are."""
    if isinstance(left, int) and isinstance(right, int):
        return left + right
    return right if left == 0 else left if right == 0 else Formula("+", left, right)

"""How a Winograd convolution is cut into groups of tiles, and those into register tiles; and what it costs that way.

A group's inputs are transformed, then multiplied by some panels of filters together, plane by plane, then by the next
ones. A small group fits in the second cache; a large one uses the panels, which come from further away, more often; and
the more panels are together, the fewer times inputs pass, but the more products there are to keep. The model here
weighs these.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cached_property, lru_cache

from ....base.dataclass import dataclass
from ....base.dtype import DType
from ....base.target import Target
from ....schedules.blocks import MANY_TASKS, even_sizes
from ....schedules.machine import CORE

CYCLES_PER_STEP = 0.5
"""What a step of the sum takes beside its loads and multiplications."""
CYCLES_PER_TRANSFORM = 120
"""What it takes to begin with the inputs, or the products, of another tile and block of channels."""
CYCLES_PER_PAIR = 0.08
"""What it takes to transform them, by pairs of planes: more planes take longer sums, which fit in registers less."""
WAYS_TO_AFAR = 4
"""How many times as long it takes to write inputs beyond the second cache, to a page of each plane, as to read them."""
LARGEST_GROUP = 4
"""How many times the size of the second cache the inputs of a group may be."""
CYCLES_PER_PANEL = 1000
"""What it takes to begin with another panel of filters."""
ENOUGH_TASKS = 4
"""So many parallel tasks of equal size, panels together, keep the threads of a small machine busy."""


@dataclass(frozen=True, slots=True)
class WinogradBlocking:
    """``group`` tiles are transformed together; the sums of ``rows`` of them, by the filters of a panel, stay in
    registers; a plane is multiplied by panels ``together``. ``cycles`` is what the products of one image cost."""

    group: int
    rows: int
    together: int
    cycles: float


@dataclass(frozen=True)  # without slots, for the cached property
class Products:
    """The products of one image: for each of ``planes``, tiles × channels by channels × filters, in panels of
    ``width`` filters."""

    planes: int
    tiles: int
    channels: int
    filters: int
    width: int
    dtype: DType
    target: Target

    @property
    def transforms(self) -> float:
        """Cycles to transform inputs and products."""
        blocks = (self.channels + self.filters) / self.target.lanes(self.dtype)
        return self.tiles * blocks * (CYCLES_PER_TRANSFORM + CYCLES_PER_PAIR * self.planes**2)

    @cached_property
    def vectors(self) -> int:
        """How many vectors the filters of a panel are."""
        return math.ceil(self.width / self.target.lanes(self.dtype))

    @lru_cache(maxsize=1024)  # noqa: B019  a value: each of a problem's candidates asks for an equal one
    def best(self, unit: int = 1) -> WinogradBlocking:
        """The blocking that costs least; of equals, the one with fewer groups, and fewer panels together. A group is a
        multiple of ``unit``, or all tiles."""
        most = max(1, LARGEST_GROUP * self.target.l2_bytes // self._bytes(self.channels))
        least = math.ceil(self.tiles / most)
        even = even_sizes(self.tiles, least)
        groups = dict.fromkeys(min(math.ceil(group / unit) * unit, self.tiles) for group in even)
        candidates = (self._of(group, together) for group in groups for together in self._together(group))
        return min(candidates, key=lambda blocking: blocking.cycles)

    def of_groups(self, group: int) -> WinogradBlocking:
        """The blocking that costs least with groups of ``group`` tiles, and a last one of any number up to that, as of
        an image whose extents are open."""
        heights = [height for height in self._heights(group) if group % height == 0]
        rows = min(heights, key=lambda height: sum(self._steps(n, n, height) for n in range(1, group + 1)))
        whole, rest = divmod(self.tiles, group)

        def cycles(together: int) -> float:
            last = self.group_cycles(rest, rows, together) if rest else 0.0
            return whole * self.group_cycles(group, rows, together) + last

        together = min(self._together(group), key=cycles)
        return WinogradBlocking(group, rows, together, cycles(together))

    def _together(self, group: int) -> Iterator[int]:
        """How many panels may be multiplied by a plane before the next plane: as many as leave tasks for threads, and
        whose products stay in the second cache."""
        panels = self.filters // self.width
        tasks = 1 if math.ceil(self.tiles / group) >= MANY_TASKS else ENOUGH_TASKS
        for together in range(1, panels // tasks + 1):
            if panels % together == 0 and together * self._bytes(group * self.width) <= self.target.l2_bytes // 2:
                yield together
        yield 1

    def _of(self, group: int, together: int) -> WinogradBlocking:
        highest = max(self._heights(group))
        rows = math.ceil(group / math.ceil(group / highest))
        cycles = math.ceil(self.tiles / group) * self.group_cycles(group, rows, together, filled_up=True)
        return WinogradBlocking(group, rows, together, cycles)

    def group_cycles(self, tiles: int, rows: int, together: int, filled_up: bool = False) -> float:
        """Cycles of the products of a group of so many tiles, in register tiles of so many ``rows``, of which the last
        one has what is left, or is filled up."""
        panels = self.filters // self.width
        computed = math.ceil(tiles / rows) * rows if filled_up else tiles
        sums = panels * self.planes * self.channels * self._steps(tiles, computed, rows)
        far = self._far_bytes(tiles, panels, together) / CORE.copied_bytes
        return sums + far + panels * CYCLES_PER_PANEL

    def _far_bytes(self, group: int, panels: int, together: int) -> float:
        """What of a group's inputs goes beyond the second cache, which keeps half for them while they are made; and
        comes from there, each time that the first plane begins, as much as panels and products have displaced."""
        taken, made = self._bytes(group * self.channels), self._bytes(group * self.width)
        panel = self._bytes(self.channels * self.width)
        displaced = min(taken, max(0, taken + together * (panel + made) - self.target.l2_bytes))
        return panels // together * displaced + WAYS_TO_AFAR * max(0, taken - self.target.l2_bytes // 2)

    def _bytes(self, elements: int) -> int:
        return self.planes * elements * self.dtype.storage_bytes

    def _heights(self, group: int) -> range:
        """The heights of register tiles: there is room for the sums, a vector of each of the filters', and a factor."""
        return range(1, max(1, min(group, (self.target.vector_registers - 1) // self.vectors - 1)) + 1)

    def _steps(self, group: int, computed: int, rows: int) -> float:
        """Cycles for one term of the sums of a group by a panel, of which so many are ``computed``. Its weights come
        from afar, unless all of them stay in the second cache beside the inputs."""
        whole, rest = divmod(computed, rows)
        steps = whole * self._step(rows) + (self._step(rest) if rest else 0.0)
        if self._bytes(self.channels * (group + self.filters)) <= self.target.l2_bytes:
            return steps
        weights = self.width * self.dtype.storage_bytes
        return max(steps + weights / CORE.ahead_bytes, weights / CORE.streamed_bytes)

    def _step(self, rows: int) -> float:
        """Cycles of a step of one register tile. A sum waits four cycles for its last addition."""
        loads = (rows + self.vectors) / CORE.sustained_loads
        come = self.width * self.dtype.storage_bytes / CORE.near_bytes
        return max(rows * self.vectors / self.target.fma_per_cycle, loads, come, 4.0) + CYCLES_PER_STEP

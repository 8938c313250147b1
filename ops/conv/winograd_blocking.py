"""How a Winograd convolution is cut into groups of tiles, and those into register tiles; and what it costs that way.

A group's inputs are transformed, then multiplied by one panel of filters after the other. A small group fits in the
second cache; a large one uses the panels, which come from further away, more often. The model here weighs both.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from ...ir.dtype import DType
from ...ir.target import Target
from ..cost import BYTES_PER_CYCLE

LOADS_PER_CYCLE = 1.7
"""Of two that a core can do at most: those of a register tile do not always find both ports."""
CYCLES_PER_STEP = 0.5
"""What a step of the sum takes beside its loads and multiplications."""
CYCLES_PER_TRANSFORM = 200
"""What it takes to begin with the inputs, or the products, of another tile and block of channels."""
CYCLES_PER_VECTOR = 10
"""What it takes to transform a vector of one plane of them, with its ways to the second cache."""
LARGEST_GROUP = 4
"""How many times the size of the second cache the inputs of a group may be."""
CYCLES_PER_PANEL = 1000
"""What it takes to begin with another panel of filters."""
ENOUGH_TASKS = 4
"""So many groups keep the threads of a small machine busy; of fewer, panels run in parallel, in as many tasks."""


@dataclass(frozen=True, slots=True)
class Blocking:
    """``group`` tiles are transformed together; the sums of ``rows`` of them, by the filters of a panel, stay in
    registers. ``cycles`` is what the products of one image cost."""

    group: int
    rows: int
    together: int
    cycles: float


@dataclass(frozen=True, slots=True)
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
        return self.tiles * blocks * (CYCLES_PER_TRANSFORM + CYCLES_PER_VECTOR * self.planes)

    @property
    def vectors(self) -> int:
        """How many vectors the filters of a panel are."""
        return math.ceil(self.width / self.target.lanes(self.dtype))

    def best(self) -> Blocking:
        """The way that costs least; of equals, the one with fewer groups, and fewer panels together."""
        most = max(1, LARGEST_GROUP * self.target.l2_bytes // self._bytes(self.channels))
        least = math.ceil(self.tiles / most)
        groups = dict.fromkeys(math.ceil(self.tiles / count) for count in range(least, self.tiles + 1))
        return min((self._of(group, together) for group in groups for together in self._together(group)), key=lambda b: b.cycles)

    def _together(self, group: int) -> Iterator[int]:
        """How many panels may be multiplied by a plane before the next plane: as many as leave tasks for threads, and
        whose products stay in the second cache."""
        panels = self.filters // self.width
        tasks = 1 if math.ceil(self.tiles / group) >= ENOUGH_TASKS else ENOUGH_TASKS
        for together in range(1, panels // tasks + 1):
            if panels % together == 0 and together * self._bytes(group * self.width) <= self.target.l2_bytes // 2:
                yield together
        yield 1

    def _of(self, group: int, together: int) -> Blocking:
        rows, step = min(((r, self._steps(group, r)) for r in self._heights(group)), key=lambda found: found[1])
        panels = self.filters // self.width
        steps = panels * self.planes * self.channels * step
        far = self._far_bytes(group, panels, together) / BYTES_PER_CYCLE
        count = math.ceil(self.tiles / group)
        cycles = count * (steps + far + panels * CYCLES_PER_PANEL)
        return Blocking(group, rows, together, cycles)

    def _far_bytes(self, group: int, panels: int, together: int) -> float:
        """What a group fetches from beyond the second cache: the weights, unless all of them stay there; and each time
        it begins with its first plane, as much of its inputs as panels and products have displaced."""
        taken, made = self._bytes(group * self.channels), self._bytes(group * self.width)
        panel = self._bytes(self.channels * self.width)
        weights = panels * panel
        displaced = min(taken, max(0, taken + together * (panel + made) - self.target.l2_bytes))
        return panels // together * displaced + (0 if taken + weights <= self.target.l2_bytes else weights)

    def _bytes(self, elements: int) -> int:
        return self.planes * elements * self.dtype.storage_bytes

    def _heights(self, group: int) -> tuple[int, int]:
        """The greatest height of a register tile (there is room for the sums, a vector of each of the filters', and a
        factor), and that of equal tiles."""
        most = max(1, min(group, (self.target.vector_registers - 1) // self.vectors - 1))
        return most, math.ceil(group / math.ceil(group / most))

    def _steps(self, group: int, rows: int) -> float:
        """Cycles for one term of the sums of a group by a panel."""
        rest = self._step(group % rows) if group % rows else 0.0
        return group // rows * self._step(rows) + rest

    def _step(self, rows: int) -> float:
        """Of one register tile. A sum waits four cycles for its last addition."""
        loads = (rows + self.vectors) / LOADS_PER_CYCLE
        return max(rows * self.vectors / 2, loads, 4.0) + CYCLES_PER_STEP

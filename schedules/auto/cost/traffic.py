"""How many cache lines come to each cache: what loops touch again is there still, if all in between fits.

For each cache the outermost loop counts whose single iterations touch no more than it holds: it then gets each line of
an array once whenever that loop is entered (Wolf and Lam 1991; Ansor's and Halide's features count the same reuse).
Where not even an iteration of the innermost loop fits, it gets them in each.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from ....base.dataclass import dataclass
from ....ir.buffer import Buffer
from ....ir.expr import Var
from .footprint import LINE, Footprint, LinearAccess, accesses_of_lanes, footprint
from .nest import LoopNode, accesses_of, bytes_of

FILLED = 0.75
"""The part of a cache that data which are used again can count on."""


@dataclass(frozen=True, slots=True)
class Traffic:
    """``lines`` that come to a cache, in ``runs`` of lines that follow each other, and lines ``written`` back."""

    lines: float = 0.0
    runs: float = 0.0
    written: float = 0.0

    def __add__(self, other: Traffic) -> Traffic:
        return Traffic(self.lines + other.lines, self.runs + other.runs, self.written + other.written)

    def times(self, factor: float) -> Traffic:
        """The traffic of a part that runs so many times."""
        return Traffic(self.lines * factor, self.runs * factor, self.written * factor)


class Arrays:
    """The arrays that a tree of loops accesses, and where. Mutable: it remembers footprints."""

    def __init__(self, root: LoopNode) -> None:
        self._sizes: dict[Var, float] = {}
        self._at: dict[LoopNode, list[tuple[Var, LinearAccess, bool]]] = {}
        for node in root.all_inside():
            self._at[node] = []
            for stmt, _ in node.parts:
                for buffer, index, lanes, writes in accesses_of(stmt):
                    for access in accesses_of_lanes(index, lanes, buffer.dtype.storage_bytes):
                        self._add(node, buffer, access, writes)
        self._known: dict[tuple[LoopNode, bool], Mapping[Var, tuple[Footprint, bool]]] = {}

    def _add(self, node: LoopNode, buffer: Buffer, access: LinearAccess, writes: bool) -> None:
        self._sizes[buffer.data] = max(bytes_of(buffer), self._sizes.get(buffer.data, 0.0))
        self._at[node].append((buffer.data, access, writes))

    @property
    def whole(self) -> float:
        """The bytes of all of them."""
        return sum(self._sizes.values())

    def touched(self, loop: LoopNode, one_iteration: bool) -> Mapping[Var, tuple[Footprint, bool]]:
        """What each array's accesses touch in a loop, each time it is entered, or in one iteration; whether it is
        written there."""
        key = loop, one_iteration
        if key not in self._known:
            self._known[key] = self._touched(loop, one_iteration)
        return self._known[key]

    def _touched(self, loop: LoopNode, one_iteration: bool) -> Mapping[Var, tuple[Footprint, bool]]:
        accesses: dict[Var, list[LinearAccess]] = {}
        written: set[Var] = set()
        trips: dict[Var, float] = {}
        for node in loop.all_inside():
            if node.var is not None and not (one_iteration and node is loop):
                trips[node.var] = node.trips
            for data, access, writes in self._at[node]:
                accesses.setdefault(data, []).append(access)
                if writes:
                    written.add(data)
        return {data: (footprint(found, trips, self._sizes[data]), data in written) for data, found in accesses.items()}

    def fits(self, loop: LoopNode, capacity: float) -> bool:
        """Whether a cache of so many bytes keeps all that an iteration of a loop touches."""
        touched = [footprint for footprint, _ in self.touched(loop, True).values()]
        lines = sum(each.lines for each in touched)
        return lines * LINE <= FILLED * capacity and all(each.room * LINE <= capacity for each in touched)

    def traffic(self, loop: LoopNode, capacity: float) -> Traffic:
        """What comes to a cache of so many bytes for a loop, whenever it runs."""
        if not loop.entries:
            return Traffic()
        if self.fits(loop, capacity):
            return self._once(loop, False, math.inf).times(loop.entries)
        if not loop.inner:
            return self._once(loop, True, capacity).times(loop.iterations)
        inside = Traffic()
        for inner in loop.inner:
            inside += self.traffic(inner, capacity)
        return inside

    def _once(self, loop: LoopNode, one_iteration: bool, capacity: float) -> Traffic:
        """What is touched in a loop, each time it is entered; or in one iteration: then arrays that a cache of so many
        bytes does not keep come as often as they are asked for."""
        total = Traffic()
        for data, (touched, written) in self.touched(loop, one_iteration).items():
            lines = touched.lines
            if touched.room * LINE > capacity:
                asked = {(each.offset, each.length) for array, each, _ in self._at[loop] if array is data}
                lines = max(lines, sum(math.ceil(length / LINE) for _, length in asked))
            total += Traffic(lines, touched.runs, lines if written else 0.0)
        return total

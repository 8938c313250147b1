"""Where the same values lie for sizes that change from run to run, as those of a decoder do at each of its steps.

Mutable: what lies above what in the last plan.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from ..base.aligned import ARENA_ALIGNMENT
from .memory_plan import Lifetime, plan_memory


class RepeatedPlan:
    """``place(sizes)`` gives the offsets of values with these ``lives``, first and last step, and the bytes of all.

    ``plan_memory`` takes long to compare all values with all others. While they lie above each other in the order of
    the last plan, and that takes no more memory than it did, measured by the most bytes that live at once, and at the
    most a tenth more than these, there is nothing to compare.
    """

    def __init__(self, lives: Sequence[tuple[int, int]]) -> None:
        self._lives = lives
        begins = ((first, 1, number) for number, (first, _) in enumerate(lives))
        ends = ((last + 1, 0, number) for number, (_, last) in enumerate(lives))
        self._events = [(number, bool(begin)) for _, begin, number in sorted([*begins, *ends])]
        self._lines: list[int] = []
        self._placed: tuple[list[int], int] | None = None
        self._exact: tuple[list[int], list[int]] | None = None  # offsets and sizes, by ``plan_memory``
        self._order: list[tuple[int, list[int]]] | None = None
        self._arena = self._alive = 0

    def place(self, sizes: Sequence[int]) -> tuple[list[int], int]:
        """The offsets, multiples of 64, and the size of the arena."""
        lines = [-(-(size or 1) // ARENA_ALIGNMENT) * ARENA_ALIGNMENT for size in sizes]
        if self._placed is not None and lines == self._lines:
            return self._placed
        alive = max(accumulate([lines[n] if begins else -lines[n] for n, begins in self._events]), default=0)
        self._lines, self._placed = lines, self._moved(lines, alive) or self._anew(lines, alive)
        return self._placed

    def _moved(self, lines: list[int], alive: int) -> tuple[list[int], int] | None:
        """Values above each other as they were; None where that takes too much."""
        if self._exact is None:
            return None
        if self._order is None:
            self._order = self._supports(*self._exact)
        offsets, ends = [0] * len(lines), [0] * len(lines)
        for number, below in self._order:
            offset = max([ends[other] for other in below]) if below else 0
            offsets[number], ends[number] = offset, offset + lines[number]
        arena = max(ends, default=0)
        fits = arena * self._alive <= self._arena * alive and arena * 10 <= alive * 11
        return (offsets, arena) if fits else None

    def _anew(self, lines: list[int], alive: int) -> tuple[list[int], int]:
        lives = {number: Lifetime(size, *self._lives[number]) for number, size in enumerate(lines)}
        found, self._arena = plan_memory(lives)
        offsets = [found[number] for number in range(len(lines))]
        self._exact, self._order, self._alive = (offsets, lines), None, alive
        return offsets, self._arena

    def _supports(self, offsets: Sequence[int], lines: Sequence[int]) -> list[tuple[int, list[int]]]:
        """All values, lowest first, each with those that it lies on: what lies below these is left out."""
        order = sorted(range(len(offsets)), key=offsets.__getitem__)
        under: dict[int, int] = {}  # of each value so far a set of those below it, as bits
        found = []
        for number in order:
            first, last = self._lives[number]
            below = [o for o in under if self._lives[o][0] <= last and first <= self._lives[o][1]]
            direct, covered = [], 0
            for other in reversed(below):
                if not covered >> other & 1:
                    direct.append(other)
                    covered |= under[other] | 1 << other
            under[number] = covered
            found.append((number, direct))
        return found

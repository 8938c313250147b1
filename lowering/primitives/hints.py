"""Primitives that change nothing of what a nest does, but how well: prefetch and annotate."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType
from typing import ClassVar

from ...base.dataclass import dataclass
from ..report import schedule_error
from ..rules.loops import stage_with_changeable_loops
from ..stage import PrefetchAt
from ..state import ScheduleState
from ..step import StageStep

MAX_DISTANCE = 1 << 20
"""Most iterations that a prefetch may be ahead."""

KEYS: dict[str, str] = {
    "partition": "False keeps the loop whole: its guards stay conditions, there are no copies of the body without them",
}
"""The annotations that mean something to us, all of them True or False."""


@dataclass(frozen=True, slots=True, repr=False)
class Prefetch(StageStep):
    """Fetch into the cache, in each iteration of a loop, what an iteration further on reads of a tensor, or stores.

    Arguments: ``tensor``, the stage that computes it, perhaps this one; ``distance``, how many iterations ahead. One
    instruction is made for each 64 bytes that the loops inside read or store; nothing is touched, so an address beyond
    the tensor does no harm.
    Preconditions: the loop stands, and is neither vectorized nor inside a vectorized loop; the stage reads the tensor,
    or computes it, in memory that exists outside of the loop; which elements depends on no value in memory; these are
    at most 64 lines, unless their number is not known; ``1 <= distance <= 2**20``. From then on the loop is not split
    or fused, and steps after which the stage no longer reads the tensor so are refused.

    Rewrite, ``s[B].prefetch(A, i, 8)``::

        for i in range(64):             for i in range(64):
            B[i] = A[i] * 2.0      →        prefetch(A[i + 8])
                                            B[i] = A[i] * 2.0
    """

    primitive: ClassVar[str] = "prefetch"

    tensor: str
    loop: str
    distance: int

    def apply(self, state: ScheduleState) -> ScheduleState:
        stage = stage_with_changeable_loops(state, self.stage, (self.loop,))
        source = state.stage(self.tensor)
        if type(self.distance) is not int or not 1 <= self.distance <= MAX_DISTANCE:
            raise schedule_error(
                state,
                f"prefetch: distance must be a positive integer, at most {MAX_DISTANCE}, found {self.distance!r}",
                "Give the number of iterations that a line takes to arrive, such as 8.",
                [self.loop],
            )
        made = PrefetchAt(source.name, self.loop, self.distance)
        if any(p.tensor == made.tensor and p.loop == made.loop for p in stage.prefetches):
            raise schedule_error(
                state,
                f"{source.name} is prefetched at loop {stage.loops[self.loop].name} of {stage.name} already",
                "One prefetch for each tensor and loop is enough.",
                [self.loop],
            )
        return state.with_stage(replace(stage, prefetches=(*stage.prefetches, made)))


@dataclass(frozen=True, slots=True, repr=False)
class Annotate(StageStep):
    """Write a note at a loop: one that we understand, or one for tools of your own.

    Arguments: ``key`` and ``value``. ``"partition"`` False keeps a loop whole, where else it would be split into a part
    without guards and its borders: smaller code. Keys with a dot in them, such as ``"mine.phase"``, are yours: any
    string, integer or bool. Notes stand in the printed nest, and in the lowered function as ``For.notes``.
    Preconditions: the loop stands; the key is known or has a dot, and is not at the loop already. From then on the loop
    is not split or fused.

    Rewrite, ``s[B].annotate(i, "mine.phase", 2)``::

        for i in range(8):        →    for i in range(8):  # mine.phase = 2
            B[i] = A[i]                    B[i] = A[i]
    """

    primitive: ClassVar[str] = "annotate"

    loop: str
    key: str
    value: str | int | bool

    def apply(self, state: ScheduleState) -> ScheduleState:
        stage = stage_with_changeable_loops(state, self.stage, (self.loop,))
        self._check(state)
        notes = stage.notes.get(self.loop, ())
        if any(key == self.key for key, _ in notes):
            raise schedule_error(
                state,
                f"loop {stage.loops[self.loop].name} of {stage.name} has a note {self.key!r} already",
                "A note is given once.",
                [self.loop],
            )
        return state.with_stage(
            replace(stage, notes=MappingProxyType({**stage.notes, self.loop: (*notes, (self.key, self.value))}))
        )

    def _check(self, state: ScheduleState) -> None:
        key = str(self.key)
        own = all(part.isidentifier() for part in key.split("."))
        if key is not self.key or not own or ("." not in key and key not in KEYS):
            known = "; ".join(f"{key}: {meaning}" for key, meaning in KEYS.items())
            raise schedule_error(
                state,
                f"annotate: there is no annotation {self.key!r}; there are: {known}",
                "A key of your own has a dot: 'mine.note'. For vectorize, unroll, parallel and prefetch call these.",
                [self.loop],
            )
        if type(self.value) is not bool and (self.key in KEYS or type(self.value) not in (str, int)):
            wanted = "True or False" if self.key in KEYS else "a string, an integer or a bool"
            raise schedule_error(
                state,
                f"annotate: the value of {self.key!r} is {self.value!r}, expected {wanted}",
                "Values are plain, so that the step can be stored.",
                [self.loop],
            )

"""The primitive that makes a loop run on beyond its end: round_up."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType
from typing import ClassVar

from ...base.dataclass import dataclass
from ...base.errors import ScheduleError
from ...ir.constants import const_int
from ...te.compute import MAX_EXTENT
from ..nest.regions import extents_of
from ..relations import RoundUpRelation
from ..report import schedule_error
from ..rules.loops import require_no_accumulation, require_serial, require_unattached, stage_with_changeable_loops
from ..rules.placement import check_placements
from ..rules.ragged import refuse_ragged
from ..stage import Loop
from ..state import ScheduleState
from ..step import StageStep


@dataclass(frozen=True, slots=True)
class RoundUp(StageStep):
    """Let a loop run on beyond its end, so that its tiles are full and no condition is left of it.

    Arguments: ``factor``, of which the new extent is the next multiple, or ``to``, the new extent itself, at least that
    of the loop. ``split(…, tail="round_up")`` rounds up to its own factor.
    Memory of the stage has room for what is computed more. On a spatial axis these elements have no promised value, and
    no result depends on them. On a reduction axis the terms beyond the end are left out by a test, unless they are
    proved to be the reducer's identity: as products of two copies that hold 0 there are, in a sum.
    What the stage reads beyond the end of others is computed there, too. Inputs have nothing there: they are read
    through a copy, ``cache_read(…, pad=value)``.
    Preconditions: the loop stands, is serial, runs over a whole axis or the outermost part of one, and no stage is
    computed at it. The stage is no output, unless its reduction is rounded up; neither it nor a stage that it reads
    beyond the end is read or computed by an extern or a scan, or placed by reverse_compute_at.

    Rewrite, ``round_up(i, factor=4)``::

        B: float32[10] = allocate('local')        B: float32[12] = allocate('local')
        for i in range(10):                  →    for i in range(12):
            B[i] = A.global[i] * 2.0                  B[i] = A.global[i] * 2.0
    """

    primitive: ClassVar[str] = "round_up"
    returns_loops: ClassVar[bool] = True

    loop: str
    factor: int | None = None
    to: int | None = None

    def apply(self, state: ScheduleState) -> ScheduleState:
        stage = stage_with_changeable_loops(state, self.stage, (self.loop,))
        old = stage.loops[self.loop]
        self._check_arguments(state)
        require_serial(state, stage, self.loop, "round_up")
        require_unattached(state, stage, self.loop, "round_up")
        require_no_accumulation(state, stage, self.loop)
        refuse_ragged(state, stage, [self.loop], "round_up")
        extent = None if self.to is None else const_int(extents_of(state, stage)[self.loop])
        if self.to is not None and extent is not None and self.to < extent:
            raise schedule_error(
                state,
                f"cannot round_up loop {old.name} of {stage.name} to {self.to}: it has {extent} iterations",
                f"Give an extent of at least {extent}.",
                [self.loop],
            )
        new = Loop(f"{stage.name}#{len(stage.loops)}", old.name, old.reduce)
        stage = replace(
            stage,
            loops=MappingProxyType({**stage.loops, new.id: new}),
            relations=(*stage.relations, RoundUpRelation(self.loop, new.id, self.factor, self.to)),
            leaves=tuple(new.id if leaf == self.loop else leaf for leaf in stage.leaves),
        )
        rounded = state.with_stage(stage)
        check_placements(rounded, state, f"round_up loop {old.name} of {stage.name}")
        return rounded

    def _check_arguments(self, state: ScheduleState) -> None:
        given = [(n, v) for n, v in (("factor", self.factor), ("to", self.to)) if v is not None]
        if len(given) != 1:
            raise ScheduleError("round_up takes either factor or to")
        name, value = given[0]
        if type(value) is not int or not 1 <= value <= MAX_EXTENT:
            raise schedule_error(
                state,
                f"round_up: {name} must be a positive integer, found {value!r}",
                f"Give {name} as an int between 1 and 2**47.",
                [self.loop],
            )

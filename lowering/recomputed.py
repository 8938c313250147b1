"""Which stages does a schedule compute several times over? What ``print(schedule)`` and the vector report warn of."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..base.dataclass import dataclass
from ..base.quantities import digits
from ..ir.contents import free_vars
from ..ir.expr import Expr
from ..ir.interval import Interval, interval_of
from .nest.nesting import enclosing_loops
from .nest.regions import infer
from .nest.scans import scan_of
from .stage import At, Stage
from .state import ScheduleState

MOST = 2
"""A stage that is computed no more often is not worth a word: tiles of stencils overlap."""
OPEN_EXTENT = 1 << 10
"""What an open extent is taken for."""


@dataclass(frozen=True, slots=True)
class Recomputation:
    """A stage that a schedule computes ``factor`` times: elements computed, by the elements of its tensor.

    ``loop`` is the one of stage ``reader`` in whose iterations that is done. ``computed`` and ``elements`` are for open
    extents of 1024.
    """

    stage: str
    factor: float
    loop: str
    reader: str
    computed: int
    elements: int
    is_open: bool

    def __str__(self) -> str:
        times = f"{self.factor:.0f}" if self.factor.is_integer() else digits(self.factor)
        extents = ", for open extents of 1024" if self.is_open else ""
        return (
            f"{self.stage} is computed {times} times: {self.computed} elements in all iterations of "
            f"{self.loop} of {self.reader}, of a tensor of {self.elements}{extents}"
        )


def recomputations(state: ScheduleState) -> tuple[Recomputation, ...]:
    """The stages placed by ``compute_at`` of which more than twice the elements of their tensor are computed."""
    if not any(isinstance(stage.place, At) for stage in state.stages):
        return ()
    known, found = infer(state), []
    for stage in state.stages:
        if stage.name not in known.regions or not isinstance(stage.place, At) or _is_part(state, stage):
            continue
        parts, computed, elements = _counts(state, stage, stage.place)
        if computed is None or not elements or computed <= MOST * elements:
            continue
        reader = state.stage(stage.place.stage)
        loop, is_open = reader.loops[stage.place.loop].name, any(map(free_vars, parts))
        found.append(Recomputation(stage.name, computed / elements, loop, reader.name, computed, elements, is_open))
    return tuple(found)


def times_computed(state: ScheduleState, name: str) -> float | None:
    """How often a stage that is computed at a loop computes an element, on average; None where nobody knows, or it is
    computed elsewhere."""
    stage = state.stage(name)
    if not isinstance(stage.place, At) or name not in infer(state).regions:
        return None
    _, computed, elements = _counts(state, stage, stage.place)
    return computed / elements if computed is not None and elements else None


def _counts(state: ScheduleState, stage: Stage, place: At) -> tuple[list[Expr], int | None, int | None]:
    """The extents of all loops that compute a stage, the elements that these compute, and those of its tensor."""
    known = infer(state)
    loops = [known.loops[s.name].extents[leaf] for s, leaf in enclosing_loops(state, place)]
    parts = [*loops, *known.regions[stage.name].extents]
    return parts, _product(parts), _product(stage.tensors[0].shape)


def _is_part(state: ScheduleState, stage: Stage) -> bool:
    """Whether a stage is a step of a scan, which speaks for it."""
    scan = scan_of(state, stage)
    return scan is not None and scan.name != stage.name


def _product(extents: Sequence[Expr]) -> int | None:
    """The product of extents, open ones taken to be of usual length; None where one of them is read from memory."""
    usual = Interval.exactly(OPEN_EXTENT)
    found = [interval_of(e, dict.fromkeys(free_vars(e), usual)) for e in extents]
    numbers = [i.low for i in found if i.is_point and i.low is not None]
    return math.prod(numbers) if len(numbers) == len(found) else None

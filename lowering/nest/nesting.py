"""How the nests of a schedule's stages stand in each other, and in which order they run: questions about ``place``.

A stage is *inside* a loop if all its work happens in the iterations of that loop.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

from ...base.dataclass import dataclass
from ...ir.expr import Expr, TensorBase
from ...ir.visit import tensor_reads
from ...te.tensor import ComputeOp
from ..stage import After, At, Before, Place, Root, Stage
from ..state import ScheduleState

Reads: TypeAlias = Mapping[str, tuple[str, ...]]
"""For each stage that is computed, the names of the stages that it reads once inlined ones are put in."""


def reads_of(state: ScheduleState, bodies: Mapping[str, Sequence[Expr]]) -> Reads:
    """Who reads whom, by the bodies after inlining."""
    owner: dict[TensorBase, str] = {tensor: stage.name for stage in state.stages for tensor in stage.tensors}
    reads: dict[str, tuple[str, ...]] = {}
    for name, stage_bodies in bodies.items():
        op = state.stage(name).op
        read = (
            [r.tensor for body in stage_bodies for r in tensor_reads(body)] if isinstance(op, ComputeOp) else op.inputs
        )
        reads[name] = tuple(dict.fromkeys(owner[tensor] for tensor in read))
    return reads


def readers_of(state: ScheduleState, reads: Reads, stage: Stage) -> list[Stage]:
    """The stages that read a stage, in order of computation."""
    return [s for s in state.stages if stage.name in reads.get(s.name, ())]


def is_inside(state: ScheduleState, stage: Stage, target: str, loop: str) -> bool:
    """Whether a stage is inside a loop of the target; the target itself counts as inside all of its loops."""
    while stage.name != target:
        place = stage.place
        if not isinstance(place, (At, After, Before)):
            return False
        stage = state.stage(place.stage)
        if stage.name == target:
            return not isinstance(place, Before) and stage.leaves.index(place.loop) >= stage.leaves.index(loop)
    return True


def enclosing_loops(state: ScheduleState, place: Place) -> list[tuple[Stage, str]]:
    """The loops around the point where ``place`` puts a stage, outermost first."""
    if not isinstance(place, (At, After, Before)):
        return []
    target = state.stage(place.stage)
    upto = 0 if isinstance(place, Before) else target.leaves.index(place.loop) + 1
    return [*enclosing_loops(state, target.place), *((target, leaf) for leaf in target.leaves[:upto])]


@dataclass(frozen=True, slots=True)
class Nesting:
    """The order in which the stages of a state run, given who reads whom."""

    state: ScheduleState
    reads: Reads

    def before(self, stage: Stage, leaf: str) -> list[Stage]:
        """The stages computed at a loop, at the begin of its iterations, in the order in which they run."""
        return self._ordered([s for s in self.state.attached(stage.name, leaf) if isinstance(s.place, At)])

    def after(self, stage: Stage, leaf: str) -> list[Stage]:
        """The stages computed after what an iteration of a loop finishes, in the order in which they run."""
        return self._ordered([s for s in self.state.attached(stage.name, leaf) if isinstance(s.place, After)])

    def roots(self) -> list[Stage]:
        """The stages that stand in no loop of another, in the order in which they run."""
        computed = [s for s in self.state.stages if s.name in self.reads]
        return self._ordered([s for s in computed if isinstance(s.place, Root)])

    def before_loops(self, stage: Stage) -> list[Stage]:
        """The stages computed before all loops of a stage."""
        return [s for s in self.state.stages if isinstance(s.place, Before) and s.place.stage == stage.name]

    def group(self, stage: Stage, loop: str | None = None) -> Iterator[Stage]:
        """A stage and all that is in its nest, or in its loops inside ``loop``, in the order in which they run."""
        if loop is None:
            for other in self.before_loops(stage):
                yield from self.group(other)
        leaves = stage.leaves if loop is None else stage.leaves[stage.leaves.index(loop) + 1 :]
        for leaf in leaves:
            for other in self.before(stage, leaf):
                yield from self.group(other)
        yield stage
        for leaf in reversed(leaves):
            for other in self.after(stage, leaf):
                yield from self.group(other)

    def order(self) -> list[Stage]:
        """All stages that are computed, in the order in which one iteration of all loops runs them."""
        return [stage for root in self.roots() for stage in self.group(root)]

    def _ordered(self, siblings: list[Stage]) -> list[Stage]:
        """Nests that stand side by side: one that reads what another computes comes after it.

        The stages of a state are in order of computation, so that only a stage put into the nest of its producer can
        make a difference. Where they read each other, there is no such order: ``check_placements`` refuses that.
        """
        if not any(isinstance(s.place, After) for s in self.state.stages):
            return siblings
        groups = {s.name: {member.name for member in self.group(s)} for s in siblings}
        needs = {s.name: {read for m in groups[s.name] for read in self.reads.get(m, ())} for s in siblings}
        ordered: list[Stage] = []
        waiting = list(siblings)
        while waiting:
            free = (s for s in waiting if not any(needs[s.name] & groups[o.name] for o in waiting if o is not s))
            ordered.append(next(free, waiting[0]))
            waiting.remove(ordered[-1])
        return ordered


def homes(state: ScheduleState, reads: Reads) -> dict[str, tuple[str, str]]:
    """The loop in whose iterations the memory of a stage lives, as (stage, loop), for all that need none outside.

    A stage computed at a loop has its home there; any other in the innermost loop that holds it and all its readers.
    """
    found: dict[str, tuple[str, str]] = {}
    for stage in state.stages:
        if stage.name not in reads or stage.name in state.outputs:
            continue
        if isinstance(stage.place, At):
            found[stage.name] = (stage.place.stage, stage.place.loop)
        if not isinstance(stage.place, (Root, After)):
            continue
        around = [(s.name, leaf) for s, leaf in enclosing_loops(state, stage.place)]
        loops = [*around, *((stage.name, leaf) for leaf in stage.leaves)]
        readers = readers_of(state, reads, stage)
        holding = [home for home in loops if readers and all(is_inside(state, r, *home) for r in readers)]
        if holding:
            found[stage.name] = holding[-1]
    return found

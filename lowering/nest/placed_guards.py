"""The guards of a stage's nest: where the conditions under which an iteration counts come from, and where they stand.

Part of ``realize``. Depths count the loops around a place: 0 is outside all of a stage's loops.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ...base.dataclass import dataclass
from ...ir.buffer import Buffer
from ...ir.constants import ONE, TRUE, ZERO
from ...ir.contents import free_vars
from ...ir.expr import Expr, Var
from ...ir.facts import prove
from ...ir.makers import logical_and
from ...ir.simplify import simplify
from ...ir.stmt import If, Stmt
from ...ir.visit import buffers_accessed
from ...te.tensor import Tensor
from ..passes.guards import conjuncts
from ..stage import After, At, Before, Stage
from ..state import ScheduleState
from .beyond_ends import ends_read, first_of_tile
from .inference import Inference
from .loops import Predicate
from .stage_code import StageCode


@dataclass(frozen=True, slots=True)
class PlacedGuard:
    """A guard that stands inside ``depth`` loops. Stages computed in the innermost of these are guarded too, unless the
    guard reads them."""

    guard: Predicate
    depth: int
    reads_attached: bool


@dataclass(frozen=True, slots=True, eq=False)
class NestPlan:
    """What stands at which depth of a stage's nest. ``init_depth`` is None where there is no reduction.

    The loops that store a reduction's identity have variables of their own, in ``init_vars`` by those they stand for.
    Where a stage ``accumulates``, all guards of the terms stand around these alone.
    """

    guards: Sequence[PlacedGuard]
    init_depth: int | None
    init_vars: Mapping[Var, Var]
    accumulates: bool = False

    def at(self, depth: int, reads_attached: bool) -> list[Predicate]:
        """The guards to put at a depth; those of the terms, if further out than the identity, come after it."""
        return [
            p.guard
            for p in self.guards
            if p.depth == depth and p.reads_attached is reads_attached and not self._after_init(p)
        ]

    def of_terms(self) -> list[Predicate]:
        """What chooses terms by the spatial axes alone must not keep the identity from being stored: it stands after
        it."""
        return [p.guard for p in self.guards if self._after_init(p)]

    def of_init(self) -> list[Predicate]:
        """The guards of elements that stand inside the place where the identity is stored; none where that is the
        stage's own memory of what it has folded so far."""
        if self.accumulates:
            return []
        inside = [p.guard for p in self.guards if not p.guard.reduce and p.depth > (self.init_depth or 0)]
        return [guard.with_values(self.init_vars) for guard in inside]

    def _after_init(self, placed: PlacedGuard) -> bool:
        if self.init_depth is None or not placed.guard.reduce:
            return False
        return self.accumulates or placed.depth <= self.init_depth


def plan_nest(state: ScheduleState, known: Inference, code: StageCode, stage: Stage) -> NestPlan:
    """The guards of a stage and the place of its reduction's identity."""
    guards = [*_loop_guards(known, code, stage), *_domain_guards(known, stage), *_reduce_condition(known, code, stage)]
    placed = [_place(state, known, code.buffers, stage, guard) for guard in guards]
    if known.reduction(stage) is None:
        return NestPlan(placed, None, {})
    depth, loop_vars = _init_depth(known, stage, placed), known.loops[stage.name].vars
    spatial = [loop_vars[leaf] for leaf in stage.leaves[depth:] if not stage.loops[leaf].reduce]
    init_vars = {var: Var(f"{var.name}_init") for var in spatial}
    return NestPlan(placed, depth, init_vars, accumulates=stage.along is not None)


def guarded(guards: Sequence[Predicate], body: Stmt) -> Stmt:
    """The body under the guards; those that read memory stand inside the others: ``and`` may evaluate both sides.

    The conditions of tails that are not mere guards stand alone, around the others.
    """
    for reads in (True, False):
        chosen = [g for g in guards if bool(buffers_accessed(g.condition)) is reads]
        plain = [g.condition for g in chosen if g.tail == "guard"]
        body = If(logical_and(plain), body) if plain else body
        for guard in (g for g in chosen if g.tail != "guard"):
            body = If(guard.condition, body, mask=guard.tail == "mask")
    return body


def _loop_guards(known: Inference, code: StageCode, stage: Stage) -> list[Predicate]:
    """The guards of splits; where a loop is ragged they read memory."""
    return [
        replace(g, condition=code.resolve(g.condition, {}), full=None if g.full is None else code.resolve(g.full, {}))
        for g in known.loops[stage.name].guards
    ]


def _domain_guards(known: Inference, stage: Stage) -> list[Predicate]:
    """A box that bound inference found may reach beyond the tensor, or its ends: what lies outside is not computed."""
    if isinstance(stage.place, Before):
        time = stage.compute.axis[0]
        whole = known.regions[stage.place.stage].extents[0]
        # There may be fewer steps than first ones.
        return [Predicate(known.axis_values(stage)[time.var] < whole, reduce=False)]
    if not isinstance(stage.place, (At, After)):
        return []
    values, region = known.axis_values(stage), known.regions[stage.name]
    first_loops = {axis.var: loop for loop, axis in stage.axis_of.items()}
    read = ends_read(known, stage)
    guards = []
    for dim, axis in enumerate(stage.compute.axis):
        if not region.is_whole(dim, axis.extent):
            value, rounded = values[axis.var], first_loops[axis.var] in known.unguarded[stage.name]
            ends = dict.fromkeys((*(() if rounded else (axis.extent,)), *region.limits_of(dim)))
            conditions = (value >= ZERO, *(value < end for end in ends))
            if rounded and isinstance(stage.place, At):
                conditions = (*conditions, first_of_tile(known, stage, value) < read[dim])  # nothing behind is read
            guards += [Predicate(condition, reduce=False) for condition in conditions]
    return guards


def _reduce_condition(known: Inference, code: StageCode, stage: Stage) -> list[Predicate]:
    """Which terms count: a guard for each part of the condition, so that each stands as far out as it may by itself.

    A condition that reads memory stays whole, since one part of it may say whether the other may be read. Parts are
    simplified by what is known of the loops, so that no variable is left that does not matter.
    """
    reduction = known.reduction(stage)
    if reduction is None or reduction.condition is None:
        return []
    condition: Expr = code.resolve(reduction.condition, known.axis_values(stage))
    if buffers_accessed(condition):
        return [Predicate(condition, reduce=True)]
    loops, facts = known.loops[stage.name], known.facts
    for leaf in stage.leaves:
        facts = facts.with_range(loops.vars[leaf], ZERO, loops.extents[leaf])
    parts = conjuncts(simplify(condition, facts))
    return [Predicate(part, reduce=True) for part in parts if part is not TRUE]


def _place(
    state: ScheduleState, known: Inference, buffers: Mapping[Tensor, Buffer], stage: Stage, guard: Predicate
) -> PlacedGuard:
    """The position of a guard: as far outside as its variables, and the stages computed in these loops that it reads,
    allow."""
    variables, read_buffers = set(free_vars(guard.condition)), set(buffers_accessed(guard.condition))
    loop_vars = known.loops[stage.name].vars
    depth = read = 0
    for k, leaf in enumerate(stage.leaves, start=1):
        if loop_vars[leaf] in variables:
            depth = k
        attached = state.attached(stage.name, leaf)
        if read_buffers.intersection(buffers[t] for s in attached for t in s.tensors):
            depth = read = k
    return PlacedGuard(guard, depth, depth == read > 0)


def _init_depth(known: Inference, stage: Stage, placed: Sequence[PlacedGuard]) -> int:
    """The depth at which a reduction's identity is stored: just outside its outermost loop, in general.

    Where the loops from some reduction loop inwards hold but a tile of unrolled and vector loops, the tile is
    initialised just before that loop, when the reduction loops further out are at 0: it is in cache then, or stays
    in registers. That needs those loops to run at least once, whatever the guards. It never is inside of an intrinsic.
    Loops of a single iteration count as part of a tile. What a stage accumulates begins outside of the loop along which
    it does.
    """
    leaves = stage.leaves
    if stage.along is not None:
        return leaves.index(stage.along)
    innermost = len(leaves) - len(stage.tensorized_leaves)
    depths = [k for k, leaf in enumerate(leaves) if stage.loops[leaf].reduce]
    if not depths:
        return len(leaves)
    extents = known.loops[stage.name].extents
    for depth in (d for d in depths if d <= innermost):
        inside = [leaf for leaf in leaves[depth:] if not stage.loops[leaf].reduce]
        outer = [leaf for leaf in leaves[:depth] if stage.loops[leaf].reduce]
        if (
            all(stage.kind(leaf) in ("unrolled", "vectorized") or extents[leaf] is ONE for leaf in inside)
            and all(prove(extents[leaf] >= ONE, known.facts) for leaf in outer)
            and not any(p.guard.reduce and depths[0] < p.depth <= depth for p in placed)
        ):
            return depth
    return min(depths[0], innermost)

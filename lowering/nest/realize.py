"""Builds the loop nest of a schedule's state: the first lowering pass, and what ``print(schedule)`` shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...base.dataclass import dataclass
from ...ir.buffer import Buffer
from ...ir.constants import ZERO
from ...ir.expr import Reduce, Var
from ...ir.facts import Facts
from ...ir.makers import logical_and
from ...ir.simplify import simplify
from ...ir.stmt import Allocate, For, If, Stmt, seq
from ...te.tensor import ComputeOp, ExternOp, PlaceholderOp, ScanOp, StateOp, Tensor
from ..stage import Stage
from ..state import ScheduleState, once
from .inference import Inference
from .match_intrinsic import IntrinsicMatch, find_match
from .nesting import Nesting
from .placed_guards import NestPlan, guarded, plan_nest
from .prefetches import prefetch_statements
from .regions import infer
from .scans import shared_memory
from .stage_code import StageCode
from .storage import make_buffers, running_folds
from .tails import cut_tails


@dataclass(frozen=True, slots=True, eq=False)
class Realized:
    """The nest of a schedule, the buffers of its tensors, and the loop id that each loop variable belongs to."""

    body: Stmt
    buffers: Mapping[Tensor, Buffer]
    loop_of: Mapping[Var, str]
    facts: Facts


@once("all")
def realize(state: ScheduleState) -> Realized:
    """The loop nest of a schedule: bounds inferred, reductions initialised, guards in place, indices simplified.

    Raises ``MismatchError`` and ``UnknownReadsError`` where intrinsics or prefetches do not suit the nest.
    """
    known = infer(state)
    builder = _NestBuilder(state, known)
    body = simplify(builder.root_body(), known.facts)
    return Realized(body, builder.buffers, builder.loop_of, known.facts)


def check_fits(state: ScheduleState) -> None:
    """Raise ``MismatchError`` or ``UnknownReadsError`` where ``realize`` would."""
    builder = _NestBuilder(state, infer(state))
    for stage in state.stages:
        builder.check(stage)


class _NestBuilder:
    """Builds the nests of one state. Mutable: ``loop_of`` grows as loops are made."""

    def __init__(self, state: ScheduleState, known: Inference) -> None:
        self.state = state
        self.known = known
        self.shared = shared_memory(state)
        self.buffers = make_buffers(state, known, self.shared)
        self.nesting = Nesting(state, known.reads)
        self.code = StageCode(state, known, self.buffers, self.shared, running_folds(state, known))
        self.loop_of: dict[Var, str] = {}

    def check(self, stage: Stage) -> None:
        """Make the parts of a stage's nest that may not suit it."""
        for prefetch in stage.prefetches:
            prefetch_statements(self.code, stage, prefetch)
        if stage.tensorized is not None:
            self._match(stage, plan_nest(self.state, self.known, self.code, stage))

    def root_body(self) -> Stmt:
        return self._with_stages(self.nesting.roots(), None, None)

    def _with_stages(self, stages: Sequence[Stage], rest: Stmt | None, home: tuple[str, str] | None) -> Stmt:
        """Compute the stages in order, then ``rest``; the memory that has its home here lives as long."""
        body = rest
        for stage in reversed(stages):
            body = seq(self._nest(stage), body)
            for member in self.nesting.group(stage):
                body = self._with_memory(member, body, home)
        return body if body is not None else seq()

    def _with_memory(self, stage: Stage, body: Stmt, home: tuple[str, str] | None) -> Stmt:
        """The body with memory for a stage's tensors, if its home is here."""
        if stage.name not in self.state.outputs and self.known.homes.get(stage.name) == home:
            for tensor in reversed([t for t in stage.tensors if t not in self.shared]):
                body = Allocate(self.buffers[tensor], body)
        return body

    def _iteration(self, stage: Stage, leaf: str, body: Stmt) -> Stmt:
        """An iteration of a loop: what is computed at it, the stage's own part, what is computed after that."""
        home = (stage.name, leaf)
        body = seq(body, self._with_stages(self.nesting.after(stage, leaf), None, home))
        for member in self.nesting.group(stage, leaf):
            body = self._with_memory(member, body, home)
        return self._with_stages(self.nesting.before(stage, leaf), body, home)

    def _nest(self, stage: Stage) -> Stmt:
        match stage.op:
            case ComputeOp():
                return self._compute(stage)
            case ScanOp():
                return self._scan(stage)
            case ExternOp():
                return self.code.extern(stage.op, stage)
            case StateOp() | PlaceholderOp():
                return seq()  # nothing to compute

    def _scan(self, stage: Stage) -> Stmt:
        """The first steps, then the time loop, in which the cell is computed."""
        (time,) = stage.leaves
        steps = self._with_stages(self.nesting.before(stage, time), None, (stage.name, time))
        loop = self._loop(stage, time, self.known.loops[stage.name].vars[time], steps)
        return seq(*map(self._nest, self.nesting.before_loops(stage)), loop)

    def _compute(self, stage: Stage) -> Stmt:
        """The loops of a stage, from the inside outwards: at each depth what is computed there, then its guards."""
        plan = plan_nest(self.state, self.known, self.code, stage)
        match = self._match(stage, plan)
        body, fold = self.code.update(stage), self.code.folds.get(stage.name)
        if fold is not None:
            body = seq(guarded(plan.of_terms(), body), self.code.store_folded(stage, fold))
        for depth in range(len(stage.leaves), -1, -1):
            if match is not None and depth == match.depth:
                body = match.update_or_loops(body)
            reduction = self.known.reduction(stage)
            if reduction is not None and depth == plan.init_depth:
                terms = [] if fold is not None else plan.of_terms()
                body = seq(self._init(stage, reduction, plan, match), guarded(terms, body))
                for buffer in () if fold is None else fold.buffers:
                    body = Allocate(buffer, body)
            body = guarded(plan.at(depth, reads_attached=True), body)
            if depth == 0:
                body = guarded(plan.at(0, reads_attached=False), body)
                break
            leaf = stage.leaves[depth - 1]
            body = self._iteration(stage, leaf, body)
            body = guarded(plan.at(depth, reads_attached=False), body)
            body = seq(*self._prefetches(stage, leaf), body)
            body = self._loop(stage, leaf, self.known.loops[stage.name].vars[leaf], body)
        return cut_tails(body, [*(p.guard for p in plan.guards), *plan.of_init()], self.known.facts, self.loop_of)

    def _prefetches(self, stage: Stage, leaf: str) -> list[Stmt]:
        return [
            prefetch_statements(self.code, stage, prefetch) for prefetch in stage.prefetches if prefetch.loop == leaf
        ]

    def _match(self, stage: Stage, plan: NestPlan) -> IntrinsicMatch | None:
        """The code in place of the stage's inner loops, if an intrinsic takes it."""
        if stage.tensorized is None:
            return None
        depth = len(stage.leaves) - len(stage.tensorized_leaves)
        return find_match(self.code, stage, [p.guard for p in plan.guards if p.depth > depth])

    def _init(self, stage: Stage, reduction: Reduce, plan: NestPlan, match: IntrinsicMatch | None) -> Stmt:
        """Store the reduction's identity, in loops of its own over the spatial leaves inside its place.

        Where that place is inside other reduction loops, it is stored in the first of their iterations only.
        """
        loop_vars = self.known.loops[stage.name].vars
        outside, inside = stage.leaves[: plan.init_depth], stage.leaves[plan.init_depth :]
        spatial = [leaf for leaf in inside if not stage.loops[leaf].reduce and leaf != stage.along]
        fresh = plan.init_vars
        body = guarded(plan.of_init(), self.code.init(stage, reduction.combiner.identity, fresh))
        replaced = set(stage.tensorized_leaves)
        body = self._init_loops(stage, [leaf for leaf in spatial if leaf in replaced], fresh, body)
        if match is not None:
            body = match.reset_or_loops(body, fresh)
        body = self._init_loops(stage, [leaf for leaf in spatial if leaf not in replaced], fresh, body)
        first = [loop_vars[leaf] == ZERO for leaf in outside if stage.loops[leaf].reduce]
        return If(logical_and(first), body) if first else body

    def _init_loops(self, stage: Stage, leaves: Sequence[str], fresh: Mapping[Var, Var], body: Stmt) -> Stmt:
        for leaf in reversed(leaves):
            body = self._loop(stage, leaf, fresh[self.known.loops[stage.name].vars[leaf]], body)
        return body

    def _loop(self, stage: Stage, leaf: str, var: Var, body: Stmt) -> Stmt:
        self.loop_of[var] = leaf
        extent = self.code.resolve(self.known.loops[stage.name].extents[leaf], {})
        return For(var, ZERO, extent, stage.kind(leaf), body, notes=stage.notes.get(leaf, ()))

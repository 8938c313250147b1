"""The primitive that takes a reduction apart: rfactor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import ClassVar

from ...base.dataclass import dataclass
from ...base.dtype import BOOL
from ...ir.build import index_var
from ...ir.constants import ZERO, const
from ...ir.contents import substitute
from ...ir.expr import Axis, Expr, IfThenElse, Reduce, Var
from ...ir.makers import logical_and
from ...ir.visit import tensor_reads
from ...te.reducer_laws import factoring_counterexample
from ...te.tensor import ComputeOp, make_compute
from ..nest.loops import derive_loops
from ..relations import FactorRelation
from ..report import schedule_error
from ..rules.loops import require_serial, stage_with_changeable_loops
from ..rules.placement import check_placements
from ..rules.ragged import refuse_ragged
from ..stage import At, Loop, Root, Stage, make_stage
from ..state import ScheduleState
from ..step import StageStep


@dataclass(frozen=True, slots=True, repr=False)
class RFactor(StageStep):
    """Make a reduction loop an axis of a new stage, which folds the terms along the other reduction loops; the stage
    then folds the new one's elements along that axis, which can be vectorized or run in parallel in the new stage.

    Arguments: ``loop``, an axis of the reduction or what split and fuse made of it; ``factor_axis``, the position of
    the new axis among the axes of the new stage, which is named ``<stage>.rf``; negative numbers count from the end.
    Preconditions: the loop stands, is serial and a reduction's, and has one extent for all elements; the reducer is
    associative and commutative, and its identity neutral, as far as trying some values tells; no stage is computed in
    the stage's loops.
    The other reduction loops, as they stand, become reduction axes of the new stage, annotations included. Terms that
    a ``where`` or the tail of a split leave out do not count there. The loops over the stage's spatial axes stay as
    they are. The new stage is computed where the stage is, if that is at a loop, else at the root; compute_at places
    it. Floats are added in another order: see the precision modes.

    Rewrite, ``s.rfactor(C, r_inner)`` after splitting r by 4::

                                                        for r_inner in range(4):
                                                            C.rf[r_inner] = 0.0
        C[] = 0.0                                           for r_outer in range(2):
        for r_outer in range(2):                  →             C.rf[r_inner] += A[r_outer * 4 + r_inner]
            for r_inner in range(4):                    C[] = 0.0
                C[] += A[r_outer * 4 + r_inner]         for r_inner in range(4):
                                                            C[] += C.rf[r_inner]
    """

    primitive: ClassVar[str] = "rfactor"
    on_schedule: ClassVar[bool] = True

    loop: str
    factor_axis: int = 0

    def apply(self, state: ScheduleState) -> ScheduleState:
        stage = stage_with_changeable_loops(state, self.stage, (self.loop,))
        reduction = self._check(state, stage)
        name = state.fresh_name(f"{stage.name}.rf")
        partial = self._partial_results(stage, reduction, name)
        total = self._total(stage, reduction, partial)
        stages = [made for s in state.stages for made in ((partial, total) if s.name == stage.name else (s,))]
        new = state.with_stages(tuple(stages))
        check_placements(new, state, f"rfactor {stage.name}")
        return new

    def _check(self, state: ScheduleState, stage: Stage) -> Reduce:
        loop = stage.loops[self.loop]
        reduction = stage.compute.reduction
        if reduction is None or not loop.reduce:
            loops = ", ".join(stage.loops[leaf].name for leaf in stage.leaves if stage.loops[leaf].reduce) or "none"
            raise schedule_error(
                state,
                f"cannot rfactor loop {loop.name} of {stage.name}: it does not run over a reduction axis",
                f"Name a reduction loop of {stage.name}; there are: {loops}.",
                [self.loop],
            )
        require_serial(state, stage, self.loop, "rfactor")
        refuse_ragged(state, stage, [self.loop], "rfactor")
        if attached := state.attached(stage.name):
            raise schedule_error(
                state,
                f"cannot rfactor loop {loop.name} of {stage.name}: {attached[0].name} is computed in its loops",
                f"rfactor first; then {attached[0].name} can be computed at a loop of the stage that it makes.",
                [self.loop],
            )
        rank = len(stage.compute.axis)
        if type(self.factor_axis) is not int or not -rank - 1 <= self.factor_axis <= rank:
            raise schedule_error(
                state,
                f"rfactor: factor_axis is {self.factor_axis!r}, expected a position among {rank + 1} axes",
                f"Give an int between {-rank - 1} and {rank}; 0, the default, makes the new axis the first one.",
                [self.loop],
            )
        example = factoring_counterexample(reduction.combiner)
        if example is not None:
            raise schedule_error(
                state,
                f"cannot rfactor loop {loop.name} of {stage.name}: {reduction.combiner.name} has to be associative and "
                f"commutative, with a neutral identity, but {example}",
                "Mend the reducer, or keep its terms in one fold.",
                [self.loop],
            )
        return reduction

    def _partial_results(self, stage: Stage, reduction: Reduce, name: str) -> Stage:
        """The new stage: the terms folded along all reduction loops but one, which is an axis."""
        op = stage.compute
        rest = [leaf for leaf in stage.leaves if stage.loops[leaf].reduce and leaf != self.loop]
        spatial = [Axis(index_var(a.name), a.min, a.extent, "spatial") for a in op.axis]
        values: dict[Var, Expr] = {old.var: new.var for old, new in zip(op.axis, spatial, strict=True)}
        loops = derive_loops(stage, [axis.extent for axis in (*op.axis, *op.reduce_axis)]).at(values)
        for loop, axis in stage.axis_of.items():
            if axis.kind == "reduce":
                value = loops.values[loop]
                values[axis.var] = value if axis.min is ZERO else substitute(axis.min, values) + value
        where = None if reduction.condition is None else substitute(reduction.condition, values)
        condition = _both([guard.condition for guard in loops.guards if guard.reduce], where)
        sources = tuple(substitute(source, values) for source in reduction.sources)
        reduce_axes = tuple(Axis(loops.vars[leaf], ZERO, loops.extents[leaf], "reduce") for leaf in rest)
        at = self.factor_axis % (len(spatial) + 1)
        axes = (*spatial[:at], Axis(loops.vars[self.loop], ZERO, loops.extents[self.loop], "spatial"), *spatial[at:])

        def element(output: int) -> Expr:
            if rest:
                return Reduce(reduction.combiner, sources, reduce_axes, condition, output)
            identity = reduction.combiner.identity[output]
            return sources[output] if condition is None else IfThenElse(condition, sources[output], identity)

        made = make_stage(name, make_compute(name, axes, tuple(element(index) for index in _outputs(op))))
        new_loops = [loop for loop in made.leaves if made.loops[loop].reduce]
        kinds = {new: stage.kinds[old] for new, old in zip(new_loops, rest, strict=True) if old in stage.kinds}
        place = stage.place if isinstance(stage.place, At) else Root()
        return replace(made, kinds=MappingProxyType(kinds), place=place)

    def _total(self, stage: Stage, reduction: Reduce, partial: Stage) -> Stage:
        """The stage as it becomes: the new stage's elements folded along the factored axis."""
        op, made = stage.compute, partial.compute
        at = self.factor_axis % (len(op.axis) + 1)
        factored = made.axis[at]
        axis = Axis(index_var(factored.name), ZERO, factored.extent, "reduce")
        element = [a.var for a in op.axis]
        element.insert(at, axis.var)
        tensor_of = dict(zip(_outputs(op), made.outputs, strict=True))
        sources = tuple(tensor_of[output][tuple(element)] for output in range(len(reduction.sources)))
        body = tuple(Reduce(reduction.combiner, sources, (axis,), None, output) for output in _outputs(op))
        loop = Loop(f"{stage.name}#{len(stage.loops)}", factored.name, reduce=True)
        gone = {past for past in stage.loops if stage.loops[past].reduce}
        kept = {past: a for past, a in stage.axis_of.items() if past not in gone}
        leaves = (loop.id if leaf == self.loop else leaf for leaf in stage.leaves)
        return replace(
            stage,
            op=make_compute(op.name, op.axis, body),
            loops=MappingProxyType({**stage.loops, loop.id: loop}),
            axis_of=MappingProxyType({**kept, loop.id: axis}),
            relations=(
                *(r for r in stage.relations if not gone.intersection(r.made)),
                FactorRelation(tuple(past for past in stage.loops if past in gone), loop.id, partial.name),
            ),
            leaves=tuple(leaf for leaf in leaves if leaf not in gone),
            kinds=MappingProxyType({past: kind for past, kind in stage.kinds.items() if past not in gone}),
        )


def _outputs(op: ComputeOp) -> list[int]:
    """Which of the reduction's outputs each of a compute's tensors is."""
    return [body.index for body in op.body if isinstance(body, Reduce)]


def _both(guards: Sequence[Expr], where: Expr | None) -> Expr | None:
    """All conditions; one that reads memory, maybe out of bounds where a guard fails, is not evaluated there."""
    guard = logical_and(guards) if guards else None
    if guard is None or where is None:
        return where if guard is None else guard
    if tensor_reads(where):
        return IfThenElse(guard, where, const(False, BOOL))
    return logical_and([guard, where])

"""The statements innermost in a stage's nest: store an element, fold a term into it, or set it to the identity.

Part of ``realize``, which puts loops and guards around them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace

from ...base.dataclass import dataclass
from ...ir.buffer import Buffer
from ...ir.constants import ZERO
from ...ir.contents import substitute
from ...ir.expr import Expr, Load, Reduce, TensorRead, Var
from ...ir.stmt import CallExtern, LetStmt, Stmt, Store, seq
from ...ir.visit import Node, rewrite, with_views
from ...te.tensor import ExternOp, Tensor
from ..stage import Stage
from ..state import ScheduleState
from .fences import fence_shared
from .inference import Inference
from .storage import RunningFold, stored_at


@dataclass(frozen=True, slots=True)
class StageCode:
    """Makes the statements of the stages of one state; ``buffers`` are those of its tensors.

    Those of ``shared`` are parts of a scan's output: their buffers are that output's, whole. ``folds`` has the memory
    of the stages that accumulate, by their names.
    """

    state: ScheduleState
    known: Inference
    buffers: Mapping[Tensor, Buffer]
    shared: Mapping[Tensor, Tensor] = field(default_factory=dict)
    folds: Mapping[str, RunningFold] = field(default_factory=dict)

    def update(self, stage: Stage) -> Stmt:
        """Store the element that the loops are at, or fold one term into it."""
        bodies = self.known.bodies[stage.name]
        reduction = self.known.reduction(stage)
        if reduction is not None:
            return self._fold(stage, reduction)
        targets, element, values = self._targets(stage), self._element(stage), self.known.axis_values(stage)
        return seq(*(Store(b, element, self.resolve(e, values)) for b, e in zip(targets, bodies, strict=True)))

    def store_folded(self, stage: Stage, fold: RunningFold) -> Stmt:
        """Store the element that the loops are at of a stage that accumulates: what it has folded so far."""
        element = self._element(stage)
        targets = zip(self._by_output(stage), fold.buffers, strict=True)
        return seq(*(Store(target, element, Load(sums, fold.element)) for target, sums in targets))

    def init(self, stage: Stage, identity: Sequence[Expr], renamed: Mapping[Var, Expr]) -> Stmt:
        """Store a reduction's identity; ``renamed`` are the loop variables that stand for those of the update."""
        targets, element = self._folded_into(stage)
        element = tuple(substitute(i, renamed) for i in element)
        return seq(*(Store(b, element, e) for b, e in zip(targets, identity, strict=True)))

    def extern(self, op: ExternOp, stage: Stage) -> Stmt:
        """The statement of an extern, on the buffers of its inputs and outputs."""
        memory = [self.buffers[t] for t in (*op.inputs, *stage.tensors)]
        actual = {formal.data: real for formal, real in zip(op.func.buffers, memory, strict=True)}
        views: dict[Buffer, Buffer] = {}

        def view(buffer: Buffer) -> Buffer:
            if buffer not in views:
                real = actual[buffer.data]
                is_whole = buffer in op.func.buffers
                views[buffer] = real if is_whole else replace(buffer, data=real.data, scope=real.scope)
            return views[buffer]

        def to_actual(node: Node) -> Node | None:
            match node:
                case Load(buffer, indices, mask) if buffer.data in actual:
                    return Load(view(buffer), indices, mask)
                case Store(buffer, indices, value, mask) if buffer.data in actual:
                    return Store(view(buffer), indices, value, mask)
                case CallExtern():
                    return with_views(node, lambda buffer: view(buffer) if buffer.data in actual else buffer)
                case _:
                    return None

        return rewrite(op.func.body, to_actual)

    def resolve(self, expr: Expr, values: Mapping[Var, Expr]) -> Expr:
        """Put values in for the axes, and loads in for the reads of tensors."""

        def to_load(node: Node) -> Expr | None:
            if not (isinstance(node, TensorRead) and isinstance(node.tensor, Tensor)):
                return None
            lows = self.lows(node.tensor)
            local = tuple(i if low is ZERO else i - low for i, low in zip(node.indices, lows, strict=True))
            return Load(self.buffers[node.tensor], stored_at(self.state.stage_of(node.tensor), local))

        return rewrite(substitute(expr, values), to_load)

    def _fold(self, stage: Stage, reduction: Reduce) -> Stmt:
        values, combiner = self.known.axis_values(stage), reduction.combiner
        targets, element = self._folded_into(stage)
        sources = [self.resolve(source, values) for source in reduction.sources]
        if len(sources) == 1:
            terms = {combiner.lhs[0]: Load(targets[0], element), combiner.rhs[0]: sources[0]}
            (value,) = fence_shared((substitute(combiner.results[0], terms),))
            return Store(targets[0], element, value)
        # Several outputs: all are computed before any is stored, so that the order of the stores does not matter.
        rhs = [Var(v.name, v.dtype) for v in combiner.rhs]
        lhs = [Var(v.name, v.dtype) for v in combiner.lhs]
        renamed: dict[Var, Expr] = dict(zip((*combiner.lhs, *combiner.rhs), (*lhs, *rhs), strict=True))
        new = [Var(f"{b.name}.new", b.dtype) for b in targets]
        body: Stmt = seq(*(Store(b, element, v) for b, v in zip(targets, new, strict=True)))
        body = _lets(new, [substitute(r, renamed) for r in combiner.results], body)
        body = _lets(rhs, sources, body)
        return _lets(lhs, [Load(b, element) for b in targets], body)

    def lows(self, tensor: Tensor) -> tuple[Expr, ...]:
        """The first element of a tensor that is stored."""
        stage = self.state.stage_of(tensor)
        if not stage.is_compute or tensor in self.shared:
            return (ZERO,) * tensor.ndim
        return self.known.memory[stage.name].lows

    def _element(self, stage: Stage) -> tuple[Expr, ...]:
        """Where in the stage's buffers the current element goes."""
        if stage.tensors[0] in self.shared:
            place = self.known.axis_values(stage)
            return tuple(place[axis.var] for axis in stage.compute.axis)
        memory = self.known.memory[stage.name]
        if memory is self.known.regions[stage.name]:
            values = self.known.loops[stage.name].values
            local = [values[loop] for loop, axis in stage.axis_of.items() if axis.kind == "spatial"]
        else:
            at = self.known.axis_values(stage)
            axes = zip(stage.compute.axis, memory.lows, strict=True)
            local = [at[axis.var] if low is ZERO else at[axis.var] - low for axis, low in axes]
        return stored_at(stage, tuple(local))

    def _folded_into(self, stage: Stage) -> tuple[Sequence[Buffer], tuple[Expr, ...]]:
        """The memory that the terms of a reduction are folded into, in order of its outputs, and the element there."""
        fold = self.folds.get(stage.name)
        return (self._by_output(stage), self._element(stage)) if fold is None else (fold.buffers, fold.element)

    def _targets(self, stage: Stage) -> list[Buffer]:
        return [self.buffers[t] for t in stage.tensors]

    def _by_output(self, stage: Stage) -> list[Buffer]:
        """The buffers in order of the reduction's outputs, which the compute may list in another order."""
        indices = [getattr(body, "index", 0) for body in stage.compute.body]
        return [buffer for _, buffer in sorted(zip(indices, self._targets(stage), strict=True), key=lambda p: p[0])]


def _lets(variables: Sequence[Var], values: Sequence[Expr], body: Stmt) -> Stmt:
    for var, value in zip(reversed(variables), reversed(values), strict=True):
        body = LetStmt(var, value, body)
    return body

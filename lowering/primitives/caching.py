"""Primitives that put a copy between a tensor and its readers, or between a computation and its tensor."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from ...ir.build import index_var
from ...ir.expr import ZERO, Axis, Expr, Reduce, TensorRead, Var
from ...ir.visit import Node, rewrite, substitute
from ...te.tensor import ComputeOp, Tensor, make_compute
from ..report import schedule_error
from ..state import Inlined, ScheduleState, make_stage
from ..step import Step
from .placement import check_placements
from .storage import check_scope


def _copy_axes(op_axes: tuple[Axis, ...]) -> tuple[Axis, ...]:
    return tuple(Axis(index_var(a.name), a.min, a.extent, a.kind) for a in op_axes)


def _same_axes(op: ComputeOp, body: tuple[Expr, ...]) -> ComputeOp:
    return make_compute(op.name, op.axis, body)


@dataclass(frozen=True, slots=True)
class CacheRead(Step):
    """Copy a tensor into a stage of its own, which the named readers read instead.

    Arguments: ``scope`` of the copy, ``readers`` the names of the stages that shall read it.
    Preconditions: each reader reads the tensor, which is not computed at a loop. The copy begins at the root;
    compute_at places it.

    Rewrite, ``s.cache_read(A, "local", [C])``::

                                       for i in range(8):
        for i in range(8):        →        A.local[i] = A[i]
            C[i] = A[i] * 2.0          for i in range(8):
                                           C[i] = A.local[i] * 2.0
    """

    primitive: ClassVar[str] = "cache_read"
    on_schedule: ClassVar[bool] = True

    scope: str
    readers: tuple[str, ...]

    def apply(self, state: ScheduleState) -> ScheduleState:
        scope = check_scope(self.scope)
        source = state.stage(self.stage)
        if len(source.tensors) != 1:
            raise schedule_error(
                state, f"cannot cache_read {source.name}: it has several outputs", "Read them directly."
            )
        tensor = source.tensors[0]
        if not self.readers or len(set(self.readers)) != len(self.readers):
            raise schedule_error(
                state, "cache_read needs one or several different readers", "Name the stages that read it."
            )
        for name in self.readers:
            if tensor not in state.stage(name).op.inputs:
                consumers = ", ".join(s.name for s in state.consumers(source)) or "none"
                raise schedule_error(
                    state,
                    f"cannot cache_read {source.name} for {name}, which does not read it",
                    f"Stages that read it: {consumers}.",
                )
        axes = tuple(Axis(index_var(f"ax{k}"), ZERO, extent, "spatial") for k, extent in enumerate(tensor.shape))
        copy = make_compute(
            state.fresh_name(f"{source.name}.{self.scope}"), axes, (tensor[tuple(a.var for a in axes)],)
        )
        cache = replace(make_stage(copy.name, copy), scope=scope)
        stages = []
        for stage in state.stages:
            if stage.name in self.readers:
                body = tuple(_redirect(e, tensor, copy.outputs[0]) for e in stage.compute.body)
                stages.append(replace(stage, op=_same_axes(stage.compute, body)))
            else:
                stages.append(stage)
            if stage.name == source.name:
                stages.append(cache)
        new = replace(state, stages=tuple(stages))
        check_placements(new, state, f"cache_read {source.name}")
        return new


@dataclass(frozen=True, slots=True)
class CacheWrite(Step):
    """Compute a stage in memory of its own, and copy the result into its tensor.

    Arguments: ``scope`` of the new stage, named ``<stage>.<scope>``, which takes over the computation.
    Preconditions: the stage is no input, has no schedule yet (no loop is split, fused, reordered or annotated, nothing
    is computed in it, no layout is chosen), is not inlined, and reads nothing that is computed at a loop. The new stage
    begins at the root; compute_at places it.

    Rewrite, ``s.cache_write(C, "local")``::

                                       for i in range(8):
        for i in range(8):        →        C.local[i] = A[i] * 2.0
            C[i] = A[i] * 2.0          for i in range(8):
                                           C[i] = C.local[i]
    """

    primitive: ClassVar[str] = "cache_write"
    on_schedule: ClassVar[bool] = True

    scope: str

    def apply(self, state: ScheduleState) -> ScheduleState:
        scope = check_scope(self.scope)
        stage = state.stage(self.stage)
        op = stage.compute
        pristine = make_stage(stage.name, op, stage.tensors)
        if (
            stage.relations
            or stage.kinds
            or stage.layout is not None
            or stage.alignments
            or stage.tensorized is not None
            or stage.leaves != pristine.leaves
            or isinstance(stage.place, Inlined)
            or state.attached(stage.name)
        ):
            raise schedule_error(
                state,
                f"cannot cache_write {stage.name}: it is scheduled already",
                "Call cache_write first, and schedule both stages after it.",
            )
        axes = _copy_axes(op.axis)
        reduce_axes = _copy_axes(op.reduce_axis)
        name = state.fresh_name(f"{stage.name}.{self.scope}")
        computing = make_compute(name, axes, _over_axes(op, axes, reduce_axes))
        element = tuple(a.var for a in op.axis)
        copying = _same_axes(op, tuple(tensor[element] for tensor in computing.outputs))
        cache = replace(make_stage(name, computing), scope=scope)
        written = replace(make_stage(stage.name, copying, stage.tensors), place=stage.place, scope=stage.scope)
        stages = [new for s in state.stages for new in ((cache, written) if s.name == stage.name else (s,))]
        result = replace(state, stages=tuple(stages))
        check_placements(result, state, f"cache_write {stage.name}")
        return result


def _redirect(expr: Expr, old: Tensor, new: Tensor) -> Expr:
    def to_new(node: Node) -> Expr | None:
        return TensorRead(new, node.indices) if isinstance(node, TensorRead) and node.tensor is old else None

    return rewrite(expr, to_new)


def _over_axes(op: ComputeOp, axes: tuple[Axis, ...], reduce_axes: tuple[Axis, ...]) -> tuple[Expr, ...]:
    """The bodies of a compute with other axes in place of its own."""
    renamed: dict[Var, Expr] = {
        old.var: new.var for old, new in zip((*op.axis, *op.reduce_axis), (*axes, *reduce_axes), strict=True)
    }

    def with_axes(node: Node) -> Expr | None:
        if isinstance(node, Reduce):
            return Reduce(node.combiner, node.sources, reduce_axes, node.condition, node.index)
        return None

    return tuple(rewrite(substitute(body, renamed), with_axes) for body in op.body)

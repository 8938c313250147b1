"""Primitives that put a copy between a tensor and its readers, or between a computation and its tensor."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import ClassVar

from ...base.dtype import DType
from ...base.errors import ExpressionError
from ...ir.build import index_var
from ...ir.constants import ZERO, const
from ...ir.expr import Axis, Expr, IfThenElse, Reduce, TensorRead, Var
from ...ir.makers import logical_and
from ...ir.visit import Node, rewrite, substitute
from ...te.tensor import ComputeOp, ExternOp, Operation, StateOp, Tensor, make_compute, make_extern
from ..nest.scans import scan_of, starting_place
from ..report import literal, schedule_error
from ..rules.placement import check_placements
from ..state import Before, Inlined, ScheduleState, Stage, make_stage
from ..step import StageStep
from .storage import check_scope

NOT_FINITE: Mapping[str, float] = {name: float(name) for name in ("inf", "-inf", "nan")}
"""What ``pad`` calls numbers that JSON has none for."""


def _copy_axes(op_axes: tuple[Axis, ...]) -> tuple[Axis, ...]:
    return tuple(Axis(index_var(a.name), a.min, a.extent, a.kind) for a in op_axes)


def _same_axes(op: ComputeOp, body: tuple[Expr, ...]) -> ComputeOp:
    return make_compute(op.name, op.axis, body)


@dataclass(frozen=True, slots=True, repr=False)
class CacheRead(StageStep):
    """Copy a tensor into a stage of its own, which the named readers read instead.

    Arguments: ``scope`` of the copy, ``readers`` the names of the stages that shall read it, ``pad`` what it holds
    beyond the ends of the tensor, where a reader is rounded up and so reads on: a number that the dtype can hold, or
    ``"inf"``, ``"-inf"``, ``"nan"``. A copy without it has nothing there that could be read.
    Preconditions: each reader reads the tensor, which is not computed at a loop. The copy begins at the root;
    compute_at places it; a copy of what depends on the state of a scan begins in its time loop.

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
    pad: bool | float | str | None = None

    def apply(self, state: ScheduleState) -> ScheduleState:
        scope = check_scope(self.scope)
        source = state.stage(self.stage)
        self._check(state, source)
        tensor = source.tensors[0]
        axes = tuple(Axis(index_var(f"ax{k}"), ZERO, extent, "spatial") for k, extent in enumerate(tensor.shape))
        element: Expr = tensor[tuple(a.var for a in axes)]
        if self.pad is not None and axes:
            inside = logical_and([a.var < a.extent for a in axes])
            element = IfThenElse(inside, element, self._padding(state, source, tensor.dtype))
        copy = make_compute(state.fresh_name(f"{source.name}.{self.scope}"), axes, (element,))
        cache = replace(make_stage(copy.name, copy), scope=scope, place=starting_place(state, source))
        stages = []
        for stage in state.stages:
            if stage.name in self.readers:
                stages.append(replace(stage, op=_redirected(stage, tensor, copy.outputs[0])))
            else:
                stages.append(stage)
            if stage.name == source.name:
                stages.append(cache)
        new = replace(state, stages=tuple(stages))
        check_placements(new, state, f"cache_read {source.name}")
        return new

    def _padding(self, state: ScheduleState, source: Stage, kind: DType) -> Expr:
        try:
            number = NOT_FINITE.get(self.pad, self.pad) if isinstance(self.pad, str) else self.pad
            return const(number, kind)  # type: ignore[arg-type]  # what is no number raises
        except ExpressionError as error:
            raise schedule_error(
                state,
                f"cannot cache_read {source.name} with pad={self.pad!r}: {error}",
                f"Give a number that {kind} can hold, or one of {', '.join(map(repr, NOT_FINITE))}.",
            ) from None

    def _check(self, state: ScheduleState, source: Stage) -> None:
        if len(source.tensors) != 1:
            raise schedule_error(
                state, f"cannot cache_read {source.name}: it has several outputs", "Read them directly."
            )
        in_scan = scan_of(state, source)
        if in_scan is not None and isinstance(source.op, StateOp):
            raise schedule_error(
                state,
                f"cannot cache_read {source.name}: it is the state of the scan {in_scan.name}, and grows as it is read",
                f"Read it directly; it is the memory of {in_scan.name}.",
                in_scan.leaves,
            )
        if not self.readers or len(set(self.readers)) != len(self.readers):
            raise schedule_error(
                state, "cache_read needs one or several different readers", "Name the stages that read it."
            )
        for name in self.readers:
            if source.tensors[0] not in state.stage(name).op.inputs:
                consumers = ", ".join(s.name for s in state.consumers(source)) or "none"
                raise schedule_error(
                    state,
                    f"cannot cache_read {source.name} for {name}, which does not read it",
                    f"Stages that read it: {consumers}.",
                )


@dataclass(frozen=True, slots=True, repr=False)
class CacheWrite(StageStep):
    """Compute a stage in memory of its own, and copy the result into its tensor.

    Arguments: ``scope`` of the new stage, named ``<stage>.<scope>``, which takes over the computation.
    Preconditions: the stage is no input, has no schedule yet (no loop is split, fused, reordered or annotated, nothing
    is computed in it, no layout is chosen), is not inlined, and reads nothing that is computed at a loop. The new stage
    begins at the root; compute_at places it; if it depends on the state of a scan, it begins in the time loop. A scan,
    and the init of one, cannot be written to a cache.

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
        if isinstance(stage.place, Before):
            raise schedule_error(
                state,
                f"cannot cache_write {stage.name}: it is the init of the scan {stage.place.stage}",
                "Compute its elements where they are written.",
                stage.leaves,
            )
        if not isinstance(stage.op, ExternOp):
            stage.require_compute()  # an input or a scan is not written by a stage of its own
        _refuse_scheduled(state, stage)
        name = state.fresh_name(f"{stage.name}.{self.scope}")
        computing, copying = _take_apart(state, stage, name)
        cache = replace(make_stage(name, computing), scope=scope, place=starting_place(state, stage))
        written = replace(make_stage(stage.name, copying, stage.tensors), place=stage.place, scope=stage.scope)
        stages = [new for s in state.stages for new in ((cache, written) if s.name == stage.name else (s,))]
        result = replace(state, stages=tuple(stages))
        check_placements(result, state, f"cache_write {stage.name}")
        return result


def _refuse_scheduled(state: ScheduleState, stage: Stage) -> None:
    """The computation moves to a stage of its own: what has been said of its loops would be lost."""
    first = "Call cache_write first, and schedule both stages after it."
    attached = state.attached(stage.name)
    loops_changed = stage.relations or stage.leaves != make_stage(stage.name, stage.op, stage.tensors).leaves
    reasons = {
        "its loops are split, fused or reordered": (loops_changed, first),
        "its loops are annotated": (stage.kinds or stage.notes, first),
        "a prefetch stands in its loops": (stage.prefetches, first),
        "its memory has a layout": (stage.layout is not None or stage.alignments, first),
        "an intrinsic computes it": (stage.tensorized is not None, first),
        "it is inlined": (
            isinstance(stage.place, Inlined),
            f"s[{literal(stage.name)}].compute_root() takes that back.",
        ),
        "stages are computed in its loops": (
            attached,
            "".join(f"s[{literal(s.name)}].compute_root() takes {s.name} out. " for s in attached) + first,
        ),
    }
    for reason, (holds, advice) in reasons.items():
        if holds:
            raise schedule_error(
                state, f"cannot cache_write {stage.name}: it is scheduled already: {reason}", advice, stage.leaves
            )


def _redirected(reader: Stage, old: Tensor, new: Tensor) -> Operation:
    """The operation of a stage, with one tensor read in place of another."""
    if isinstance(reader.op, ExternOp):
        inputs = tuple(new if t is old else t for t in reader.op.inputs)
        return make_extern(reader.op.name, inputs, reader.op.func)
    op = reader.compute
    return _same_axes(op, tuple(_redirect(e, old, new) for e in op.body))


def _take_apart(state: ScheduleState, stage: Stage, name: str) -> tuple[Operation, ComputeOp]:
    """An operation called ``name`` that computes what the stage did, and one that copies its outputs."""
    if isinstance(stage.op, ExternOp):
        shape = stage.tensors[0].shape
        if any(a is not b for t in stage.tensors for a, b in zip_longest(t.shape, shape)):
            raise schedule_error(
                state,
                f"cannot cache_write {stage.name}: its outputs have different shapes, and a copy has one",
                "Write an extern for each.",
            )
        axes = tuple(Axis(index_var(f"ax{k}"), ZERO, extent, "spatial") for k, extent in enumerate(shape))
        element = tuple(a.var for a in axes)
        extern = make_extern(name, stage.op.inputs, stage.op.func)
        return extern, make_compute(stage.op.name, axes, tuple(t[element] for t in extern.outputs))
    op = stage.compute
    axes = _copy_axes(op.axis)
    computing = make_compute(name, axes, _over_axes(op, axes))
    element = tuple(a.var for a in op.axis)
    return computing, _same_axes(op, tuple(tensor[element] for tensor in computing.outputs))


def _redirect(expr: Expr, old: Tensor, new: Tensor) -> Expr:
    def to_new(node: Node) -> Expr | None:
        return TensorRead(new, node.indices) if isinstance(node, TensorRead) and node.tensor is old else None

    return rewrite(expr, to_new)


def _over_axes(op: ComputeOp, axes: tuple[Axis, ...]) -> tuple[Expr, ...]:
    """The bodies of a compute with other axes in place of its own, and new reduction axes."""
    reduced = {axis.var: index_var(axis.name) for axis in op.reduce_axis}
    renamed: dict[Var, Expr] = {**{old.var: new.var for old, new in zip(op.axis, axes, strict=True)}, **reduced}

    def with_axes(node: Node) -> Expr | None:
        if isinstance(node, Reduce):
            reduce_axes = tuple(Axis(reduced[a.var], a.min, a.extent, a.kind) for a in node.axes)
            return Reduce(node.combiner, node.sources, reduce_axes, node.condition, node.index)
        return None

    return tuple(rewrite(substitute(body, renamed), with_axes) for body in op.body)

"""Primitives that put a copy between a tensor and its readers, or between a computation and its tensor."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import zip_longest
from typing import ClassVar

from ...base.dataclass import dataclass
from ...base.dtype import DType
from ...base.errors import ExpressionError
from ...ir.build import index_var
from ...ir.constants import ZERO, const, const_int
from ...ir.contents import substitute
from ...ir.expr import Axis, Expr, IfThenElse, Reduce, TensorRead, Var
from ...ir.facts import NO_FACTS
from ...ir.visit import Node, rewrite
from ...te.tensor import ComputeOp, ExternOp, Operation, StateOp, Tensor, make_compute, make_extern
from ..nest.scans import scan_of, starting_place
from ..report import literal, schedule_error
from ..rules.placement import check_placements
from ..stage import At, Before, Inlined, Stage, make_stage
from ..state import ScheduleState
from ..step import StageStep
from .rearranged import Rearranged, check_gaps, rearranged_axes
from .storage import check_scope

NOT_FINITE: Mapping[str, float] = {name: float(name) for name in ("inf", "-inf", "nan")}
"""What ``pad`` calls numbers that JSON has none for."""
NEAREST = "edge"
"""What ``pad`` calls the nearest element of the tensor, as ``te.pad`` does."""


def _copy_axes(op_axes: tuple[Axis, ...]) -> tuple[Axis, ...]:
    return tuple(Axis(index_var(a.name), a.min, a.extent, a.kind) for a in op_axes)


def _same_axes(op: ComputeOp, body: tuple[Expr, ...]) -> ComputeOp:
    return make_compute(op.name, op.axis, body)


@dataclass(frozen=True, slots=True, repr=False)
class CacheRead(StageStep):
    """Copy a tensor into a stage of its own, which the named readers read instead.

    Arguments: ``scope`` of the copy, ``readers`` the names of the stages that shall read it, ``pad`` what it holds
    beyond the ends of the tensor, where a reader is rounded up and so reads on: a number that the dtype can hold, or
    ``"inf"``, ``"-inf"``, ``"nan"``, or ``"edge"`` for the nearest element of the tensor. A copy without it has nothing
    there that could be read.
    ``axes`` gives the copy other axes than the tensor's, and so other loops: an index map, as ``transform_layout``
    takes it, of which each result is an axis; one of digits, as ``i % 4``, has all of them. Where it leaves elements of
    the copy empty, these hold ``pad``: beyond the ends, or before the first element, as ``i + 4`` does.
    Preconditions: each reader reads the tensor, which is not computed at a loop. The copy begins at the root;
    compute_at places it; a copy of what depends on the state of a scan begins in its time loop, and has no ``"edge"``.
    ``axes`` write down the digits of each index; readers are computes.

    Rewrite, ``s.cache_read(A, "local", [C])``::

                                       for i in range(8):
        for i in range(8):        →        A.local[i] = A[i]
            C[i] = A[i] * 2.0          for i in range(8):
                                           C[i] = A.local[i] * 2.0

    Rewrite, ``s.cache_read(A, "local", [C], pad=0, axes="lambda i: (i // 4, i % 4)")``::

                                       for i in range(2):
                                           for i_1 in range(4):
        for i in range(6):        →            A.local[i, i_1] = A[i * 4 + i_1] if i * 4 + i_1 < 6 else 0.0
            C[i] = A[i] * 2.0          for i in range(6):
                                           C[i] = A.local[i // 4, i % 4] * 2.0
    """

    primitive: ClassVar[str] = "cache_read"
    on_schedule: ClassVar[bool] = True

    scope: str
    readers: tuple[str, ...]
    pad: bool | float | str | None = None
    axes: str | None = None

    def apply(self, state: ScheduleState) -> ScheduleState:
        scope = check_scope(self.scope)
        source = state.stage(self.stage)
        self._check(state, source)
        tensor = source.tensors[0]
        own = tuple(Axis(index_var(f"ax{k}"), ZERO, extent, "spatial") for k, extent in enumerate(tensor.shape))
        given = rearranged_axes(state, source, own, self.axes, "cache_read")
        axes, indices = given.axes, given.element.indices
        if given.leaves_gaps and self.pad is None:
            raise schedule_error(
                state,
                f"cannot cache_read {source.name} with axes={given.text}: some elements of the copy are none of it",
                "Say what they hold: pad=0.",
            )
        element: Expr = tensor[indices]
        if self.pads_with_nearest and any(const_int(extent) == 0 for extent in tensor.shape):
            element = const(0, tensor.dtype)  # nothing is near, and nobody reads it
        elif self.pads_with_nearest:
            element = tensor[given.nearest(indices, tensor.shape)]
        elif self.pad is not None and axes:
            inside = given.inside(indices, tensor.shape)
            element = IfThenElse(inside, element, self._padding(state, source, tensor.dtype))
        body = given.body(element, NO_FACTS)
        copy = make_compute(state.fresh_name(f"{source.name}.{self.scope}"), axes, (body,))
        cache = replace(make_stage(copy.name, copy), scope=scope, place=starting_place(state, source))
        stages = []
        for stage in state.stages:
            if stage.name in self.readers:
                stages.append(replace(stage, op=_redirected(stage, tensor, copy.outputs[0], given)))
            else:
                stages.append(stage)
            if stage.name == source.name:
                stages.append(cache)
        new = state.with_stages(tuple(stages))
        check_placements(new, state, f"cache_read {source.name}")
        return new

    @property
    def pads_with_nearest(self) -> bool:
        """Whether the copy goes on with the nearest element of the tensor."""
        return isinstance(self.pad, str) and self.pad == NEAREST

    def _padding(self, state: ScheduleState, source: Stage, kind: DType) -> Expr:
        try:
            number = NOT_FINITE.get(self.pad, self.pad) if isinstance(self.pad, str) else self.pad
            return const(number, kind)  # type: ignore[arg-type]  # what is no number raises
        except ExpressionError as error:
            raise schedule_error(
                state,
                f"cannot cache_read {source.name} with pad={self.pad!r}: {error}",
                f"Give a number that {kind} can hold, or one of {', '.join(map(repr, (*NOT_FINITE, NEAREST)))}.",
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
        if self.pads_with_nearest and isinstance(starting_place(state, source), At):
            raise schedule_error(
                state,
                f"cannot cache_read {source.name} with pad={self.pad!r}: it depends on the state of a scan, of which "
                "not all steps exist yet",
                "Give a number.",
                source.leaves,
            )
        externs = [name for name in self.readers if self.axes is not None and not state.stage(name).is_compute]
        if externs:
            raise schedule_error(
                state,
                f"cannot cache_read {source.name} with axes for {externs[0]}, which reads elements where they are",
                "Leave axes out.",
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

    Arguments: ``scope`` of the new stage, named ``<stage>.<scope>``, which takes over the computation. ``axes`` gives
    the new stage other axes, and so other loops: an index map, as ``transform_layout`` takes it, of which each result
    is an axis; one of digits, as ``i % 4``, has all of them. Where it leaves elements of the new stage empty, these
    have no promised value.
    Preconditions: the stage is no input, has no schedule yet (no loop is split, fused, reordered or annotated, nothing
    is computed in it, no layout is chosen), is not inlined, and reads nothing that is computed at a loop. The new stage
    begins at the root; compute_at places it; if it depends on the state of a scan, it begins in the time loop. A scan,
    and the init of one, cannot be written to a cache. ``axes`` write down the digits of each index, of a compute
    without ragged loops; elements that they leave empty read no tensor beyond its ends.

    Rewrite, ``s.cache_write(C, "local")``::

                                       for i in range(8):
        for i in range(8):        →        C.local[i] = A[i] * 2.0
            C[i] = A[i] * 2.0          for i in range(8):
                                           C[i] = C.local[i]

    Rewrite, ``s.cache_write(C, "local", axes="lambda i, j: (i * 4 + j,)")``::

        for i in range(3):             for i_j in range(12):
            for j in range(4):             C.local[i_j] = A[i_j // 4, i_j % 4] * 2.0
                C[i, j] = …       →    for i in range(3):
                                           for j in range(4):
                                               C[i, j] = C.local[i * 4 + j]
    """

    primitive: ClassVar[str] = "cache_write"
    on_schedule: ClassVar[bool] = True

    scope: str
    axes: str | None = None

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
        computing, copying = _take_apart(state, stage, name, self.axes)
        cache = replace(make_stage(name, computing), scope=scope, place=starting_place(state, stage))
        written = replace(make_stage(stage.name, copying, stage.tensors), place=stage.place, scope=stage.scope)
        stages = [new for s in state.stages for new in ((cache, written) if s.name == stage.name else (s,))]
        result = state.with_stages(tuple(stages))
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


def _redirected(reader: Stage, old: Tensor, new: Tensor, places: Rearranged) -> Operation:
    """The operation of a stage, with one tensor read in place of another, whose elements lie elsewhere."""
    if isinstance(reader.op, ExternOp):
        inputs = tuple(new if t is old else t for t in reader.op.inputs)
        return make_extern(reader.op.name, inputs, reader.op.func)

    def to_new(node: Node) -> Expr | None:
        is_old = isinstance(node, TensorRead) and node.tensor is old
        return TensorRead(new, places.of(node.indices)) if is_old and isinstance(node, TensorRead) else None

    return _same_axes(reader.compute, tuple(rewrite(e, to_new) for e in reader.compute.body))


def _take_apart(state: ScheduleState, stage: Stage, name: str, axes: str | None) -> tuple[Operation, ComputeOp]:
    """An operation called ``name`` that computes what the stage did, and one that copies its outputs."""
    if isinstance(stage.op, ExternOp):
        if axes is not None:
            raise schedule_error(
                state,
                f"cannot cache_write {stage.name} with axes: it is an extern, which writes elements where they are",
                "Leave axes out.",
            )
        shape = stage.tensors[0].shape
        if any(a is not b for t in stage.tensors for a, b in zip_longest(t.shape, shape)):
            raise schedule_error(
                state,
                f"cannot cache_write {stage.name}: its outputs have different shapes, and a copy has one",
                "Write an extern for each.",
            )
        own = tuple(Axis(index_var(f"ax{k}"), ZERO, extent, "spatial") for k, extent in enumerate(shape))
        element = tuple(a.var for a in own)
        extern = make_extern(name, stage.op.inputs, stage.op.func)
        return extern, make_compute(stage.op.name, own, tuple(t[element] for t in extern.outputs))
    op = stage.compute
    given = rearranged_axes(state, stage, _copy_axes(op.axis), axes, "cache_write")
    computing = make_compute(name, given.axes, _over_axes(op, given))
    if given.leaves_gaps:
        check_gaps(state, stage, computing, given)
    places = given.of(tuple(a.var for a in op.axis))
    return computing, _same_axes(op, tuple(tensor[places] for tensor in computing.outputs))


def _over_axes(op: ComputeOp, given: Rearranged) -> tuple[Expr, ...]:
    """The bodies of a compute over other axes, with new reduction axes."""
    reduced = {axis.var: index_var(axis.name) for axis in op.reduce_axis}
    renamed: dict[Var, Expr] = {
        **{old.var: index for old, index in zip(op.axis, given.element.indices, strict=True)},
        **reduced,
    }

    def with_axes(node: Node) -> Expr | None:
        if isinstance(node, Reduce):
            reduce_axes = tuple(Axis(reduced[a.var], a.min, a.extent, a.kind) for a in node.axes)
            return Reduce(node.combiner, node.sources, reduce_axes, node.condition, node.index)
        return None

    facts = NO_FACTS
    for axis in op.reduce_axis:
        facts = facts.with_range(reduced[axis.var], axis.min, axis.extent)
    return tuple(given.body(rewrite(substitute(body, renamed), with_axes), facts) for body in op.body)

"""softmax and log_softmax, over one or several axes; each row is finished while it is in cache.

Both count as reductions for fusion: elementwise producers (scaling, masks) join, epilogues do not.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from ... import te
from ...base.dataclass import dataclass
from ...base.errors import TypeInferenceError
from ...base.target import Target
from ...graph.node import Call, Node, tensor_of
from ...graph.types import Type
from ...ir.constants import const_int
from ...ir.expr import Axis, Expr
from ...ir.operand import Operand
from ...lowering.schedule import Schedule
from ...schedules.rows import innermost
from ...te.tensor import Tensors
from ..definition.accumulate import accumulator
from ..definition.arguments import PerAxis, axes_of
from ..definition.attrs import Attrs, all_non_negative, attr
from ..definition.cost import moved
from ..definition.folds import (
    LONG_ROWS,
    PART_OF_VECTOR,
    ROWS_OF_VECTORS,
    LaneOrder,
    long_rows,
    peak_of,
    rows_of_vectors,
)
from ..definition.layout_rule import ValueLayout, follow_axes, moved_axes
from ..definition.op_group import OpGroup
from ..definition.registry import OpPattern, register_op
from ..definition.relations import FLOAT_KINDS, normalize_axes, tensor_argument
from ..definition.strategy import Compute, OpStrategy, register_strategy
from .reduce import RowStages, fold_axes, schedule_stages_by_rows

GROUP = OpGroup.NORMALISATION


@dataclass(frozen=True)
class SoftmaxAttrs(Attrs):
    """The attributes of ``softmax`` and ``log_softmax``."""

    axes: tuple[int, ...] = attr("axes over which the result sums to 1, ascending", check=all_non_negative)


def _relation(types: Sequence[Type], attrs: SoftmaxAttrs) -> Type:
    x = tensor_argument(types[0], "x")
    if x.dtype.kind not in FLOAT_KINDS:
        raise TypeInferenceError(f"x must be of {', '.join(FLOAT_KINDS)}, found {x.dtype}")
    normalize_axes(attrs.axes, x.ndim)
    return x


def _compute(name: str, order: LaneOrder | None) -> Compute:
    logarithmic = name == "log_softmax"

    def compute(attrs: SoftmaxAttrs, inputs: Tensors, result: Type) -> RowStages:
        (x,) = inputs
        kind = accumulator(x.dtype)
        between: tuple[te.Tensor, ...]

        def row(i: Sequence[Operand]) -> tuple[Operand, ...]:
            return tuple(index for d, index in enumerate(i) if d not in attrs.axes)

        def read(i: tuple[Operand, ...]) -> Expr:
            return te.cast(x[i], kind)

        # Without the largest element of its row, no exponential overflows.
        peak = fold_axes(f"{name}.peak", x.shape, attrs.axes, peak_of, read, order)

        def exponential(i: tuple[Operand, ...]) -> Expr:
            return te.exp(read(i) - peak[row(i)])

        if logarithmic:
            total = fold_axes(f"{name}.total", x.shape, attrs.axes, te.sum, exponential, order)
            shift = te.compute(total.rows, lambda *i: te.log(total[i]), name=f"{name}.shift")
            between = (shift,)

            def element(*i: Axis) -> Expr:
                return te.cast(read(i) - peak[row(i)] - shift[row(i)], x.dtype)
        else:
            e = te.compute(x.shape, lambda *i: exponential(i), name=f"{name}.exp")
            total = fold_axes(f"{name}.total", x.shape, attrs.axes, te.sum, lambda i: e[i], order)
            scale = te.compute(total.rows, lambda *i: te.const(1, kind) / total[i], name=f"{name}.scale")
            between = e, scale

            def element(*i: Axis) -> Expr:
                return te.cast(e[i] * scale[row(i)], x.dtype)

        return RowStages(te.compute(x.shape, element, name=name), (peak.tensor, total.tensor), between)

    return compute


def _schedule(attrs: SoftmaxAttrs, anchor: RowStages, outputs: Tensors, target: Target) -> Schedule:
    """A row is what the axes span; where they leave the innermost axis out, that as well, or a vector of it, if it is
    open and may be short."""
    shape = outputs[-1].shape
    last = innermost(shape)
    rows = [d for d in range(len(shape)) if d not in (*attrs.axes, last)]
    in_vectors = last not in attrs.axes and const_int(shape[last]) is None
    return schedule_stages_by_rows(anchor, outputs, rows, target, across=last if in_vectors else None)


def _in_layout(attrs: SoftmaxAttrs, given: ValueLayout) -> SoftmaxAttrs | None:
    axes = moved_axes(attrs.axes, given)
    return None if axes is None else SoftmaxAttrs(axes)


class SoftmaxCall(Protocol):
    """Makes calls of softmax, or of its logarithm."""

    def __call__(self, x: Node, axis: PerAxis = -1) -> Call: ...


def _register(name: str, description: str, least: int) -> SoftmaxCall:
    """``least``: from so many elements on a row is folded in lanes."""
    op = register_op(
        name,
        description,
        [("x", "floats")],
        _relation,
        OpPattern.COMM_REDUCE,
        SoftmaxAttrs,
        support_level=1,
        layout_rule=follow_axes(_in_layout),
    )

    @register_strategy(op)
    def strategy(attrs: SoftmaxAttrs, inputs: Sequence[Type], result: Type, target: Target) -> OpStrategy:
        made, cost = OpStrategy(), moved([inputs[0], result])
        made.add_implementation(_compute(name, None), _schedule, f"{name}.generic")
        shape = tensor_argument(inputs[0], "x").shape
        with made.specialized(long_rows(attrs.axes, shape)):
            made.add_implementation(_compute(name, LONG_ROWS), _schedule, f"{name}.rows", cost=cost)
        with made.specialized(rows_of_vectors(attrs.axes, shape, least)):
            made.add_implementation(_compute(name, ROWS_OF_VECTORS), _schedule, f"{name}.short_rows", cost=cost)
        return made

    def make(x: Node, axis: PerAxis = -1) -> Call:
        return op(x, attrs=SoftmaxAttrs(axes_of(name, x, axis)))

    make.__name__ = make.__qualname__ = name
    make.__doc__ = (
        f"{description}. Several axes count as one: before opset 13, ONNX means all axes from ``axis`` on, for which "
        "there is ``trailing_axes``."
    )
    return make


softmax = _register("softmax", "exp(x) divided by its sum over the axis", ROWS_OF_VECTORS.lanes)
log_softmax = _register("log_softmax", "the logarithm of softmax", PART_OF_VECTOR)


def trailing_axes(x: Node, axis: int) -> tuple[int, ...]:
    """The axes from ``axis`` to the last: what softmax, log_softmax and hardmax of ONNX opset < 13 run over."""
    rank = tensor_of(x).ndim
    first = axis + rank if axis < 0 else axis
    if not 0 <= first <= rank:
        raise TypeInferenceError(f"axis {axis} is not one of a tensor of rank {rank}")
    return tuple(range(first, rank))

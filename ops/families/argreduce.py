"""Positions of extremes: argmax and argmin over one axis."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Protocol

from ... import te
from ...base.dataclass import dataclass
from ...base.dtype import BOOL, INT32, INT64, UINT8, DType
from ...base.errors import TypeInferenceError
from ...base.target import Target
from ...graph.node import Call, Node
from ...graph.types import TensorType, Type
from ...ir.constants import const_int
from ...ir.expr import Axis, Expr
from ...ir.makers import as_expr
from ...ir.operand import Operand
from ...te.tensor import Tensors
from ..definition.arguments import axis_of, flag
from ..definition.attrs import Attrs, attr
from ..definition.cost import moved
from ..definition.folds import LONG_ROWS, SHORT_ROWS, LaneOrder, long_rows, short_rows
from ..definition.op_group import OpGroup
from ..definition.registry import OpPattern, register_op
from ..definition.relations import NUMBER_KINDS, normalize_axis, tensor_argument
from ..definition.strategy import Compute, OpStrategy, register_strategy, schedule_default
from .reduce import RowStages, fold_axes, reduced_shape, rows_schedule, short_rows_schedule

GROUP = OpGroup.REDUCTIONS

_SHORTEST_ROW = 12
"""Two folds go through a row, where the generic implementation takes one step an element."""
_MANY = 1 << 31
"""From so many elements on, positions need 64 bits."""


@dataclass(frozen=True)
class ArgReduceAttrs(Attrs):
    """The attributes of ``argmax`` and ``argmin``."""

    axis: int = attr("the axis to search, counted from the end if negative")
    keepdims: bool = attr("whether the axis stays, with extent 1", default=False)
    select_last_index: bool = attr("whether the last of equals is chosen, not the first", default=False)


def _relation(types: Sequence[Type], attrs: ArgReduceAttrs) -> Type:
    x = tensor_argument(types[0], "x")
    if x.dtype.kind not in ("bool", *NUMBER_KINDS):
        raise TypeInferenceError(f"x must be of numbers or bool, found {x.dtype}")
    return TensorType(reduced_shape(x.shape, (normalize_axis(attrs.axis, x.ndim),), attrs.keepdims), INT64)


@cache
def _in_order(largest: bool, last: bool) -> Callable[..., tuple[Expr, ...]]:
    """The fold of values and their positions, which come in ascending order: so positions need not be compared.

    The first of equals wins, and the first NaN over all else, or the last.
    """

    def combine(a: tuple[Expr, ...], b: tuple[Expr, ...]) -> tuple[Expr, Expr]:
        upper, lower = (b[0], a[0]) if largest else (a[0], b[0])
        wins = upper >= lower if last else ~(upper <= lower)  # the second also where one of them is NaN
        if a[0].dtype.is_float:
            wins = wins | te.isnan(b[0]) if last else wins & ~te.isnan(a[0])
        return te.select(wins, b[0], a[0]), te.select(wins, b[1], a[1])

    def identity(kinds: tuple[DType, ...]) -> tuple[Expr, Expr]:
        return (te.min_value if largest else te.max_value)(kinds[0]), te.const(0, kinds[1])

    name = f"{'last' if last else 'first'}_{'largest' if largest else 'smallest'}"
    return te.reducer(name, combine, identity)


def _position_dtype(extent: Expr) -> DType:
    """The dtype of positions while they are looked for, as narrow as most values."""
    return INT32 if (const_int(extent) or _MANY) < _MANY else INT64


def _compute(largest: bool) -> Compute:
    name = "argmax" if largest else "argmin"

    def compute(attrs: ArgReduceAttrs, inputs: Tensors, result: Type) -> te.Tensor:
        (x,) = inputs
        axis = normalize_axis(attrs.axis, x.ndim)
        k = te.reduce_axis((0, x.shape[axis]), name="k")

        def fold(*i: Axis) -> tuple[Expr, ...]:
            found = x[(*i[:axis], k, *i[axis:])]
            value = te.cast(found, UINT8) if x.dtype is BOOL else found
            place = te.cast(k.as_expr(), _position_dtype(x.shape[axis]))
            return _in_order(largest, attrs.select_last_index)((value, place), axis=k)

        _, position = te.compute(reduced_shape(x.shape, (axis,), keepdims=False), fold, name=f"{name}.fold")

        def element(*i: Axis) -> Expr:
            return te.cast(position[(*i[:axis], *i[axis + attrs.keepdims :])], INT64)

        return te.compute(tensor_argument(result, "result").shape, element, name=name)

    return compute


def _compute_rows(largest: bool, order: LaneOrder) -> Compute:
    """First the extreme of a row, then the first place where it stands: both are folded in lanes."""
    name = "argmax" if largest else "argmin"

    def compute(attrs: ArgReduceAttrs, inputs: Tensors, result: Type) -> RowStages:
        (x,) = inputs
        axis = normalize_axis(attrs.axis, x.ndim)

        def value(i: tuple[Operand, ...]) -> Expr:
            return te.cast(x[i], UINT8) if x.dtype is BOOL else x[i]

        extreme = fold_axes(f"{name}.extreme", x.shape, (axis,), te.max if largest else te.min, value, order)
        kind = _position_dtype(x.shape[axis])
        nowhere = te.min_value(kind) if attrs.select_last_index else te.max_value(kind)

        def place(i: tuple[Operand, ...]) -> Expr:
            found = value(i)
            elsewhere = found != extreme[(*i[:axis], *i[axis + 1 :])]
            if found.dtype.is_float:
                elsewhere = elsewhere & ~te.isnan(found)  # where there is a NaN, that is the extreme
            return te.select(elsewhere, nowhere, te.cast(as_expr(i[axis]), kind))

        nearest = te.max if attrs.select_last_index else te.min
        positions = fold_axes(f"{name}.place", x.shape, (axis,), nearest, place, order)

        def element(*i: Axis) -> Expr:
            return te.cast(positions[(*i[:axis], *i[axis + attrs.keepdims :])], INT64)

        made = te.compute(tensor_argument(result, "result").shape, element, name=name)
        return RowStages(made, (extreme.tensor, positions.tensor))

    return compute


class ArgReduceCall(Protocol):
    """Makes calls of argmax or argmin."""

    def __call__(self, x: Node, axis: int = 0, keepdims: bool = False, select_last_index: bool = False) -> Call: ...


def _register(largest: bool) -> ArgReduceCall:
    name, adjective = ("argmax", "largest") if largest else ("argmin", "smallest")
    description = f"the position, an int64, of the {adjective} element along an axis; a NaN counts as that"
    op = register_op(
        name, description, [("x", "rank 1 or more")], _relation, OpPattern.COMM_REDUCE, ArgReduceAttrs, support_level=4
    )

    @register_strategy(op)
    def strategy(attrs: ArgReduceAttrs, inputs: Sequence[Type], result: Type, target: Target) -> OpStrategy:
        x = tensor_argument(inputs[0], "x")
        axis = normalize_axis(attrs.axis, x.ndim)
        made, cost = OpStrategy(), moved([x, result])
        made.add_implementation(_compute(largest), schedule_default, f"{name}.generic")
        with made.specialized(long_rows((axis,), x.shape)):
            made.add_implementation(_compute_rows(largest, LONG_ROWS), rows_schedule, f"{name}.rows", cost=cost)
        with made.specialized(short_rows((axis,), x.shape, _SHORTEST_ROW)):
            found = _compute_rows(largest, SHORT_ROWS)
            made.add_implementation(found, short_rows_schedule, f"{name}.short_rows", cost=cost)
        return made

    def make(x: Node, axis: int = 0, keepdims: bool = False, select_last_index: bool = False) -> Call:
        last = flag(select_last_index, "select_last_index")
        return op(x, attrs=ArgReduceAttrs(axis_of(name, x, axis), flag(keepdims, "keepdims"), last))

    make.__name__ = make.__qualname__ = name
    make.__doc__ = f"{description}. The first of equals, or the last by ``select_last_index``."
    return make


argmax = _register(largest=True)
argmin = _register(largest=False)

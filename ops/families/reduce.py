"""Reductions over axes: sums, means, norms, extremes, any and all; and the positions of extremes.

Sums of the half-precision floats are kept in float32. Over no elements, a sum is 0, a product 1, an extreme the
dtype's least or greatest value (an infinity for floats), a mean NaN.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from ... import te
from ...base.dataclass import dataclass
from ...base.dtype import FLOAT64, INT64, UINT64, DType
from ...base.errors import TypeInferenceError
from ...base.target import Target
from ...graph.node import Call, Node, tensor_of
from ...graph.types import TensorType, Type
from ...ir.constants import ONE
from ...ir.expr import Axis, Expr
from ...ir.makers import as_index
from ...ir.operand import Operand
from ...ir.row_major import ravel_index, unravel_index
from ...lowering.schedule import Schedule
from ...schedules.rows import extent_of, row_span, schedule_rows
from ...schedules.short_rows import schedule_short_rows
from ...te.tensor import Tensors
from ..definition.accumulate import accumulator
from ..definition.arguments import PerAxis, axes_of, flag
from ..definition.attrs import Attrs, all_non_negative, attr
from ..definition.cost import moved
from ..definition.folds import (
    LONG_ROWS,
    ROWS_OF_VECTORS,
    SHORT_ROWS,
    Fold,
    LaneOrder,
    long_rows,
    rows_of_vectors,
    short_rows,
)
from ..definition.layout_rule import LayoutCandidate, ValueLayout, moved_axes
from ..definition.op_group import OpGroup
from ..definition.registry import Op, OpPattern, Relation, register_op
from ..definition.relations import NUMBER_KINDS, normalize_axes, tensor_argument
from ..definition.strategy import Compute, OpStrategy, Stages, register_strategy, schedule_default
from .binary import divide_element

GROUP = OpGroup.REDUCTIONS

Term = Callable[[tuple[Operand, ...]], Expr]
"""From the indices of an element to the value that is folded."""


@dataclass(frozen=True)
class ReduceAttrs(Attrs):
    """The attributes of all reductions."""

    axes: tuple[int, ...] = attr("axes to reduce, ascending; over none, each element by itself", check=all_non_negative)
    keepdims: bool = attr("whether a reduced axis stays, with extent 1", default=False)


def reduced_shape(shape: Sequence[Expr], axes: Sequence[int], keepdims: bool) -> tuple[Expr, ...]:
    """The shape without the axes, or with extent 1 in their place."""
    return tuple(ONE if d in axes else e for d, e in enumerate(shape) if keepdims or d not in axes)


def _relation(kinds: Sequence[str]) -> Relation:
    def relation(types: Sequence[Type], attrs: ReduceAttrs) -> Type:
        x = tensor_argument(types[0], "x")
        if x.dtype.kind not in kinds:
            raise TypeInferenceError(f"x must be of {', '.join(kinds)}, found {x.dtype}")
        axes = normalize_axes(attrs.axes, x.ndim)
        return TensorType(reduced_shape(x.shape, axes, attrs.keepdims), x.dtype)

    return relation


# What each reduction does: before, while and after folding.


def _itself(x: Expr) -> Expr:
    return x


def _folded_only(total: Expr, count: Expr) -> Expr:
    return total


def _wide(kind: DType) -> DType:
    return UINT64 if kind.kind == "uint" else INT64 if kind.is_data_int else accumulator(kind)


def _float(kind: DType) -> DType:
    return accumulator(kind) if kind.is_float else FLOAT64


def _mean(total: Expr, count: Expr) -> Expr:
    return divide_element(total, te.cast(count, total.dtype))


@dataclass(frozen=True, slots=True)
class Reduction:
    """``after(fold of before(x), number of elements)``, in the dtype that ``accumulate`` gives for that of x."""

    fold: Fold
    before: Callable[[Expr], Expr] = _itself
    after: Callable[[Expr, Expr], Expr] = _folded_only
    accumulate: Callable[[DType], DType] = accumulator


@dataclass(frozen=True, slots=True, eq=False)
class RowTotals:
    """What reducing rows gives: ``totals[row]`` is that of one, by its indices along ``rows``. The ``tensor`` has these
    axes, or those of short rows as one."""

    tensor: te.Tensor
    rows: tuple[Expr, ...]

    def __getitem__(self, row: Sequence[Operand]) -> Expr:
        index = tuple(map(as_index, row))
        return self.tensor[index if self.tensor.ndim == len(index) else (ravel_index(index, self.rows),)]


@dataclass(frozen=True, slots=True, eq=False)
class RowStages(Stages):
    """The result, the ``totals`` of rows that it is made of, in order of computation, and ``between``: what else of the
    operator is computed on the way to it."""

    totals: tuple[te.Tensor, ...]
    between: tuple[te.Tensor, ...] = ()


def schedule_stages_by_rows(
    stages: RowStages, outputs: Tensors, row_axes: Sequence[int], target: Target, across: int | None = None
) -> Schedule:
    """The schedule that ``schedule_rows`` makes of all stages of an operator."""
    return schedule_rows(stages.totals, (*stages.between, stages.result), outputs, row_axes, target, across)


def short_rows_schedule(attrs: object, anchor: RowStages, outputs: Tensors, target: Target) -> Schedule:
    """The schedule that ``schedule_short_rows`` makes of the stages of an operator."""
    return schedule_short_rows(anchor.result, anchor.totals, outputs, target)


def fold_axes(
    name: str, shape: Sequence[Expr], axes: Sequence[int], fold: Fold, term: Term, order: LaneOrder | None
) -> RowTotals:
    """The fold of ``term`` over the axes, of each row of the others. By an ``order``, the innermost axes among them are
    folded in lanes, as one."""
    kept = reduced_shape(shape, axes, keepdims=False)
    if not axes:
        return RowTotals(te.compute(kept, lambda *i: term(i), name=name), kept)
    span = row_span(axes, shape) if order is not None else ()
    along = {d: te.reduce_axis((0, shape[d]), name=f"r{d}") for d in axes if d not in span}
    positions: dict[int, Operand] = dict(along)
    reduced = list(along.values())
    if span:
        box = [shape[d] for d in span]
        reduced.append(te.reduce_axis((0, extent_of(box)), name="k"))
        positions.update(zip(span, unravel_index(reduced[-1].var, box), strict=True))

    def element(row: Sequence[Operand]) -> Expr:
        own = iter(row)
        source = term(tuple(positions[d] if d in positions else next(own) for d in range(len(shape))))
        if order is None:
            return fold(source, axis=reduced, where=None)
        return fold(source, axis=reduced, where=None, lanes=order.lanes, neighbours=order.neighbours)

    if order is not SHORT_ROWS:
        return RowTotals(te.compute(kept, lambda *row: element(row), name=name), kept)
    made = te.compute((extent_of(kept),), lambda row: element(unravel_index(row.var, kept)), name=name)
    return RowTotals(made, kept)


def _kept(indices: Sequence[Operand], attrs: ReduceAttrs) -> tuple[Operand, ...]:
    """The indices of a result's element along the axes that are not reduced."""
    return tuple(i for d, i in enumerate(indices) if not (attrs.keepdims and d in attrs.axes))


def _compute(name: str, reduction: Reduction, order: LaneOrder | None) -> Compute:
    def compute(attrs: ReduceAttrs, inputs: Tensors, result: Type) -> RowStages:
        (x,) = inputs
        kind = reduction.accumulate(x.dtype)

        def term(i: tuple[Operand, ...]) -> Expr:
            return reduction.before(te.cast(x[i], kind))

        totals = fold_axes(f"{name}.fold", x.shape, attrs.axes, reduction.fold, term, order)
        shape = tensor_argument(result, "result").shape
        if reduction.after is _folded_only and kind is x.dtype and totals.tensor.ndim == len(shape) == len(totals.rows):
            return RowStages(totals.tensor, (totals.tensor,))
        count: Expr = ONE
        for d in attrs.axes:
            count = count * x.shape[d]

        def element(*i: Axis) -> Expr:
            return te.cast(reduction.after(totals[_kept(i, attrs)], count), x.dtype)

        return RowStages(te.compute(shape, element, name=name), (totals.tensor,))

    return compute


def _log_sum_exp(order: LaneOrder | None) -> Compute:
    """The largest element is taken out of the sum, so that nothing overflows; one that is infinite stays in."""

    def compute(attrs: ReduceAttrs, inputs: Tensors, result: Type) -> RowStages:
        (x,) = inputs
        kind = _float(x.dtype)
        maxima = fold_axes("log_sum_exp.max", x.shape, attrs.axes, te.max, lambda i: te.cast(x[i], kind), order)
        largest = maxima.tensor
        peak = te.compute(
            largest.shape,
            lambda *i: te.select(te.isfinite(largest[i]), largest[i], 0.0),
            name="log_sum_exp.peak",
        )

        def term(i: tuple[Operand, ...]) -> Expr:
            row = tuple(index for d, index in enumerate(i) if d not in attrs.axes)
            return te.exp(te.cast(x[i], kind) - peak[row])

        sums = fold_axes("log_sum_exp.sum", x.shape, attrs.axes, te.sum, term, order)

        def element(*i: Axis) -> Expr:
            row = _kept(i, attrs)
            return te.cast(te.log(sums[row]) + peak[row], x.dtype)

        shape = tensor_argument(result, "result").shape
        return RowStages(te.compute(shape, element, name="log_sum_exp"), (largest, sums.tensor), (peak,))

    return compute


def rows_schedule(attrs: object, anchor: RowStages, outputs: Tensors, target: Target) -> Schedule:
    """The schedule that ``schedule_rows`` makes of reductions, each element of whose result is one of a row."""
    return schedule_stages_by_rows(anchor, outputs, range(outputs[-1].ndim), target)


def _register(
    name: str, description: str, kinds: Sequence[str], compute: Callable[[LaneOrder | None], Compute], folds: int = 1
) -> Op:
    """``folds``: how many times the compute goes through the elements; several short rows are folded side by side only
    if that is once."""
    arguments = [("x", "any shape")]
    op = register_op(
        name,
        description,
        arguments,
        _relation(kinds),
        OpPattern.COMM_REDUCE,
        ReduceAttrs,
        support_level=4,
        layout_rule=_layouts,
    )

    @register_strategy(op)
    def strategy(attrs: ReduceAttrs, inputs: Sequence[Type], result: Type, target: Target) -> OpStrategy:
        made = OpStrategy()
        x = tensor_argument(inputs[0], "x")
        cost = moved([x, result])
        made.add_implementation(compute(None), schedule_default, f"{name}.generic")
        with made.specialized(long_rows(attrs.axes, x.shape)):
            made.add_implementation(compute(LONG_ROWS), rows_schedule, f"{name}.rows", cost=cost)
        if folds == 1:
            with made.specialized(short_rows(attrs.axes, x.shape)):
                made.add_implementation(compute(SHORT_ROWS), short_rows_schedule, f"{name}.short_rows", cost=cost)
        else:
            with made.specialized(rows_of_vectors(attrs.axes, x.shape)):
                made.add_implementation(compute(ROWS_OF_VECTORS), rows_schedule, f"{name}.short_rows", cost=cost)
        return made

    return op


def _layouts(call: Call, given: ValueLayout | None, target: Target) -> Iterable[LayoutCandidate]:
    """Axes that are not cut into blocks are reduced where they stand; one that goes leaves the layout, too."""
    x = call.args[0].type
    if given is None or not isinstance(x, TensorType) or x.ndim != given.primal.ndim:
        return
    axes = moved_axes(call.attrs.axes, given)
    if axes is None:
        return
    gone = () if call.attrs.keepdims else [given.primal.axes[axis].name for axis in call.attrs.axes]
    left = (
        ValueLayout(given.primal.without(gone), given.layout.without(gone)) if len(gone) < given.primal.ndim else None
    )
    yield LayoutCandidate((given,), ReduceAttrs(axes, call.attrs.keepdims), left)


class ReductionCall(Protocol):
    """Makes calls of a reduction."""

    def __call__(self, x: Node, axes: PerAxis | None = None, keepdims: bool = False) -> Call: ...


def _reduction(name: str, description: str, reduction: Reduction, kinds: Sequence[str] = NUMBER_KINDS) -> ReductionCall:
    return _maker(_register(name, description, kinds, lambda order: _compute(name, reduction, order)))


def _maker(op: Op) -> ReductionCall:
    """The function that makes calls of a reduction."""

    def make(x: Node, axes: PerAxis | None = None, keepdims: bool = False) -> Call:
        return op(x, attrs=ReduceAttrs(axes_of(op.name, x, axes), flag(keepdims, "keepdims")))

    make.__name__ = make.__qualname__ = op.name
    make.__doc__ = f"{op.description}. ``axes``: None for all, () for none, which leaves each element by itself."
    return make


sum = _reduction("sum", "the sum over axes", Reduction(te.sum))
mean = _reduction("mean", "the mean over axes; of integers truncated", Reduction(te.sum, after=_mean, accumulate=_wide))
prod = _reduction("prod", "the product over axes", Reduction(te.prod))
_max = _reduction("max", "the largest element over axes; NaN if there is one", Reduction(te.max))
_min = _reduction("min", "the smallest element over axes; NaN if there is one", Reduction(te.min))
sum_square = _reduction("sum_square", "the sum of squares over axes", Reduction(te.sum, before=lambda x: x * x))
l1 = _reduction("l1", "the sum of absolute values over axes", Reduction(te.sum, before=te.abs))
l2 = _reduction(
    "l2",
    "the square root of the sum of squares over axes",
    Reduction(te.sum, before=lambda x: x * x, after=lambda total, count: te.sqrt(total), accumulate=_float),
)
log_sum = _reduction(
    "log_sum",
    "the logarithm of the sum over axes",
    Reduction(te.sum, after=lambda total, count: te.log(total), accumulate=_float),
)
log_sum_exp = _maker(
    _register("log_sum_exp", "log(sum(exp(x))) over axes, without overflow", NUMBER_KINDS, _log_sum_exp, folds=2)
)
any = _reduction("any", "whether any element over axes is true", Reduction(te.any), ("bool",))
all = _reduction("all", "whether all elements over axes are true", Reduction(te.all), ("bool",))


def max(x: Node, axes: PerAxis | None = None, keepdims: bool = False) -> Call:
    """The largest element over axes, NaN if there is one; of bools, whether any is true."""
    return (any if tensor_of(x).dtype.is_bool else _max)(x, axes, keepdims)


def min(x: Node, axes: PerAxis | None = None, keepdims: bool = False) -> Call:
    """The smallest element over axes, NaN if there is one; of bools, whether all are true."""
    return (all if tensor_of(x).dtype.is_bool else _min)(x, axes, keepdims)

"""Running sums and products along an axis: cumsum, cumprod.

The definition folds all elements up to each one; the schedule goes on from the one before (``schedules/running.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ... import te
from ...base.dataclass import dataclass
from ...base.errors import TypeInferenceError
from ...base.target import Target
from ...graph.node import Call, Node
from ...graph.types import Type
from ...ir.constants import ONE
from ...ir.expr import Axis, Expr
from ...lowering.schedule import Schedule
from ...schedules.around import schedule_around
from ...schedules.running import RunningTile, schedule_running
from ...te.tensor import Tensors
from ..definition.accumulate import narrowed, widened
from ..definition.arguments import axis_of, flag
from ..definition.attrs import Attrs, attr
from ..definition.implementation import Stages
from ..definition.op_group import OpGroup
from ..definition.registry import Op, OpPattern, register_op
from ..definition.relations import NUMBER_KINDS, normalize_axis, tensor_argument
from ..definition.strategy import Compute, register_compute

GROUP = OpGroup.REDUCTIONS

ROWS = (1, 2, 4, 8)
COLUMNS = (256, 512, 1024, 2048)
LANES = (8, 16, 32, 64)


@dataclass(frozen=True)
class CumulativeAttrs(Attrs):
    """The attributes of ``cumsum`` and ``cumprod``."""

    axis: int = attr("the axis to go along, counted from the end if negative")
    exclusive: bool = attr("whether an element is left out of its own result", default=False)
    reverse: bool = attr("whether it begins at the end", default=False)


def _relation(types: Sequence[Type], attrs: CumulativeAttrs) -> Type:
    x = tensor_argument(types[0], "x")
    if x.dtype.kind not in NUMBER_KINDS:
        raise TypeInferenceError(f"x must be of {', '.join(NUMBER_KINDS)}, found {x.dtype}")
    normalize_axis(attrs.axis, x.ndim)
    return x


@dataclass(frozen=True, slots=True, eq=False)
class CumulativeStages(Stages):
    """The result, and the ``sums``, or products, that it is rounded from; they may be the result themselves."""

    sums: te.Tensor


def _compute(name: str, fold: Callable[[Expr, Axis], Expr]) -> Compute:
    """The definition: each element folds all those up to it anew."""

    def compute(attrs: CumulativeAttrs, inputs: Tensors, result: Type) -> CumulativeStages:
        (x,) = inputs
        axis = normalize_axis(attrs.axis, x.ndim)
        extent = x.shape[axis]

        def element(*i: Axis) -> Expr:
            terms = (extent - i[axis] if attrs.reverse else i[axis] + ONE) - int(attrs.exclusive)
            term = te.reduce_axis((0, terms), name="term")
            position = extent - ONE - term if attrs.reverse else term
            return fold(widened(x[(*i[:axis], position, *i[axis + 1 :])]), term)

        sums = te.compute(x.shape, element, name=name)
        return CumulativeStages(narrowed(sums, x.dtype, f"{name}.rounded"), sums)

    return compute


def _schedule(attrs: CumulativeAttrs, anchor: CumulativeStages, outputs: Tensors, target: Target) -> Schedule:
    """Tiles of running folds as tasks, and what is made of them after each step, or in vectors of a row."""
    schedule, main = schedule_around(anchor.result, outputs, [anchor.sums], target)
    along = normalize_axis(attrs.axis, anchor.sums.ndim)
    usual = RunningTile()
    tile = RunningTile(
        schedule.decide("rows", ROWS, usual.rows),
        schedule.decide("columns", COLUMNS, usual.columns),
        schedule.decide("lanes", LANES, usual.lanes),
    )
    reader = None if main is anchor.sums else schedule[main]
    schedule_running(schedule[anchor.sums], along, tile, reader)
    return schedule


def _register(name: str, fold: Callable[[Expr, Axis], Expr], description: str) -> Op:
    op = register_op(
        name,
        description,
        [("x", "rank 1 or more")],
        _relation,
        OpPattern.COMM_REDUCE,
        CumulativeAttrs,
        support_level=4,
    )
    register_compute(op, _compute(name, fold), _schedule)
    return op


CUMSUM = _register("cumsum", te.sum, "the sums of all elements up to each one, along an axis")
CUMPROD = _register("cumprod", te.prod, "the products of all elements up to each one, along an axis")


def _options(op: str, x: Node, axis: int, exclusive: bool, reverse: bool) -> tuple[int, bool, bool]:
    return axis_of(op, x, axis), flag(exclusive, "exclusive"), flag(reverse, "reverse")


def cumsum(x: Node, axis: int = 0, exclusive: bool = False, reverse: bool = False) -> Call:
    """The sum of all elements up to each one along ``axis``; ``exclusive`` leaves out that one, ``reverse`` sums from
    the end."""
    return CUMSUM(x, attrs=CumulativeAttrs(*_options("cumsum", x, axis, exclusive, reverse)))


def cumprod(x: Node, axis: int = 0, exclusive: bool = False, reverse: bool = False) -> Call:
    """The product of all elements up to each one along ``axis``; ``exclusive`` leaves out that one, ``reverse``
    begins at the end."""
    return CUMPROD(x, attrs=CumulativeAttrs(*_options("cumprod", x, axis, exclusive, reverse)))

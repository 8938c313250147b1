"""Running sums along an axis: cumsum.

Without a scan primitive it is reductions: each element sums the part of its block before it, and the totals of the
blocks before that one. With blocks of the square root of the extent n, that is about n ** 1.5 additions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from .. import te
from ..graph.node import Call, Node
from ..graph.types import Type
from ..ir.errors import TypeInferenceError
from ..ir.expr import ONE, Axis, Expr, as_expr, const_int
from .accumulate import widened
from .arguments import axis_of
from .attrs import Attrs, attr
from .registry import OpPattern, register_op
from .relations import NUMBER_KINDS, normalize_axis, tensor_argument
from .strategy import Tensors, register_compute

LEAST_BLOCKED = 64
"""Shorter axes are one block."""


@dataclass(frozen=True)
class CumsumAttrs(Attrs):
    axis: int = attr("the axis to sum along, counted from the end if negative")
    exclusive: bool = attr("whether an element is left out of its own sum", default=False)
    reverse: bool = attr("whether sums run from the end", default=False)


def _relation(types: Sequence[Type], attrs: CumsumAttrs) -> Type:
    x = tensor_argument(types[0], "x")
    if x.dtype.kind not in NUMBER_KINDS:
        raise TypeInferenceError(f"x must be of {', '.join(NUMBER_KINDS)}, found {x.dtype}")
    normalize_axis(attrs.axis, x.ndim)
    return x


def _compute(attrs: CumsumAttrs, inputs: Tensors, result: Type) -> te.Tensor:
    (x,) = inputs
    axis = normalize_axis(attrs.axis, x.ndim)
    extent = x.shape[axis]

    def from_start(position: Expr) -> Expr:
        """Positions count from where the sums start: the end, if they are reversed."""
        return extent - ONE - position if attrs.reverse else position

    def term(i: Sequence[Axis], position: Expr) -> Expr:
        return widened(x[(*i[:axis], from_start(position), *i[axis + 1 :])])

    number = const_int(extent)
    if number is None or number < LEAST_BLOCKED:
        size = extent
        offset: Callable[[Sequence[Axis], Expr], Expr] | None = None
    else:
        width = math.isqrt(number)
        size = as_expr(width)
        offset = _offsets(x.shape, axis, number, width, term)

    k = te.reduce_axis((0, size), name="k")

    def in_block(*i: Axis) -> Expr:
        position = from_start(i[axis].as_expr())
        within = position if offset is None else position % size
        included = k < within if attrs.exclusive else k <= within
        return te.sum(term(i, position - within + k), axis=k, where=included)

    own = te.compute(x.shape, in_block, name="cumsum.in_block")

    def element(*i: Axis) -> Expr:
        total = own[i] if offset is None else own[i] + offset(i, from_start(i[axis].as_expr()) // size)
        return te.cast(total, x.dtype)

    return te.compute(x.shape, element, name="cumsum")


def _offsets(
    shape: Sequence[Expr], axis: int, number: int, width: int, term: Callable[[Sequence[Axis], Expr], Expr]
) -> Callable[[Sequence[Axis], Expr], Expr]:
    """The sum of all blocks before a block, as a function of the other indices and the block's number."""
    count = -(-number // width)
    blocks = [as_expr(count) if d == axis else e for d, e in enumerate(shape)]
    k = te.reduce_axis((0, width), name="k")
    earlier = te.reduce_axis((0, count), name="earlier")

    def total(*i: Axis) -> Expr:
        position = i[axis] * width + k
        return te.sum(term(i, position), axis=k, where=None if number % width == 0 else position < number)

    totals = te.compute(blocks, total, name="cumsum.block_totals")

    def before(*i: Axis) -> Expr:
        return te.sum(totals[(*i[:axis], earlier, *i[axis + 1 :])], axis=earlier, where=earlier < i[axis])

    offsets = te.compute(blocks, before, name="cumsum.offsets")
    return lambda i, block: offsets[(*i[:axis], block, *i[axis + 1 :])]


CUMSUM = register_op(
    "cumsum",
    "the sums of all elements up to each one, along an axis",
    [("x", "rank 1 or more")],
    _relation,
    OpPattern.COMM_REDUCE,
    CumsumAttrs,
    support_level=4,
)
register_compute(CUMSUM, _compute)


def cumsum(x: Node, axis: int = 0, exclusive: bool = False, reverse: bool = False) -> Call:
    """The sum of all elements up to each one along ``axis``; ``exclusive`` leaves out that one, ``reverse`` sums from
    the end."""
    return CUMSUM(x, attrs=CumsumAttrs(axis_of("cumsum", x, axis), bool(exclusive), bool(reverse)))

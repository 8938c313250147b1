"""Running sums and products along an axis: cumsum, cumprod.

Each waits for the one before, so several run side by side: of some rows, or of neighbours in memory, as vectors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ... import te
from ...base.errors import TypeInferenceError
from ...graph.node import Call, Node
from ...graph.types import Type
from ...ir.buffer import Buffer
from ...ir.builder import BufferPtr, IRBuilder
from ...ir.constants import ONE, const_int
from ...ir.expr import Expr
from ...ir.makers import as_index
from ...ir.row_major import unravel_index
from ...ir.stmt import Stmt
from ...schedules.rows import extent_of
from ...te.tensor import Tensors
from ..definition.accumulate import accumulator
from ..definition.arguments import axis_of, flag
from ..definition.attrs import Attrs, attr
from ..definition.op_group import OpGroup
from ..definition.registry import Op, OpPattern, register_op
from ..definition.relations import NUMBER_KINDS, normalize_axis, tensor_argument
from ..definition.strategy import Compute, register_compute

GROUP = OpGroup.REDUCTIONS

ROWS = 4
"""Rows summed side by side: an addition takes about as many cycles. More would need the same sets of the cache."""
LANES = 32
COLUMNS = 1024
"""Neighbours summed side by side: their sums stay in the first cache."""


@dataclass(frozen=True)
class CumulativeAttrs(Attrs):
    """The attributes of ``cumsum`` and ``cumprod``."""

    axis: int = attr("the axis to go along, counted from the end if negative")
    exclusive: bool = attr("whether an element is left out of its own result", default=False)
    reverse: bool = attr("whether it begins at the end", default=False)


@dataclass(frozen=True, slots=True)
class _Fold:
    """How an element is added to those before it, of which there is ``first`` where there are none."""

    name: str
    combine: Callable[[Expr, Expr], Expr]
    first: int


_SUM = _Fold("cumsum", lambda total, x: total + x, 0)
_PRODUCT = _Fold("cumprod", lambda total, x: total * x, 1)


def _relation(types: Sequence[Type], attrs: CumulativeAttrs) -> Type:
    x = tensor_argument(types[0], "x")
    if x.dtype.kind not in NUMBER_KINDS:
        raise TypeInferenceError(f"x must be of {', '.join(NUMBER_KINDS)}, found {x.dtype}")
    normalize_axis(attrs.axis, x.ndim)
    return x


def _compute(fold: _Fold) -> Compute:
    def compute(attrs: CumulativeAttrs, inputs: Tensors, result: Type) -> te.Tensor:
        (x,) = inputs
        axis = normalize_axis(attrs.axis, x.ndim)
        write = _sum_rows if const_int(extent_of(x.shape[axis + 1 :])) == 1 else _sum_columns

        def body(ins: Sequence[Buffer], outs: Sequence[Buffer]) -> Stmt:
            ib = IRBuilder()
            write(_RunningSums(ib, ib.buffer_ptr(ins[0]), ib.buffer_ptr(outs[0]), axis, attrs, fold))
            return ib.get()

        return te.extern(x.shape, [x], body, name=fold.name, dtype=x.dtype)

    return compute


@dataclass(frozen=True, slots=True)
class _RunningSums:
    """What is written, and how an element is added to the sums before it."""

    builder: IRBuilder
    source: BufferPtr
    target: BufferPtr
    axis: int
    attrs: CumulativeAttrs
    fold: _Fold

    @property
    def shape(self) -> tuple[Expr, ...]:
        return self.source.shape

    def allocate(self, count: int) -> BufferPtr:
        return self.builder.allocate(accumulator(self.source.dtype), (as_index(count),), name="sums")

    def start(self, sums: BufferPtr, number: Expr) -> None:
        """Begin a sum, of no elements."""
        sums[number] = te.const(self.fold.first, sums.dtype)

    def step(self, sums: BufferPtr, number: Expr, outer: Expr, k: Expr, inner: Expr) -> None:
        """Add element ``k`` along the axis, counted from where the sums start, to a sum."""
        position = self.shape[self.axis] - ONE - k if self.attrs.reverse else k
        before, after = self.shape[: self.axis], self.shape[self.axis + 1 :]
        place = (*_place(outer, before), position, *_place(inner, after))
        total = self.fold.combine(sums[number], te.cast(self.source[place], sums.dtype))
        if self.attrs.exclusive:
            self.target[place] = te.cast(sums[number], self.target.dtype)
            sums[number] = total
        else:
            sums[number] = total
            self.target[place] = te.cast(sums[number], self.target.dtype)


def _place(k: Expr, shape: Sequence[Expr]) -> tuple[Expr, ...]:
    return unravel_index(k, shape) if shape else ()


def _sum_rows(sums_of: _RunningSums) -> None:
    """Some rows at a time; the last ones again where they do not come out even."""
    ib, shape, axis = sums_of.builder, sums_of.shape, sums_of.axis
    rows = extent_of(shape[:axis])
    together = min(ROWS, const_int(rows) or ROWS)
    with ib.for_range(0, (rows + (together - 1)) // together, name="block", kind="parallel") as block:
        sums = sums_of.allocate(together)
        for r in range(together):
            sums_of.start(sums, as_index(r))
        with ib.for_range(0, shape[axis], name="k") as k:
            for r in range(together):
                row = te.minimum(block * together + r, rows - ONE) if together > 1 else block.as_expr()
                sums_of.step(sums, as_index(r), row, k, as_index(0))


def _sum_columns(sums_of: _RunningSums) -> None:
    """Neighbours in vectors, as many at a time as stay in cache."""
    ib, shape, axis = sums_of.builder, sums_of.shape, sums_of.axis
    outer, inner = extent_of(shape[:axis]), extent_of(shape[axis + 1 :])
    blocks = (inner + (COLUMNS - 1)) // COLUMNS
    with ib.for_range(0, outer * blocks, name="block", kind="parallel") as block:
        first = block % blocks * COLUMNS
        vectors = te.minimum((inner - first + (LANES - 1)) // LANES, COLUMNS // LANES)
        sums = sums_of.allocate(COLUMNS)
        with ib.for_range(0, vectors, name="vector") as v, ib.for_range(0, LANES, name="lane", kind="vectorized") as j:
            sums_of.start(sums, v * LANES + j)
        with (
            ib.for_range(0, shape[axis], name="k") as k,
            ib.for_range(0, vectors, name="vector") as v,
            ib.for_range(0, LANES, name="lane", kind="vectorized") as j,
            ib.if_scope(first + v * LANES + j < inner),
        ):
            sums_of.step(sums, v * LANES + j, block // blocks, k, first + v * LANES + j)


def _register(fold: _Fold, description: str) -> Op:
    op = register_op(
        fold.name,
        description,
        [("x", "rank 1 or more")],
        _relation,
        OpPattern.COMM_REDUCE,
        CumulativeAttrs,
        support_level=4,
    )
    register_compute(op, _compute(fold))
    return op


CUMSUM = _register(_SUM, "the sums of all elements up to each one, along an axis")
CUMPROD = _register(_PRODUCT, "the products of all elements up to each one, along an axis")


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

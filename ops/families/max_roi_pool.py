"""max_roi_pool: the greatest elements of an image inside boxes, in as many bins for each box.

Boxes and blocks of channels run in parallel (``roi_bins.py``). Source: Girshick, Fast R-CNN (2015), as ONNX's
MaxRoiPool.
"""

from __future__ import annotations

from collections.abc import Sequence

from ... import te
from ...base.dataclass import dataclass
from ...graph.node import Call, Node
from ...graph.types import Type
from ...ir.buffer import Buffer
from ...ir.builder import IRBuilder
from ...ir.expr import Expr
from ...ir.makers import as_index
from ...ir.stmt import Stmt
from ...te.tensor import Tensors
from ..definition.accumulate import accumulator, widened
from ..definition.arguments import PerAxis, naming, per_axis, real
from ..definition.attrs import Attrs, attr
from ..definition.op_group import OpGroup
from ..definition.registry import OpPattern, register_op
from ..definition.relations import tensor_argument
from ..definition.strategy import register_compute
from .roi_bins import IMAGE, LANES, Bins, binned, each_block, positive

GROUP = OpGroup.IMAGES


@dataclass(frozen=True)
class MaxRoiPoolAttrs(Attrs):
    """The attributes of ``max_roi_pool``."""

    bins: tuple[int, ...] = attr("the rows and columns of bins of a box", check=positive)
    scale: float = attr("how many elements of x a unit of the boxes is", 1.0)


def _pool_relation(types: Sequence[Type], attrs: MaxRoiPoolAttrs) -> Type:
    return binned(tensor_argument(types[0], "x"), tensor_argument(types[1], "boxes"), 5, attrs.bins)


def _pool_compute(attrs: MaxRoiPoolAttrs, inputs: Tensors, result: Type) -> te.Tensor:
    def body(ins: Sequence[Buffer], outs: Sequence[Buffer]) -> Stmt:
        ib = IRBuilder()
        x, boxes, target = map(ib.buffer_ptr, (*ins, *outs))
        kind = accumulator(x.dtype)
        with each_block(ib, x.shape[1], boxes) as (box, first):
            number = widened(boxes[box, 0])
            is_sample = _inside_floats(number, x.shape[0])
            sample = ib.let("sample", _as_index(te.select(is_sample, number, te.const(0, kind)))).as_expr()
            bins = Bins(ib, x, target, sample, box, first, ib.allocate(kind, (LANES,), "totals"))
            rows, columns = (
                _PooledLine.of_box(ib, attrs, boxes[box, 2 - k], boxes[box, 4 - k], x.shape[2 + k], attrs.bins[k])
                for k in range(2)
            )
            with (
                ib.for_range(0, attrs.bins[0], name="row") as row,
                ib.for_range(0, attrs.bins[1], name="column") as column,
            ):
                (top, bottom), (left, right) = rows.bin(row.as_expr()), columns.bin(column.as_expr())
                some = is_sample & (top < bottom) & (left < right)
                bins.fill(te.select(some, te.const(float("-inf"), kind), te.const(0, kind)))
                with (
                    ib.if_scope(some),
                    ib.for_range(top, bottom, name="y") as y,
                    ib.for_range(left, right, name="x") as at,
                    bins.channels() as (lane, channel),
                ):
                    value = bins.read(channel, y.as_expr(), at.as_expr())
                    bins.totals[lane] = te.maximum(bins.totals[lane], value)
                bins.store(row.as_expr(), column.as_expr(), lambda total: total)
        return ib.get()

    return te.extern(tensor_argument(result, "result").shape, inputs, body, "max_roi_pool", inputs[0].dtype)


def _inside_floats(number: Expr, extent: Expr) -> Expr:
    return (number >= 0.0) & (number < te.cast(extent, number.dtype))


def _as_index(number: Expr) -> Expr:
    return as_index(te.cast(number, "int64"))


@dataclass(frozen=True, slots=True, eq=False)
class _PooledLine:
    """The elements of an axis that a box takes, in bins that share elements where they do not come out even."""

    builder: IRBuilder
    extent: Expr
    start: Expr
    bin_size: Expr

    @classmethod
    def of_box(
        cls, ib: IRBuilder, attrs: MaxRoiPoolAttrs, begin: Expr, end: Expr, extent: Expr, bins: int
    ) -> _PooledLine:
        kind = accumulator(begin.dtype)
        first, last = (_half_away(widened(v) * attrs.scale) for v in (begin, end))
        length = te.maximum(last - first + 1.0, te.const(1, kind))
        return cls(
            ib, extent, ib.let("start", first).as_expr(), ib.let("bin_size", length / te.const(bins, kind)).as_expr()
        )

    def bin(self, number: Expr) -> tuple[Expr, Expr]:
        """The first element of a bin, and that behind the last."""
        kind, ib = self.start.dtype, self.builder
        low = te.floor(te.cast(number, kind) * self.bin_size)
        high = te.ceil(te.cast(number + 1, kind) * self.bin_size)
        begin, end = (ib.let("bound", _as_index(self._bounded(self.start + bound))).as_expr() for bound in (low, high))
        return begin, end

    def _bounded(self, position: Expr) -> Expr:
        """A position brought to the image; NaN to its beginning."""
        kind = position.dtype
        inside = te.minimum(te.maximum(position, te.const(0, kind)), te.cast(self.extent, kind))
        return te.select(te.isnan(position), te.const(0, kind), inside)


def _half_away(x: Expr) -> Expr:
    """The nearest whole number, halves away from 0."""
    return te.select(x < 0.0, te.ceil(x - 0.5), te.floor(x + 0.5))


MAX_ROI_POOL = register_op(
    "nn.max_roi_pool",
    "the greatest element of x in each bin of boxes, whose bounds are rounded",
    [IMAGE, ("boxes", "[boxes, 5]: number of the sample, x1, y1, x2, y2")],
    _pool_relation,
    OpPattern.OPAQUE,
    MaxRoiPoolAttrs,
)
register_compute(MAX_ROI_POOL, _pool_compute)


def max_roi_pool(x: Node, boxes: Node, bins: PerAxis = 1, scale: float = 1.0) -> Call:
    """The greatest elements of ``x`` [batch, channels, rows, columns] in the bins of ``boxes`` [n, 5], which are
    (number of the sample, x1, y1, x2, y2) in units of ``scale`` elements, rounded, with both ends: [n, channels, rows,
    columns] of ``bins``. A bin without elements, as outside of x, is 0."""
    with naming("max_roi_pool", x):
        attrs = MaxRoiPoolAttrs(per_axis(bins, 2, "bins"), real(scale, "scale"))
    return MAX_ROI_POOL(x, boxes, attrs=attrs)

"""What is inside boxes of an image, in as many bins for each box: roi_align, max_roi_pool.

How many elements a bin has follows from the boxes, which are data, so both are loops of their own (``te.extern``):
boxes and blocks of channels run in parallel, and the channels of a block are the lanes of vectors, which share the
positions and weights of what they read.

Sources: He et al., Mask R-CNN (2017), and Girshick, Fast R-CNN (2015), as ONNX's RoiAlign and MaxRoiPool.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from operator import add

from ... import te
from ...base.errors import TypeInferenceError
from ...graph.node import Call, Node
from ...graph.types import TensorType, Type
from ...ir.buffer import Buffer
from ...ir.builder import BufferPtr, IRBuilder
from ...ir.constants import const_int
from ...ir.expr import Expr
from ...ir.makers import as_index
from ...ir.stmt import Stmt
from ...te.tensor import Tensors
from ..definition.accumulate import accumulator, widened
from ..definition.arguments import PerAxis, flag, integer, naming, per_axis, real
from ..definition.attrs import Attrs, attr, one_of
from ..definition.op_group import OpGroup
from ..definition.registry import OpPattern, register_op
from ..definition.relations import FLOAT_KINDS, same_dtype, same_extent, tensor_argument
from ..definition.strategy import register_compute

GROUP = OpGroup.IMAGES

LANES = 16
MOST_SAMPLES = 1 << 16
"""Along an axis of a bin, so that a box that is out of all bounds comes to an end."""


def _positive(values: tuple[int, ...]) -> str | None:
    return None if len(values) == 2 and min(values) > 0 else "must be two numbers above 0"


def _not_negative(value: int) -> str | None:
    return None if value >= 0 else "must be 0 or more"


@dataclass(frozen=True)
class RoiAlignAttrs(Attrs):
    """The attributes of ``roi_align``."""

    bins: tuple[int, ...] = attr("the rows and columns of bins of a box", check=_positive)
    scale: float = attr("how many elements of x a unit of the boxes is", 1.0)
    samples: int = attr("samples along each axis of a bin; 0: one for each element, rounded up", 0, _not_negative)
    mode: str = attr("what becomes of the samples of a bin", "avg", one_of("avg", "max"))
    half_pixel: bool = attr("whether elements lie at the middles of units, else at their beginnings", True)


@dataclass(frozen=True)
class MaxRoiPoolAttrs(Attrs):
    """The attributes of ``max_roi_pool``."""

    bins: tuple[int, ...] = attr("the rows and columns of bins of a box", check=_positive)
    scale: float = attr("how many elements of x a unit of the boxes is", 1.0)


def _result(x: TensorType, boxes: TensorType, columns: int, bins: tuple[int, ...]) -> TensorType:
    if x.ndim != 4 or x.dtype.kind not in FLOAT_KINDS:
        raise TypeInferenceError(f"x must be [batch, channels, rows, columns] of {', '.join(FLOAT_KINDS)}, found {x}")
    same_dtype([x, boxes], ["x", "boxes"])
    if boxes.ndim != 2 or const_int(boxes.shape[1]) != columns:
        raise TypeInferenceError(f"boxes must be a matrix with {columns} columns, found {boxes}")
    return TensorType((boxes.shape[0], x.shape[1], *map(as_index, bins)), x.dtype)


def _align_relation(types: Sequence[Type], attrs: RoiAlignAttrs) -> Type:
    x, boxes, samples = map(tensor_argument, types, ("x", "boxes", "batch_indices"))
    result = _result(x, boxes, 4, attrs.bins)
    if samples.ndim != 1 or not samples.dtype.is_data_int:
        raise TypeInferenceError(f"batch_indices must be integers, one for each box, found {samples}")
    same_extent(boxes.shape[0], samples.shape[0], f"{boxes.shape[0]} boxes have {samples.shape[0]} batch_indices")
    return result


def _pool_relation(types: Sequence[Type], attrs: MaxRoiPoolAttrs) -> Type:
    return _result(tensor_argument(types[0], "x"), tensor_argument(types[1], "boxes"), 5, attrs.bins)


@dataclass(frozen=True, slots=True, eq=False)
class _Bins:
    """Writes the bins of a box, for a block of channels."""

    builder: IRBuilder
    x: BufferPtr
    result: BufferPtr
    sample: Expr
    box: Expr
    first: Expr
    totals: BufferPtr

    @contextmanager
    def channels(self) -> Iterator[tuple[Expr, Expr]]:
        """A vector of channels: the lane, and the channel."""
        ib = self.builder
        with ib.for_range(0, LANES, name="lane", kind="vectorized") as lane:
            channel = self.first + lane
            with ib.if_scope(channel < self.x.shape[1]):
                yield lane.as_expr(), channel

    def fill(self, value: Expr) -> None:
        with self.builder.for_range(0, LANES, name="lane", kind="vectorized") as lane:
            self.totals[lane] = value

    def read(self, channel: Expr, row: Expr, column: Expr) -> Expr:
        return widened(self.x[self.sample, channel, row, column])

    def store(self, row: Expr, column: Expr, finish: Callable[[Expr], Expr]) -> None:
        with self.channels() as (lane, channel):
            self.result[self.box, channel, row, column] = te.cast(finish(self.totals[lane]), self.result.dtype)


@contextmanager
def _each_block(ib: IRBuilder, x: BufferPtr, boxes: BufferPtr) -> Iterator[tuple[Expr, Expr]]:
    """Boxes and the first channels of blocks, in parallel."""
    blocks = (x.shape[1] + (LANES - 1)) // LANES
    with ib.for_range(0, boxes.shape[0] * blocks, name="block", kind="parallel") as block:
        yield ib.let("box", block // blocks).as_expr(), ib.let("channel", block % blocks * LANES).as_expr()


def _inside(index: Expr, extent: Expr) -> Expr:
    return (index >= 0) & (index < extent)


@dataclass(frozen=True, slots=True, eq=False)
class _Line:
    """The part of an axis that a box takes, in bins with some samples each."""

    builder: IRBuilder
    extent: Expr
    start: Expr
    bin_size: Expr
    samples: Expr

    def at(self, number: Expr, sample: Expr) -> Expr:
        """Where a sample of a bin lies."""
        kind = self.start.dtype
        within = (te.cast(sample, kind) + 0.5) * self.bin_size / te.cast(self.samples, kind)
        return self.builder.let("at", self.start + te.cast(number, kind) * self.bin_size + within).as_expr()

    def is_near(self, at: Expr) -> Expr:
        """Whether a position is within the image, or at most an element beside it; NaN is not, and none is of an empty
        image."""
        return (at >= -1.0) & (at <= te.cast(self.extent, at.dtype)) & (self.extent > 0)

    def neighbours(self, at: Expr) -> tuple[tuple[Expr, Expr], tuple[Expr, Expr]]:
        """The elements around a position that is near, and their weights."""
        ib, last = self.builder, self.extent - 1
        inside = te.minimum(te.maximum(at, te.const(0, at.dtype)), te.cast(last, at.dtype))
        position = ib.let("place", inside).as_expr()
        low = ib.let("low", te.minimum(as_index(te.cast(position, "int64")), last)).as_expr()
        part = ib.let("part", position - te.cast(low, at.dtype)).as_expr()
        return (low, 1.0 - part), (ib.let("high", te.minimum(low + 1, last)).as_expr(), part)


def _line(ib: IRBuilder, attrs: RoiAlignAttrs, begin: Expr, end: Expr, extent: Expr, bins: int) -> _Line:
    kind = accumulator(begin.dtype)
    offset = te.const(0.5 if attrs.half_pixel else 0.0, kind)
    start, stop = (
        ib.let("end", te.arithmetic_fence(widened(v) * attrs.scale) - offset).as_expr() for v in (begin, end)
    )
    length: Expr = stop - start
    if not attrs.half_pixel:
        length = te.maximum(length, te.const(1, kind))
    size = ib.let("bin_size", length / te.const(bins, kind)).as_expr()
    if attrs.samples:
        return _Line(ib, extent, start, size, as_index(attrs.samples))
    wanted = te.select(size > 0, te.minimum(te.ceil(size), te.const(MOST_SAMPLES, kind)), te.const(0, kind))
    return _Line(ib, extent, start, size, ib.let("samples", as_index(te.cast(wanted, "int64"))).as_expr())


def _align_compute(attrs: RoiAlignAttrs, inputs: Tensors, result: Type) -> te.Tensor:
    def body(ins: Sequence[Buffer], outs: Sequence[Buffer]) -> Stmt:
        ib = IRBuilder()
        x, boxes, samples, target = map(ib.buffer_ptr, (*ins, *outs))
        kind = accumulator(x.dtype)
        with _each_block(ib, x, boxes) as (box, first):
            sample = ib.let("sample", as_index(samples[box])).as_expr()
            totals = ib.allocate(kind, (LANES,), "totals")
            bins = _Bins(ib, x, target, sample, box, first, totals)
            rows, columns = (
                _line(ib, attrs, boxes[box, 1 - k], boxes[box, 3 - k], x.shape[2 + k], attrs.bins[k]) for k in range(2)
            )
            count = te.cast(te.maximum(rows.samples * columns.samples, 1), kind)
            with (
                ib.for_range(0, attrs.bins[0], name="row") as row,
                ib.for_range(0, attrs.bins[1], name="column") as column,
            ):
                bins.fill(te.const(0, kind))
                with ib.if_scope(_inside(sample, x.shape[0])):
                    _sample_bin(bins, attrs, rows, columns, (row.as_expr(), column.as_expr()))
                bins.store(
                    row.as_expr(), column.as_expr(), lambda total: total / count if attrs.mode == "avg" else total
                )
        return ib.get()

    return te.extern(tensor_argument(result, "result").shape, inputs, body, "roi_align", inputs[0].dtype)


def _sample_bin(bins: _Bins, attrs: RoiAlignAttrs, rows: _Line, columns: _Line, position: tuple[Expr, Expr]) -> None:
    """Take all samples of a bin together. Where they are not averaged, a sample is the greatest of four weighted
    elements; one that is far from the image is 0."""
    ib, kind = bins.builder, bins.totals.dtype
    averaged = attrs.mode == "avg"
    if not averaged:
        bins.fill(te.select(rows.samples * columns.samples > 0, te.const(float("-inf"), kind), te.const(0, kind)))

    def take(value: Callable[[Expr], Expr]) -> None:
        with bins.channels() as (lane, channel):
            old = bins.totals[lane]
            bins.totals[lane] = old + value(channel) if averaged else te.maximum(old, value(channel))

    def take_nothing() -> None:
        if not averaged:
            with ib.else_scope():
                take(lambda channel: te.const(0, kind))

    with ib.for_range(0, rows.samples, name="sample_row") as i:
        y = rows.at(position[0], i.as_expr())
        with ib.if_scope(rows.is_near(y)):
            above, below = rows.neighbours(y)
            with ib.for_range(0, columns.samples, name="sample_column") as j:
                x = columns.at(position[1], j.as_expr())
                with ib.if_scope(columns.is_near(x)):
                    corners = tuple(
                        (r, c, ib.let("weight", v * w).as_expr())
                        for r, v in (above, below)
                        for c, w in columns.neighbours(x)
                    )
                    take(lambda channel: _interpolated(bins, corners, channel, averaged))
                take_nothing()
        take_nothing()


def _interpolated(bins: _Bins, corners: Sequence[tuple[Expr, Expr, Expr]], channel: Expr, averaged: bool) -> Expr:
    weighted = (weight * bins.read(channel, row, column) for row, column, weight in corners)
    return reduce(add if averaged else te.maximum, weighted)


def _pool_compute(attrs: MaxRoiPoolAttrs, inputs: Tensors, result: Type) -> te.Tensor:
    def body(ins: Sequence[Buffer], outs: Sequence[Buffer]) -> Stmt:
        ib = IRBuilder()
        x, boxes, target = map(ib.buffer_ptr, (*ins, *outs))
        kind = accumulator(x.dtype)
        with _each_block(ib, x, boxes) as (box, first):
            number = widened(boxes[box, 0])
            is_sample = _inside_floats(number, x.shape[0])
            sample = ib.let("sample", _as_index(te.select(is_sample, number, te.const(0, kind)))).as_expr()
            bins = _Bins(ib, x, target, sample, box, first, ib.allocate(kind, (LANES,), "totals"))
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


_X = ("x", "[batch, channels, rows, columns]")
ROI_ALIGN = register_op(
    "nn.roi_align",
    "what x has inside of boxes, in bins, each the average or the greatest of samples between its elements",
    [_X, ("boxes", "[boxes, 4]: x1, y1, x2, y2"), ("batch_indices", "[boxes], integers; 0 is read of others")],
    _align_relation,
    OpPattern.OPAQUE,
    RoiAlignAttrs,
)
MAX_ROI_POOL = register_op(
    "nn.max_roi_pool",
    "the greatest element of x in each bin of boxes, whose bounds are rounded",
    [_X, ("boxes", "[boxes, 5]: number of the sample, x1, y1, x2, y2")],
    _pool_relation,
    OpPattern.OPAQUE,
    MaxRoiPoolAttrs,
)
register_compute(ROI_ALIGN, _align_compute)
register_compute(MAX_ROI_POOL, _pool_compute)


def roi_align(
    x: Node,
    boxes: Node,
    batch_indices: Node,
    bins: PerAxis = 1,
    scale: float = 1.0,
    samples: int = 0,
    mode: str = "avg",
    half_pixel: bool = True,
) -> Call:
    """What ``x`` [batch, channels, rows, columns] has inside of ``boxes`` [n, 4], which are (x1, y1, x2, y2) in units
    of ``scale`` elements: [n, channels, rows, columns] of ``bins``. ``batch_indices`` [n] are the samples that the
    boxes are of; a box of a sample that there is not is 0.

    A bin is the average of ``samples`` by ``samples`` positions, 0 for one an element, each interpolated between four
    elements; with ``mode="max"`` it is the greatest of all weighted elements. ``half_pixel`` says that elements lie at
    the middles of units; without it a box is an element large at least.
    """
    with naming("roi_align", x):
        attrs = RoiAlignAttrs(
            per_axis(bins, 2, "bins"),
            real(scale, "scale"),
            integer(samples, "samples"),
            mode,
            flag(half_pixel, "half_pixel"),
        )
    return ROI_ALIGN(x, boxes, batch_indices, attrs=attrs)


def max_roi_pool(x: Node, boxes: Node, bins: PerAxis = 1, scale: float = 1.0) -> Call:
    """The greatest elements of ``x`` [batch, channels, rows, columns] in the bins of ``boxes`` [n, 5], which are
    (number of the sample, x1, y1, x2, y2) in units of ``scale`` elements, rounded, with both ends: [n, channels, rows,
    columns] of ``bins``. A bin without elements, as outside of x, is 0."""
    with naming("max_roi_pool", x):
        attrs = MaxRoiPoolAttrs(per_axis(bins, 2, "bins"), real(scale, "scale"))
    return MAX_ROI_POOL(x, boxes, attrs=attrs)

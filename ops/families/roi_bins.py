"""Bins of boxes of an image, for a block of channels, which are the lanes of vectors: roi_align and max_roi_pool."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ... import te
from ...base.dataclass import dataclass
from ...base.errors import TypeInferenceError
from ...graph.types import TensorType
from ...ir.builder import BufferPtr, IRBuilder
from ...ir.constants import const_int
from ...ir.expr import Expr
from ...ir.makers import as_index
from ..definition.accumulate import widened
from ..definition.relations import FLOAT_KINDS, same_dtype

LANES = 16
IMAGE = ("x", "[batch, channels, rows, columns]")


def positive(values: tuple[int, ...]) -> str | None:
    """What is wrong with numbers of bins, if something is."""
    return None if len(values) == 2 and min(values) > 0 else "must be two numbers above 0"


def binned(x: TensorType, boxes: TensorType, columns: int, bins: tuple[int, ...]) -> TensorType:
    """The type of bins of boxes, which have so many ``columns``; ``TypeInferenceError`` where these do not fit x."""
    if x.ndim != 4 or x.dtype.kind not in FLOAT_KINDS:
        raise TypeInferenceError(f"x must be [batch, channels, rows, columns] of {', '.join(FLOAT_KINDS)}, found {x}")
    same_dtype([x, boxes], ["x", "boxes"])
    if boxes.ndim != 2 or const_int(boxes.shape[1]) != columns:
        raise TypeInferenceError(f"boxes must be a matrix with {columns} columns, found {boxes}")
    return TensorType((boxes.shape[0], x.shape[1], *map(as_index, bins)), x.dtype)


@dataclass(frozen=True, slots=True, eq=False)
class Bins:
    """Writes the bins of a box, for a block of channels, which may be the last axis of x and of the result."""

    builder: IRBuilder
    x: BufferPtr
    result: BufferPtr
    sample: Expr
    box: Expr
    first: Expr
    totals: BufferPtr
    channels_last: bool = False

    @contextmanager
    def channels(self) -> Iterator[tuple[Expr, Expr]]:
        """A vector of channels: the lane, and the channel."""
        ib = self.builder
        with ib.for_range(0, LANES, name="lane", kind="vectorized") as lane:
            channel = self.first + lane
            with ib.if_scope(channel < self.x.shape[-1 if self.channels_last else 1]):
                yield lane.as_expr(), channel

    def fill(self, value: Expr) -> None:
        """Begin all totals with a value."""
        with self.builder.for_range(0, LANES, name="lane", kind="vectorized") as lane:
            self.totals[lane] = value

    def read(self, channel: Expr, row: Expr, column: Expr) -> Expr:
        """An element of x, widened."""
        if self.channels_last:
            return widened(self.x[self.sample, row, column, channel])
        return widened(self.x[self.sample, channel, row, column])

    def store(self, row: Expr, column: Expr, finish: Callable[[Expr], Expr]) -> None:
        """Write a bin: what ``finish`` makes of the totals."""
        with self.channels() as (lane, channel):
            index = (row, column, channel) if self.channels_last else (channel, row, column)
            self.result[(self.box, *index)] = te.cast(finish(self.totals[lane]), self.result.dtype)


@contextmanager
def each_block(ib: IRBuilder, channels: Expr, boxes: BufferPtr) -> Iterator[tuple[Expr, Expr]]:
    """Boxes and the first channels of blocks, in parallel."""
    blocks = (channels + (LANES - 1)) // LANES
    with ib.for_range(0, boxes.shape[0] * blocks, name="block", kind="parallel") as block:
        yield ib.let("box", block // blocks).as_expr(), ib.let("channel", block % blocks * LANES).as_expr()

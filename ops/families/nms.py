"""Non-maximum suppression: of boxes that overlap, those of the highest scores, for each class by itself.

Boxes are taken in descending order of their scores; one that overlaps a box already taken by more than a threshold is
left out (the ratio of intersection and union). What is taken depends on what was taken before, so the search is a loop
of its own (``te.extern``): classes run in parallel, candidates come from a heap, and a box is compared with those taken
as vectors. How many are taken in all is counted then, and becomes an extent.

Source: ONNX's NonMaxSuppression; order and arithmetic are those of onnxruntime.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ... import te
from ...base.dataclass import dataclass
from ...base.dtype import INT32, INT64, DType
from ...base.errors import TypeInferenceError
from ...graph.node import Call, Constant, Node, tensor_of
from ...graph.types import TensorType, Type
from ...ir.buffer import Buffer
from ...ir.builder import BufferPtr, IRBuilder
from ...ir.constants import const_int
from ...ir.expr import Expr
from ...ir.makers import as_index, minimum
from ...ir.stmt import Stmt
from ...te.tensor import Tensors
from ..definition.arguments import flag, integer, real
from ..definition.attrs import Attrs, attr
from ..definition.op_group import OpGroup
from ..definition.registry import OpPattern, register_op
from ..definition.relations import same_dtype, same_extent, tensor_argument
from ..definition.strategy import register_compute
from .binary import greater_equal
from .born_extents import born_extents
from .cast import cast
from .heap import BLOCK, LANES, Heap, Item, best_of_block, fold_lanes
from .reduce import sum as sum_of
from .reshape import reshape

GROUP = OpGroup.IMAGES

ALL = -1
"""Instead of a number of boxes: as many as there are."""
MOST_ROOM = 1 << 16
"""For more boxes of a class than these no room is kept by their number, but by that of all boxes."""


@dataclass(frozen=True)
class ChosenBoxesAttrs(Attrs):
    """The attributes of ``chosen_boxes``."""

    most: int = attr(
        "the most boxes of a class, if limit is known to be that; -1: as many as there are",
        ALL,
        check=lambda v: None if v >= ALL else "must be -1 or more",
    )
    center_point_box: bool = attr("whether boxes are given by centre and size, else by two opposite corners", False)
    every_score: bool = attr("whether boxes of any score are candidates, not only those above least_score", False)


def _relation(types: Sequence[Type], attrs: ChosenBoxesAttrs) -> Type:
    names = ("boxes", "scores", "limit", "overlap", "least_score")
    boxes, scores, limit, *thresholds = map(tensor_argument, types, names)
    if boxes.dtype not in ("float32", "float64"):
        raise TypeInferenceError(f"boxes must be of float32 or float64, found {boxes.dtype}")
    same_dtype([boxes, scores, *thresholds], ["boxes", "scores", *names[3:]])
    if boxes.ndim != 3:
        raise TypeInferenceError(f"boxes must be [batch, boxes, 4], found {boxes}")
    same_extent(boxes.shape[2], as_index(4), f"boxes must be [batch, boxes, 4], found {boxes}")
    if scores.ndim != 3:
        raise TypeInferenceError(f"scores must be [batch, classes, boxes], found {scores}")
    if limit.dtype is not INT64:
        raise TypeInferenceError(f"limit must be of int64, found {limit}")
    for name, kind in zip(names[2:], (limit, *thresholds), strict=True):
        if [const_int(extent) for extent in kind.shape] != [1]:
            raise TypeInferenceError(f"{name} must be a vector of one element, found {kind}")
    batch = same_extent(
        boxes.shape[0], scores.shape[0], f"boxes have the batch {boxes.shape[0]}, but scores {scores.shape[0]}"
    )
    count = same_extent(boxes.shape[1], scores.shape[2], f"{boxes.shape[1]} boxes have {scores.shape[2]} scores each")
    room = count if attrs.most == ALL else minimum(count, as_index(attrs.most))
    return TensorType((batch, scores.shape[1], room), INT32)


@dataclass(frozen=True, slots=True, eq=False)
class _Box:
    """The ends of a box along both axes, and its area."""

    left: Expr
    top: Expr
    right: Expr
    bottom: Expr
    area: Expr

    def overlaps(self, other: _Box, threshold: Expr) -> Expr:
        """Whether intersection over union is above the threshold. A box without an area overlaps none."""
        width = te.minimum(self.right, other.right) - te.maximum(self.left, other.left)
        height = te.minimum(self.bottom, other.bottom) - te.maximum(self.top, other.top)
        common = te.arithmetic_fence(width * height)
        union = self.area + other.area - common
        zero = te.const(0, common.dtype)
        some = (width > zero) & (height > zero) & (common > zero)
        some = some & (self.area > zero) & (other.area > zero) & (union > zero)
        return some & (common / union > threshold)


@dataclass(frozen=True, slots=True, eq=False)
class _Search:
    """Writes the search for the boxes of a class."""

    builder: IRBuilder
    attrs: ChosenBoxesAttrs
    boxes: BufferPtr
    scores: BufferPtr
    limit: BufferPtr
    overlap: BufferPtr
    least_score: BufferPtr
    chosen: BufferPtr

    def search(self, sample: Expr, number: Expr) -> None:
        """Choose boxes of a class of a sample; behind them stands -1."""
        ib, (_, _, room) = self.builder, self.chosen.shape
        kind, count = self.boxes.dtype, te.maximum(self.boxes.shape[1], 1)
        heap = Heap(ib, ib.allocate(kind, (count,), "values"), ib.allocate(INT32, (count,), "places"), largest=False)
        taken = ib.allocate(kind, (5, te.maximum(room, 1)), "taken")
        left, found = ib.allocate("index", (), "left"), ib.allocate("index", (), "found")
        self._collect(heap, sample, number, left)
        heap.build(left[()])
        found[()] = as_index(0)
        most = ib.let("most", te.minimum(as_index(self.limit[0]), room)).as_expr()
        with ib.while_loop((left[()] > 0) & (found[()] < most)):
            position = ib.let("best", -heap.item(as_index(0)).position).as_expr()
            box = self._box(sample, as_index(position))
            hits = ib.allocate(INT32, (LANES,), "hits")
            with ib.if_scope(self._is_clear(box, taken, found[()], hits)):
                for k, value in enumerate((box.left, box.top, box.right, box.bottom, box.area)):
                    taken[k, found[()]] = value
                self.chosen[sample, number, found[()]] = position
                found[()] = found[()] + 1
            left[()] = left[()] - 1
            heap.move_root(ib.let("last", left[()]).as_expr())
        with ib.for_range(found[()], room, name="rest") as rest:
            self.chosen[sample, number, rest] = te.const(-1, INT32)

    def _collect(self, heap: Heap, sample: Expr, number: Expr, left: BufferPtr) -> None:
        """Put the candidates where the heap will be. Of equal scores the first box is to be the best, which is the
        last in an order that ascends: so positions are negated."""
        ib, count = self.builder, self.scores.shape[2]
        left[()] = as_index(0)

        def put(at: Expr) -> None:
            heap.put(left[()], Item(self.scores[sample, number, at], -te.cast(at, INT32)))
            left[()] = left[()] + 1

        if self.attrs.every_score:
            with ib.for_range(0, count, name="box") as box:
                put(box.as_expr())
            return
        least = self.least_score[0]
        blocks = count // BLOCK
        with ib.for_range(0, blocks, name="block") as block:
            first = ib.let("first", block * BLOCK).as_expr()
            best = best_of_block(ib, lambda at: self.scores[sample, number, first + at], largest=True)
            with (
                ib.if_scope(~(best <= least)),  # also where a score is NaN
                ib.for_range(first, first + BLOCK, name="box") as box,
                ib.if_scope(self.scores[sample, number, box] > least),
            ):
                put(box.as_expr())
        with (
            ib.for_range(blocks * BLOCK, count, name="box") as box,
            ib.if_scope(self.scores[sample, number, box] > least),
        ):
            put(box.as_expr())

    def _box(self, sample: Expr, at: Expr) -> _Box:
        """A box as it stands in memory."""
        ib, half = self.builder, te.const(0.5, self.boxes.dtype)
        a, b, c, d = (ib.let(f"corner{k}", self.boxes[sample, at, k]).as_expr() for k in range(4))
        if self.attrs.center_point_box:
            ends = (a - c * half, b - d * half, a + c * half, b + d * half)
        else:
            ends = (te.minimum(b, d), te.minimum(a, c), te.maximum(b, d), te.maximum(a, c))
        left, top, right, bottom = (ib.let(name, end).as_expr() for name, end in zip("ltrb", ends, strict=True))
        return _Box(left, top, right, bottom, ib.let("area", (right - left) * (bottom - top)).as_expr())

    def _is_clear(self, box: _Box, taken: BufferPtr, found: Expr, hits: BufferPtr) -> Expr:
        """Whether a box overlaps none of those that are taken, a vector of which is looked at a time."""
        ib, start = self.builder, self.builder.allocate("index", (), "start")
        clear = ib.allocate("bool", (), "clear")
        start[()] = as_index(0)
        clear[()] = te.const(True, "bool")
        with ib.while_loop(clear[()] & (start[()] < found)):
            with ib.for_range(0, LANES, name="lane", kind="vectorized") as lane:
                hits[lane] = te.const(0, INT32)
                with ib.if_scope(start[()] + lane < found):
                    other = _Box(*(taken[k, start[()] + lane] for k in range(5)))
                    hits[lane] = te.cast(box.overlaps(other, self.overlap[0]), INT32)
            clear[()] = fold_lanes(ib, hits, lambda a, b: a | b) == 0
            start[()] = start[()] + LANES
        return clear[()]


def _compute(attrs: ChosenBoxesAttrs, inputs: Tensors, result: Type) -> te.Tensor:
    def body(ins: Sequence[Buffer], outs: Sequence[Buffer]) -> Stmt:
        ib = IRBuilder()
        search = _Search(ib, attrs, *map(ib.buffer_ptr, (*ins, *outs)))
        batch, classes, _ = search.chosen.shape
        with ib.for_range(0, batch * classes, name="class", kind="parallel") as each:
            search.search(each // classes, each % classes)
        return ib.get()

    return te.extern(tensor_argument(result, "result").shape, inputs, body, "chosen_boxes", INT32)


def _indices_relation(types: Sequence[Type], attrs: None) -> Type:
    chosen, count = tensor_argument(types[0], "chosen"), tensor_argument(types[1], "count")
    if chosen.ndim != 3 or chosen.dtype is not INT32:
        raise TypeInferenceError(f"chosen must be int32[batch, classes, boxes], found {chosen}")
    if count.ndim != 1:
        raise TypeInferenceError(f"count must have one axis, as long as there are boxes, found {count}")
    return TensorType((count.shape[0], as_index(3)), INT64)


def _indices_compute(attrs: None, inputs: Tensors, result: Type) -> te.Tensor:
    """One row after the other, since each stands behind those before it."""
    shape = tensor_argument(result, "result").shape

    def body(ins: Sequence[Buffer], outs: Sequence[Buffer]) -> Stmt:
        ib = IRBuilder()
        chosen, indices = ib.buffer_ptr(ins[0]), ib.buffer_ptr(outs[0])
        batch, classes, room = chosen.shape
        row, at = ib.allocate("index", (), "row"), ib.allocate("index", (), "at")
        row[()] = as_index(0)
        with ib.for_range(0, batch, name="sample") as sample, ib.for_range(0, classes, name="class") as number:
            at[()] = as_index(0)
            with ib.while_loop((at[()] < room) & (row[()] < shape[0])):
                box = ib.let("box", chosen[sample, number, at[()]])
                with ib.if_scope(box >= 0):
                    for column, value in enumerate((sample.as_expr(), number.as_expr(), box)):
                        indices[row[()], column] = te.cast(value, INT64)
                    row[()] = row[()] + 1
                    at[()] = at[()] + 1
                with ib.else_scope():
                    at[()] = room
        return ib.get()

    return te.extern(shape, [inputs[0]], body, "box_indices", INT64)


CHOSEN_BOXES = register_op(
    "chosen_boxes",
    "the boxes of each class that overlap none of a higher score too much, the highest score first; then -1",
    [
        (
            "boxes",
            "[batch, boxes, 4], float32 or float64: y1, x1, y2, x2, or the centre's x and y, width and height",
        ),
        ("scores", "[batch, classes, boxes]"),
        ("limit", "int64[1]: the most boxes of a class"),
        (
            "overlap",
            "[1]: a box is left out if its intersection with another is a greater part of their union",
        ),
        ("least_score", "[1]: boxes whose score is not above that are left out"),
    ],
    _relation,
    OpPattern.OPAQUE,
    ChosenBoxesAttrs,
)
BOX_INDICES = register_op(
    "box_indices",
    "a row of sample, class and box for each box that is chosen",
    [("chosen", "int32[batch, classes, boxes]; -1 behind the last"), ("count", "as long as there are; not read")],
    _indices_relation,
    OpPattern.OPAQUE,
)
register_compute(CHOSEN_BOXES, _compute)
register_compute(BOX_INDICES, _indices_compute)


def non_max_suppression(
    boxes: Node,
    scores: Node,
    limit: Node | int | None = None,
    overlap: Node | float = 0.0,
    least_score: Node | float | None = None,
    center_point_box: bool = False,
) -> Call:
    """The boxes of each class that stay when those that overlap one of a higher score are left out: int64[n, 3], a row
    of sample, class and box each, in order of samples, classes and descending scores. How many there are, n, each run
    counts.

    ``boxes`` [batch, boxes, 4] are (y1, x1, y2, x2), any two opposite corners, or with ``center_point_box`` (x, y,
    width, height), of float32 or float64; ``scores`` are [batch, classes, boxes]. ``limit`` is the most boxes of a
    class; a box is left out whose intersection with another is more than ``overlap`` of their union, or whose score is
    not above ``least_score``. These three are numbers, or tensors of one element. Without ``limit`` there may be any
    number, without ``least_score`` boxes of any score, NaN first.
    """
    kind = tensor_of(boxes).dtype
    attrs = ChosenBoxesAttrs(_most(limit), flag(center_point_box, "center_point_box"), least_score is None)
    chosen = CHOSEN_BOXES(
        boxes,
        scores,
        _one(np.iinfo(np.int64).max if limit is None else limit, INT64, "limit"),
        _one(overlap, kind, "overlap"),
        _one(0.0 if least_score is None else least_score, kind, "least_score"),
        attrs=attrs,
    )
    is_box = greater_equal(chosen, Constant(np.array(0, np.int32)))
    count = reshape(sum_of(cast(is_box, "int64")), (1,))
    return BOX_INDICES(chosen, born_extents(count, ["boxes"], "the number of boxes that are chosen"))


def _most(limit: Node | int | None) -> int:
    """The most boxes of a class, if that is known, and so few that room is kept for them."""
    if limit is None or (isinstance(limit, Node) and not isinstance(limit, Constant)):
        return ALL
    known = max(int(limit.value.item()) if isinstance(limit, Constant) else integer(limit, "limit"), 0)
    return known if known <= MOST_ROOM else ALL


def _one(value: Node | float, kind: DType, name: str) -> Node:
    """A vector of one element."""
    if isinstance(value, Node):
        return reshape(value if tensor_of(value).dtype is kind else cast(value, kind), (1,))
    number = real(value, name) if kind.is_float else integer(value, name)
    if kind.is_data_int and abs(number) > np.iinfo(np.int64).max:
        raise TypeInferenceError(f"{name} must be a number of int64, found {number}")
    return Constant(np.array([number], kind.to_numpy()))

"""topk: the largest or smallest elements along an axis, in order, and where they stand.

Which elements are kept depends on the order in which they are met, so it is a loop of its own (``te.extern``): a heap
of the k best so far, whose root is the worst of them, and the heap sorted in the end (Williams, 1964, Algorithm 232).
It lies in the results' memory. Blocks of neighbours of which none is better than the root are left out as vectors; n
elements take O(n log k) at worst. Rows run in parallel.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ... import te
from ...base.dtype import INT64
from ...base.errors import TypeInferenceError
from ...graph.node import Call, Node, TupleGet, tensor_of
from ...graph.types import TensorType, TupleType, Type
from ...ir.buffer import Buffer
from ...ir.builder import BufferPtr, IRBuilder
from ...ir.constants import const_int
from ...ir.expr import Expr
from ...ir.makers import as_index
from ...ir.row_major import unravel_index
from ...ir.stmt import Stmt
from ...schedules.rows import extent_of
from ...te.tensor import Tensors
from ..definition.accumulate import widened
from ..definition.arguments import axis_of, flag, integer
from ..definition.attrs import Attrs, attr
from ..definition.op_group import OpGroup
from ..definition.registry import OpPattern, register_op
from ..definition.relations import NUMBER_KINDS, normalize_axis, tensor_argument
from ..definition.strategy import register_compute

GROUP = OpGroup.REDUCTIONS


LANES = 16
BLOCK = 32
"""Neighbours whose best is compared with the root first."""


@dataclass(frozen=True)
class TopkAttrs(Attrs):
    k: int = attr("how many elements are found", check=lambda v: None if v >= 0 else "must be 0 or more")
    axis: int = attr("the axis that is searched, 0 or more", -1)
    largest: bool = attr("whether the largest are found, else the smallest", True)


def _relation(types: Sequence[Type], attrs: TopkAttrs) -> Type:
    x = tensor_argument(types[0], "x")
    if x.dtype.kind not in NUMBER_KINDS:
        raise TypeInferenceError(f"x must be of {', '.join(NUMBER_KINDS)}, found {x.dtype}")
    axis = normalize_axis(attrs.axis, x.ndim)
    extent = const_int(x.shape[axis])
    if extent is not None and attrs.k > extent:
        raise TypeInferenceError(f"k is {attrs.k}, but axis {axis} of {x} has only {extent} elements")
    shape = (*x.shape[:axis], as_index(attrs.k), *x.shape[axis + 1 :])
    return TupleType((TensorType(shape, x.dtype), TensorType(shape, INT64)))


def _asked_of_extents(call: Call) -> Sequence[Expr]:
    """There are k elements."""
    return (tensor_of(call.args[0]).shape[call.attrs.axis] - call.attrs.k,)


@dataclass(frozen=True, slots=True, eq=False)
class _Item:
    """An element and its place along the axis."""

    value: Expr
    place: Expr

    def comes_before(self, other: _Item, largest: bool) -> Expr:
        """Whether it stands before another in the result: NaN is larger than all numbers, of equals the first wins."""
        a, b = widened(self.value), widened(other.value)
        better, equal = (a > b) if largest else (a < b), a == b
        if a.dtype.is_float:
            missing, other_missing = te.isnan(a), te.isnan(b)
            better = better | (missing & ~other_missing if largest else ~missing & other_missing)
            equal = equal | (missing & other_missing)
        return better | (equal & (self.place < other.place))


@dataclass(frozen=True, slots=True, eq=False)
class _Heap:
    """The k best elements of a row: each stands behind both of its children in the order of the result."""

    builder: IRBuilder
    values: BufferPtr
    places: BufferPtr
    before: tuple[Expr, ...]
    after: tuple[Expr, ...]
    largest: bool

    def item(self, at: Expr) -> _Item:
        index = (*self.before, at, *self.after)
        return _Item(self.values[index], self.places[index])

    def put(self, at: Expr, item: _Item) -> None:
        index = (*self.before, at, *self.after)
        self.values[index] = item.value
        self.places[index] = item.place

    def sift(self, start: Expr, item: _Item, end: Expr) -> None:
        """Put an item where ``start`` is, or below it, among the elements before ``end``: what is to stand behind it in
        the result goes up."""
        ib = self.builder
        held = _Item(ib.let("value", item.value), ib.let("place", item.place))
        hole, child = ib.allocate("index", (), "hole"), ib.allocate("index", (), "child")
        hole[()] = start
        child[()] = start * 2 + 1
        with ib.while_loop(child[()] < end):
            with ib.if_scope(child[()] + 1 < end), ib.if_scope(self._stands_before(child[()], child[()] + 1)):
                child[()] = child[()] + 1
            with ib.if_scope(held.comes_before(self.item(child[()]), self.largest)):
                self.put(hole[()], self.item(child[()]))
                hole[()] = child[()]
                child[()] = child[()] * 2 + 1
            with ib.else_scope():
                child[()] = end
        self.put(hole[()], held)

    def offer(self, item: _Item, k: int) -> None:
        """Take an item that comes later than those in the heap of k in place of the root, if it is better."""
        root = as_index(0)
        new, worst = widened(item.value), widened(self.item(root).value)
        better = ~(new <= worst if self.largest else new >= worst)
        if new.dtype.is_float:
            better = better & ~te.isnan(worst if self.largest else new)
        with self.builder.if_scope(better):
            self.sift(root, item, as_index(k))

    def _stands_before(self, a: Expr, b: Expr) -> Expr:
        return self.item(a).comes_before(self.item(b), self.largest)


def _compute(attrs: TopkAttrs, inputs: Tensors, result: Type) -> Tensors:
    (x,) = inputs
    axis, k = attrs.axis, attrs.k

    def body(ins: Sequence[Buffer], outs: Sequence[Buffer]) -> Stmt:
        ib = IRBuilder()
        source, values, places = ib.buffer_ptr(ins[0]), *map(ib.buffer_ptr, outs)
        before, after = source.shape[:axis], source.shape[axis + 1 :]
        if k == 0:
            return ib.get()
        with ib.for_range(0, extent_of((*before, *after)), name="row", kind="parallel") as row:
            place = unravel_index(row, (*before, *after))
            _search_row(_Heap(ib, values, places, place[:axis], place[axis:], attrs.largest), source, axis, k)
        return ib.get()

    shape = (*x.shape[:axis], as_index(k), *x.shape[axis + 1 :])
    return te.extern([shape, shape], [x], body, name="topk", dtype=[x.dtype, INT64])


def _search_row(heap: _Heap, source: BufferPtr, axis: int, k: int) -> None:
    ib = heap.builder

    def element(at: Expr) -> _Item:
        return _Item(source[(*heap.before, at, *heap.after)], te.cast(at, INT64))

    with ib.for_range(0, k, name="first") as first:
        heap.put(first.as_expr(), element(first.as_expr()))
    with ib.for_range(0, k // 2, name="parent") as parent:
        at = ib.let("at", k // 2 - 1 - parent)
        heap.sift(at, heap.item(at), as_index(k))
    scanned = as_index(k)
    if all(const_int(extent) == 1 for extent in source.shape[axis + 1 :]):
        scanned = _scan_blocks(heap, element, k, source.shape[axis])
    with ib.for_range(scanned, source.shape[axis], name="next") as number:
        heap.offer(element(number.as_expr()), k)
    root = as_index(0)
    with ib.for_range(0, k - 1, name="sorted") as number:
        last = ib.let("last", k - 1 - number)
        moved = heap.item(last)
        item = _Item(ib.let("moved", moved.value), ib.let("from_place", moved.place))
        heap.put(last, heap.item(root))
        heap.sift(root, item, last)


def _scan_blocks(heap: _Heap, element: Callable[[Expr], _Item], k: int, extent: Expr) -> Expr:
    """Go through the blocks of elements from number k on, and into those whose best is better than the root; gives the
    number of the first element behind them."""
    ib = heap.builder
    blocks = te.maximum((extent - k) // BLOCK, 0)
    with ib.for_range(0, blocks, name="block") as block:
        first = ib.let("first", block * BLOCK + k)
        best, worst = _best_of_block(heap, lambda at: element(first + at).value), widened(heap.item(as_index(0)).value)
        with (
            ib.if_scope(~(best <= worst if heap.largest else best >= worst)),  # also where one of them is NaN
            ib.for_range(0, BLOCK, name="next") as number,
        ):
            heap.offer(element(first + number), k)
    return blocks * BLOCK + k


def _best_of_block(heap: _Heap, element: Callable[[Expr], Expr]) -> Expr:
    """The best of the elements 0, 1, … of a block; NaN if there is one."""
    ib, better = heap.builder, te.maximum if heap.largest else te.minimum
    best = ib.allocate(widened(element(as_index(0))).dtype, (LANES,), "best")
    with ib.for_range(0, LANES, name="lane", kind="vectorized") as lane:
        value = widened(element(lane.as_expr()))
        for start in range(LANES, BLOCK, LANES):
            value = better(value, widened(element(lane + start)))
        best[lane] = value
    width = LANES // 2
    while width > 1:
        with ib.for_range(0, width, name="lane", kind="vectorized") as lane:
            best[lane] = better(best[lane], best[lane + width])
        width //= 2
    return better(best[0], best[1])


TOPK = register_op(
    "topk",
    "the k largest elements along an axis, or the smallest, in order; and their positions, as int64",
    [("x", "numbers; NaN is larger than all others, and of equals the first is found first")],
    _relation,
    OpPattern.OPAQUE,
    TopkAttrs,
    support_level=4,
    extent_rule=_asked_of_extents,
)
register_compute(TOPK, _compute)


def topk(x: Node, k: int, axis: int = -1, largest: bool = True) -> tuple[Node, Node]:
    """The ``k`` largest elements along ``axis``, or the smallest, best first, and their positions, as int64. NaN is
    larger than all numbers; of equals the first is found first."""
    found = TOPK(x, attrs=TopkAttrs(integer(k, "k"), axis_of("topk", x, axis), flag(largest, "largest")))
    return TupleGet(found, 0), TupleGet(found, 1)

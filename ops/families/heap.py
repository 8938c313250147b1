"""What loops of their own search and sort by: a heap of elements and their positions along an axis, in memory that
they give it (Williams, 1964, Algorithm 232); and the best of a block of elements, found as vectors."""

from __future__ import annotations

from collections.abc import Callable

from ... import te
from ...base.dataclass import dataclass
from ...ir.builder import BufferPtr, IRBuilder
from ...ir.expr import Expr
from ...ir.makers import as_index
from ..definition.accumulate import widened

LANES = 16
BLOCK = 32
"""Neighbours of which the best is found before each is looked at."""


@dataclass(frozen=True, slots=True, eq=False)
class Item:
    """An element and its position along the axis."""

    value: Expr
    position: Expr

    def comes_before(self, other: Item, largest: bool) -> Expr:
        """Whether it stands before another in the order: NaN is larger than all numbers, of equals the first wins."""
        a, b = widened(self.value), widened(other.value)
        better, equal = (a > b) if largest else (a < b), a == b
        if a.dtype.is_float:
            missing, other_missing = te.isnan(a), te.isnan(b)
            better = better | (missing & ~other_missing if largest else ~missing & other_missing)
            equal = equal | (missing & other_missing)
        return better | (equal & (self.position < other.position))


@dataclass(frozen=True, slots=True, eq=False)
class Heap:
    """Elements of which each stands behind both of its children in the order: the root is the last of all.

    ``before`` and ``after`` are the indices around the one that counts the elements.
    """

    builder: IRBuilder
    values: BufferPtr
    positions: BufferPtr
    before: tuple[Expr, ...] = ()
    after: tuple[Expr, ...] = ()
    largest: bool = True

    def item(self, at: Expr) -> Item:
        """The element number ``at`` of the heap, as expressions that load it."""
        index = (*self.before, at, *self.after)
        return Item(self.values[index], self.positions[index])

    def put(self, at: Expr, item: Item) -> None:
        """Store an element as number ``at`` of the heap, without looking at the order."""
        index = (*self.before, at, *self.after)
        self.values[index] = item.value
        self.positions[index] = item.position

    def sift(self, start: Expr, item: Item, end: Expr) -> None:
        """Put an item where ``start`` is, or below it, among the elements before ``end``: what stands behind it in the
        order goes up."""
        ib = self.builder
        held = Item(ib.let("value", item.value), ib.let("place", item.position))
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

    def build(self, count: Expr) -> None:
        """Make a heap of so many elements that are in no order yet."""
        ib, parents = self.builder, count // 2
        with ib.for_range(0, parents, name="parent") as parent:
            at = ib.let("at", parents - 1 - parent)
            self.sift(at, self.item(at), count)

    def move_root(self, last: Expr) -> None:
        """Move the root to ``last``, which is the end of the heap from now on; what stood there becomes part of it."""
        ib, root = self.builder, as_index(0)
        moved = self.item(last)
        item = Item(ib.let("moved", moved.value), ib.let("from_place", moved.position))
        self.put(last, self.item(root))
        self.sift(root, item, last)

    def _stands_before(self, a: Expr, b: Expr) -> Expr:
        return self.item(a).comes_before(self.item(b), self.largest)


def best_of_block(ib: IRBuilder, element: Callable[[Expr], Expr], largest: bool) -> Expr:
    """The largest, or smallest, of the elements 0, 1, … of a block; NaN if there is one."""
    better = te.maximum if largest else te.minimum
    best = ib.allocate(widened(element(as_index(0))).dtype, (LANES,), "best")
    with ib.for_range(0, LANES, name="lane", kind="vectorized") as lane:
        value = widened(element(lane.as_expr()))
        for start in range(LANES, BLOCK, LANES):
            value = better(value, widened(element(lane + start)))
        best[lane] = value
    return fold_lanes(ib, best, better)


def fold_lanes(ib: IRBuilder, lanes: BufferPtr, fold: Callable[[Expr, Expr], Expr]) -> Expr:
    """What the elements of a vector of ``LANES`` give together, which overwrites them."""
    width = LANES // 2
    while width > 1:
        with ib.for_range(0, width, name="lane", kind="vectorized") as lane:
            lanes[lane] = fold(lanes[lane], lanes[lane + width])
        width //= 2
    return fold(lanes[0], lanes[1])

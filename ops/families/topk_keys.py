"""The k best of a row of which a value and its position fit one integer of 64 bits, a *key*: the smaller, the better.

A bound is found first, which at least k elements reach: the elements are split into a few times k groups, and the best
of each are counted, for bounds halfway between others, until not many more than k are left. Then the row is gone
through once, and what reaches the bound is appended to a buffer, without a branch; when that is full, it is sorted, the
best k stay, and the last of them is the new bound. Apart from the sorts it is done as vectors, and n elements take
O(n log² k) at worst.
"""

from __future__ import annotations

from collections.abc import Callable

from ... import te
from ...base.dataclass import dataclass
from ...base.dtype import INT32, INT64, DType
from ...ir.builder import BufferPtr, IRBuilder
from ...ir.constants import const_int
from ...ir.expr import Expr
from ...ir.makers import as_index
from ..definition.accumulate import widened
from .heap import fold_lanes
from .merge_exchange import sort_ascending

KEY_BITS = 32
"""Those of the rank of a value in a key, above as many of a position."""
MOST_KEYS = 1 << KEY_BITS
LANES = 16
GROUPS = 3
"""How many groups there are at least for each element that is found: with more, fewer elements reach the bound, but it
takes longer to find."""


def fit_keys(kind: DType, extent: Expr) -> bool:
    """Whether values of a dtype have ranks of 32 bits, and so many of them, where that is known, positions as well."""
    return kind.bits <= KEY_BITS and (const_int(extent) or 0) <= MOST_KEYS


def rank(value: Expr, largest: bool) -> Expr:
    """An int32 that is the smaller, the better a value is. NaN is larger than all numbers."""
    if value.dtype.is_float:
        number = te.cast(value, "float32")
        bits = te.as_bits(te.select(number == 0, te.const(0, "float32"), number), INT32)  # -0 is 0
        ascending = te.select(te.isnan(number), te.max_value(INT32), bits ^ ((bits >> 31) & te.max_value(INT32)))
    elif value.dtype.element == "uint32":
        ascending = te.as_bits(value, INT32) ^ te.min_value(INT32)
    else:
        ascending = te.cast(value, INT32)
    return ~ascending if largest else ascending


@dataclass(frozen=True, slots=True, eq=False)
class KeyedRow:
    """A row: ``element`` loads that at an index, ``count`` are there, and ``k`` of them, 1 or more, are looked for."""

    builder: IRBuilder
    element: Callable[[Expr], Expr]
    count: Expr
    k: Expr
    largest: bool

    def rank_at(self, at: Expr) -> Expr:
        """The rank of the element at an index, an int32."""
        return rank(widened(self.element(at)), self.largest)

    def search(self, store: Callable[[Expr, Expr], None]) -> None:
        """Hand the number in the order, and the position, of each of the k best to ``store``."""
        ib = self.builder
        bound = ib.allocate(INT64, (), "bound")
        bound[()] = te.cast(te.max_value(INT32), INT64)
        with ib.if_scope((self.count >= self.k * 2) & (self.count >= LANES * 4)):
            self._find_bound(bound)
        keys = ib.allocate(INT64, (self.k * 2 + LANES,), "keys")
        filled, at = ib.allocate("index", (), "filled"), ib.allocate("index", (), "at")
        filled[()] = at[()] = as_index(0)
        with ib.while_loop(at[()] < self.count):
            self._fill(keys, filled, at, bound)
            sort_ascending(ib, keys, filled[()])
            filled[()] = te.minimum(filled[()], self.k)
            bound[()] = (keys[filled[()] - 1] >> KEY_BITS) - 1  # of equals the first is there already
        with ib.for_range(0, self.k, name="found") as number:
            store(number.as_expr(), keys[number] & (MOST_KEYS - 1))

    def _find_bound(self, bound: BufferPtr) -> None:
        """Make ``bound`` the rank that the best elements of at least k groups reach, and of not many more."""
        ib = self.builder
        size = ib.let("size", te.maximum(self.count // (self.k * GROUPS + LANES), 1)).as_expr()
        vectors = ib.let("vectors", self.count // (size * LANES)).as_expr()
        best = ib.allocate(INT32, (vectors, LANES), "best")
        with ib.for_range(0, vectors, name="vector") as vector, ib.for_range(0, size, name="member") as member:
            start = ib.let("start", (member * vectors + vector) * LANES).as_expr()
            with ib.for_range(0, LANES, name="lane", kind="vectorized") as lane:
                met = self.rank_at(start + lane)
                before = te.select(member > 0, best[vector, lane], te.max_value(INT32))
                best[vector, lane] = te.minimum(before, met)
        low, high, enough = (ib.allocate(INT64, (), name) for name in ("low", "high", "enough"))
        low[()], high[()] = (te.cast(limit(INT32), INT64) for limit in (te.min_value, te.max_value))
        enough[()] = te.cast(vectors * LANES, INT64)
        wanted = ib.let("wanted", te.cast(self.k, INT64)).as_expr()
        with ib.while_loop((low[()] < high[()]) & (enough[()] > wanted + wanted // 8)):
            middle = ib.let("middle", (low[()] + high[()]) >> 1).as_expr()
            reached = ib.let("reached", self._reaching(best, vectors, middle)).as_expr()
            with ib.if_scope(reached >= wanted):
                high[()] = middle
                enough[()] = reached
            with ib.else_scope():
                low[()] = middle + 1
        bound[()] = high[()]

    def _reaching(self, best: BufferPtr, vectors: Expr, bound: Expr) -> Expr:
        """How many groups have a best that reaches the bound."""
        ib, one = self.builder, te.const(1, INT32)
        counts = ib.allocate(INT32, (LANES,), "counts")
        limit = ib.let("limit", te.cast(bound, INT32)).as_expr()
        with ib.for_range(0, LANES, name="lane", kind="vectorized") as lane:
            counts[lane] = te.const(0, INT32)
        with (
            ib.for_range(0, vectors, name="vector") as vector,
            ib.for_range(0, LANES, name="lane", kind="vectorized") as lane,
        ):
            counts[lane] = counts[lane] + te.select(best[vector, lane] <= limit, one, te.const(0, INT32))
        return te.cast(fold_lanes(ib, counts, lambda a, b: a + b), INT64)

    def _fill(self, keys: BufferPtr, filled: BufferPtr, at: BufferPtr, bound: BufferPtr) -> None:
        """Append what reaches the bound, from the element ``at`` on, until there are k more than are kept, or all."""
        ib, room = self.builder, self.k * 2
        with ib.while_loop((at[()] + LANES <= self.count) & (filled[()] < room)):
            self._append_vector(keys, filled, bound, ib.let("start", at[()]).as_expr())
            at[()] = at[()] + LANES
        with ib.if_scope(filled[()] < room):
            with ib.for_range(at[()], self.count, name="rest") as rest:
                self._append(keys, filled, bound, self.rank_at(rest.as_expr()), rest.as_expr())
            at[()] = self.count

    def _append_vector(self, keys: BufferPtr, filled: BufferPtr, bound: BufferPtr, start: Expr) -> None:
        """Look at each element of a vector only if one of them reaches the bound."""
        ib = self.builder
        ranks, least = (ib.allocate(INT32, (LANES,), name) for name in ("ranks", "least"))
        with ib.for_range(0, LANES, name="lane", kind="vectorized") as lane:
            met = ib.let("met", self.rank_at(start + lane)).as_expr()
            ranks[lane] = met
            least[lane] = met
        with (
            ib.if_scope(te.cast(fold_lanes(ib, least, te.minimum), INT64) <= bound[()]),
            ib.for_range(0, LANES, name="next") as number,
        ):
            self._append(keys, filled, bound, ranks[number], start + number)

    def _append(self, keys: BufferPtr, filled: BufferPtr, bound: BufferPtr, met: Expr, position: Expr) -> None:
        """Write a key behind the others, to stay there if it reaches the bound."""
        wide = te.cast(met, INT64)
        keys[filled[()]] = (wide << KEY_BITS) + te.cast(position, INT64)
        filled[()] = filled[()] + te.select(wide <= bound[()], as_index(1), as_index(0))

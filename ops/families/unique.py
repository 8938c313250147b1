"""unique: the different rows of a matrix, where each is first, which of them each row is, and how often each occurs.

Rows are brought into ascending order by a stable merge sort, so that equal ones stand beside each other. Which row goes
where depends on all others, so it is a loop of its own (``te.extern``). How many differ becomes an extent.
"""

from __future__ import annotations

from collections.abc import Sequence

from ... import te
from ...base.dataclass import dataclass
from ...base.dtype import INT64
from ...base.errors import TypeInferenceError
from ...graph.node import Call, Node, TupleGet, tensor_of
from ...graph.types import TensorType, TupleType, Type
from ...ir.buffer import Buffer
from ...ir.builder import BufferPtr, IRBuilder
from ...ir.constants import ONE
from ...ir.expr import Expr
from ...ir.makers import as_index
from ...ir.stmt import Stmt
from ...te.tensor import Tensors
from ..definition.accumulate import widened
from ..definition.arguments import axis_of, flag
from ..definition.attrs import Attrs, attr
from ..definition.op_group import OpGroup
from ..definition.registry import OpPattern, register_op
from ..definition.relations import NUMBER_KINDS, tensor_argument
from ..definition.strategy import register_compute
from .born_extents import born_extents
from .cast import cast
from .gather import take
from .open_extents import open_slice
from .reshape import flatten, reshape
from .transpose import transpose

GROUP = OpGroup.PARTS


@dataclass(frozen=True)
class UniqueRowsAttrs(Attrs):
    """The attributes of ``unique_rows``."""

    ascending: bool = attr("whether the rows found ascend, else they come as they are first met", default=True)


def _relation(types: Sequence[Type], attrs: UniqueRowsAttrs) -> Type:
    x = tensor_argument(types[0], "x")
    if x.ndim != 2 or x.dtype.kind not in NUMBER_KINDS:
        raise TypeInferenceError(f"x must be a matrix of {', '.join(NUMBER_KINDS)}, found {x}")
    numbers = TensorType(x.shape[:1], INT64)
    return TupleType((numbers, numbers, numbers, TensorType((ONE,), INT64)))


@dataclass(frozen=True, slots=True, eq=False)
class _Sort:
    """Writes a merge sort of rows, by their numbers in ``order``."""

    builder: IRBuilder
    rows: BufferPtr
    order: BufferPtr

    @property
    def count(self) -> Expr:
        return self.rows.shape[0]

    def sort(self) -> None:
        """Merge runs that ascend to such of twice the length, until there is one."""
        ib, count = self.builder, self.count
        merged = ib.allocate(INT64, self.order.shape, "merged")
        with ib.for_range(0, count, name="row") as row:
            self.order[row] = te.cast(row, INT64)
        length = ib.allocate("index", (), "length")
        length[()] = as_index(1)
        with ib.while_loop(length[()] < count):
            with ib.for_range(0, (count + length[()] * 2 - 1) // (length[()] * 2), name="pair") as pair:
                first = ib.let("first", pair * length[()] * 2).as_expr()
                middle = ib.let("middle", te.minimum(first + length[()], count)).as_expr()
                end = ib.let("end", te.minimum(middle + length[()], count)).as_expr()
                self._merge(merged, first, middle, end)
            self._copy(merged, as_index(0), self.order, as_index(0), count)
            length[()] = length[()] * 2

    def _merge(self, merged: BufferPtr, first: Expr, middle: Expr, end: Expr) -> None:
        """Merge two runs that are sorted; of equal rows those of the first come first."""
        ib = self.builder
        left, right = ib.allocate("index", (), "left"), ib.allocate("index", (), "right")
        left[()] = first
        right[()] = middle
        with ib.while_loop((left[()] < middle) & (right[()] < end)):
            at = ib.let("at", left[()] + right[()] - middle).as_expr()
            a, b = (ib.let(name, self.order[side[()]]).as_expr() for name, side in (("a", left), ("b", right)))
            with ib.if_scope(self.compare(as_index(b), as_index(a)) < 0):
                merged[at] = b
                right[()] = right[()] + 1
            with ib.else_scope():
                merged[at] = a
                left[()] = left[()] + 1
        rest = ib.let("rest", left[()] + right[()] - middle).as_expr()
        self._copy(self.order, left[()], merged, rest, middle - left[()])
        self._copy(self.order, right[()], merged, right[()], end - right[()])

    def _copy(self, source: BufferPtr, start: Expr, target: BufferPtr, to: Expr, count: Expr) -> None:
        with self.builder.for_range(0, count, name="copied") as k:
            target[to + k] = source[start + k]

    def compare(self, a: Expr, b: Expr) -> Expr:
        """A number below 0 if row a comes before row b, above it if behind: by the first element that differs. NaN is
        behind all numbers, and like itself."""
        ib, columns = self.builder, self.rows.shape[1]
        sign, column = ib.allocate("int32", (), "sign"), ib.allocate("index", (), "column")
        sign[()] = te.const(0, "int32")
        column[()] = as_index(0)
        with ib.while_loop((sign[()] == 0) & (column[()] < columns)):
            x, y = (ib.let(name, widened(self.rows[row, column[()]])).as_expr() for name, row in (("x", a), ("y", b)))
            sign[()] = te.cast(_is_less(y, x), "int32") - te.cast(_is_less(x, y), "int32")
            column[()] = column[()] + 1
        return sign[()]


def _is_less(x: Expr, y: Expr) -> Expr:
    return (x < y) | (~te.isnan(x) & te.isnan(y)) if x.dtype.is_float else x < y


def _compute(attrs: UniqueRowsAttrs, inputs: Tensors, result: Type) -> Tensors:
    (x,) = inputs

    def body(ins: Sequence[Buffer], outs: Sequence[Buffer]) -> Stmt:
        ib = IRBuilder()
        rows, first, which, times, number = map(ib.buffer_ptr, (*ins, *outs))
        sort = _Sort(ib, rows, ib.allocate(INT64, (te.maximum(x.shape[0], 1),), "order"))
        sort.sort()
        _group(sort, which, number)
        _count_groups(sort, attrs, first, which, times)
        return ib.get()

    shape = x.shape[:1]
    return te.extern([shape, shape, shape, (ONE,)], [x], body, name="unique_rows", dtype=INT64)


def _group(sort: _Sort, which: BufferPtr, number: BufferPtr) -> None:
    """Number groups of equal rows in ascending order; ``which`` says of each row the group, ``number`` how many."""
    ib, one = sort.builder, te.const(1, INT64)
    number[0] = te.const(0, INT64)
    with ib.for_range(0, sort.count, name="place") as position:
        row = ib.let("row", as_index(sort.order[position])).as_expr()
        with ib.if_scope(position > 0):
            before = as_index(sort.order[position - 1])
            with ib.if_scope(sort.compare(before, row) != 0):
                number[0] = number[0] + one
        which[row] = number[0]
    with ib.if_scope(sort.count > 0):
        number[0] = number[0] + one


def _count_groups(sort: _Sort, attrs: UniqueRowsAttrs, first: BufferPtr, which: BufferPtr, times: BufferPtr) -> None:
    """The first row and the size of each group, in the order that is asked for; ``order`` is overwritten by the numbers
    that groups have in it."""
    ib, none = sort.builder, te.const(-1, INT64)
    renumbered, met = sort.order, ib.allocate(INT64, (), "met")
    met[()] = te.const(0, INT64)
    with ib.for_range(0, sort.count, name="group") as group:
        times[group] = te.const(0, INT64)
        first[group] = te.const(0, INT64)
        renumbered[group] = none
    with ib.for_range(0, sort.count, name="row") as row:
        own = ib.let("own", as_index(which[row])).as_expr()
        with ib.if_scope(renumbered[own] == none):
            renumbered[own] = te.cast(own, INT64) if attrs.ascending else met[()]
            first[as_index(renumbered[own])] = te.cast(row, INT64)
            met[()] = met[()] + te.const(1, INT64)
        which[row] = renumbered[own]
        times[as_index(which[row])] = times[as_index(which[row])] + te.const(1, INT64)


UNIQUE_ROWS = register_op(
    "unique_rows",
    "of different rows: where each is first, which of them each row is, and how often each occurs, of int64 and as long"
    " as there are rows, filled up with 0; and how many differ",
    [("x", "a matrix; NaN is behind all numbers, and like itself")],
    _relation,
    OpPattern.OPAQUE,
    UniqueRowsAttrs,
)
register_compute(UNIQUE_ROWS, _compute)


def unique(x: Node, axis: int | None = None, ascending: bool = True) -> tuple[Node, Node, Node, Node]:
    """The different elements of x as a vector, or its different parts along ``axis``; and as int64 where each is first,
    which of them each element or part of x is, and how often each occurs. As ``numpy.unique``, but without
    ``ascending`` they come in the order in which they are met. How many there are each run counts."""
    items: Node = reshape(x, (-1,)) if axis is None else x
    along = 0 if axis is None else axis_of("unique", x, axis)
    rank = tensor_of(items).ndim
    turned = transpose(items, (along, *(k for k in range(rank) if k != along))) if along else items
    rows = turned if rank == 2 else flatten(turned)
    if tensor_of(rows).dtype.is_bool:
        rows = cast(rows, "uint8")
    found: Call = UNIQUE_ROWS(rows, attrs=UniqueRowsAttrs(flag(ascending, "ascending")))
    firsts, which, sizes, number = (TupleGet(found, k) for k in range(4))
    witness = born_extents(number, ["unique"], "the number of different elements")
    (count,) = tensor_of(witness).shape
    first, times = (open_slice(each, 0, 0, count, [witness]) for each in (firsts, sizes))
    return take(items, first, along), first, which, times

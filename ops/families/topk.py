"""topk: the largest or smallest elements along an axis, in order, and where they stand.

Which elements are kept depends on the order in which they are met, so it is a loop of its own (``te.extern``). Elements
of up to 32 bits become keys with their positions (``topk_keys.py``). Of others there is a heap of the k best so far,
whose root is the worst of them, and the heap sorted in the end (``heap.py``). It lies in the results' memory. Blocks of
neighbours of which none is better than the root are left out as vectors; n elements take O(n log k) at worst. Rows run
in parallel.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from ... import te
from ...base.dataclass import dataclass
from ...base.dtype import BOOL, INT64
from ...base.errors import TypeInferenceError
from ...base.target import Target
from ...graph.node import Call, Node, TupleGet, tensor_of
from ...graph.types import TensorType, TupleType, Type
from ...ir.buffer import Buffer
from ...ir.builder import BufferPtr, IRBuilder
from ...ir.constants import const_int
from ...ir.expr import Expr
from ...ir.makers import as_index
from ...ir.row_major import unravel_index
from ...ir.simplify import simplify
from ...ir.stmt import Stmt
from ...schedules.rows import extent_of
from ...te.tensor import Tensors
from ..definition.accumulate import widened
from ..definition.arguments import axis_of, flag, integer
from ..definition.attrs import Attrs, attr
from ..definition.cost import elements, elements_of
from ..definition.extent_formulas import FORMULAS, as_formulas, extent_of_formula
from ..definition.op_group import OpGroup
from ..definition.registry import OpPattern, register_op
from ..definition.relations import NUMBER_KINDS, normalize_axis, tensor_argument
from ..definition.strategy import OpStrategy, register_strategy, schedule_default
from .argreduce import argmax
from .heap import BLOCK, Heap, Item, best_of_block
from .reduce import max as greatest
from .topk_keys import MOST_KEYS, KeyedRow, fit_keys
from .topk_lanes import NO_SUMS, add_in_lanes

GROUP = OpGroup.REDUCTIONS
CYCLES_OF_ROW, CYCLES_OF_FOUND, CYCLES_OF_ELEMENT = 300, 30, 3.0
"""Measured, of keys."""


@dataclass(frozen=True)
class TopkAttrs(Attrs):
    """The attributes of ``topk``."""

    k: int | str = attr(
        f"how many elements are found: {FORMULAS}",
        check=lambda v: None if isinstance(v, str) or v >= 0 else "must be 0 or more",
    )
    axis: int = attr("the axis that is searched, 0 or more", -1)
    largest: bool = attr("whether the largest are found, else the smallest", True)


def _relation(types: Sequence[Type], attrs: TopkAttrs) -> Type:
    x = tensor_argument(types[0], "x")
    if x.dtype.kind not in NUMBER_KINDS:
        raise TypeInferenceError(f"x must be of {', '.join(NUMBER_KINDS)}, found {x.dtype}")
    axis = normalize_axis(attrs.axis, x.ndim)
    extent = const_int(x.shape[axis])
    if extent is not None and isinstance(attrs.k, int) and attrs.k > extent:
        raise TypeInferenceError(f"k is {attrs.k}, but axis {axis} of {x} has only {extent} elements")
    shape = (*x.shape[:axis], extent_of_formula(attrs.k, types), *x.shape[axis + 1 :])
    return TupleType((TensorType(shape, x.dtype), TensorType(shape, INT64)))


def _asked_of_extents(call: Call) -> Sequence[Expr]:
    """There are k elements, and no more than the keys of an open number have positions for."""
    x, k = tensor_of(call.args[0]), extent_of_formula(call.attrs.k, [a.type for a in call.args])
    extent = x.shape[call.attrs.axis]
    asked = [extent - k]
    if const_int(extent) is None and fit_keys(x.dtype, extent):
        asked.append(MOST_KEYS - extent)
    return tuple(map(simplify, asked))


def _compute(attrs: TopkAttrs, inputs: Tensors, result: Type) -> Tensors:
    x, axis, k = inputs[0], attrs.axis, extent_of_formula(attrs.k, inputs)

    def body(ins: Sequence[Buffer], outs: Sequence[Buffer]) -> Stmt:
        ib = IRBuilder()
        source, values, positions = ib.buffer_ptr(ins[0]), *map(ib.buffer_ptr, outs)
        before, after = source.shape[:axis], source.shape[axis + 1 :]
        if const_int(k) == 0:
            return ib.get()
        with ib.for_range(0, extent_of((*before, *after)), name="row", kind="parallel") as row, ib.if_scope(k > 0):
            position = unravel_index(row, (*before, *after))
            heap = Heap(ib, values, positions, position[:axis], position[axis:], attrs.largest)
            search = _search_keys if fit_keys(x.dtype, x.shape[axis]) else _search_row
            search(heap, source, axis, k)
        return ib.get()

    shape = (*x.shape[:axis], k, *x.shape[axis + 1 :])
    return te.extern([shape, shape], [x], body, name="topk", dtype=[x.dtype, INT64])


def _search_keys(heap: Heap, source: BufferPtr, axis: int, k: Expr) -> None:
    def element(at: Expr) -> Expr:
        return source[(*heap.before, at, *heap.after)]

    def store(number: Expr, position: Expr) -> None:
        heap.put(number, Item(element(as_index(position)), position))

    KeyedRow(heap.builder, element, source.shape[axis], k, heap.largest).search(store)


def _search_row(heap: Heap, source: BufferPtr, axis: int, k: Expr) -> None:
    ib = heap.builder

    def element(at: Expr) -> Item:
        return Item(source[(*heap.before, at, *heap.after)], te.cast(at, INT64))

    with ib.for_range(0, k, name="first") as first:
        heap.put(first.as_expr(), element(first.as_expr()))
    heap.build(k)
    scanned = k
    if all(const_int(extent) == 1 for extent in source.shape[axis + 1 :]):
        scanned = _scan_blocks(heap, element, k, source.shape[axis])
    with ib.for_range(scanned, source.shape[axis], name="next") as number:
        _offer(heap, element(number.as_expr()), k)
    with ib.for_range(0, k - 1, name="sorted") as number:
        heap.move_root(ib.let("last", k - 1 - number))


def _offer(heap: Heap, item: Item, k: Expr) -> None:
    """Take an item that comes later than those in the heap of k in place of the root, if it is better."""
    root = as_index(0)
    new, worst = widened(item.value), widened(heap.item(root).value)
    better = ~(new <= worst if heap.largest else new >= worst)
    if new.dtype.is_float:
        better = better & ~te.isnan(worst if heap.largest else new)
    with heap.builder.if_scope(better):
        heap.sift(root, item, k)


def _scan_blocks(heap: Heap, element: Callable[[Expr], Item], k: Expr, extent: Expr) -> Expr:
    """Go through the blocks of elements from number k on, and into those whose best is better than the root; gives the
    number of the first element behind them."""
    ib = heap.builder
    blocks = te.maximum((extent - k) // BLOCK, 0)
    with ib.for_range(0, blocks, name="block") as block:
        first = ib.let("first", block * BLOCK + k)
        best = best_of_block(ib, lambda at: element(first + at).value, heap.largest)
        worst = widened(heap.item(as_index(0)).value)
        with (
            ib.if_scope(~(best <= worst if heap.largest else best >= worst)),  # also where one of them is NaN
            ib.for_range(0, BLOCK, name="next") as number,
        ):
            _offer(heap, element(first + number), k)
    return blocks * BLOCK + k


TOPK = register_op(
    "topk",
    "the k largest elements along an axis, or the smallest, in order; and their positions, as int64",
    [("x", "numbers, NaN the largest, of equals the first comes first; behind it tensors that tell k, not read")],
    _relation,
    OpPattern.OPAQUE,
    TopkAttrs,
    variadic=True,
    support_level=4,
    extent_rule=_asked_of_extents,
)


@register_strategy(TOPK)
def _strategy(attrs: TopkAttrs, inputs: Sequence[Type], result: Type, target: Target) -> OpStrategy:
    strategy = OpStrategy()
    x = tensor_argument(inputs[0], "x")
    add_in_lanes(strategy, x, attrs.k, attrs.axis, attrs.largest, target)
    rows = elements_of((*x.shape[: attrs.axis], *x.shape[attrs.axis + 1 :]))
    found = elements_of((extent_of_formula(attrs.k, inputs),))
    cost = rows * (CYCLES_OF_ROW + CYCLES_OF_FOUND * found) + CYCLES_OF_ELEMENT * elements(x)
    strategy.add_implementation(_compute, schedule_default, "topk.generic", cost=cost, sums=NO_SUMS)
    return strategy


def topk(x: Node, k: int | Expr, axis: int = -1, largest: bool = True, of: Iterable[Node] = ()) -> tuple[Node, Node]:
    """The ``k`` largest elements along ``axis``, or the smallest, best first, and their positions, as int64. NaN is
    larger than all numbers; of equals the first is found first. ``k`` may be a formula over dimensions that tensors
    among ``of`` have by themselves."""
    wanted, used = as_formulas([k if isinstance(k, Expr) else integer(k, "k")], of)
    along, is_largest = axis_of("topk", x, axis), flag(largest, "largest")
    extent, is_ordered = const_int(tensor_of(x).shape[along]), tensor_of(x).dtype is not BOOL
    if wanted == (1,) and extent and is_largest and is_ordered:  # a reduction each, for which a NaN is the largest, too
        return greatest(x, along, keepdims=True), argmax(x, along, keepdims=True)
    found = TOPK(x, *used, attrs=TopkAttrs(wanted[0], along, is_largest))
    return TupleGet(found, 0), TupleGet(found, 1)

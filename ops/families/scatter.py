"""Operators that write elements where indices say: scatter_elements, scatter_nd, tensor_scatter.

Several updates may meet in one element: they are taken in the order in which they lie in memory, which no expression of
a single element has. So the first two are loops of their own (``te.extern``): the data are copied, and then updated,
side by side only where updates cannot meet. A negative index counts from the end; one out of bounds writes nothing:
indices are data, and memory is never written outside a tensor.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ... import te
from ...base.dataclass import dataclass
from ...base.dtype import BOOL
from ...base.errors import TypeInferenceError
from ...graph.node import Call, Node
from ...graph.types import TensorType, Type
from ...ir.buffer import Buffer
from ...ir.builder import BufferPtr, IRBuilder
from ...ir.constants import const_int
from ...ir.expr import Expr
from ...ir.makers import as_index
from ...ir.simplify import simplify
from ...ir.stmt import Stmt
from ...schedules.rows import extent_of
from ...te.tensor import Tensors
from ..definition.accumulate import widened
from ..definition.arguments import axis_of, flag
from ..definition.attrs import Attrs, attr, one_of
from ..definition.op_group import OpGroup
from ..definition.registry import OpPattern, register_op
from ..definition.relations import check_within, left_of_rows, normalize_axis, same_dtype, same_extent, tensor_argument
from ..definition.strategy import register_compute
from .element_copies import BLOCK, LANES, copy_elements, index_of

GROUP = OpGroup.PARTS

REDUCTIONS: dict[str, Callable[[Expr, Expr], Expr]] = {
    "none": lambda old, new: new,
    "add": lambda old, new: old + new,
    "mul": lambda old, new: old * new,
    "max": te.maximum,
    "min": te.minimum,
}
_OF_BOOLS: dict[str, Callable[[Expr, Expr], Expr]] = {
    "none": lambda old, new: new,
    "add": lambda old, new: old | new,
    "mul": lambda old, new: old & new,
    "max": lambda old, new: old | new,
    "min": lambda old, new: old & new,
}
_IN_PLACE = "whether the memory of the result holds data already, as that of a model's state: only updates are written"
_REDUCTION = "what becomes of an element and its update: none is the update, else their sum, product, maximum, minimum"


@dataclass(frozen=True)
class ScatterElementsAttrs(Attrs):
    """The attributes of ``scatter_elements``."""

    axis: int = attr("the axis that is indexed, 0 or more", 0)
    reduction: str = attr(_REDUCTION, "none", one_of(*REDUCTIONS))
    in_place: bool = attr(_IN_PLACE, False)


@dataclass(frozen=True)
class ScatterNdAttrs(Attrs):
    """The attributes of ``scatter_nd``."""

    reduction: str = attr(_REDUCTION, "none", one_of(*REDUCTIONS))
    in_place: bool = attr(_IN_PLACE, False)


@dataclass(frozen=True)
class TensorScatterAttrs(Attrs):
    """The attributes of ``tensor_scatter``."""

    axis: int = attr("the axis that is written along, 1 or more")
    circular: bool = attr("whether what goes beyond the end goes on at the beginning; else it is left out", False)


def _arguments(types: Sequence[Type]) -> tuple[TensorType, TensorType, TensorType]:
    names = ("data", "indices", "updates")
    data, indices, updates = (tensor_argument(kind, name) for kind, name in zip(types, names, strict=True))
    same_dtype([data, updates], ["data", "updates"])
    if not indices.dtype.is_data_int:
        raise TypeInferenceError(f"indices must be integers, found {indices.dtype}")
    return data, indices, updates


def _same_shape(updates: TensorType, shape: Sequence[Expr]) -> None:
    if updates.ndim != len(shape):
        raise TypeInferenceError(f"updates must be of rank {len(shape)}, found {updates}")
    for k, (has, needs) in enumerate(zip(updates.shape, shape, strict=True)):
        same_extent(needs, has, f"updates have extent {has} on axis {k}, where {needs} are written")


def _scatter_elements_relation(types: Sequence[Type], attrs: ScatterElementsAttrs) -> Type:
    data, indices, updates = _arguments(types)
    if data.ndim != indices.ndim:
        raise TypeInferenceError(f"data of rank {data.ndim} needs indices of that rank, found {indices.ndim}")
    axis = normalize_axis(attrs.axis, data.ndim)
    _same_shape(updates, indices.shape)
    check_within(indices.shape, data.shape, axis)
    return data


def _elements_asked_of_extents(call: Call) -> Sequence[Expr]:
    """The condition that on the axes but one there are no more indices than rows to write."""
    data, indices, _ = _arguments([a.type for a in call.args])
    return tuple(map(simplify, left_of_rows(indices.shape, data.shape, normalize_axis(call.attrs.axis, data.ndim))))


def _scatter_nd_relation(types: Sequence[Type], attrs: ScatterNdAttrs) -> Type:
    data, indices, updates = _arguments(types)
    depth = const_int(indices.shape[-1]) if indices.ndim else None
    if depth is None or not 0 <= depth <= data.ndim:
        raise TypeInferenceError(f"the last axis of indices must be known, and at most {data.ndim}, found {indices}")
    _same_shape(updates, (*indices.shape[:-1], *data.shape[depth:]))
    return data


@dataclass(frozen=True, slots=True)
class _Update:
    """Writes updates to the elements of ``target``."""

    builder: IRBuilder
    target: BufferPtr
    reduction: str

    def write(self, position: tuple[Expr, ...], value: Expr) -> None:
        """Update the element at a position that is in bounds."""
        old = self.target[position]
        if self.target.dtype is BOOL:
            self.target[position] = _OF_BOOLS[self.reduction](old, value)
        else:
            self.target[position] = te.cast(REDUCTIONS[self.reduction](widened(old), widened(value)), self.target.dtype)


def _from_start(index: Expr, extent: Expr) -> Expr:
    """An index that counts from the start; one that is out of bounds stays so."""
    at = as_index(index)
    return te.select(at < 0, at + extent, at) if index.dtype.is_signed else at


def _scatter_elements_compute(attrs: ScatterElementsAttrs, inputs: Tensors, result: Type) -> te.Tensor:
    data, indices, updates = inputs
    axis = attrs.axis

    def body(ins: Sequence[Buffer], outs: Sequence[Buffer]) -> Stmt:
        ib = IRBuilder()
        source, positions, values = map(ib.buffer_ptr, ins)
        update = _Update(ib, ib.buffer_ptr(outs[0]), attrs.reduction)
        if not attrs.in_place:
            copy_elements(ib, update.target, source, lambda position: position)
        before, after = positions.shape[:axis], positions.shape[axis + 1 :]
        columns = extent_of(after)
        blocks = (columns + (BLOCK - 1)) // BLOCK
        with ib.for_range(0, extent_of(before) * blocks, name="block", kind="parallel") as block:
            first = block % blocks * BLOCK
            count = te.minimum(columns - first, BLOCK)
            with ib.for_range(0, positions.shape[axis], name="k") as k, ib.for_range(0, count, name="column") as column:
                outer, inner = index_of(block // blocks, before), index_of(first + column, after)
                index = (*outer, k.as_expr(), *inner)
                at = ib.let("at", _from_start(positions[index], source.shape[axis]))
                with ib.if_scope((at >= 0) & (at < source.shape[axis])):
                    update.write((*outer, at, *inner), values[index])
        return ib.get()

    return te.extern(data.shape, [data, indices, updates], body, name="scatter_elements", dtype=data.dtype)


def _scatter_nd_compute(attrs: ScatterNdAttrs, inputs: Tensors, result: Type) -> te.Tensor:
    data, indices, updates = inputs
    depth, lookup = const_int(indices.shape[-1]) or 0, indices.ndim - 1

    def body(ins: Sequence[Buffer], outs: Sequence[Buffer]) -> Stmt:
        ib = IRBuilder()
        source, positions, values = map(ib.buffer_ptr, ins)
        update = _Update(ib, ib.buffer_ptr(outs[0]), attrs.reduction)
        if not attrs.in_place:
            copy_elements(ib, update.target, source, lambda position: position)
        rest, outer = source.shape[depth:], positions.shape[:lookup]
        columns = extent_of(rest)
        with ib.for_range(0, (columns + (BLOCK - 1)) // BLOCK, name="block", kind="parallel") as block:
            count = te.minimum(columns - block * BLOCK, BLOCK)
            with ib.for_range(0, extent_of(outer), name="number") as number:
                where = index_of(number, outer)
                at = [
                    ib.let(f"at{d}", _from_start(positions[(*where, as_index(d))], source.shape[d]))
                    for d in range(depth)
                ]
                inside = te.const(True, BOOL)
                for d in range(depth):
                    inside = inside & (at[d] >= 0) & (at[d] < source.shape[d])
                with (
                    ib.if_scope(inside),
                    ib.for_range(0, (count + (LANES - 1)) // LANES, name="vector") as vector,
                    ib.for_range(0, LANES, name="lane", kind="vectorized") as lane,
                    ib.if_scope(vector * LANES + lane < count),
                ):
                    inner = index_of(block * BLOCK + vector * LANES + lane, rest)
                    update.write((*at, *inner), values[(*where, *inner)])
        return ib.get()

    return te.extern(data.shape, [data, indices, updates], body, name="scatter_nd", dtype=data.dtype)


def tensor_scatter_relation(types: Sequence[Type], attrs: TensorScatterAttrs) -> Type:
    """The type of data that updates are written to along an axis, from a start that each sample has of its own."""
    data, updates, starts = (
        tensor_argument(kind, name) for kind, name in zip(types, ("data", "updates", "starts"), strict=True)
    )
    same_dtype([data, updates], ["data", "updates"])
    axis = normalize_axis(attrs.axis, data.ndim)
    if axis == 0:
        raise TypeInferenceError("the axis that is written along must not be that of the samples, 0")
    _same_shape(updates, (*data.shape[:axis], updates.shape[axis], *data.shape[axis + 1 :]))
    if starts.ndim != 1 or not starts.dtype.is_data_int:
        raise TypeInferenceError(f"starts must be integers, one for each sample, found {starts}")
    same_extent(data.shape[0], starts.shape[0], f"data has {data.shape[0]} samples, but starts {starts.shape[0]}")
    return data


def _tensor_scatter_compute(attrs: TensorScatterAttrs, inputs: Tensors, result: Type) -> te.Tensor:
    data, updates, starts = inputs
    axis, extent = attrs.axis, data.shape[attrs.axis]

    def element(*i: te.Axis) -> Expr:
        at = i[axis] - as_index(starts[i[0]])
        number = at % te.maximum(extent, 1) if attrs.circular else at
        here = (number >= 0) & (number < updates.shape[axis])
        return te.if_then_else(here, updates[(*i[:axis], number, *i[axis + 1 :])], data[i])

    return te.compute(data.shape, element, name="tensor_scatter")


_INDICES = "integers; negative ones count from the end, others out of bounds write nothing"
SCATTER_ELEMENTS = register_op(
    "scatter_elements",
    "data with updates at the position of each, but on one axis at its index; those that meet are taken in order",
    [("data", "any shape"), ("indices", _INDICES), ("updates", "of the shape of indices")],
    _scatter_elements_relation,
    OpPattern.OPAQUE,
    ScatterElementsAttrs,
    support_level=3,
    extent_rule=_elements_asked_of_extents,
)
SCATTER_ND = register_op(
    "scatter_nd",
    "data with updates at index vectors, which are the last axis of indices; those that meet are taken in order",
    [
        ("data", "any shape"),
        ("indices", _INDICES),
        ("updates", "of the shape of indices without the last axis, followed by that of what is indexed"),
    ],
    _scatter_nd_relation,
    OpPattern.OPAQUE,
    ScatterNdAttrs,
    support_level=3,
)
TENSOR_SCATTER = register_op(
    "tensor_scatter",
    "data with updates written along an axis, from a start that each sample has of its own",
    [
        ("data", "any shape, samples first"),
        ("updates", "of the shape of data, but for the extent along the axis"),
        ("starts", "integers, one for each sample"),
    ],
    tensor_scatter_relation,
    OpPattern.INJECTIVE,
    TensorScatterAttrs,
    support_level=3,
)
register_compute(SCATTER_ELEMENTS, _scatter_elements_compute)
register_compute(SCATTER_ND, _scatter_nd_compute)
register_compute(TENSOR_SCATTER, _tensor_scatter_compute)


def scatter_elements(data: Node, indices: Node, updates: Node, axis: int = 0, reduction: str = "none") -> Call:
    """``data`` with ``updates`` at the position of each, but on one axis at its index, as ``numpy.put_along_axis``.

    ``reduction`` is ``"none"``, or says by ``"add"``, ``"mul"``, ``"max"`` or ``"min"`` what is made of the element and
    the update. Updates of one element are taken in the order in which they stand.
    """
    attrs = ScatterElementsAttrs(axis_of("scatter_elements", data, axis, "data"), reduction)
    return SCATTER_ELEMENTS(data, indices, updates, attrs=attrs)


def scatter_nd(data: Node, indices: Node, updates: Node, reduction: str = "none") -> Call:
    """``data`` with ``data[indices[…, 0], indices[…, 1], …]`` updated, each a number or a part of the axes that are
    left; ``reduction`` as of ``scatter_elements``."""
    return SCATTER_ND(data, indices, updates, attrs=ScatterNdAttrs(reduction))


def tensor_scatter(data: Node, updates: Node, starts: Node, axis: int = -2, circular: bool = False) -> Call:
    """``data`` with ``updates`` written along an axis, in sample b from ``starts[b]`` on; what goes beyond the end is
    left out, or goes on at the beginning if ``circular``."""
    attrs = TensorScatterAttrs(axis_of("tensor_scatter", data, axis, "data"), flag(circular, "circular"))
    return TENSOR_SCATTER(data, updates, starts, attrs=attrs)

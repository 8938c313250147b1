"""What is computed from open extents: positions along one, the extents themselves as numbers, and slices between two.

``definition/extent_formulas.py`` has how attributes say an extent.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ... import te
from ...base.dataclass import dataclass
from ...graph.node import Call, Node, tensor_of
from ...graph.types import TensorType, Type, tensor_type
from ...ir.expr import Expr
from ...ir.makers import as_index
from ...ir.simplify import simplify
from ...te.tensor import Tensors
from ..definition.attrs import Attrs, attr
from ..definition.extent_formulas import FORMULAS, OF, as_formulas, element_of, extent_of_formula, extent_of_x
from ..definition.memory_view import RunOfArgument, part_of_axis
from ..definition.registry import OpPattern, register_op
from ..definition.relations import normalize_axis, tensor_argument
from ..definition.strategy import register_compute


@dataclass(frozen=True)
class PositionsAttrs(Attrs):
    """The attributes of ``positions``."""

    extent: int | str = attr(f"how many there are: {FORMULAS}")


@dataclass(frozen=True)
class ExtentsAttrs(Attrs):
    """The attributes of ``extents``."""

    extents: tuple[int | str, ...] = attr(FORMULAS)


@dataclass(frozen=True)
class OpenSliceAttrs(Attrs):
    """The attributes of ``open_slice``."""

    axis: int = attr("the axis, 0 or more")
    begin: int | str = attr(f"the first index: {FORMULAS}")
    extent: int | str = attr(f"how many there are: {FORMULAS}")


def _positions_relation(types: Sequence[Type], attrs: PositionsAttrs) -> Type:
    return tensor_type((extent_of_formula(attrs.extent, types),), "int64")


def _positions_compute(attrs: PositionsAttrs, inputs: Tensors, result: Type) -> te.Tensor:
    return te.compute(tensor_argument(result, "result").shape, lambda i: te.cast(i, "int64"), name="positions")


def _extents_relation(types: Sequence[Type], attrs: ExtentsAttrs) -> Type:
    for extent in attrs.extents:
        extent_of_formula(extent, types)
    return tensor_type((len(attrs.extents),), "int64")


def _extents_compute(attrs: ExtentsAttrs, inputs: Tensors, result: Type) -> te.Tensor:
    numbers = [te.cast(extent_of_formula(extent, inputs), "int64") for extent in attrs.extents]

    def chosen(i: Expr, among: range) -> Expr:
        """The number at a position, found by halves: expressions stay shallow."""
        if len(among) == 1:
            return numbers[among[0]]
        half = len(among) // 2
        return te.select(i < among[half], chosen(i, among[:half]), chosen(i, among[half:]))

    return te.compute((len(numbers),), lambda i: chosen(as_index(i), range(len(numbers))), name="extents")


def _range(arguments: Sequence[Type | te.Tensor], attrs: OpenSliceAttrs) -> tuple[Expr, Expr]:
    """The first index and the extent."""
    return extent_of_formula(attrs.begin, arguments), extent_of_formula(attrs.extent, arguments)


def _open_slice_relation(types: Sequence[Type], attrs: OpenSliceAttrs) -> Type:
    x = tensor_argument(types[0], "x")
    axis = normalize_axis(attrs.axis, x.ndim)
    _, extent = _range(types, attrs)
    return TensorType((*x.shape[:axis], extent, *x.shape[axis + 1 :]), x.dtype)


def _open_slice_compute(attrs: OpenSliceAttrs, inputs: Tensors, result: Type) -> te.Tensor:
    x, axis = inputs[0], attrs.axis
    begin, _ = _range(inputs, attrs)
    return te.compute(
        tensor_argument(result, "result").shape,
        lambda *i: element_of(x, (*i[:axis], i[axis] + begin, *i[axis + 1 :])),
        name="open_slice",
    )


def _in_memory(call: Call) -> RunOfArgument | None:
    begin, _ = _range([a.type for a in call.args], call.attrs)
    return part_of_axis(tensor_of(call.args[0]).shape, call.attrs.axis, begin)


def _asked_of_extents(call: Call) -> Sequence[Expr]:
    """The part lies within the axis."""
    begin, extent = _range([a.type for a in call.args], call.attrs)
    return begin, simplify(tensor_of(call.args[0]).shape[call.attrs.axis] - (begin + extent))


POSITIONS = register_op(
    "positions",
    "0, 1, 2, … along an axis whose extent is open",
    [OF],
    _positions_relation,
    OpPattern.INJECTIVE,
    PositionsAttrs,
    variadic=True,
    support_level=3,
)
EXTENTS = register_op(
    "extents",
    "extents as a vector of numbers",
    [OF],
    _extents_relation,
    OpPattern.INJECTIVE,
    ExtentsAttrs,
    variadic=True,
    support_level=3,
)
OPEN_SLICE = register_op(
    "open_slice",
    "a part of an axis between two indices that follow from open extents",
    [("x", "any shape; behind it tensors that the indices are computed from, whose elements are not read")],
    _open_slice_relation,
    OpPattern.INJECTIVE,
    OpenSliceAttrs,
    variadic=True,
    support_level=3,
    memory_rule=_in_memory,
    extent_rule=_asked_of_extents,
)
register_compute(POSITIONS, _positions_compute)
register_compute(EXTENTS, _extents_compute)
register_compute(OPEN_SLICE, _open_slice_compute)


def positions(extent: Expr, of: Iterable[Node]) -> Call:
    """The numbers from 0 to an extent, as int64: a formula over dimensions that tensors among ``of`` have by
    themselves."""
    (formula,), used = as_formulas([extent], of, first=0)
    return POSITIONS(*used, attrs=PositionsAttrs(formula))


def extents(values: Sequence[int | Expr], of: Iterable[Node]) -> Call:
    """Extents, which are formulas over dimensions that tensors among ``of`` have by themselves, as a vector of
    int64."""
    formulas, used = as_formulas(values, of, first=0)
    return EXTENTS(*used, attrs=ExtentsAttrs(formulas))


def open_slice(x: Node, axis: int, begin: int | Expr, extent: int | Expr, of: Iterable[Node]) -> Call:
    """``x[begin : begin + extent]`` of an axis: numbers, or formulas over dimensions that tensors among ``of`` have by
    themselves. Each run checks that the part lies within the axis."""
    formulas, used = as_formulas([begin, extent], of)
    return OPEN_SLICE(x, *used, attrs=OpenSliceAttrs(axis, *formulas))


def last_of_axis(x: Node, axis: int) -> Call:
    """``x[-1:]`` of an axis, whose extent may be open. Each run checks that it is not 0."""
    return OPEN_SLICE(x, attrs=OpenSliceAttrs(axis, f"{extent_of_x(axis)} - 1", 1))

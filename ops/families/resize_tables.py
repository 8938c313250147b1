"""The tables of an axis that is resized whose extents are open: computed by each run, once, outside the loops over the
other axes. Of known extents, ``resize.py`` makes constants of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce
from operator import add
from typing import Any, get_args

from ... import te
from ...base.dataclass import dataclass
from ...graph.node import Call, Node
from ...graph.types import Type, tensor_type
from ...ir.expr import Expr
from ...ir.makers import as_index, minimum
from ...te.tensor import Tensors
from ..definition.attrs import Attrs, attr, one_of
from ..definition.extent_formulas import OF, as_formulas, extent_of_formula
from ..definition.registry import OpPattern, register_op
from ..definition.relations import tensor_argument
from ..definition.strategy import register_compute
from .resize_math import (
    Coordinates,
    Interpolation,
    Mode,
    Nearest,
    OfExpressions,
    ResizedAxis,
    nearest_of,
    source_of,
    taps_of,
    weight_of,
)


@dataclass(frozen=True)
class ResizeTableAttrs(Attrs):
    """The attributes of ``resize_indices`` and ``resize_weights``."""

    extent: int | str = attr("the axis's extent: a number, or a formula over extents of the arguments, as x0_2")
    resized: int | str = attr("its extent when it is resized, said likewise")
    scale: float = attr("how many elements there are for one of the source; 0: the ratio of the extents")
    mode: str = attr("how elements between those of the grid are found", "nearest", one_of(*get_args(Mode)))
    coordinates: str = attr("where elements lie among the source's", "half_pixel", one_of(*get_args(Coordinates)))
    nearest: str = attr("how positions between them are rounded", "round_prefer_floor", one_of(*get_args(Nearest)))
    cubic_a: float = attr("the coefficient of the cubic", -0.75)
    exclude_outside: bool = attr("elements beyond the edge have no weight, rather than the edge's value", default=False)
    antialias: bool = attr("the kernel is as much wider as the axis shrinks; for a scale that is given", default=False)

    @property
    def interpolation(self) -> Interpolation:
        """The attributes that say how elements are found between others, in the form that ``resize_math`` takes."""
        modes: dict[str, Any] = {"mode": self.mode, "coordinates": self.coordinates, "nearest": self.nearest}
        return Interpolation(
            **modes, cubic_a=self.cubic_a, exclude_outside=self.exclude_outside, antialias=self.antialias
        )

    @property
    def taps(self) -> range:
        """How far the elements that are summed lie from the last one before a position; only 0 for the nearest one."""
        return range(1) if self.mode == "nearest" else taps_of(self.scale or 1.0, self.interpolation)


def _extents(arguments: Sequence[Type | te.Tensor], attrs: ResizeTableAttrs) -> tuple[Expr, Expr]:
    """The extents of the source and of the result."""
    return extent_of_formula(attrs.extent, arguments), extent_of_formula(attrs.resized, arguments)


def _shape(types: Sequence[Type], attrs: ResizeTableAttrs) -> tuple[Expr, Expr]:
    return as_index(len(attrs.taps)), _extents(types, attrs)[1]


def _sources(attrs: ResizeTableAttrs, inputs: Tensors) -> tuple[te.Tensor, Expr]:
    """The position of each element of the result among those of the source, and how many of these there are: floats of
    the type in which positions are computed."""
    source, result = _extents(inputs, attrs)
    how = attrs.interpolation
    kind = how.float_type
    extent, resized = te.cast(source, kind), te.cast(result, kind)
    scale = te.const(attrs.scale, kind) if attrs.scale else resized / extent
    axis = ResizedAxis(extent, resized, scale)

    def position(i: te.Axis) -> Expr:
        found: Expr = source_of(te.cast(i, kind), axis, how.coordinates, OfExpressions(kind))
        return found

    return te.compute((result,), position, name="sources"), extent


def _indices_compute(attrs: ResizeTableAttrs, inputs: Tensors, result: Type) -> te.Tensor:
    sources, extent = _sources(attrs, inputs)
    kind = attrs.interpolation.float_type

    def index(tap: te.Axis, i: te.Axis) -> Expr:
        if attrs.mode == "nearest":
            found = nearest_of(sources[i], attrs.interpolation.nearest, OfExpressions(kind))
        else:
            found = te.ceil(sources[i]) - 1.0 + te.cast(tap + attrs.taps.start, kind)
        return te.cast(te.maximum(te.minimum(found, extent - 1.0), te.const(0.0, kind)), "int64")

    return te.compute(tensor_argument(result, "result").shape, index, name="resize_indices")


def _weights_compute(attrs: ResizeTableAttrs, inputs: Tensors, result: Type) -> te.Tensor:
    sources, extent = _sources(attrs, inputs)
    how = attrs.interpolation
    expressions = OfExpressions(how.float_type)

    def weight(tap: Expr, i: te.Axis) -> Expr:
        base = te.ceil(sources[i]) - 1.0
        found: Expr = weight_of(tap - (sources[i] - base), attrs.scale or 1.0, how, expressions)
        if not attrs.exclude_outside:
            return found
        outside = (base + tap < 0.0) | (base + tap >= extent)
        return te.select(outside, te.const(0.0, "float64"), found)

    def element(tap: te.Axis, i: te.Axis) -> Expr:
        own = weight(te.cast(tap + attrs.taps.start, "float64"), i)
        if not attrs.antialias and not attrs.exclude_outside:
            return own
        total = reduce(add, (weight(te.const(float(k), "float64"), i) for k in attrs.taps))
        return own / te.select(total == 0.0, te.const(1.0, "float64"), total)

    return te.compute(tensor_argument(result, "result").shape, element, name="resize_weights")


def _asked_of_extents(call: Call) -> Sequence[Expr]:
    """Where there are elements of the result, there are some to make them of."""
    extent, resized = _extents([a.type for a in call.args], call.attrs)
    return (extent - minimum(resized, 1),)


INDICES = register_op(
    "resize_indices",
    "for each element that resizing an axis gives, the indices of those that it is made from: [summands, elements]",
    [OF],
    lambda types, attrs: tensor_type(_shape(types, attrs), "int64"),
    OpPattern.OPAQUE,
    ResizeTableAttrs,
    variadic=True,
    support_level=3,
    extent_rule=_asked_of_extents,
)
WEIGHTS = register_op(
    "resize_weights",
    "the weights of the elements that resize_indices names: [summands, elements]",
    [OF],
    lambda types, attrs: tensor_type(_shape(types, attrs), "float64"),
    OpPattern.OPAQUE,
    ResizeTableAttrs,
    variadic=True,
    support_level=3,
    extent_rule=_asked_of_extents,
)
register_compute(INDICES, _indices_compute)
register_compute(WEIGHTS, _weights_compute)


def resize_tables(
    extent: Expr, resized: int | Expr, scale: float | None, how: Interpolation, of: Iterable[Node]
) -> tuple[Call, Call]:
    """The indices and the weights to resize an axis by; None as scale is the ratio of its extents, which are formulas
    over dimensions that tensors among ``of`` have by themselves."""
    (source, result), used = as_formulas([extent, resized], of, first=0)
    attrs = ResizeTableAttrs(
        source,
        result,
        scale or 0.0,
        how.mode,
        how.coordinates,
        how.nearest,
        how.cubic_a,
        how.exclude_outside,
        how.antialias,
    )
    return INDICES(*used, attrs=attrs), WEIGHTS(*used, attrs=attrs)

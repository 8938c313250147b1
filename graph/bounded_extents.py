"""Dimensions with bounds as extents of a graph.

Such a dimension is a ``Dimension`` of the loop IR, which knows its bounds wherever it stands. One that is a multiple of
a number is that number times a ``Dimension``, so that all that is computed from it divides.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..base.bounded_dimension import BoundedDimension
from ..base.dtype import INDEX
from ..base.errors import ModelError
from ..ir.build import index_var
from ..ir.expr import Dimension, Expr
from ..ir.makers import as_index


def new_extent(dimension: BoundedDimension) -> Expr:
    """A new dimension with these bounds as an extent; a number, if they leave only one."""
    unit = dimension.multiple_of
    low, high = -(-dimension.min // unit), None if dimension.max is None else dimension.max // unit
    if low == high:
        return as_index(low * unit)
    if (low, high, unit) == (0, None, 1):
        return index_var(dimension.name)
    name = dimension.name if unit == 1 else f"{dimension.name}/{unit}"
    own = Dimension(name, INDEX, low, high, unit, dimension.name)
    return own if unit == 1 else own * unit


def extents_by_name(dimensions: Iterable[object]) -> dict[str, Expr]:
    """An extent for each name among what is given for extents, of which those that are no bounded dimensions are left
    out. Raises ``ModelError`` for two of one name with different bounds."""
    found: dict[str, BoundedDimension] = {}
    for dimension in dimensions:
        if isinstance(dimension, BoundedDimension):
            other = found.setdefault(dimension.name, dimension)
            if other != dimension:
                raise ModelError(f"shapes= gives one dimension two bounds: {other}, and {dimension}")
    return {name: new_extent(dimension) for name, dimension in found.items()}

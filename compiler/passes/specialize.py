"""Putting numbers in for symbolic dimensions: a graph with other input types, its types inferred anew."""

from __future__ import annotations

from collections.abc import Mapping

from ...base.bounded_dimension import BoundedDimension
from ...base.errors import ModelError
from ...graph.bounded_extents import extents_by_name
from ...graph.node import Function, Var
from ...graph.types import GivenShape, GivenShapes, TensorType, given_shapes, tensor_type
from ...ir.constants import const_int
from ...ir.expr import Expr
from ...ops.definition.retyping import with_params
from .flatten_tuples import flatten_tuples


def specialize(function: Function, given: GivenShapes | None) -> Function:
    """The function with these shapes for its inputs; an extent of None stays as it is. Inputs that are tuples are
    first written out as their members.

    Raises ``ModelError`` for a name that is no input, and where a shape contradicts the input's declared type.
    """
    function = flatten_tuples(function)
    shapes = given_shapes(given)
    unknown = shapes.keys() - {p.name for p in function.params}
    if unknown:
        raise ModelError(
            f"{', '.join(sorted(unknown))}: no such input; there are {', '.join(p.name for p in function.params)}"
        )
    bounded = extents_by_name(extent for shape in shapes.values() for extent in shape)
    params = {p: _with_shape(p, shapes[p.name], bounded) for p in function.params if p.name in shapes}
    return with_params(function, {old: new for old, new in params.items() if new is not old})


def _with_shape(param: Var, shape: GivenShape, bounded: Mapping[str, Expr]) -> Var:
    """The parameter with this shape; ``bounded`` are the extents that dimensions with bounds are."""
    kind = param.type
    if not isinstance(kind, TensorType):
        raise ModelError(f"input {param.name} is a {kind}, which has no shape")
    numbers = [const_int(extent) for extent in kind.shape]
    fits = len(shape) == len(numbers) and all(
        None in (number, given) or number == given for number, given in zip(numbers, shape, strict=True)
    )
    if not fits:
        raise ModelError(f"input {param.name} is declared as {kind}, which the shape {shape} contradicts")
    extents = [
        own if given is None else bounded[given.name] if isinstance(given, BoundedDimension) else given
        for own, given in zip(kind.shape, shape, strict=True)
    ]
    made = tensor_type(extents, kind.dtype)
    return param if made is kind else Var(param.name, made)

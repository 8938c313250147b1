"""Operators that give a tensor another shape and keep the order of its elements: reshape, squeeze, expand_dims."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from ... import te
from ...base.dataclass import dataclass
from ...base.errors import TypeInferenceError
from ...graph.node import Call, Node, tensor_of
from ...graph.types import TensorType, Type
from ...ir.constants import ONE, ZERO, const_int
from ...ir.expr import Expr
from ...ir.factors import product_of, quotient, same_product
from ...ir.makers import as_index
from ...ir.row_major import ravel_index, unravel_index
from ...ir.simplify import simplify
from ...te.tensor import Tensors
from ..definition.arguments import PerAxis, axes_of, flag, integer, integer_list, integers, naming
from ..definition.attrs import Attrs, attr
from ..definition.extent_formulas import FORMULAS, as_formulas, element_of, extent_of_formula, extent_of_x
from ..definition.memory_view import RunOfArgument
from ..definition.op_group import OpGroup
from ..definition.registry import OpPattern, register_op
from ..definition.relations import ExtentUndecided, normalize_axes, normalize_axis, tensor_argument
from ..definition.strategy import register_compute

GROUP = OpGroup.SHAPES


def _extents_or_rest(shape: tuple[int | str, ...]) -> str | None:
    if not all(type(e) is int and e >= -1 for e in shape if not isinstance(e, str)) or shape.count(-1) > 1:
        return "must be extents of 0 or more, one of them at most -1"
    return None


@dataclass(frozen=True)
class ReshapeAttrs(Attrs):
    """The attributes of ``reshape``."""

    shape: tuple[int | str, ...] = attr(
        f"the new extents: {FORMULAS}; -1, once, is what the others leave", check=_extents_or_rest
    )


@dataclass(frozen=True)
class AxesAttrs(Attrs):
    """The attributes of ``squeeze``, whose axes are those of x, and of ``expand_dims``, whose axes are those of the
    result."""

    axes: tuple[int, ...] = attr("axes, 0 or more, ascending")


def _reshape_relation(types: Sequence[Type], attrs: ReshapeAttrs) -> Type:
    x = tensor_argument(types[0], "x")
    extents = [extent_of_formula(extent, types) for extent in attrs.shape]
    if -1 in attrs.shape:
        rest = attrs.shape.index(-1)
        kept = {axis for axis in range(min(x.ndim, len(extents))) if attrs.shape[axis] == extent_of_x(axis)}
        own = [extent for axis, extent in enumerate(x.shape) if axis not in kept]
        left = quotient(own, [e for axis, e in enumerate(extents) if axis not in kept and axis != rest])
        if left is None:
            empty = all(any(const_int(e) == 0 for e in shape) for shape in (x.shape, extents))
            error = ExtentUndecided if empty else TypeInferenceError
            raise error(f"the elements of {x} do not fill the shape {_shown(extents)} evenly")
        extents[rest] = left
    elif not same_product(x.shape, extents):
        raise TypeInferenceError(f"{x} has not as many elements as the shape {_shown(extents)}")
    return TensorType(tuple(extents), x.dtype)


def _shown(extents: Sequence[Expr]) -> str:
    return f"({', '.join(map(str, extents))})"


def groups_of_axes(old: Sequence[Expr], new: Sequence[Expr]) -> list[tuple[range, range]]:
    """The shortest runs of axes of both shapes with the same product, in order: each is flattened by itself."""
    groups: list[tuple[range, range]] = []
    a = b = 0
    while a < len(old) or b < len(new):
        first_a, first_b = a, b
        a, b = min(a + 1, len(old)), min(b + 1, len(new))
        while not same_product(old[first_a:a], new[first_b:b]):
            if b < len(new) and (a == len(old) or _less(new[first_b:b], old[first_a:a])):
                b += 1
            elif a < len(old):
                a += 1
            else:
                return [*groups, (range(first_a, len(old)), range(first_b, len(new)))]
        groups.append((range(first_a, a), range(first_b, b)))
    return groups


def _less(a: Sequence[Expr], b: Sequence[Expr]) -> bool:
    """A guess which of two products is the smaller: by symbolic factors first, then by number."""
    (number_a, factors_a), (number_b, factors_b) = product_of(a), product_of(b)
    return (len(factors_a), number_a) < (len(factors_b), number_b)


def _read_reshaped(x: te.Tensor, shape: tuple[Expr, ...], indices: tuple[Any, ...]) -> Expr:
    at = [as_index(i) for i in indices]
    empty = next((i for i, e in zip(at, shape, strict=True) if const_int(e) == 0), None)
    if empty is not None:  # nothing is read; division by an extent of 0 must not be written down all the same
        return x[tuple(empty if const_int(e) == 0 else ZERO for e in x.shape)]
    read: list[Expr] = []
    for old, new in groups_of_axes(x.shape, shape):
        number = ravel_index([at[k] for k in new], [shape[k] for k in new])
        read += unravel_index(number, [x.shape[k] for k in old])
    return element_of(x, read)


def _compute_reshaped(attrs: Any, inputs: Tensors, result: Type) -> te.Tensor:
    x, *_ = inputs
    shape = tensor_argument(result, "result").shape
    return te.compute(shape, lambda *i: _read_reshaped(x, shape, i), name="reshape")


def _squeeze_relation(types: Sequence[Type], attrs: AxesAttrs) -> Type:
    x = tensor_argument(types[0], "x")
    for axis in attrs.axes:
        if const_int(x.shape[normalize_axis(axis, x.ndim)]) != 1:
            raise TypeInferenceError(f"axis {axis} has extent {x.shape[axis]}: only an extent of 1 can be squeezed")
    return TensorType(tuple(e for k, e in enumerate(x.shape) if k not in attrs.axes), x.dtype)


def _expand_dims_relation(types: Sequence[Type], attrs: AxesAttrs) -> Type:
    x = tensor_argument(types[0], "x")
    rank = x.ndim + len(attrs.axes)
    if len(set(attrs.axes)) != len(attrs.axes) or any(not 0 <= axis < rank for axis in attrs.axes):
        raise TypeInferenceError(f"axes {attrs.axes} are not different axes of a result of rank {rank}")
    old = iter(x.shape)
    return TensorType(tuple(ONE if k in attrs.axes else next(old) for k in range(rank)), x.dtype)


def _in_memory(call: Call) -> RunOfArgument:
    """All elements stay in their order."""
    return RunOfArgument(ZERO)


RESHAPE = register_op(
    "reshape",
    "the same elements, in the same order, in another shape",
    [("x", "any shape; behind it tensors that the new extents are computed from, whose elements are not read")],
    _reshape_relation,
    OpPattern.INJECTIVE,
    ReshapeAttrs,
    variadic=True,
    support_level=3,
    memory_rule=_in_memory,
)
SQUEEZE = register_op(
    "squeeze",
    "without axes of extent 1",
    [("x", "any shape")],
    _squeeze_relation,
    OpPattern.INJECTIVE,
    AxesAttrs,
    support_level=3,
    memory_rule=_in_memory,
)
EXPAND_DIMS = register_op(
    "expand_dims",
    "with new axes of extent 1",
    [("x", "any shape")],
    _expand_dims_relation,
    OpPattern.INJECTIVE,
    AxesAttrs,
    support_level=3,
    memory_rule=_in_memory,
)
for _op in (RESHAPE, SQUEEZE, EXPAND_DIMS):
    register_compute(_op, _compute_reshaped)


def reshape(x: Node, shape: Sequence[int], allow_zero: bool = False) -> Call:
    """The elements of x in another shape. -1, once, is what the other extents leave; 0 copies x's extent of that axis,
    unless ``allow_zero`` takes it as it stands."""
    old = tensor_of(x).shape
    extents: list[int | str] = list(integer_list(shape, "shape"))
    copied = [] if flag(allow_zero, "allow_zero") else [axis for axis, extent in enumerate(extents) if extent == 0]
    for axis in copied:
        if axis >= len(old):
            raise TypeInferenceError(f"reshape of {x.type} to {tuple(shape)}: there is no axis {axis} to copy")
        extents[axis] = const_int(old[axis]) or extent_of_x(axis)  # where it is 0, too, the others tell what is left
    return RESHAPE(x, attrs=ReshapeAttrs(tuple(extents)))


def reshape_to_open(x: Node, shape: Sequence[int | Expr], of: Iterable[Node]) -> Call:
    """The elements of x in a shape of numbers and formulas over dimensions that x or tensors among ``of`` have by
    themselves. Raises ``TypeInferenceError`` where these are not certainly as many, and for unknown dimensions."""
    own = tensor_of(x).shape
    kept = {a for a, extent in enumerate(shape[: len(own)]) if own[a] is extent and const_int(own[a]) is None}
    others, used = as_formulas([extent for a, extent in enumerate(shape) if a not in kept], of)
    left = iter(others)
    formulas = tuple(extent_of_x(a) if a in kept else next(left) for a in range(len(shape)))
    return RESHAPE(x, *used, attrs=ReshapeAttrs(formulas))


def flatten(x: Node, axis: int = 1, of: Iterable[Node] = ()) -> Call:
    """x as a matrix: the axes before ``axis`` become rows, the others columns. Where both are open, the rows are a
    formula over dimensions that x or tensors among ``of`` have by themselves."""
    old = tensor_of(x).shape
    at = integer(axis, "axis") + (len(old) if axis < 0 else 0)
    if not 0 <= at <= len(old):
        raise TypeInferenceError(f"flatten of {x.type}: axis {axis} is not one of its {len(old)}, nor their end")
    rows, row_factors = product_of(old[:at])
    columns, column_factors = product_of(old[at:])
    if row_factors and column_factors:
        return reshape_to_open(x, (simplify(math.prod(old[:at], start=ONE)), -1), (*of, x))
    if not row_factors and not column_factors:
        return reshape(x, (rows, columns), allow_zero=True)
    return reshape(x, (rows, -1) if column_factors else (-1, columns), allow_zero=True)


def squeeze(x: Node, axes: PerAxis | None = None) -> Call:
    """x without the given axes, which have extent 1; without all axes of extent 1, if none are given."""
    if axes is None:
        axes = [axis for axis, extent in enumerate(tensor_of(x).shape) if const_int(extent) == 1]
    return SQUEEZE(x, attrs=AxesAttrs(axes_of("squeeze", x, axes)))


def expand_dims(x: Node, axes: PerAxis) -> Call:
    """x with new axes of extent 1, so that they are these axes of the result."""
    with naming("expand_dims", x):
        given = integers(axes, "axes")
        return EXPAND_DIMS(x, attrs=AxesAttrs(normalize_axes(given, tensor_of(x).ndim + len(given))))

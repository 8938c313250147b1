"""Extents as attributes: formulas over the extents of further arguments, as ``x1_0 + 1``, where attributes hold no
dimensions themselves.

``x1_0`` is the extent of axis 0 of argument 1; such an argument is read for nothing else. So a call stays right when
dimensions get numbers or other names.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields, is_dataclass

from ...base.errors import TypeInferenceError
from ...graph.node import Node, tensor_of
from ...graph.types import TensorType, Type
from ...ir.build import index_var
from ...ir.constants import const, const_int
from ...ir.contents import free_vars, substitute
from ...ir.expr import Expr, Var
from ...ir.extent_text import parse_extent
from ...ir.makers import as_index
from ...ir.operand import Operand
from ...te.tensor import Tensor
from .attrs import all_non_negative

OF = ("x", "tensors whose extents formulas are over; their elements are not read")
"""The argument of operators that read nothing else of their arguments."""
LONGEST = 1 << 16
"""The characters of a formula at most. The compiler writes it itself, so that it may be longer than those of models."""
FORMULAS = "numbers, and formulas over the extents of the arguments, as x0_1 + 1"


def no_number_negative(extents: tuple[int | str, ...]) -> str | None:
    """A check of a field, for ``attr``: those of its values that are numbers are 0 or more."""
    return all_non_negative(tuple(e for e in extents if isinstance(e, int)))


def extent_of_x(axis: int) -> str:
    """The formula for the extent of an axis of argument 0."""
    return f"x0_{axis}"


def extent_of_formula(formula: int | str, arguments: Sequence[Type | Tensor]) -> Expr:
    """The extent that a number or a formula gives for arguments of these types, or for these tensors of a compute.
    Raises ``TypeInferenceError`` for what is no formula over their extents."""

    def dimension(name: str) -> Expr:
        found = re.fullmatch(r"x(\d+)_(\d+)", name)
        number, axis = map(int, found.groups()) if found else (len(arguments), 0)
        argument = arguments[number] if number < len(arguments) else None
        if not isinstance(argument, (TensorType, Tensor)) or axis >= argument.ndim:
            raise TypeInferenceError(f"the formula {formula!r} names {name}, which is no axis of an argument")
        return argument.shape[axis]

    if isinstance(formula, int):
        return as_index(formula)
    extent = parse_extent(formula, dimension, LONGEST)
    if extent is None:
        raise TypeInferenceError(f"{formula!r} is no formula for an extent")
    return extent


_DIMENSION = re.compile(r"\bx(\d+)_(\d+)")
"""A dimension in a formula, with the numbers of its argument and its axis."""


def told_arguments(attrs: object) -> frozenset[int]:
    """The numbers of the arguments that formulas among attributes are over. Those from 1 on are read for nothing
    else."""
    return frozenset(int(number) for text in _formulas(attrs) for number, _ in _DIMENSION.findall(text))


def stated_extents(attrs: object, types: Sequence[Type]) -> list[Expr]:
    """The extents that formulas among attributes stand for, where arguments have these types."""
    return [extent_of_formula(text, types) for text in _formulas(attrs)]


def _formulas(attrs: object) -> list[str]:
    values = (getattr(attrs, field.name) for field in fields(attrs)) if is_dataclass(attrs) else ()
    texts = (text for value in values for text in (value if isinstance(value, tuple) else (value,)))
    return [text for text in texts if isinstance(text, str) and _DIMENSION.search(text)]


def with_arguments(formula: str, place: Callable[[int], int]) -> str:
    """A formula over arguments that stand at other places; ``place`` gives the new number of one."""
    return re.sub(r"\bx(\d+)_", lambda found: f"x{place(int(found[1]))}_", formula)


def with_axes(formula: int | str, place: Callable[[int, int], int | None]) -> int | str | None:
    """A formula over arguments whose axes stand at other places; ``place`` gives the new one of an axis of an argument,
    or None. None if the formula is over one that has none."""
    if isinstance(formula, int):
        return formula
    places = {found[0]: place(int(found[1]), int(found[2])) for found in _DIMENSION.finditer(formula)}
    if None in places.values():
        return None
    return _DIMENSION.sub(lambda found: f"x{found[1]}_{places[found[0]]}", formula)


def element_of(x: Tensor, indices: Sequence[Operand]) -> Expr:
    """An element of a tensor. One of a tensor that has none is any value: where the result's extents are open, checks
    see to it that it has no element either."""
    if any(const_int(extent) == 0 for extent in x.shape):
        return const(0, x.dtype)
    return x[tuple(indices)]


def as_formulas(
    extents: Sequence[int | Expr], of: Iterable[Node], first: int = 1
) -> tuple[tuple[int | str, ...], tuple[Node, ...]]:
    """Extents as numbers and formulas, and the arguments that these are over, the first of which will be argument
    number ``first`` of a call. The dimensions are those that tensors among ``of`` have by themselves.

    Raises ``TypeInferenceError`` for a dimension that none of them has.
    """
    wanted = {v for e in extents if isinstance(e, Expr) for v in free_vars(e)}
    names: dict[Var, Expr] = {}
    used: list[Node] = []
    for node in of:
        shape = tensor_of(node).shape if isinstance(node.type, TensorType) else ()
        told = {e: axis for axis, e in enumerate(shape) if isinstance(e, Var) and e in wanted and e not in names}
        if told:
            names |= {e: index_var(f"x{first + len(used)}_{axis}") for e, axis in told.items()}
            used.append(node)
    if unknown := ", ".join(sorted(v.name for v in wanted - names.keys())):
        raise TypeInferenceError(f"no tensor tells the dimension {unknown}")
    return tuple(_formula(extent, names) for extent in extents), tuple(used)


def _formula(extent: int | Expr, names: dict[Var, Expr]) -> int | str:
    number = extent if isinstance(extent, int) else const_int(extent)
    return number if number is not None else str(substitute(as_index(extent), names))

"""Extents of a compiled model's values as plain data: what a library file holds, and an engine evaluates.

    extent ::= int | str | Formula(op, left, right)       a number, the name of a dimension, a formula over these

All count elements or bytes, and are exact; ``//`` and ``%`` round towards minus infinity.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from ..base.dataclass import dataclass
from ..base.errors import ModelError
from ..ir.expr import Binary, Const, Dimension, Expr, Unary, Var
from ..ir.makers import as_index, maximum, minimum

OPERATORS: dict[str, Callable[[int, int], int]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "//": operator.floordiv,
    "%": operator.mod,
    "min": min,
    "max": max,
}
"""What the operators of formulas compute."""
_EXPRESSIONS: dict[str, Callable[[Expr, Expr], Expr]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "//": operator.floordiv,
    "%": operator.mod,
    "min": minimum,
    "max": maximum,
}


@dataclass(frozen=True, slots=True)
class Formula:
    """``left op right``; ``str()`` writes it as in Python."""

    op: str
    left: Extent
    right: Extent

    def __post_init__(self) -> None:
        if self.op not in OPERATORS:
            raise ModelError(f"an extent is computed by {', '.join(OPERATORS)}, not by {self.op!r}")

    def __str__(self) -> str:
        if self.op in ("min", "max"):
            return f"{self.op}({self.left}, {self.right})"
        left, right = (
            f"({x})" if isinstance(x, Formula) and x.op not in ("min", "max") else str(x) for x in self.parts
        )
        return f"{left} {self.op} {right}"

    @property
    def parts(self) -> tuple[Extent, Extent]:
        """The two operands, left one first."""
        return self.left, self.right


Extent: TypeAlias = int | str | Formula


def extent_of(e: Expr, names: Mapping[Var, str]) -> Extent:
    """An index expression as plain data; ``names`` has the dimensions.

    Raises ``ModelError`` for a variable that has no name there, and for what is no arithmetic.
    """
    match e:
        case Const(value=int() as number):
            return int(number)
        case Binary("*", Dimension(unit=unit) as part, Const(value=factor)) if factor == unit:
            return _name_of(part, names)
        case Dimension(unit=unit) if unit > 1:
            return Formula("//", _name_of(e, names), unit)
        case Var():
            return _name_of(e, names)
        case Unary("-", a):
            return Formula("-", 0, extent_of(a, names))
        case Binary(op, a, b):
            return Formula(op, extent_of(a, names), extent_of(b, names))
        case _:
            raise ModelError(f"the extent {e} is not computed from dimensions alone")


def _name_of(dimension: Var, names: Mapping[Var, str]) -> str:
    if dimension not in names:
        raise ModelError(f"the dimension {dimension.name} is none of the inputs' dimensions, so that no run knows it")
    return names[dimension]


def at_most(extent: Extent, most: int) -> Formula:
    """A check, in what is not to be negative, that an extent is no larger than a number."""
    return Formula("-", 0, Formula("max", Formula("-", extent, most), 0))


def multiple_of(extent: Extent, unit: int) -> Formula:
    """A check, in what is not to be negative, that a number divides an extent."""
    return Formula("-", 0, Formula("%", extent, unit))


def expression_of(extent: Extent, dims: Mapping[str, Expr]) -> Expr:
    """The opposite of ``extent_of``: an index expression over what the names stand for."""
    match extent:
        case int():
            return as_index(extent)
        case str():
            return dims[extent]
        case Formula(op, left, right):
            return _EXPRESSIONS[op](expression_of(left, dims), expression_of(right, dims))


def with_dims(extent: Extent, dims: Mapping[str, Extent]) -> Extent:
    """The extent with others in place of dimensions."""
    match extent:
        case str():
            return dims[extent]
        case Formula(op, left, right):
            return Formula(op, with_dims(left, dims), with_dims(right, dims))
        case _:
            return extent


def evaluate(extent: Extent, dims: Mapping[str, int]) -> int:
    """The number that an extent is for these dimensions; ``ZeroDivisionError`` where it divides by 0."""
    match extent:
        case int():
            return extent
        case str():
            return dims[extent]
        case Formula(op, left, right):
            return OPERATORS[op](evaluate(left, dims), evaluate(right, dims))


def dimensions_in(extent: Extent) -> list[str]:
    """The dimensions of an extent, each once, in order."""
    match extent:
        case int():
            return []
        case str():
            return [extent]
        case Formula(left=left, right=right):
            return list(dict.fromkeys([*dimensions_in(left), *dimensions_in(right)]))


def demand(extent: Extent) -> str | None:
    """What an extent asks for by not being negative, in words: ``0 - a % b`` that b divides a,
    ``0 - max(a - b, b - a)`` that a and b are equal, the same with ``min(…, max(a - 1, 1 - a))`` that a may be 1, too,
    and ``0 - max(a - b, 0)`` that a is no more than b. None for any other extent."""
    match extent:
        case Formula("-", 0, Formula("%", whole, part)):
            return f"{whole} should be a multiple of {part}"
        case Formula("-", 0, Formula("max", Formula("-", a, b), Formula("-", c, d))) if (a, b) == (d, c):
            return f"{a} should be {b}"
        case Formula(
            "-", 0, Formula("min", Formula("max", Formula("-", a, b), Formula("-", c, d)), Formula("max"))
        ) if (
            a,
            b,
        ) == (d, c):
            return f"{a} should be 1 or {b}"
        case Formula("-", 0, Formula("max", Formula("-", a, int(most)), 0)):
            return f"{a} should be at most {most}"
        case _:
            return None


def extent_json(extent: Extent) -> Any:
    """Numbers and strings stand for themselves, a formula is a list of operator, left and right."""
    if isinstance(extent, Formula):
        return [extent.op, extent_json(extent.left), extent_json(extent.right)]
    return extent


def extent_from_json(data: Any) -> Extent:
    """The extent that ``extent_json`` wrote. Raises ``ModelError`` for anything else."""
    match data:
        case bool():
            raise ModelError(f"an extent is no {data}")
        case int() | str():
            return data
        case [str(op), left, right]:
            return Formula(op, extent_from_json(left), extent_from_json(right))
        case _:
            raise ModelError(f"{data!r} is no extent")

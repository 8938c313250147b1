"""Index expressions written as text, as exporters name dimensions: ``past + 1``, ``floor(h/2 - 1/2)``, ``Max(0, n)``.

    formula ::= number | name | formula op formula | -formula | f(formula, …)
    op      ::= + | - | * | / | // | %            / by a number above 0, // and % also of whole numbers by a formula
    f       ::= min | max | floor | ceil | ceiling | int, in upper or lower case

The grammar is Python's, whose parser reads it. Nothing is evaluated. Quotients by ``/`` are exact until they are
rounded; a formula that is a quotient in the end stands for a whole number, so that its division leaves no remainder.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable

from ..base.dataclass import dataclass
from .constants import const_int
from .expr import Expr
from .makers import as_index, maximum, minimum
from .simplify import simplify

MAX_LENGTH = 512
"""Longer texts of models are taken for names, as Python's parser recurses."""
MAX_NUMBER = 2**47


class _NotAFormulaError(Exception):
    """The text is none that the grammar has."""


def parse_extent(text: str, dimension: Callable[[str], Expr], longest: int = MAX_LENGTH) -> Expr | None:
    """The index expression that a text stands for, in normal form; ``dimension`` gives what its names stand for. None
    for what is not of the grammar, such as a name with dots in it, or is longer than ``longest`` characters."""
    if len(text) > longest:
        return None
    try:
        return simplify(_read(ast.parse(text.strip(), mode="eval").body, dimension).floor())
    except (SyntaxError, ValueError, RecursionError, MemoryError, _NotAFormulaError):
        return None


def names_of_formula(text: str) -> set[str] | None:
    """The names in a formula; None for what is none."""
    names: set[str] = set()

    def dimension(name: str) -> Expr:
        names.add(name)
        return as_index(1)

    return None if parse_extent(text, dimension) is None else names


@dataclass(frozen=True, slots=True, eq=False)
class _Ratio:
    """A whole number by another one above 0."""

    over: Expr
    under: int = 1

    def floor(self) -> Expr:
        return self.over if self.under == 1 else self.over // self.under

    def ceil(self) -> Expr:
        return self.over if self.under == 1 else (self.over + (self.under - 1)) // self.under

    def times(self, other: _Ratio) -> _Ratio:
        return _Ratio(self.over * other.over, self.under * other.under)


def _alike(a: _Ratio, b: _Ratio) -> tuple[Expr, Expr, int]:
    """Two quotients by the same number: what is divided of each, and by what."""
    under = math.lcm(a.under, b.under)
    return a.over * (under // a.under), b.over * (under // b.under), under


def _read(node: ast.expr, dimension: Callable[[str], Expr]) -> _Ratio:
    match node:
        case ast.Constant(value=int() as number) if not isinstance(number, bool) and number <= MAX_NUMBER:
            return _Ratio(as_index(number))
        case ast.Name(id=name):
            return _Ratio(dimension(name))
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return _Ratio(as_index(-1)).times(_read(operand, dimension))
        case ast.BinOp(
            left=left, op=ast.FloorDiv() | ast.Div() | ast.Mod() as op, right=ast.Constant(value=int() as by)
        ):
            return _by_number(_read(left, dimension), op, by)
        case ast.BinOp(left=left, op=op, right=right):
            return _of_two(op, _read(left, dimension), _read(right, dimension))
        case ast.Call(func=ast.Name(id=name), args=[first, *others], keywords=[]):
            return _rounded(name.lower(), _read(first, dimension), [_read(other, dimension) for other in others])
        case _:
            raise _NotAFormulaError


def _by_number(value: _Ratio, op: ast.operator, number: int) -> _Ratio:
    quotient = _Ratio(value.over, value.under * number)
    match op:
        case _ if not 0 < number <= MAX_NUMBER:
            raise _NotAFormulaError
        case ast.Div():
            return quotient
        case ast.FloorDiv():
            return _Ratio(quotient.floor())
        case _ if value.under == 1:
            return _Ratio(value.over % number)
        case _:
            raise _NotAFormulaError


def _of_two(op: ast.operator, left: _Ratio, right: _Ratio) -> _Ratio:
    a, b, under = _alike(left, right)
    match op:
        case ast.Add():
            return _Ratio(a + b, under)
        case ast.Sub():
            return _Ratio(a - b, under)
        case ast.Mult():
            return left.times(right)
        case ast.FloorDiv() | ast.Mod() if under == 1 and ((by := const_int(simplify(b))) is None or by > 0):
            return _Ratio(a // b if isinstance(op, ast.FloorDiv) else a % b)
        case _:
            raise _NotAFormulaError


def _rounded(name: str, value: _Ratio, others: list[_Ratio]) -> _Ratio:
    """What a function gives: quotients that are rounded, or the least or largest of two formulas."""
    match name, others:
        case (("floor" | "int"), []):
            return _Ratio(value.floor())
        case (("ceil" | "ceiling"), []):
            return _Ratio(value.ceil())
        case (("min" | "max"), [other]):
            a, b, under = _alike(value, other)
            return _Ratio(minimum(a, b) if name == "min" else maximum(a, b), under)
        case _:
            raise _NotAFormulaError

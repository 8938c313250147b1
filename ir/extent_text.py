"""Index expressions written as text, as exporters name dimensions: ``past + 1``, ``2*floor(h/2)``, ``Max(0, n - 1)``.

    formula ::= number | name | formula op formula | -formula | f(formula, …)
    op      ::= + | - | * | // | % | /            a quotient by / stands in floor() or ceil(), or leaves no remainder
    f       ::= min | max | floor | ceil | ceiling | int, in upper or lower case

The grammar is Python's, whose parser reads it. Nothing is evaluated.
"""

from __future__ import annotations

import ast
from collections.abc import Callable

from .expr import Expr
from .makers import as_index, maximum, minimum
from .simplify import simplify

MAX_LENGTH = 512
"""Longer texts are taken for names, as Python's parser recurses."""
MAX_NUMBER = 2**47


class _NotAFormulaError(Exception):
    """The text is none that the grammar has."""


def parse_extent(text: str, dimension: Callable[[str], Expr]) -> Expr | None:
    """The index expression that a text stands for, in normal form; ``dimension`` gives what its names stand for. None
    for what is not of the grammar, such as a name with dots in it."""
    if len(text) > MAX_LENGTH:
        return None
    try:
        return simplify(_read(ast.parse(text.strip(), mode="eval").body, dimension))
    except (SyntaxError, ValueError, RecursionError, MemoryError, _NotAFormulaError):
        return None


def names_of_formula(text: str) -> set[str] | None:
    """The names in a formula; None for what is none."""
    names: set[str] = set()

    def dimension(name: str) -> Expr:
        names.add(name)
        return as_index(1)

    return None if parse_extent(text, dimension) is None else names


def _read(node: ast.expr, dimension: Callable[[str], Expr]) -> Expr:
    def read(inner: ast.expr) -> Expr:
        return _read(inner, dimension)

    match node:
        case ast.Constant(value=int() as number) if not isinstance(number, bool) and number <= MAX_NUMBER:
            return as_index(number)
        case ast.Name(id=name):
            return dimension(name)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return as_index(0) - read(operand)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return read(left) + read(right)
        case ast.BinOp(left=left, op=ast.Sub(), right=right):
            return read(left) - read(right)
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            return read(left) * read(right)
        case ast.BinOp(left=left, op=op, right=ast.Constant(value=int() as number)) if number > 0:
            return _by_number(read(left), op, number)
        case ast.Call(func=ast.Name(id=name), args=[argument], keywords=[]):
            return _of_one(name.lower(), argument, dimension)
        case ast.Call(func=ast.Name(id=name), args=[first, second], keywords=[]) if name.lower() == "min":
            return minimum(read(first), read(second))
        case ast.Call(func=ast.Name(id=name), args=[first, second], keywords=[]) if name.lower() == "max":
            return maximum(read(first), read(second))
        case _:
            raise _NotAFormulaError


def _by_number(value: Expr, op: ast.operator, number: int) -> Expr:
    match op:
        case ast.FloorDiv() | ast.Div():
            return value // number
        case ast.Mod():
            return value % number
        case _:
            raise _NotAFormulaError


def _of_one(name: str, argument: ast.expr, dimension: Callable[[str], Expr]) -> Expr:
    """A quotient that is rounded; of other formulas, which are whole numbers, themselves."""
    match name, argument:
        case (("ceil" | "ceiling"), ast.BinOp(left=left, op=ast.Div(), right=ast.Constant(value=int() as number))) if (
            number > 0
        ):
            return (_read(left, dimension) + (number - 1)) // number
        case (("floor" | "int" | "ceil" | "ceiling"), _):
            return _read(argument, dimension)
        case _:
            raise _NotAFormulaError

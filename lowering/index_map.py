"""Index maps: where an element of a tensor is stored, as a function of its indices. ``transform_layout`` takes one.

A map is written as a Python lambda, and kept as that text, so that a step that holds one can be stored and replayed.

    map ::= lambda i, j, …: (expr, …)       expr: sums, differences, products, // and % of the parameters and integers
"""

from __future__ import annotations

import ast
import inspect
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from ..base.dtype import INDEX
from ..base.errors import ScheduleError
from ..ir.build import index_var
from ..ir.constants import ONE, ZERO, const, const_int
from ..ir.expr import Binary, BinaryOp, Const, Expr, Var
from ..ir.facts import Facts, prove
from ..ir.linear import linear_of
from ..ir.makers import as_index, maximum
from ..ir.printer import expr_text
from ..ir.relax import Limits
from ..ir.simplify import simplify
from ..ir.visit import substitute, walk

MAX_ENUMERATED = 1 << 16
"""Most elements for which it is tried out whether all get places of their own, where no proof is found."""

MAX_TEXT = 1000

_OPERATORS: dict[type[ast.operator], BinaryOp] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.FloorDiv: "//",
    ast.Mod: "%",
}


@dataclass(frozen=True, slots=True)
class IndexMap:
    """``results`` are expressions of the ``parameters``; two maps are equal if their texts are."""

    text: str
    parameters: tuple[Var, ...] = field(compare=False, repr=False)
    results: tuple[Expr, ...] = field(compare=False, repr=False)

    def __call__(self, indices: Sequence[Expr]) -> tuple[Expr, ...]:
        """The place of the element with these indices."""
        values = dict(zip(self.parameters, indices, strict=True))
        return tuple(substitute(result, values) for result in self.results)

    def shape(self, extents: Sequence[Expr], facts: Facts) -> tuple[Expr, ...] | None:
        """The smallest box from 0 that holds the places of all elements; None if none is found."""
        ranges = {p: (ZERO, simplify(e - ONE, facts)) for p, e in zip(self.parameters, extents, strict=True)}
        limits = Limits.of(ranges, facts)
        bounds = [limits.relax(result) for result in self.results]
        for var, extent in zip(self.parameters, extents, strict=True):
            facts = facts.with_range(var, ZERO, extent)
        if any(b is None for b in bounds) or not all(prove(r >= ZERO, facts) for r in self.results):
            return None
        return tuple(simplify(maximum(b[1] + ONE, ZERO), facts) for b in bounds if b is not None)

    def is_injective(self, extents: Sequence[Expr]) -> bool:
        """Whether different elements certainly get different places."""
        sizes = [const_int(extent) for extent in extents]
        return self._is_injective_by_digits(sizes) or self._is_injective_by_trial(sizes)

    def _is_injective_by_digits(self, sizes: Sequence[int | None]) -> bool:
        """A proof for maps that write down the digits of the indices, in any mixed radix and order.

        Each result must tell its digits, and those of all results must tell each index.
        """
        size_of = dict(zip(self.parameters, sizes, strict=True))
        digits: list[_Digit] = []
        for result in self.results:
            told = _digits_told_by(simplify(result), size_of)
            if told is None:
                return False
            digits += told
        return all(_tells(var, size, digits) for var, size in size_of.items())

    def _is_injective_by_trial(self, sizes: Sequence[int | None]) -> bool:
        numbers = [size for size in sizes if size is not None]
        count = math.prod(numbers)
        if len(numbers) < len(sizes) or count > MAX_ENUMERATED:
            return False
        grid = np.indices(numbers).reshape(len(numbers), count)
        values = dict(zip(self.parameters, grid, strict=True))
        places = np.stack([np.broadcast_to(_evaluate(r, values), count) for r in self.results])
        return count == 0 or len(np.unique(places, axis=1).T) == count


def index_map(source: str | Callable[..., Any], rank: int) -> IndexMap:
    """The map that a function, or the text of a lambda, gives for ``rank`` indices. Raises ``ScheduleError``."""
    parameters, results = _from_text(source) if isinstance(source, str) else _from_function(source)
    if len(parameters) != rank:
        raise ScheduleError(f"the tensor has {rank} dimensions, but the index map takes {len(parameters)} indices")
    if not results:
        raise ScheduleError("an index map gives at least one index")
    for result in results:
        _check_result(result, frozenset(parameters))
    texts = [expr_text(result) for result in results]
    text = f"lambda {', '.join(p.name for p in parameters)}: ({', '.join(texts)}{',' if len(texts) == 1 else ''})"
    if len(text) > MAX_TEXT:
        raise ScheduleError(f"an index map has at most {MAX_TEXT} characters")
    return IndexMap(text, parameters, results)


def _check_result(result: Expr, parameters: frozenset[Var]) -> None:
    for node in walk(result):
        match node:
            case Var() if node in parameters:
                pass
            case Const():
                pass
            case Binary("//" | "%", _, divisor) if (const_int(divisor) or 0) < 1:
                raise ScheduleError(f"an index map divides by positive integers only, found `{result}`")
            case Binary(op) if op in _OPERATORS.values():
                pass
            case _:
                raise ScheduleError(f"an index map is made of its indices, integers, + - * // and %, found `{result}`")


def _from_function(source: Callable[..., Any]) -> tuple[tuple[Var, ...], tuple[Expr, ...]]:
    if not callable(source):
        raise ScheduleError(f"an index map is a function of the indices, or its text, found {source!r}")
    try:
        parameters = inspect.signature(source).parameters.values()
    except ValueError:
        raise ScheduleError(f"an index map is a function of the indices, found {source!r}") from None
    if any(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD, p.KEYWORD_ONLY) for p in parameters):
        raise ScheduleError("an index map names each index: lambda i, j: (j, i)")
    variables = tuple(index_var(p.name) for p in parameters)
    made = source(*variables)
    return variables, tuple(as_index(r) for r in (made if isinstance(made, (tuple, list)) else (made,)))


def _from_text(source: str) -> tuple[tuple[Var, ...], tuple[Expr, ...]]:
    try:
        root = ast.parse(source[: MAX_TEXT + 1], mode="eval").body
    except (SyntaxError, ValueError):
        root = None
    if not isinstance(root, ast.Lambda):
        raise ScheduleError(f"an index map is written as a lambda, such as 'lambda i, j: (j, i)', found {source!r}")
    names = [a.arg for a in root.args.args]
    variables = {name: index_var(name) for name in names}
    results = root.body.elts if isinstance(root.body, ast.Tuple) else [root.body]
    return tuple(variables[name] for name in names), tuple(_expr(result, variables, source) for result in results)


def _expr(node: ast.expr, variables: dict[str, Var], source: str) -> Expr:
    match node:
        case ast.Name(name) if name in variables:
            return variables[name]
        case ast.Constant(int() as number) if not isinstance(number, bool):
            return const(number, INDEX)
        case ast.UnaryOp(ast.USub(), ast.Constant(int() as number)):
            return const(-number, INDEX)
        case ast.BinOp(left, operator, right) if type(operator) in _OPERATORS:
            return Binary(_OPERATORS[type(operator)], _expr(left, variables, source), _expr(right, variables, source))
        case _:
            raise ScheduleError(f"an index map is made of its indices, integers, + - * // and %, found {source!r}")


@dataclass(frozen=True, slots=True, eq=False)
class _Digit:
    """``(var // low) % (high // low)``; without a ``high``, ``var // low``."""

    var: Var
    low: int
    high: int | None

    def size(self, extent: int | None) -> int | None:
        """How many values it has, where its index is below ``extent``."""
        own = None if self.high is None else self.high // self.low
        whole = None if extent is None else -(-extent // self.low)
        return min((s for s in (own, whole) if s is not None), default=None)


def _digits_told_by(result: Expr, size_of: dict[Var, int | None]) -> list[_Digit] | None:
    """The digits that the value of a sum tells: each weighs more than all of less weight together can."""
    told: list[_Digit] = []
    below: int | None = 0
    for term in sorted(linear_of(result).terms.values(), key=lambda t: t.coefficient):
        digit = _as_digit(term.factors[0]) if len(term.factors) == 1 else None
        if digit is None or below is None or term.coefficient <= below:
            return None
        size = digit.size(size_of[digit.var])
        below = None if size is None else below + term.coefficient * max(size - 1, 0)
        told.append(digit)
    return told


def _as_digit(factor: Expr) -> _Digit | None:
    match factor:
        case Var():
            return _Digit(factor, 1, None)
        case Binary("//" | "%" as op, inner, Const(value=int() as c)) if c > 0:
            digit = _as_digit(inner)
            if digit is None:
                return None
            cut = digit.low * c
            if digit.high is not None and digit.high % cut:
                return None
            return _Digit(digit.var, cut, digit.high) if op == "//" else _Digit(digit.var, digit.low, cut)
        case _:
            return None


def _tells(var: Var, size: int | None, digits: Sequence[_Digit]) -> bool:
    """Whether the digits together tell the index, from the lowest on without a gap."""
    known = 1
    for digit in sorted((d for d in digits if d.var is var), key=lambda d: d.low):
        if digit.low > known:
            break
        if digit.high is None:
            return True
        known = max(known, digit.high)
    return size is not None and size <= known


def _evaluate(e: Expr, values: dict[Var, npt.NDArray[Any]]) -> Any:
    match e:
        case Var():
            return values[e]
        case Const(value=number):
            return number
        case Binary(op, a, b):
            x, y = _evaluate(a, values), _evaluate(b, values)
            return {"+": np.add, "-": np.subtract, "*": np.multiply, "//": np.floor_divide, "%": np.mod}[op](x, y)
    raise AssertionError(f"{e} in an index map")

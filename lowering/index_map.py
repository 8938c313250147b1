"""Index maps: where an element of a tensor is stored, as a function of its indices. ``transform_layout`` takes one.

A map is written as a Python lambda, and kept as that text, so that a step that holds one can be stored and replayed.

    map ::= lambda i, j, …: (expr, …)       expr: sums, differences, products, // and % of the parameters and integers
"""

from __future__ import annotations

import ast
import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from functools import reduce
from itertools import pairwise, zip_longest
from operator import mul
from typing import Any

import numpy as np
import numpy.typing as npt

from ..base.dataclass import dataclass
from ..base.dtype import INDEX
from ..base.errors import ScheduleError
from ..ir.build import index_var
from ..ir.constants import ONE, ZERO, const, const_int
from ..ir.contents import substitute
from ..ir.expr import Binary, BinaryOp, Const, Expr, Var
from ..ir.facts import Facts, prove
from ..ir.linear import linear_of
from ..ir.makers import as_index, maximum
from ..ir.printer import expr_text
from ..ir.relax import Limits
from ..ir.simplify import simplify
from ..ir.visit import walk

MAX_ENUMERATED = 1 << 16
"""Most elements for which it is tried out whether all get positions of their own, where no proof is found."""

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
        """The position of the element with these indices."""
        values = dict(zip(self.parameters, indices, strict=True))
        return tuple(substitute(result, values) for result in self.results)

    def shape(self, extents: Sequence[Expr], facts: Facts) -> tuple[Expr, ...] | None:
        """The smallest box from 0 that holds the positions of all elements; None if none is found."""
        if any(const_int(extent) == 0 for extent in extents):
            return (ZERO,) * len(self.results)
        ranges = {p: (ZERO, simplify(e - ONE, facts)) for p, e in zip(self.parameters, extents, strict=True)}
        limits = Limits.of(ranges, facts)
        bounds = [limits.relax(result) for result in self.results]
        of_elements = facts  # there may be none, of which these know nothing
        for var, extent in zip(self.parameters, extents, strict=True):
            of_elements = of_elements.with_range(var, ZERO, extent)
        if any(b is None for b in bounds) or not all(prove(r >= ZERO, of_elements) for r in self.results):
            return None
        return tuple(simplify(maximum(b[1] + ONE, ZERO), facts) for b in bounds if b is not None)

    @property
    def adds_constants(self) -> bool:
        """Whether a constant is part of a sum, as in ``(i + 4) // 16``: then there are positions before the first."""
        sums = (node for result in self.results for node in walk(result) if isinstance(node, Binary))
        return any(linear_of(node).constant != 0 for node in sums if node.op in ("+", "-"))

    def is_injective(self, extents: Sequence[Expr]) -> bool:
        """Whether different elements certainly get different positions."""
        by_digits = self.inverse([ZERO] * len(self.results), extents) is not None
        return by_digits or self._is_injective_by_trial([const_int(extent) for extent in extents])

    def is_onto(self, extents: Sequence[Expr], shape: Sequence[Expr]) -> bool:
        """Whether an injective map of elements of these extents leaves no position of a box of that shape empty."""
        return simplify(_count(extents)) is simplify(_count(shape))

    def inverse(self, positions: Sequence[Expr], extents: Sequence[Expr], dense: bool = False) -> Inverse | None:
        """The element that is at a position; None if that is not found, so that the map may not be injective.

        They are of maps that write down the digits of the indices, in any mixed radix and order, or digits of sums of
        such digits, as ``(i * 10 + j) // 4`` and ``(i * 10 + j) % 4``. Each result must tell its digits, and those of
        all results must tell each index. Of a map that is ``dense``, a position that no element has gives indices
        beyond the extents, or, where a constant is added, as in ``i + 4``, negative ones; one that is not dense, as
        ``i * 2``, has no such inverse.
        """
        sizes: dict[Expr, int | None] = {p: const_int(e) for p, e in zip(self.parameters, extents, strict=True)}
        limits = Limits.of({p: (ZERO, simplify(e - ONE)) for p, e in zip(self.parameters, extents, strict=True)})
        found: dict[Expr, Expr] = {}
        numbers: dict[Var, Expr] = {}
        digits: dict[Expr, dict[_Digit, Expr]] = {}
        told = list(zip(self.results, positions, strict=True))
        while told:
            for result, position in told:
                for digit, value in _digits_told_by(result, position, sizes, limits, dense):
                    digits.setdefault(digit.of, {})[digit] = value
                    if dense and digit.of in found:
                        return None  # told twice: some positions contradict themselves
            told = []
            for whole in [each for each in digits if each not in found]:
                joined = _joined(digits[whole], sizes[whole], dense)
                if joined is not None:
                    found[whole] = joined
                    if not isinstance(whole, Var):
                        number = index_var("number")
                        numbers[number] = joined
                        told.append((whole, number))
        indices = [found.get(p, ZERO if sizes[p] == 1 else None) for p in self.parameters]
        known = [index for index in indices if index is not None]
        return Inverse(tuple(known), numbers) if len(known) == len(indices) else None

    def _is_injective_by_trial(self, sizes: Sequence[int | None]) -> bool:
        numbers = [size for size in sizes if size is not None]
        count = math.prod(numbers)
        if len(numbers) < len(sizes) or count > MAX_ENUMERATED:
            return False
        grid = np.indices(numbers).reshape(len(numbers), count)
        values = dict(zip(self.parameters, grid, strict=True))
        positions = np.stack([np.broadcast_to(_evaluate(r, values), count) for r in self.results])
        return count == 0 or len(np.unique(positions, axis=1).T) == count


@dataclass(frozen=True, slots=True, eq=False)
class Inverse:
    """The ``indices`` of an element, by its position, and by ``numbers``, variables that stand for sums of indices
    whose digits the position has: what indices are made of is best simplified before the digits of these are put in."""

    indices: tuple[Expr, ...]
    numbers: Mapping[Var, Expr]


def index_map(source: str | Callable[..., Any], rank: int) -> IndexMap:
    """The map that a function, or the text of a lambda, gives for ``rank`` indices. Raises ``ScheduleError``."""
    parameters, results = _from_text(source) if isinstance(source, str) else _from_function(source, rank)
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


def _from_function(source: Callable[..., Any], rank: int) -> tuple[tuple[Var, ...], tuple[Expr, ...]]:
    """Parameters and results of a function; ``*o`` takes the indices that are left."""
    if not callable(source):
        raise ScheduleError(f"an index map is a function of the indices, or its text, found {source!r}")
    try:
        parameters = inspect.signature(source).parameters.values()
    except ValueError:
        raise ScheduleError(f"an index map is a function of the indices, found {source!r}") from None
    if any(p.kind in (p.VAR_KEYWORD, p.KEYWORD_ONLY) for p in parameters):
        raise ScheduleError("an index map takes its indices by position: lambda i, j: (j, i)")
    rest = range(rank - len(parameters) + 1)
    names = [[f"{p.name}{k}" for k in rest] if p.kind == p.VAR_POSITIONAL else [p.name] for p in parameters]
    variables = tuple(index_var(name) for several in names for name in several)
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
    """``(of // low) % (high // low)`` of an index, or of a sum; without a ``high``, ``of // low``."""

    of: Expr
    low: int
    high: int | None

    def size(self, extent: int | None) -> int | None:
        """How many values it has, where what it is of is below ``extent``."""
        own = None if self.high is None else self.high // self.low
        whole = None if extent is None else -(-extent // self.low)
        return min((s for s in (own, whole) if s is not None), default=None)


def _digits_told_by(
    result: Expr, value: Expr, sizes: dict[Expr, int | None], limits: Limits, dense: bool
) -> list[tuple[_Digit, Expr]]:
    """The digits that the value of a sum tells, with theirs: each weighs more than all of less weight together can.

    None are told by what is no such sum. ``sizes`` grows by those of sums that digits are of.
    """
    form = linear_of(result)
    parts: list[tuple[int, _Digit, int | None]] = []
    for term in form.terms.values():
        digit = _as_digit(term.factors[0]) if len(term.factors) == 1 else None
        if digit is None:
            return []
        if digit.of not in sizes:
            ends = limits.relax(digit.of)
            if ends is None or not prove(ends[0] >= ZERO, limits.facts):
                return []
            sizes[digit.of] = const_int(simplify(ends[1] + ONE))
        parts.append((term.coefficient, digit, digit.size(sizes[digit.of])))
    parts.sort(key=lambda part: (part[0], part[2] != 1))  # what is always 0 may weigh as much as another
    weights = [weight for weight, _, _ in parts]
    if dense and (weights[:1] != [1] or any(b % a for a, b in pairwise(weights) if a > 0)):
        return []
    if dense and form.constant and any(digit.low != 1 or digit.high is not None for _, digit, _ in parts):
        return []  # a negative digit would be one of another element
    rest = value if form.constant == 0 else value - form.constant
    told: list[tuple[_Digit, Expr]] = []
    below: int | None = 0
    for (weight, digit, size), above in zip_longest(parts, parts[1:]):
        if below is None or weight <= below:
            return []
        below = None if size is None else below + weight * max(size - 1, 0)
        own = rest if above is None else rest % above[0]
        told.append((digit, own if weight == 1 else own // weight))
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
            return _Digit(digit.of, cut, digit.high) if op == "//" else _Digit(digit.of, digit.low, cut)
        case Binary("+" | "-" | "*"):
            return _Digit(factor, 1, None)
        case _:
            return None


def _joined(digits: Mapping[_Digit, Expr], size: int | None, dense: bool) -> Expr | None:
    """What has these digits, and is below ``size``; None if they leave a gap. They may overlap, unless ``dense``."""
    whole: Expr = ZERO
    known = 1
    for digit in sorted(digits, key=lambda d: d.low):
        if dense and digit.low != known:
            return None
        if not dense and (known % digit.low or (size is not None and size <= known)):
            break
        if digit.high is None or digit.high > known:
            new = digits[digit] if digit.low == known else digits[digit] // (known // digit.low)
            whole = new if known == 1 else whole + new * known
            if digit.high is None:
                return whole
            known = digit.high
    return whole if size is not None and size <= known else None


def _count(extents: Sequence[Expr]) -> Expr:
    return reduce(mul, extents, ONE)


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

"""What operators ask of symbolic dimensions: found by trying their type relations, which know, on numbers.

A relation takes a symbolic extent for whatever it is compared with. Here each call is tried on large numbers, another
one for each dimension: where it does not hold for them, a dimension is a certain number, which is put in wherever it
stands; or the model needs its shapes. Small numbers tell how much a dimension is at least, as that of a window's input.
"""

from __future__ import annotations

import itertools
import math
from bisect import bisect
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from types import MappingProxyType

from ...artifact.model import Least
from ...base.errors import ExpressionError, ModelError, TypeInferenceError
from ...graph.node import Call, Function, Var
from ...graph.types import TensorType, TupleType, Type, tensor_type
from ...graph.visit import post_order
from ...ir.constants import const_int
from ...ir.makers import as_index
from ...ir.simplify import simplify
from ...ir.visit import substitute
from ...ops.definition.registry import op_of
from ..symbols import Symbol, extents_of, symbols_of
from .specialize import with_params

LARGE = 100003
"""From here on are the extents to try: larger than any window."""

BATCH_SIZE = "the batch that it was compiled for"
"""Why a dimension is a certain number that no operator asks for."""

Values = Mapping[Symbol, int]


def settle_dimensions(function: Function) -> Function:
    """The function with numbers for those symbolic dimensions that its operators allow one number only.

    Raises ``ModelError`` where an operator asks more of its dimensions than that.
    """
    while (found := _determined(function)) is not None:
        function = _with_numbers(function, found)
    return function


def least_extents(function: Function, names: Mapping[Symbol, str]) -> tuple[Least, ...]:
    """How much the dimensions must be, where that is more than 0, and which call asks for it; the size of the batch, if
    there is only one."""
    least: dict[Symbol, Least] = {}
    for call in _calls(function):
        symbols = _symbols(call)
        for symbol in symbols:
            number = _least(call, symbols, symbol)
            if number > (least[symbol].number if symbol in least else 0):
                least[symbol] = Least(names[symbol], number, _text(call))
    if function.batch_size is not None:
        for symbol in (s for s in function.batch if s in names):
            least[symbol] = Least(names[symbol], function.batch_size, BATCH_SIZE, exactly=True)
    return tuple(least.values())


def _calls(function: Function) -> Iterator[Call]:
    return (node for node in post_order(function.body) if isinstance(node, Call))


def _symbols(call: Call) -> tuple[Symbol, ...]:
    return symbols_of([*(a.type for a in call.args), call.type])


def _determined(function: Function) -> dict[Symbol, int] | None:
    """The numbers that the first call which does not hold for all dimensions asks for."""
    for call in _calls(function):
        symbols = _symbols(call)
        if symbols and (problem := _problem(call, symbols)) is not None:
            return _solution(call, symbols, problem)
    return None


@cache
def _primes(count: int) -> tuple[int, ...]:
    """The first primes that are large enough: no two extents have a factor in common."""
    numbers = (n for n in itertools.count(LARGE, 2) if all(n % d for d in range(3, math.isqrt(n) + 1, 2)))
    return tuple(itertools.islice(numbers, count))


def _large(symbols: Sequence[Symbol], factor: int = 1) -> dict[Symbol, int]:
    return {symbol: factor * prime for symbol, prime in zip(symbols, _primes(len(symbols)), strict=True)}


def _solution(call: Call, symbols: Sequence[Symbol], problem: str) -> dict[Symbol, int]:
    """Numbers for one or two dimensions, out of the extents of the arguments, that the call holds for."""
    extents = extents_of(a.type for a in call.args)
    known = dict.fromkeys(number for e in extents if (number := const_int(e)) is not None)
    candidates = sorted(known, key=lambda number: number == 1)  # what broadcasts with 3 may be 1, but is rather 3
    for count in (1, 2):
        for chosen in itertools.combinations(symbols, count):
            for numbers in itertools.product(candidates, repeat=count):
                solution = dict(zip(chosen, numbers, strict=True))
                if _problem(call, symbols, solution) is None:
                    return solution
    dims = ", ".join(dict.fromkeys(symbol.name for symbol in symbols))
    at = f" (node {', '.join(call.origin)})" if call.origin else ""
    raise ModelError(
        f"{_text(call)}{at} does not hold for all values of {dims}: {problem}. Give the shapes of the inputs by shapes="
    )


def _problem(call: Call, symbols: Sequence[Symbol], known: Values = MappingProxyType({})) -> str | None:
    """Why a call does not hold for all values of the dimensions that are not known; None if it does.

    Odd numbers are tried, then even ones: an extent that has to be divisible by something should not be so by chance.
    """
    return _problem_at(call, {**_large(symbols), **known}) or _problem_at(call, {**_large(symbols, 2), **known})


def _problem_at(call: Call, values: Values) -> str | None:
    """Why a call does not hold where dimensions have these values, or holds with another type; None if it holds."""
    try:
        result = op_of(call).infer([_at(a.type, values) for a in call.args], call.attrs)
        expected = _at(call.type, values)
    except (TypeInferenceError, ExpressionError) as error:
        return str(error)
    return None if result is expected else f"its result would be a {result}, not a {expected}"


def _at(kind: Type, values: Values) -> Type:
    match kind:
        case TensorType(shape, dtype):
            numbers = {symbol: as_index(value) for symbol, value in values.items()}
            return tensor_type([simplify(substitute(extent, numbers)) for extent in shape], dtype)
        case TupleType(fields):
            return TupleType(tuple(_at(field, values) for field in fields))
        case _:
            return kind


def _least(call: Call, symbols: Sequence[Symbol], symbol: Symbol) -> int:
    """The smallest value of a dimension that the call holds for, if it holds for all larger ones."""
    large = _large(symbols)

    def holds(number: int) -> bool:
        return _problem_at(call, {**large, symbol: number}) is None

    return 0 if holds(0) else bisect(range(large[symbol]), False, key=holds)


def _text(call: Call) -> str:
    return f"{call.op.name}({', '.join(str(a.type) for a in call.args)})"


def _with_numbers(function: Function, values: Values) -> Function:
    changed = (p for p in function.params if any(symbol in values for symbol in symbols_of([p.type])))
    return with_params(function, {p: Var(p.name, _at(p.type, values)) for p in changed})

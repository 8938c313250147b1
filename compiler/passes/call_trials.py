"""Whether calls hold where their symbolic dimensions are certain numbers: their type relations are tried on these."""

from __future__ import annotations

from collections.abc import Sequence
from types import MappingProxyType

from ...base.dataclass import dataclass
from ...base.errors import ExpressionError, IndexRangeError, TypeInferenceError
from ...graph.node import Call
from ...graph.types import NegativeExtentError
from ...graph.visit import bodies_of
from ...ir.constants import const_int
from ...ir.expr import Binary, Expr
from ...ir.visit import walk
from ...ops.definition.registry import op_of
from ...ops.definition.relations import AssumptionFails, ExtentExceeds, ExtentsDiffer, ExtentUndecided
from ..symbols import Numbers, Symbol, extent_at, extents_of, symbols_of, with_numbers
from .trial_extents import LARGE, SMALLER, large, one_large, smaller


def symbols_of_call(call: Call) -> tuple[Symbol, ...]:
    """Find the symbolic dimensions in the types of a call and of its arguments."""
    return symbols_of([*(a.type for a in call.args), call.type])


def value_at(extent: Expr, values: Numbers) -> Expr | None:
    """An extent where dimensions have these values; None where it is more than an index can be."""
    try:
        return extent_at(extent, values)
    except IndexRangeError:
        return None


@dataclass(frozen=True, slots=True, eq=False)
class Problem:
    """Why a call does not hold where dimensions have these values: in words, and the two numbers that should be one, if
    that is it."""

    text: str
    values: Numbers
    differing: tuple[Expr, Expr] | None = None
    negative: bool = False
    """Whether an extent is below 0 for these values."""


def problem_of(call: Call, symbols: Sequence[Symbol], known: Numbers = MappingProxyType({})) -> Problem | None:
    """Why a call does not hold for all values of the dimensions that are not known; None if it does.

    Odd numbers are tried, then even ones: an extent that has to be divisible by something should not be so by chance.
    Then the other one of two is larger: ``min(n, m)`` should not be n by chance. Smaller ones are tried where a
    dimension divides, unless there are no elements for them: ``(n + 15) // 16 * 1024 // n`` is 64 for all large ones.
    Where an extent is below 0, as that of ``x[n * m :]`` may be, each run checks that, and one large number among small
    ones is tried.
    """
    trials = [large(symbols), large(symbols, 2), *([large(symbols[::-1])] if len(symbols) > 1 else ())]
    extents = [*extents_of(a.type for a in call.args)]
    if any(map(_has_open_divisor, extents)):
        small = smaller(trials[0], SMALLER[-1])
        trials += [small] if all(map(_is_positive, (value_at(e, small) for e in extents))) else []
    for values in trials:
        found = problem_at(call, {**values, **known})
        others = (one_large(symbols, symbol) for symbol in symbols)
        while found is not None and found.negative and (other := next(others, None)) is not None:
            found = problem_at(call, {**other, **known})
        if found is not None:
            return found
    return None


def _is_positive(extent: Expr | None) -> bool:
    number = None if extent is None else const_int(extent)
    return number is not None and number > 0


def _has_open_divisor(extent: Expr) -> bool:
    """Whether an extent is a quotient of something by a dimension, or is computed from one."""
    return any(isinstance(e, Binary) and e.op in ("//", "%") and const_int(e.b) is None for e in walk(extent))


def problem_at(call: Call, values: Numbers) -> Problem | None:
    """Why a call does not hold where dimensions have these values, or holds with another type; None if it holds. Where
    products of the values are more than an index can be, it is tried for smaller ones."""
    for least in (LARGE, *SMALLER):
        try:
            return _problem_for(call, values if least == LARGE else smaller(values, least))
        except IndexRangeError:
            continue
    return None


def _problem_for(call: Call, values: Numbers) -> Problem | None:
    """The same for these values alone. Raises ``IndexRangeError`` where a product of them is too large."""
    try:
        result = op_of(call).infer([with_numbers(a.type, values) for a in call.args], call.attrs)
        expected = with_numbers(call.type, values)
    except AssumptionFails as error:
        if bodies_of(call):  # each run checks it, where the body is run
            return None
        return Problem(str(error), values, (error.left, error.right))
    except ExtentsDiffer as error:
        return Problem(str(error), values, (error.left, error.right))
    except IndexRangeError:
        raise
    except ExtentExceeds:
        return None  # each run checks it, as the operator's extent rule says
    except ExtentUndecided as error:
        decided = all(const_int(extent) is not None for extent in extents_of([with_numbers(call.type, values)]))
        return None if decided else Problem(str(error), values)
    except NegativeExtentError as error:
        return Problem(str(error), values, negative=True)
    except (TypeInferenceError, ExpressionError) as error:
        return Problem(str(error), values)
    return None if result is expected else Problem(f"its result would be a {result}, not a {expected}", values)

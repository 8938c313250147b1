"""What operators ask of symbolic dimensions: found by trying their type relations, which know, on numbers.

A relation takes a symbolic extent for whatever it is compared with. Here each call is tried on large numbers, another
one for each dimension. Where it does not hold for them, two extents have to be equal: a dimension is put in for another
one, or a number, wherever it stands; and where none stands by itself, as in ``(n + 1) // 2`` and ``m * 2``, each run is
to check it. Else a dimension is a certain number, or the model needs its shapes. Small numbers tell how much a
dimension is at least, as that of a window's input.
"""

from __future__ import annotations

import itertools
import math
from bisect import bisect
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from typing import TypeAlias

from ...artifact.block import Least
from ...base.dtype import INDEX
from ...base.errors import ExpressionError, ModelError, TypeInferenceError
from ...base.quantities import bounds_text
from ...graph.node import Call, Function, Node, Var
from ...graph.visit import bodies_of, nested_order, post_order
from ...ir.constants import ONE, const_int
from ...ir.contents import free_vars
from ...ir.expr import Dimension, Expr
from ...ir.factors import product_of, quotient
from ...ir.makers import as_index
from ...ops.definition.extent_formulas import stated_extents
from ...ops.definition.registry import op_of
from ...ops.definition.relations import ExtentsDiffer
from ...ops.definition.retyping import Inferences, with_params
from ...ops.families.assume_extent import ASSUME_EXTENT
from ..symbols import Numbers, Symbol, extents_of, renamed, symbols_of, with_numbers
from .assumptions import (
    call_text,
    is_in_branch,
    with_assumption,
    with_assumption_at_branch,
    without_trivial_assumptions,
)
from .call_trials import Problem, problem_at, problem_of, symbols_of_call, value_at
from .repeated_inputs import repeated_inputs
from .trial_extents import apart, each_small, large, primes, turned

BATCH_SIZE = "the batch that it was compiled for"
"""Why a dimension is a certain number that no operator asks for."""


def settle_dimensions(function: Function, is_body: bool = False) -> Function:
    """The function with those symbolic dimensions made equal, or numbers, that its operators allow no others. A body is
    given whatever the function around it has, so that its dimensions stay, and each run checks what is asked of them.

    Raises ``ModelError`` where an operator asks more of its dimensions than that.
    """
    holding: set[_Question] = set()
    types: Inferences = {}
    while (changed := _changed(function, is_body, holding, types)) is not None:
        function = changed
    return without_trivial_assumptions(function)


def least_extents(function: Function, names: Mapping[Symbol, str]) -> tuple[Least, ...]:
    """How much the dimensions must be, where that is more than 0, and which call asks for it; the size of the batch, if
    there is only one. What the bodies of calls ask for is left out: it is checked where a body is run."""
    least: dict[Symbol, Least] = {}
    for call in {_question(call): call for call in reversed([*_own_calls(function)])}.values():
        if call.op is ASSUME_EXTENT or bodies_of(call):
            continue
        symbols = symbols_of_call(call)
        for symbol in symbols:
            unit = symbol.unit if isinstance(symbol, Dimension) else 1
            known = least[symbol].number // unit if symbol in least else 0
            if (number := _least(call, symbols, symbol, known)) > known:
                least[symbol] = Least(names[symbol], number * unit, call_text(call))
    if function.batch_size is not None:
        for symbol in (s for s in function.batch if s in names):
            least[symbol] = Least(names[symbol], function.batch_size, BATCH_SIZE, exactly=True)
    return tuple(least.values())


def _calls(function: Function) -> Iterator[Call]:
    """The calls of a function whose types follow from those of their arguments, each for all values of dimensions;
    before each call those of its bodies."""
    return _typed_calls(nested_order(function.body))


def _own_calls(function: Function) -> Iterator[Call]:
    """The same without those of bodies."""
    return _typed_calls(post_order(function.body))


def _typed_calls(nodes: Iterable[Node]) -> Iterator[Call]:
    return (node for node in nodes if isinstance(node, Call) and op_of(node).birth_rule is None)


_Question: TypeAlias = tuple[object, ...]
"""What decides whether a call holds: the operator, its attributes, and the types, which are interned."""


def _question(call: Call) -> _Question:
    return (call.op, call.attrs, call.type, *(a.type for a in call.args))


def _changed(function: Function, is_body: bool, holding: set[_Question], types: Inferences) -> Function | None:
    """The function changed so that the first call holds that does not for all dimensions; None if all of them do. Those
    that do are added to ``holding``, and assumptions that are left to runs, so that calls which a change leaves as they
    are are not asked again."""
    given = frozenset(() if is_body else symbols_of(p.type for p in function.params))
    for call in _calls(function):
        question = _question(call)
        if question in holding:
            continue
        symbols = symbols_of_call(call)
        problem = problem_of(call, symbols) if symbols else None
        if call.op is not ASSUME_EXTENT and (single := _stretched(call, symbols)) is not None:
            return with_assumption(function, call, single, ONE, types)
        if problem is None:
            holding.add(question)
            continue
        if (change := _equated(function, given, call, problem, types)) is not None:
            return change
        if call.op is ASSUME_EXTENT:
            if not is_in_branch(function, call):  # one in a branch may be equated where it stands outside of one, too
                holding.add(question)
        else:
            return _solved(function, given, call, _solution(call, symbols, problem.text), types)
    return None


def _solved(
    function: Function, given: Set[Symbol], call: Call, solution: Mapping[Expr, Expr], types: Inferences
) -> Function:
    """The function with numbers in place of dimensions of a call. What a run computes, and what only a branch asks for,
    is assumed to be the number."""
    known = {symbol: number for symbol, number in solution.items() if symbol in given}
    if known and is_in_branch(function, call):
        symbol, number = next(iter(known.items()))
        return _assumed(function, call, symbol, number, types)
    if known:
        _check_within(call, known)
        return _with_dimensions(function, known, types)
    for symbol, number in solution.items():
        function = with_assumption(function, call, symbol, number, types)
    return function


def _check_within(call: Call, solution: Mapping[Expr, Expr]) -> None:
    """Raise ``ModelError`` for a number that is outside of the bounds of its dimension."""
    for symbol, value in solution.items():
        number = const_int(value)
        if not isinstance(symbol, Dimension) or number is None:
            continue
        unit, high = symbol.unit, symbol.high
        if number < symbol.low or (high is not None and number > high):
            bounds = bounds_text(symbol.low * unit, None if high is None else high * unit, unit)
            raise ModelError(
                f"{call_text(call)} holds where {symbol.declared} is {number * unit} only, which is not within its "
                f"bounds: {bounds}"
            )


def _assumed(function: Function, call: Call, assumed: Expr, stated: Expr, types: Inferences) -> Function:
    """The function with an extent stated in another way where the branch begins that a call stands in; at the call
    where that is not so."""
    at_branch = with_assumption_at_branch(function, call, assumed, stated)
    return with_assumption(function, call, assumed, stated, types) if at_branch is None else at_branch


def _equated(
    function: Function, given: Set[Symbol], call: Call, problem: Problem, types: Inferences
) -> Function | None:
    """The function with two extents of a call equal which its relation says must be; None where it says of none, and
    for what is an assumption already."""
    in_branch = is_in_branch(function, call)
    if problem.differing is None or (in_branch and call.op is ASSUME_EXTENT):
        return None
    left, right = _equal_where_it_holds(call, *_differing(call, problem.differing, problem.values))
    pairs = [(l, r) for l in left for r in right]
    pairs += [_without_common_factors(l, r, given) for l, r in pairs]
    for symbol, other in ((s, o) for l, r in pairs for s, o in ((r, l), (l, r))):
        if not isinstance(symbol, Symbol) or symbol not in given:
            continue
        if symbol not in (inner := set(free_vars(other))) and inner <= given:
            if in_branch:
                return _assumed(function, call, symbol, other, types)
            if not isinstance(symbol, Dimension):
                return _made_equal(function, symbol, other, {symbol: other}, types)
            if (both := _within_both(symbol, other)) is not None:
                return _made_equal(function, symbol, other, both, types)
    if not left or not right or call.op is ASSUME_EXTENT:
        return None
    stated, assumed = left[0], right[0]
    own = dict.fromkeys(extents_of(a.type for a in call.args))
    plain = assumed in given and not isinstance(stated, Symbol)  # it may be said of other axes, too
    if const_int(assumed) is not None or (stated in own and (plain or assumed not in own)):
        stated, assumed = assumed, stated
    return with_assumption(function, call, assumed, stated, types)


def _without_common_factors(a: Expr, b: Expr, given: Set[Symbol]) -> tuple[Expr, Expr]:
    """Two extents divided by the given dimensions that both are multiples of, and by their numbers: what ``b * q * 64``
    and ``b * 64`` are for any batch but an empty one."""
    (number, factors), (divisor, others) = product_of([a]), product_of([b])
    common = [*(Counter(f for f in factors if f in given) & Counter(others)).elements()]
    if 0 in (number, divisor):
        return a, b
    by = [*common, as_index(math.gcd(number, divisor))]
    left, right = quotient([a], by), quotient([b], by)
    return (a, b) if left is None or right is None else (left, right)


def _made_equal(
    function: Function, symbol: Symbol, other: Expr, found: Mapping[Expr, Expr], types: Inferences
) -> Function:
    """The function with two extents equal as ``found`` says, which knows what inputs may have 1 in place of them."""
    repeated = repeated_inputs(function, symbol, other)
    if isinstance(other, Symbol):
        repeated |= repeated_inputs(function, other, symbol)
    return replace(_with_dimensions(function, found, types), repeated=function.repeated | repeated)


def _within_both(symbol: Dimension, other: Expr) -> dict[Expr, Expr] | None:
    """What is put in for a dimension with bounds, and for another dimension that it has to be, so that it keeps to the
    bounds of both. None for one that is a part of a dimension, or has to be a formula: each run checks that."""
    if symbol.unit > 1 or not isinstance(other, Symbol) or (isinstance(other, Dimension) and other.unit > 1):
        return None
    if not isinstance(other, Dimension):
        return {other: symbol}
    high = min((high for high in (symbol.high, other.high) if high is not None), default=None)
    low = max(symbol.low, other.low)
    if high is not None and high < low:
        raise ModelError(
            f"{symbol.name} and {other.name} have to be equal, and no number is within the bounds of both: "
            f"{bounds_text(symbol.low, symbol.high, 1)}, and {bounds_text(other.low, other.high, 1)}"
        )
    made = as_index(low) if low == high else Dimension(symbol.name, INDEX, low, high, 1, symbol.declared)
    return {symbol: made, other: made}


def _differing(call: Call, numbers: tuple[Expr, Expr], values: Numbers) -> list[list[Expr]]:
    """The extents in a call's types that are these two numbers where dimensions have these values; and not by chance,
    as ``k // m * m`` is m for k and m of like size: of values that are far apart, too. Where these make others differ,
    as those of another axis, it is these others. A number that is no extent, as that of the channels of weights in
    blocks, and that no dimension changes, is meant itself: each is another one in some of the trials."""
    found = [_extents_worth(call, number, values) for number in numbers]
    far = apart(symbols_of_call(call))
    again = problem_at(call, far)
    if again is None or again.differing is None:
        return found
    also = [_extents_worth(call, number, far) for number in again.differing]
    both = [[e for e in some if e in others] for some, others in zip(found, map(set, also), strict=True)]
    if all(both):
        return both
    others = problem_at(call, turned(symbols_of_call(call)))
    if others is None or others.differing is None:
        return also
    triples = zip(also, numbers, again.differing, others.differing, strict=True)
    return [some or ([a] if a is b and a is c else []) for some, a, b, c in triples]


def _equal_where_it_holds(call: Call, left: list[Expr], right: list[Expr]) -> list[list[Expr]]:
    """The extents of two lists that are equal, or are what differs, in other trials, too: as n and ``min(n, m)``, but
    not n and m, where the larger one is m. All of them if no other trial says so. Of several pairs those are meant that
    are so where one dimension is small, too: ``min(n, 50)`` and ``min(m, 50)`` are both 50 where n and m are large."""
    symbols = symbols_of_call(call)
    trials = [(v, problem_at(call, v)) for v in (large(symbols[::-1]), turned(symbols), apart(symbols[::-1]))]

    def agree(a: Expr, b: Expr, values: Numbers, problem: Problem | None) -> bool:
        one, other = value_at(a, values), value_at(b, values)
        differing = () if problem is None or problem.differing is None else problem.differing
        return one is other or (len(differing) == 2 and {id(one), id(other)} == {id(d) for d in differing})

    pairs = [(a, b) for a, b in itertools.product(left, right) if all(agree(a, b, *trial) for trial in trials)]
    for values in each_small(symbols) if len(pairs) > 1 else ():
        problem = problem_at(call, values)
        if problem is None or problem.differing is not None:
            pairs = [(a, b) for a, b in pairs if agree(a, b, values, problem)] or pairs
    return [list(dict.fromkeys(some)) for some in zip(*pairs, strict=True)] if pairs else [left, right]


def _extents_worth(call: Call, number: Expr, values: Numbers) -> list[Expr]:
    """The extents in a call's types that are this number where dimensions have these values. A number that stands there
    by itself is meant only where no formula is: it may be that of another axis, as 64 beside ``min(n, 64)``."""
    kinds = [a.type for a in call.args]
    extents = dict.fromkeys([*extents_of([*kinds, call.type]), *stated_extents(call.attrs, kinds)])
    worth = [e for e in extents if value_at(e, values) is number]
    return [e for e in worth if const_int(e) is None] or worth


def _solution(call: Call, symbols: Sequence[Symbol], problem: str) -> dict[Expr, Expr]:
    """Numbers for one or two dimensions, out of the extents of the arguments, that the call holds for."""
    extents = extents_of(a.type for a in call.args)
    known = dict.fromkeys(number for e in extents if (number := const_int(e)) is not None)
    candidates = sorted(known, key=lambda number: number == 1)  # what broadcasts with 3 may be 1, but is rather 3
    for count in (1, 2):
        for chosen in itertools.combinations(symbols, count):
            for numbers in itertools.product(candidates, repeat=count):
                solution = dict(zip(chosen, numbers, strict=True))
                if problem_of(call, symbols, solution) is None:
                    return {symbol: as_index(number) for symbol, number in solution.items()}
    dims = ", ".join(dict.fromkeys(symbol.name for symbol in symbols))
    at = f" (node {', '.join(call.origin)})" if call.origin else ""
    raise ModelError(
        f"{call_text(call)}{at} does not hold for all values of {dims}: {problem}. "
        "Give the shapes of the inputs by shapes="
    )


def _stretched(call: Call, symbols: Sequence[Symbol]) -> Expr | None:
    """An extent of the arguments that is 1 but for small dimensions, as that of ``x[-1:]`` is ``min(n, 1)``, and that
    the call broadcasts: it has to be equal to another one where it is another number. None if there is none such."""
    trials = (large(symbols), large(symbols, 2), apart(symbols), apart(symbols[::-1]))
    extents = dict.fromkeys(e for e in extents_of(a.type for a in call.args) if const_int(e) is None)
    single = (e for e in extents if all(value_at(e, values) is ONE for values in trials))
    return next((e for e in single if _must_equal_another(call, e, trials[0])), None)


def _must_equal_another(call: Call, extent: Expr, values: Numbers) -> bool:
    """Whether a call does not hold where an extent of its arguments is another large number, wherever it stands."""
    other = {extent: as_index(primes(len(values) + 1)[-1])}
    try:
        op_of(call).infer([with_numbers(renamed(a.type, other), values) for a in call.args], call.attrs)
    except ExtentsDiffer:
        return True
    except (TypeInferenceError, ExpressionError):
        return False
    return False


def _least(call: Call, symbols: Sequence[Symbol], symbol: Symbol, known: int) -> int:
    """The smallest value of a dimension, from ``known`` on, that the call holds for, if it holds for all larger ones.

    It is tried beside others that are large, and with all of them alike: two names may be of one dimension, as of the
    batch of two inputs, by which an extent is divided. That extents are not below 0 each run checks by itself."""
    other = large(symbols)

    def holds(number: int) -> bool:
        trials = ({**other, symbol: number}, dict.fromkeys(symbols, number))
        problems = (problem_at(call, values) for values in trials)
        return any(problem is None or problem.negative for problem in problems)

    return known if holds(known) else bisect(range(other[symbol]), False, known + 1, key=holds)


def _with_dimensions(function: Function, found: Mapping[Expr, Expr], types: Inferences) -> Function:
    """The function with other extents in place of some of its dimensions."""
    changed = (p for p in function.params if any(symbol in found for symbol in symbols_of([p.type])))
    batch = dict.fromkeys(found.get(symbol, symbol) for symbol in function.batch)
    made = with_params(function, {p: Var(p.name, renamed(p.type, found)) for p in changed}, types)
    return replace(made, batch=tuple(symbol for symbol in batch if isinstance(symbol, Symbol)))

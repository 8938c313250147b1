"""Functions that differ by one extent as one function, to which that extent is an argument: a network that grows by
concatenation has a convolution for each number of channels, all of the same code.

Only where the code is the same, and as fast: the extent leads the values that have it, so that no stride and no
divisor depends on it; or it is that of a convolution's channels, over which a loop around the tile of sums runs. Or it
counts rows of data, as those that a classical model has kept of each column: such numbers have no divisor in common, so
that vectors along them have a rest wherever they stand, and most of the time goes to rows that are looked up.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import count
from typing import TypeAlias

from ...base.dataclass import dataclass
from ...base.dtype import INDEX
from ...base.errors import TypeInferenceError
from ...graph.node import Call, Function, Var
from ...graph.structural import structure_hash
from ...graph.types import TensorType, leaf_types
from ...graph.visit import post_order
from ...ir.constants import const_int
from ...ir.contents import free_vars
from ...ir.expr import Dimension, Expr
from ...ir.makers import as_index
from ...ops.definition.registry import OpPattern
from ...ops.definition.retyping import with_params
from ...ops.families.conv.conv import CONVS
from ...ops.families.gather import GATHER_ELEMENTS, GATHER_ND, TAKE
from ...ops.families.nonzero import NONZERO
from ...ops.families.topk import TOPK
from ..fusion.fusion_rules import pattern_of
from ..selection.choices import choose
from ..selection.workload import workloads_of
from ..settings import CompileSettings
from ..symbols import position_name, symbols_of
from .parts import Parts, with_units
from .units import Unit

LEAST_SHARERS = 3
"""How many functions have to become one. Of two, one is hardly worth the search."""
LEAST_COUNT = 32
"""Numbers below may be worth code of their own: loops of so few steps are unrolled."""
LOOKUPS = (TAKE, GATHER_ND, GATHER_ELEMENTS, TOPK, NONZERO)
"""Operators whose time goes to elements at positions that only a run knows."""

Extents: TypeAlias = tuple["int | str", ...]
"""Those of the parameters of a function, one after the other: numbers, and what says all of open ones."""


@dataclass(frozen=True, slots=True)
class _Family:
    """Functions of one structure whose extents at ``positions`` are one number, ``numbers`` by their extents, and whose
    others are the same."""

    positions: tuple[int, ...]
    numbers: Mapping[Extents, int]


def share_code(parts: Parts, settings: CompileSettings) -> Parts:
    """The parts with one function in place of those that differ by an extent, in whatever bodies they are. None is
    shared that tuning records know, and none where alternatives are compiled, which are measured for the extents that
    there are."""
    if settings.alternatives:
        return parts
    found: dict[Unit, Unit] = {}
    alike: dict[str, list[Unit]] = {}
    for unit in parts.kernels():
        if _may_share(unit.function, settings):
            alike.setdefault(structure_hash(unit.function), []).append(unit)
    for units in alike.values():
        found.update(_shared(units, settings))
    return with_units(parts, found)


def _may_share(function: Function, settings: CompileSettings) -> bool:
    """Whether a function is of tensors and of operators whose code may be shared, and no record is about it."""
    calls = _calls(function)
    shared = _is_position_by_position(calls) or _looks_up(calls)
    tensors = all(isinstance(param.type, TensorType) for param in function.params)
    return bool(calls) and tensors and shared and not settings.records.about(workloads_of(function))


def _calls(function: Function) -> list[Call]:
    return [node for node in post_order(function.body) if isinstance(node, Call)]


def _is_position_by_position(calls: Iterable[Call]) -> bool:
    return all(pattern_of(call) <= OpPattern.BROADCAST or _is_conv(call) for call in calls)


def _looks_up(calls: Sequence[Call]) -> bool:
    """Whether elements are looked up at positions that only a run knows, and no sums are scheduled in tiles."""
    tiled = any(pattern_of(call) is OpPattern.OUT_ELEMENTWISE_FUSABLE for call in calls)
    return not tiled and any(call.op is op for call in calls for op in LOOKUPS)


def _are_counts(numbers: Collection[int]) -> bool:
    """Whether numbers look like counts of data, and not like widths that someone has chosen."""
    return min(numbers) >= LEAST_COUNT and math.gcd(*numbers) < 4


def _is_conv(call: Call) -> bool:
    return any(call.op is op for op, _ in CONVS.values())


def _shared(units: Sequence[Unit], settings: CompileSettings) -> Iterator[tuple[Unit, Unit]]:
    """Units of one structure, each with the one that shares its function."""
    by_extents: dict[Extents, list[Unit]] = {}
    for unit in units:
        by_extents.setdefault(_extents(unit.function), []).append(unit)
    for family in _families(list(by_extents)):
        functions = {number: by_extents[extents][0].function for extents, number in family.numbers.items()}
        step, name = math.gcd(*functions), _free_name(functions.values())
        function = _with_open_extent(functions, family.positions, step, name, settings)
        if function is None:
            continue
        for extents, number in family.numbers.items():
            for unit in by_extents.pop(extents):
                symbols = {**unit.symbols, name: as_index(number // step)}
                yield unit, replace(unit, function=function, symbols=symbols)


def _extents(function: Function) -> Extents:
    shapes = (kind.shape for param in function.params for kind in leaf_types(param.type))
    return tuple(map(_known_of, (extent for shape in shapes for extent in shape)))


def _known_of(extent: Expr) -> int | str:
    """The number that an extent is; of an open one the formula, with the least values of its dimensions, which are
    named by position."""
    number = const_int(extent)
    if number is not None:
        return number
    least = (f"{symbol.name} >= {symbol.low}" for symbol in free_vars(extent) if isinstance(symbol, Dimension))
    return ", ".join([str(extent), *least])


def _free_name(functions: Iterable[Function]) -> str:
    """What the extent that becomes an argument is called: as the first position that no dimension of the functions
    has."""
    kinds = (node.type for function in functions for node in (*function.params, *_calls(function)))
    taken = {symbol.name for symbol in symbols_of(kinds)}
    return next(name for name in map(position_name, count()) if name not in taken)


def _families(known: Sequence[Extents]) -> Iterator[_Family]:
    """The families of extents with at least ``LEAST_SHARERS`` members, the largest first; none is in two of them.

    Where the number of a member happens to be that of another extent, others tell which positions are meant.
    """
    if len(known) < LEAST_SHARERS:
        return
    found: list[_Family] = []
    for positions in dict.fromkeys(each for extents in known for each in _positions(extents)):
        alike: dict[Extents, dict[Extents, int]] = {}
        for extents in known:
            number = extents[positions[0]]
            if isinstance(number, int) and all(extents[at] == number for at in positions):
                rest = tuple(0 if at in positions else extent for at, extent in enumerate(extents))
                alike.setdefault(rest, {})[extents] = number
        found += (_Family(positions, members) for members in alike.values())
    taken: set[Extents] = set()
    for family in sorted(found, key=lambda family: -len(family.numbers)):
        left = {extents: number for extents, number in family.numbers.items() if extents not in taken}
        if len(left) >= LEAST_SHARERS:
            taken.update(left)
            yield _Family(family.positions, left)


def _positions(extents: Extents) -> Iterator[tuple[int, ...]]:
    """The positions of each number among the extents."""
    for number in dict.fromkeys(extent for extent in extents if isinstance(extent, int)):
        yield tuple(at for at, extent in enumerate(extents) if extent == number)


def _with_open_extent(
    functions: Mapping[int, Function], positions: Sequence[int], step: int, name: str, settings: CompileSettings
) -> Function | None:
    """The function of any number at these positions that is a multiple of ``step``, by a dimension of that name, and
    at least the least of those given; None where operators do not take it, or would be served by other code."""
    least, most = functions[min(functions)], functions[max(functions)]
    symbol = Dimension(name, INDEX, min(functions) // step)
    try:
        made = _with_extent_at(least, positions, symbol * step)
    except TypeInferenceError:
        return None
    leads = _is_position_by_position(_calls(least)) and _leads(made, symbol)
    if not leads and not (_are_counts(functions) and _is_along_one_axis(made, symbol)):
        return None
    kernels = _kernels(made, settings)
    return made if all(_kernels(each, settings) == kernels for each in (least, most)) else None


def _kernels(function: Function, settings: CompileSettings) -> list[str]:
    """What serves the calls of a function, and the kernels that its anchor has, with their conditions."""
    choice = choose(function, settings)
    if choice is None:
        return []
    kernels = (f"{kernel.implementation.name} if {kernel.guard}" for kernel in choice.dispatched.kernels)
    return [*(selection.chosen.name for selection in choice.selections), *kernels]


def _with_extent_at(function: Function, positions: Sequence[int], given: Expr) -> Function:
    """The function with an extent at these positions of those of its parameters. Raises ``TypeInferenceError`` where a
    call does not take it."""
    at = iter(range(len(_extents(function))))
    params: dict[Var, Var] = {}
    for param in function.params:
        (kind,) = leaf_types(param.type)
        shape = tuple(given if next(at) in positions else extent for extent in kind.shape)
        params[param] = Var(param.name, TensorType(shape, kind.dtype))
    return with_params(function, params)


def _leads(function: Function, symbol: Dimension) -> bool:
    """Whether only axes of one element are before that of the extent in all values that have it, apart from what
    convolutions multiply."""
    nodes = post_order(function.body)
    multiplied = {argument for node in nodes if isinstance(node, Call) and _is_conv(node) for argument in node.args}
    kinds = (kind for node in nodes if node not in multiplied for kind in leaf_types(node.type))
    return all(_is_first(symbol, kind.shape) for kind in kinds)


def _is_along_one_axis(function: Function, symbol: Dimension) -> bool:
    """Whether no value has the extent twice, as images that are as high as wide, and none is an operand of a
    convolution."""
    nodes = post_order(function.body)
    kinds = [kind for node in nodes for kind in leaf_types(node.type)]
    twice = any(sum(_has(extent, symbol) for extent in kind.shape) > 1 for kind in kinds)
    return not twice and not any(map(_is_conv, _calls(function)))


def _is_first(symbol: Dimension, shape: Iterable[Expr]) -> bool:
    after_ones = [extent for extent in shape if const_int(extent) != 1]
    return not any(_has(extent, symbol) for extent in after_ones[1:])


def _has(extent: Expr, symbol: Dimension) -> bool:
    return any(variable is symbol for variable in free_vars(extent))

"""Symbolic dimensions of graphs: which there are, what they are called, and which extents a run has to check.

A dimension is a variable of dtype ``index`` in the types of a graph. Fused functions name theirs by position, so that
equal functions print alike, whatever the model calls its dimensions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TypeAlias

from ..artifact.dimension_bounds import DimensionBounds
from ..artifact.extents import Extent, demand, extent_of
from ..base.dtype import INDEX
from ..base.errors import ModelError
from ..graph.node import Call, Function, Var
from ..graph.types import TensorType, TupleType, Type, leaf_types, tensor_type
from ..graph.visit import post_order
from ..ir import expr
from ..ir.build import index_var
from ..ir.constants import const_int
from ..ir.contents import free_vars, substitute
from ..ir.expr import Dimension, Expr
from ..ir.facts import nonnegative, prove
from ..ir.makers import as_index
from ..ir.simplify import simplify
from ..ops.definition.registry import op_of

Symbol = expr.Var
Numbers: TypeAlias = Mapping[Symbol, int]
"""Values of symbolic dimensions."""


def extents_of(types: Iterable[Type]) -> Iterator[Expr]:
    """All extents of values of these types, in order."""
    return (extent for kind in types for tensor in leaf_types(kind) for extent in tensor.shape)


def symbols_of(types: Iterable[Type]) -> tuple[Symbol, ...]:
    """The symbolic dimensions of types, in order of first appearance."""
    return tuple(dict.fromkeys(v for e in extents_of(types) if const_int(e) is None for v in free_vars(e)))


def leading_dimensions(params: Iterable[Var]) -> tuple[Symbol, ...]:
    """The symbolic dimensions that tensors have first."""
    shapes = (tensor.shape for param in params for tensor in leaf_types(param.type))
    return tuple(dict.fromkeys(symbol for shape in shapes if shape for symbol in free_vars(shape[0])))


def position_name(number: int) -> str:
    """What a closed function calls its symbolic dimension of that number."""
    return f"n{number}"


def by_position(symbols: Iterable[Expr]) -> dict[Expr, Symbol]:
    """New symbols, named by the position at which they come first, in place of these, or of other extents."""
    return {symbol: _at_position(symbol, number) for number, symbol in enumerate(dict.fromkeys(symbols))}


def _at_position(extent: Expr, number: int) -> Symbol:
    """A new symbol in place of an extent, with the least value that this has by itself. The largest one is left out: it
    makes no better loops, tiles that are larger than it would have extents that are no numbers, and so functions for
    other largest values are the same."""
    name = position_name(number)
    if isinstance(extent, Dimension) and extent.low > 0:
        return Dimension(name, INDEX, extent.low)
    return index_var(name)


def renamed(kind: Type, extents: Mapping[Expr, Expr]) -> Type:
    """A tensor's type with other extents in place of dimensions, or of whole extents; other types stay as they are."""
    if not isinstance(kind, TensorType) or not extents:
        return kind
    symbols = {symbol: extent for symbol, extent in extents.items() if isinstance(symbol, Symbol)}
    shape = (extents[e] if e in extents else simplify(substitute(e, symbols)) for e in kind.shape)
    return TensorType(tuple(shape), kind.dtype)


def with_numbers(kind: Type, numbers: Numbers) -> Type:
    """A type with numbers in place of symbolic dimensions."""
    match kind:
        case TensorType(shape, dtype):
            return tensor_type([extent_at(extent, numbers) for extent in shape], dtype)
        case TupleType(fields):
            return TupleType(tuple(with_numbers(field, numbers) for field in fields))
        case _:
            return kind


def extent_at(extent: Expr, numbers: Numbers) -> Expr:
    """An extent with numbers in place of symbolic dimensions."""
    return simplify(substitute(extent, {symbol: as_index(number) for symbol, number in numbers.items()}))


def with_batch_size(kind: Type, function: Function) -> Type:
    """A tensor's type with the size of a function's batch, if there is only one; other types stay as they are."""
    if function.batch_size is None or not isinstance(kind, TensorType):
        return kind
    sizes = dict.fromkeys(function.batch, as_index(function.batch_size))
    return TensorType(tuple(simplify(substitute(extent, sizes)) for extent in kind.shape), kind.dtype)


def births_of(function: Function) -> dict[Call, tuple[Symbol, ...]]:
    """The calls of a function that make extents of numbers, each with those that nobody knows before."""
    calls = (node for node in post_order(function.body) if isinstance(node, Call))
    births = ((call, op_of(call).birth(call)) for call in calls)
    return {call: tuple(e for e in b.extents if isinstance(e, Symbol)) for call, b in births if b is not None}


def with_born_names(names: Mapping[Symbol, str], function: Function) -> dict[Symbol, str]:
    """The names of a function's dimensions, and of those that a run computes."""
    named = dict(names)
    for symbol in (symbol for symbols in births_of(function).values() for symbol in symbols):
        _name(symbol, named)
    return named


def dimension_names(params: Iterable[Var]) -> dict[Symbol, str]:
    """A name for each dimension that an input has by itself, or in its unit: its own, with a number behind it where
    that is taken.

    Raises ``ModelError`` for a dimension that stands in a formula only, from which no run could tell its value.
    """
    types = [param.type for param in params]
    names: dict[Symbol, str] = {}
    for extent in extents_of(types):
        if (symbol := _dimension_of(extent)) is not None:
            _name(symbol, names)
    for param in params:
        for symbol in symbols_of([param.type]):
            if symbol not in names:
                raise ModelError(
                    f"input {param.name}: {param.type} does not tell the value of {symbol.name}: "
                    f"{symbol.name} alone has to be a dimension of one of the inputs"
                )
    return names


def _dimension_of(extent: Expr) -> Symbol | None:
    """The symbol whose value an extent tells: itself, or one that it is the unit of times; None for other extents."""
    match extent:
        case Dimension(unit=unit) if unit > 1:
            return None
        case Symbol():
            return extent
        case expr.Binary("*", Dimension(unit=unit) as symbol, expr.Const(value=factor)) if factor == unit:
            return symbol
        case _:
            return None


def _name(symbol: Symbol, names: dict[Symbol, str]) -> None:
    """Give a symbol a name that no other one has."""
    if symbol in names:
        return
    own = symbol.declared if isinstance(symbol, Dimension) else symbol.name
    taken, number = set(names.values()), 0
    while (name := f"{own}_{number}" if number else own) in taken:
        number += 1
    names[symbol] = name


def checked_extents(function: Function, names: Mapping[Symbol, str]) -> tuple[Extent, ...]:
    """The extents in a graph that may come out negative for some dimensions, and the checks of its calls. Those in
    bodies of calls are left out: they are checked where the body is run.

    Raises ``ModelError`` for a check that fails whatever the dimensions are.
    """
    facts = nonnegative(names)
    order = post_order(function.body)
    found = dict.fromkeys(e for e in extents_of(node.type for node in order) if const_int(e) is None)
    for call in (node for node in order if isinstance(node, Call)):
        for check in op_of(call).asked_of_extents(call):
            if prove(check < 0, facts):
                types = ", ".join(str(a.type) for a in call.args)
                raise ModelError(f"{call.op.name}({types}): {demand(extent_of(check, names))}")
            found[check] = None
    return tuple(extent_of(e, names) for e in found if not prove(as_index(e) >= 0, facts))


def bounds_of(names: Mapping[Symbol, str]) -> tuple[DimensionBounds, ...]:
    """The bounds of dimensions that have any, by the names that callers know."""
    return tuple(
        DimensionBounds(name, symbol.low * symbol.unit, high, symbol.unit)
        for symbol, name in names.items()
        if isinstance(symbol, Dimension)
        for high in [None if symbol.high is None else symbol.high * symbol.unit]
    )

"""The numbers that layouts are planned for where dimensions are open: what a user expects, else what is usual.

Only speed depends on them: code serves all extents, whichever were expected.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from ...base.bounded_dimension import BoundedDimension
from ...base.dataclass import dataclass
from ...base.dimension_roles import Role, role_of
from ...base.errors import ModelError, TypeInferenceError
from ...graph.node import Function, Node, Var
from ...graph.types import GivenShape, GivenShapes, TensorType, Type, given_shapes
from ...graph.visit import post_order
from ...ir import expr
from ...ir.constants import const_int
from ...ir.contents import free_vars
from ...ir.expr import Dimension, Expr
from ..settings import CompileSettings
from ..symbols import Numbers, Symbol, births_of, extent_at, with_numbers

RANK_OF_IMAGES = 4
"""The axes of a batch of images. Images whose extents a part of the model computes are expected to be of a usual size,
since the layers of a network follow. All else mostly counts what was found, of which no number is usual."""


@dataclass(frozen=True, slots=True, eq=False)
class ExpectedExtents:
    """What the dimensions of a graph are taken to be in costs. Those that are known only when a part of the model has
    run are among them where they are the height and width of images."""

    numbers: Numbers = field(default_factory=dict)
    _known: dict[Type, Type] = field(default_factory=dict)

    def of(self, kind: Type) -> Type:
        """A type with numbers in place of the dimensions; as it is, where these are too few for what is computed, as
        the samples of a window are."""
        if not self.numbers:
            return kind
        if kind not in self._known:
            try:
                self._known[kind] = with_numbers(kind, self.numbers)
            except TypeInferenceError:
                self._known[kind] = kind
        return self._known[kind]


def expected_extents(function: Function, given: GivenShapes | None, around: Numbers) -> ExpectedExtents:
    """What is expected of the dimensions of a function's parameters: what is ``given`` for its inputs by name, what
    is known ``around`` it, of which it is a body, else what is usual for such a dimension, within its bounds; and of
    the images that it computes the extents of.

    Raises ``ModelError`` for a name that is no input, a shape of another rank, and a number that a dimension cannot be
    or that another one contradicts.
    """
    shapes = _given_for(function, given)
    told: dict[Symbol, int] = {}
    for param in function.params:
        for extent, number in zip(_shape(param), shapes.get(param.name, ()), strict=False):
            _tell(param, extent, number, told)
    numbers = {**around, **told}
    for param in function.params:
        for axis, extent in enumerate(_shape(param)):
            for symbol in free_vars(extent):
                if symbol not in numbers:
                    numbers[symbol] = _usual(symbol, _shape(param), axis)
    numbers |= _of_computed_images(function, numbers)
    return ExpectedExtents(numbers)


def _of_computed_images(function: Function, known: Numbers) -> dict[Symbol, int]:
    """What is usual for the dimensions that a function computes, and that are first met as those of an image."""
    born = {symbol for symbols in births_of(function).values() for symbol in symbols if symbol not in known}
    numbers: dict[Symbol, int] = {}
    for node in post_order(function.body) if born else ():
        shape = _shape(node)
        for axis, symbol in enumerate(shape if len(shape) == RANK_OF_IMAGES else ()):
            if isinstance(symbol, Symbol) and symbol in born:
                born.remove(symbol)
                if _role(symbol, shape, axis) in (Role.IMAGE, Role.FEATURES):
                    numbers[symbol] = _usual(symbol, shape, axis)
    return numbers


def expected_by_name(function: Function, settings: CompileSettings, names: Mapping[Symbol, str]) -> dict[str, int]:
    """What was expected of the dimensions with these names when a function's layouts were planned; nothing, where they
    were not."""
    if settings.layouts != "plan" or settings.options.is_strict:
        return {}
    numbers = expected_extents(function, settings.expect, {}).numbers
    units = {symbol: symbol.unit if isinstance(symbol, Dimension) else 1 for symbol in names}
    return {name: numbers[symbol] * units[symbol] for symbol, name in names.items() if symbol in numbers}


def _given_for(function: Function, given: GivenShapes | None) -> dict[str, GivenShape]:
    shapes = given_shapes(given, "expect")
    params = {param.name: param for param in function.params}
    for name, shape in shapes.items():
        if name not in params:
            raise ModelError(f"expect= speaks of {name!r}, which is no input; there are {', '.join(params)}")
        kind = params[name].type
        if not isinstance(kind, TensorType) or len(shape) != kind.ndim:
            raise ModelError(f"input {name} is declared as {kind}, of which the expected shape {shape} cannot be")
        if any(isinstance(extent, BoundedDimension) for extent in shape):
            raise ModelError(f"expect= gives numbers that are usual, and bounds of {name} are what shapes= gives")
    return shapes


def _shape(node: Node) -> tuple[Expr, ...]:
    return node.type.shape if isinstance(node.type, TensorType) else ()


def _tell(param: Var, extent: Expr, number: object, told: dict[Symbol, int]) -> None:
    """Enter what a number that is expected of an extent says of a dimension."""
    if not isinstance(number, int):
        return
    match extent:
        case Symbol():
            symbol, unit = extent, 1
        case expr.Binary("*", Symbol() as symbol, factor) if (unit := const_int(factor) or 0) > 0:
            pass
        case _:
            if (value := const_int(extent_at(extent, told))) not in (None, number):
                raise ModelError(f"input {param.name} is {param.type}: {extent} is {value}, and cannot be {number}")
            return
    value, rest = divmod(number, unit)
    if rest or value < 0 or value != _within(symbol, value):
        raise ModelError(f"input {param.name} is {param.type}: {extent} cannot be {number}, which is expected of it")
    if told.setdefault(symbol, value) != value:
        raise ModelError(f"{extent} is expected to be {told[symbol] * unit} and {number}, but it is one dimension")


def _usual(symbol: Symbol, shape: tuple[Expr, ...], axis: int) -> int:
    """What is usual for a dimension that stands, alone or in a formula, at an axis of a shape."""
    number = _role(symbol, shape, axis).value[0]
    return _within(symbol, -(-number // (symbol.unit if isinstance(symbol, Dimension) else 1)))


def _role(symbol: Symbol, shape: tuple[Expr, ...], axis: int) -> Role:
    extents = [_declared(extent) if isinstance(extent, Symbol) else const_int(extent) for extent in shape]
    return role_of(_declared(symbol), extents, axis)


def _declared(symbol: Symbol) -> str:
    """The name that a model or a user gave a dimension."""
    return (symbol.declared if isinstance(symbol, Dimension) else None) or symbol.name


def _within(symbol: Symbol, number: int) -> int:
    if not isinstance(symbol, Dimension):
        return number
    return max(symbol.low, number if symbol.high is None else min(number, symbol.high))

"""Operators with two arguments, of one dtype, that broadcast as numpy's: arithmetic, comparisons, logic, bits.

Each is an entry of the table, its compute an expression of two elements.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any, Protocol

import ml_dtypes
import numpy as np

from ... import te
from ...base.dataclass import dataclass
from ...base.dtype import BOOL, DType
from ...base.errors import TypeInferenceError
from ...graph.node import Call, Constant, Node, tensor_of
from ...graph.types import TensorType, Type
from ...ir.expr import Expr, Let, Var
from ...te.broadcasting import read_broadcast
from ...te.tensor import Tensors
from ..definition.arguments import flag
from ..definition.attrs import Attrs, attr, one_of
from ..definition.layout_rule import same_layout
from ..definition.op_group import OpGroup
from ..definition.registry import Op, OpPattern, Relation, register_op
from ..definition.relations import (
    INTEGER_KINDS,
    NUMBER_KINDS,
    broadcast_shapes,
    same_dtype,
    stretched_to,
    tensor_argument,
)
from ..definition.strategy import register_compute

GROUP = OpGroup.ELEMENTWISE

ANY_KINDS = ("bool", *NUMBER_KINDS)
NAMES = ("a", "b")


def broadcast_relation(kinds: Sequence[str], result: DType | None = None) -> Relation:
    """The shape to which both broadcast; the dtype of both, unless ``result`` says otherwise."""

    def relation(types: Sequence[Type], attrs: Any) -> Type:
        a, b = (tensor_argument(t, n) for t, n in zip(types, NAMES, strict=True))
        same_dtype((a, b), NAMES)
        _check_kind(a, NAMES[0], kinds)
        return TensorType(broadcast_shapes((a.shape, b.shape), NAMES), result or a.dtype)

    return relation


def _check_kind(argument: TensorType, name: str, kinds: Sequence[str]) -> None:
    if argument.dtype.kind not in kinds:
        raise TypeInferenceError(f"{name} must be of {', '.join(kinds)}, found {argument.dtype}")


def _register(
    name: str,
    description: str,
    relation: Relation,
    element: Callable[[Expr, Expr, Any], Expr],
    attrs: type[Attrs] | None = None,
    names: tuple[str, str] = NAMES,
) -> Op:
    def compute(attrs: Any, inputs: Tensors, result: Type) -> te.Tensor:
        a, b = inputs
        return te.compute(
            tensor_argument(result, "result").shape,
            lambda *i: element(read_broadcast(a, i), read_broadcast(b, i), attrs),
            name=name,
        )

    arguments = [(n, "any shape that broadcasts") for n in names]
    op = register_op(
        name,
        description,
        arguments,
        relation,
        OpPattern.BROADCAST,
        attrs,
        support_level=1,
        layout_rule=same_layout,
    )
    register_compute(op, compute)
    return op


class BinaryCall(Protocol):
    """Makes calls of an elementwise operator of two arguments, which broadcast."""

    def __call__(self, a: Node, b: Node) -> Call: ...


def _plain(
    name: str,
    description: str,
    kinds: Sequence[str],
    element: Callable[[Expr, Expr], Expr],
    result: DType | None = None,
) -> BinaryCall:
    """An operator without attributes; gives the function that makes its calls."""
    op = _register(name, description, broadcast_relation(kinds, result), lambda a, b, attrs: element(a, b))

    def make(a: Node, b: Node) -> Call:
        return op(a, b)

    make.__name__ = make.__qualname__ = name
    make.__doc__ = f"{description}, elementwise with broadcasting."
    return make


# Expressions of one element that take more than a line.


def divide_element(a: Expr, b: Expr) -> Expr:
    """a / b; integers are truncated towards 0, and 0 where b is 0."""
    if a.dtype.is_float:
        return a / b
    return a // b if a.dtype.kind == "uint" else te.select(_rounds_apart(a, b), a // b + 1, a // b)


def _rounds_apart(a: Expr, b: Expr) -> Expr:
    """Whether the quotient of two signed integers differs when it is rounded to zero from when it is rounded down."""
    return (a % b != 0) & ((a < 0) ^ (b < 0))


def _remainder(a: Expr, b: Expr) -> Expr:
    """The remainder of the division that rounds to zero: it has the sign of ``a``."""
    if a.dtype.kind == "uint":
        return a % b
    if a.dtype.is_data_int:
        return te.select(_rounds_apart(a, b), a % b - b, a % b)
    a64, b64 = (e if e.dtype.bits == 64 else te.cast(e, "float64") for e in (a, b))
    x, y = te.abs(a64), te.abs(b64)
    rest = _long_division(x, y, _scales(a.dtype), a.dtype.bits == 64)
    size = te.select(te.isinf(b64) & te.isfinite(a64), x, rest)
    return te.cast(te.copysign(size, a64), a.dtype)


def _long_division(x: Expr, y: Expr, scales: Sequence[float], may_overflow: bool) -> Expr:
    """The remainder of positive floats by multiples of y, one after the other. Each quotient has so few digits that the
    product with it is exact: then it is off by one at most."""
    if not scales:
        return x
    part = y if scales[0] == 1.0 else y * scales[0]
    whole, rest = Var("whole", x.dtype), Var("rest", x.dtype)
    below = te.select(rest < 0, rest + part, rest)
    if may_overflow and len(scales) > 1:
        below = te.select(te.isinf(part), whole, below)
    left = _long_division(below, y, scales[1:], may_overflow)
    return Let(whole, x, Let(rest, te.fma(-te.trunc(whole / part), part, whole), left))


FLOAT64_SCALES = 4
"""So often float64 takes the remainder of a multiple first: 40 would be needed for the largest quotients."""


def _scales(kind: DType) -> list[float]:
    """Powers of two, the last one 1: by multiples of the divisor by these the remainder is taken, one after the other,
    as by the digits of a long division. Quotients have so many bits that float64 holds them times a divisor, with a
    fused multiplication and without."""
    info = ml_dtypes.finfo(kind.to_numpy())  # type: ignore[no-untyped-call]
    if kind.bits == 64:
        bits, count = 52, FLOAT64_SCALES
    else:
        bits = 52 - (info.nmant + 1)
        widest = int(info.maxexp) - int(info.minexp) + int(info.nmant)
        count = math.ceil(widest / bits)
    return [2.0 ** (bits * k) for k in reversed(range(count))]


def _modulo(a: Expr, b: Expr) -> Expr:
    """The remainder of the division that rounds down: it has the sign of ``b``, where it is 0 too."""
    if not a.dtype.is_float:
        return a % b
    rest = _remainder(a, b)
    return te.select(rest == 0, te.copysign(rest, b), te.select((rest < 0) ^ (b < 0), rest + b, rest))


def _integer_power(base: Expr, exponent: Expr) -> Expr:
    wide = te.power(te.cast(base, "float64"), te.cast(exponent, "float64"))
    whole = te.round(wide)
    # float64's pow is not exact to the last bit: what is a whole number but for that is one
    is_whole = te.abs(wide - whole) <= te.abs(whole) * 2.0**-50
    return te.cast(te.select(is_whole, whole, wide), base.dtype)


def _power(base: Expr, exponent: Expr) -> Expr:
    if base.dtype.is_float:
        return te.power(base, te.cast(exponent, base.dtype))
    return _integer_power(base, exponent)


# Arithmetic.

add = _plain("add", "a + b", NUMBER_KINDS, lambda a, b: a + b)
subtract = _plain("subtract", "a - b", NUMBER_KINDS, lambda a, b: a - b)
multiply = _plain("multiply", "a * b", NUMBER_KINDS, lambda a, b: a * b)
divide = _plain(
    "divide", "a / b; of integers truncated towards 0, and 0 where b is 0, as ONNX has it", NUMBER_KINDS, divide_element
)
maximum = _plain("maximum", "the larger of a and b; NaN if either is", NUMBER_KINDS, te.maximum)
minimum = _plain("minimum", "the smaller of a and b; NaN if either is", NUMBER_KINDS, te.minimum)

# Comparisons; any with NaN is false, but for not_equal.

equal = _plain("equal", "a == b", ANY_KINDS, lambda a, b: a == b, BOOL)
not_equal = _plain("not_equal", "a != b", ANY_KINDS, lambda a, b: a != b, BOOL)
less = _plain("less", "a < b", NUMBER_KINDS, lambda a, b: a < b, BOOL)
less_equal = _plain("less_equal", "a <= b", NUMBER_KINDS, lambda a, b: a <= b, BOOL)
greater = _plain("greater", "a > b", NUMBER_KINDS, lambda a, b: a > b, BOOL)
greater_equal = _plain("greater_equal", "a >= b", NUMBER_KINDS, lambda a, b: a >= b, BOOL)

# Logic and bits.

logical_and = _plain("logical_and", "a and b", ("bool",), lambda a, b: a & b)
logical_or = _plain("logical_or", "a or b", ("bool",), lambda a, b: a | b)
logical_xor = _plain("logical_xor", "either a or b", ("bool",), lambda a, b: a ^ b)
bitwise_and = _plain("bitwise_and", "the bits that are 1 in a and in b", INTEGER_KINDS, lambda a, b: a & b)
bitwise_or = _plain("bitwise_or", "the bits that are 1 in a or in b", INTEGER_KINDS, lambda a, b: a | b)
bitwise_xor = _plain("bitwise_xor", "the bits that differ in a and b", INTEGER_KINDS, lambda a, b: a ^ b)
left_shift = _plain(
    "left_shift", "a's bits moved up by b positions; 0 from a's width on", INTEGER_KINDS, lambda a, b: a << b
)
right_shift = _plain(
    "right_shift",
    "a's bits moved down by b positions; copies of the sign from a's width on",
    INTEGER_KINDS,
    lambda a, b: a >> b,
)


# With a relation or attributes of their own.


def _power_relation(types: Sequence[Type], attrs: Any) -> Type:
    a, b = (tensor_argument(t, n) for t, n in zip(types, NAMES, strict=True))
    for argument, name in zip((a, b), NAMES, strict=True):
        _check_kind(argument, name, NUMBER_KINDS)
    return TensorType(broadcast_shapes((a.shape, b.shape), NAMES), a.dtype)


POWER = _register("power", "a to the power of b, in the dtype of a", _power_relation, lambda a, b, attrs: _power(a, b))


def power(a: Node, b: Node) -> Call:
    """``a`` to the power of ``b``; the dtypes may differ, the result has that of ``a``.

    An integer ``a`` is raised in float64, and the result truncated: exact below 2**50, saturating beyond its range.
    """
    return POWER(a, b)


def whole_power(x: Node, exponent: int) -> Node:
    """``x`` to the power of an integer from 1 on, as products of squares, the fewest there are by its binary digits."""
    result, square = None, x
    while exponent > 1:
        if exponent & 1:
            result = square if result is None else multiply(result, square)
        square = multiply(square, square)
        exponent >>= 1
    return square if result is None else multiply(result, square)


@dataclass(frozen=True)
class ModAttrs(Attrs):
    """The attributes of ``mod``."""

    fmod: bool = attr("whether the result has the sign of a, not of b", default=False, check=one_of(False, True))


MOD = _register(
    "mod",
    "the remainder of a / b, 0 where integer b is 0",
    broadcast_relation(NUMBER_KINDS),
    lambda a, b, attrs: (_remainder if attrs.fmod else _modulo)(a, b),
    ModAttrs,
)


def mod(a: Node, b: Node, fmod: bool = False) -> Call:
    """The remainder of ``a / b``: with the sign of ``b`` as numpy's ``mod``; with ``fmod``, of ``a`` as C's. So has a
    float that is 0.

    Of integers it is 0 where ``b`` is 0, of floats NaN. C's remainder of floats is exact, of float64 while ``|a / b|``
    is below 2**208 (2**29 on targets without fma); where ``b`` is added to it, the sum is rounded.
    """
    return MOD(a, b, attrs=ModAttrs(flag(fmod, "fmod")))


def _prelu_relation(types: Sequence[Type], attrs: Any) -> Type:
    x, slope = (tensor_argument(t, n) for t, n in zip(types, ("x", "slope"), strict=True))
    same_dtype((x, slope), ("x", "slope"))
    _check_kind(x, "x", NUMBER_KINDS)
    problem = f"slope does not broadcast to the shape of x: {slope} and {x}"
    stretched_to(x.shape, slope.shape, ("x", "slope"), problem)
    return x


PRELU = _register(
    "prelu",
    "x where it is 0 or more, else slope * x",
    _prelu_relation,
    lambda x, slope, attrs: te.select(x < 0, x * slope, x),
    names=("x", "slope"),
)


def prelu(x: Node, slope: Node) -> Call:
    """``x`` where it is 0 or more, else ``slope * x``; ``slope`` broadcasts to the shape of ``x``."""
    return PRELU(x, slope)


# Of any number of arguments: compositions of the above.


def add_all(values: Sequence[Node]) -> Node:
    """The sum of one or several tensors, with broadcasting; one stays itself."""
    return _fold(add, values)


def maximum_all(values: Sequence[Node]) -> Node:
    """The largest of one or several tensors, elementwise with broadcasting."""
    return _fold(maximum, values)


def minimum_all(values: Sequence[Node]) -> Node:
    """The smallest of one or several tensors, elementwise with broadcasting."""
    return _fold(minimum, values)


def mean_all(values: Sequence[Node]) -> Node:
    """The mean of one or several tensors, elementwise with broadcasting."""
    total = add_all(values)
    if len(values) == 1:
        return total
    count = np.asarray(len(values), tensor_of(total).dtype.to_numpy())
    return divide(total, Constant(count, "count"))


def _fold(operator: Callable[[Node, Node], Node], values: Sequence[Node]) -> Node:
    if not values:
        raise TypeInferenceError(f"{operator.__name__} needs at least one tensor")
    return reduce(operator, values)

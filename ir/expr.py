"""Expressions of the loop IR and of tensor expressions.

    expr ::= Var(name, dtype)                          a value bound by a loop, a let or a function
           | Const(value, dtype)
           | Cast(dtype, value)
           | Unary(op, a)                              op: - not ~
           | Binary(op, a, b)                          op: + - * / // % min max & | ^ << >>
           | Compare(op, a, b)                         op: == != < <= > >=
           | Logical(op, a, b)                         op: and or
           | Select(condition, a, b)                   both sides are evaluated
           | IfThenElse(condition, a, b)               only the chosen side is evaluated; the condition is scalar
           | Let(var, value, body)
           | Call(name, args, dtype)                   an intrinsic of ``intrinsics.py``
           | Load(buffer, indices, mask)               lanes where the mask is false read as zero, and touch no memory
           | Ramp(base, stride, lanes)                 base, base + stride, …
           | Broadcast(value, lanes)
           | TensorRead(tensor, indices)               te level only
           | Reduce(combiner, sources, axes, condition, index)   te level only

Semantics
  - ``index`` is an integer that never overflows; ``int8`` … ``uint64`` wrap around.
  - ``//`` and ``%`` round towards minus infinity, on integers only; ``x // 0`` and ``x % 0`` are 0 for data integers,
    the smallest integer divided by -1 wraps. An ``index`` divisor is never 0. ``/`` is for floats only.
  - Shifting by the width or more gives 0, or -1 where the shifted value is negative and the shift is ``>>``.
  - Floats follow IEEE 754, each operation rounded to its dtype, round to nearest even. ``min`` and ``max`` give NaN if
    either side is NaN; of two zeros of different sign either may come. Precision modes say which fusions are allowed.
  - Float to integer casts truncate and saturate, NaN becomes 0; integer to integer casts wrap; anything to bool is
    ``!= 0``.
  - ``Logical`` may evaluate both sides; all expressions are pure, so only faults (bounds) tell the difference.

Nodes are immutable and interned (see ``intern.py``): equal structure is one object, so compare with ``is``; ``Var`` is
the exception, each is unique. ``==``, ``<`` … build ``Compare`` nodes, and ``bool(expr)`` raises. Beware therefore of
``expr in some_list`` and ``a == b``: sets, dicts and ``is`` go by identity.
"""

from __future__ import annotations

import math
import struct
from abc import abstractmethod
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

import numpy as np

from ..base.brief import one_line
from ..base.dtype import BOOL, INDEX, DType, dtype
from ..base.errors import ExpressionError
from ..base.intern import Interned
from .buffer import Buffer
from .operators import Operator, Operators
from .rounding import round_number

if TYPE_CHECKING:
    from .linear import Linear

UnaryOp = Literal["-", "not", "~"]
ArithmeticOp = Literal["+", "-", "*", "/", "//", "%", "min", "max"]
BitwiseOp = Literal["&", "|", "^", "<<", ">>"]
BinaryOp = Literal[ArithmeticOp, BitwiseOp]
CompareOp = Literal["==", "!=", "<", "<=", ">", ">="]
LogicalOp = Literal["and", "or"]

MAX_LANES = 256


class Operand(Operators["ExprLike", "Expr"]):
    """What stands in an arithmetic expression: expressions, and axes, which convert to one."""

    __slots__ = ()

    @abstractmethod
    def as_expr(self) -> Expr:
        """The expression this stands for."""

    @staticmethod
    def operate(op: Operator, a: ExprLike, b: ExprLike) -> Expr:
        """What ``a op b`` stands for. What has operators of its own, as whole tensors have, says it instead."""
        if isinstance(b, Operators) and not isinstance(b, Operand):
            return NotImplemented
        if (number := _float_of_extents(op, a, b)) is not None:
            return number
        match op:
            case "+" | "-" | "*" | "/" | "//" | "%":
                return binary(op, a, b)
            case "<" | "<=" | ">" | ">=" | "==" | "!=":
                return compare(op, a, b)
            case "&" | "|" | "^" | "<<" | ">>":
                return bitwise(op, a, b)
            case "**":
                return power(a, b)

    def __neg__(self) -> Expr:
        return Unary("-", self.as_expr())

    def __pos__(self) -> Expr:
        return self.as_expr()

    def __abs__(self) -> Expr:
        from .intrinsics import call  # which makes expressions

        return call("abs", self)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Expr:
        from .ufuncs import apply_ufunc  # which makes expressions

        return apply_ufunc(ufunc, method, inputs, options)

    def __invert__(self) -> Expr:
        value = self.as_expr()
        return Unary("not" if value.dtype.is_bool else "~", value)

    def __eq__(self, other: ExprLike) -> Expr:  # type: ignore[override]
        return compare("==", self, other)

    def __ne__(self, other: ExprLike) -> Expr:  # type: ignore[override]
        return compare("!=", self, other)

    __hash__ = object.__hash__

    def constant(self) -> Const | None:
        """The value of arithmetic on constants alone, as of extents that are numbers; None where there are others."""
        from .simplify import simplify  # which makes expressions
        from .visit import free_vars

        value = self.as_expr()
        found = None if free_vars(value) else simplify(value)
        return found if isinstance(found, Const) else None

    def __bool__(self) -> bool:
        if (known := self.constant()) is not None:
            return bool(known.value)
        raise ExpressionError(
            f"the truth of the symbolic expression `{self}` is not known while the program is being built: "
            "use te.select or te.if_then_else instead of `if`, `&`, `|`, `~` instead of `and`, `or`, `not`, "
            "and `is` to ask whether two expressions are the same"
        )

    def __float__(self) -> float:
        if (known := self.constant()) is not None:
            return float(known)
        raise self._no_value()

    def __index__(self) -> int:
        if (known := self.constant()) is not None:
            return int(known)
        raise self._no_value()

    __int__ = __index__

    def _no_value(self) -> ExpressionError:
        return ExpressionError(
            f"the symbolic expression `{self}` has no value while the program is being built: "
            "use the functions of te instead of those of math, te.cast instead of int and float"
        )

    def __iter__(self) -> Any:
        raise ExpressionError(f"the symbolic expression `{self}` cannot be iterated over")


@dataclass(frozen=True, slots=True, eq=False, repr=False, weakref_slot=True)
class ExprNode(Operand, metaclass=Interned):
    """Base of all expression nodes. ``dtype`` is derived by each node from its operands.

    ``normal_form`` is not there until ``linear_of`` puts it there.
    """

    interned: ClassVar[bool] = True
    __match_args__: ClassVar[tuple[str, ...]] = ()

    dtype: DType = field(init=False)
    normal_form: Linear = field(init=False)

    def as_expr(self) -> Expr:
        return self  # type: ignore[return-value]

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), tuple(getattr(self, name) for name in self.__match_args__)

    def __copy__(self) -> ExprNode:
        return self

    def __str__(self) -> str:
        from .printer import expr_text  # the printer knows all nodes

        return expr_text(self)  # type: ignore[arg-type]

    def __repr__(self) -> str:
        return one_line(str(self))

    def _set_dtype(self, value: DType) -> None:
        object.__setattr__(self, "dtype", value)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Var(ExprNode):
    """A variable: unique by creation, whatever its name."""

    interned: ClassVar[bool] = False

    name: str
    var_dtype: DType = INDEX

    def __post_init__(self) -> None:
        self._set_dtype(self.var_dtype)

    def __deepcopy__(self, memo: dict[int, Any]) -> Var:
        return memo.setdefault(id(self), Var(self.name, self.var_dtype))  # type: ignore[no-any-return]


class ReduceVar(Var):
    """The variable of a ``te.reduce_axis``, which has a value inside a reduction over that axis only."""

    __slots__ = ()


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Const(ExprNode):
    """A scalar constant: a Python number that the dtype represents exactly. Use ``const`` to make one."""

    value: bool | int | float
    const_dtype: DType

    def __post_init__(self) -> None:
        self._set_dtype(self.const_dtype)

    @staticmethod
    def intern_key(args: tuple[Any, ...]) -> Hashable:
        value, dtype_ = args
        return (struct.pack("<d", value) if isinstance(value, float) else (type(value), value), id(dtype_))

    def __index__(self) -> int:
        if isinstance(self.value, float):
            raise ExpressionError(f"{self} is not an integer")
        return int(self.value)

    __int__ = __index__

    def __float__(self) -> float:
        return float(self.value)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Cast(ExprNode):
    """Conversion of value to another element type, same lanes."""

    to: DType
    value: Expr

    def __post_init__(self) -> None:
        if self.to.lanes != self.value.dtype.lanes:
            raise ExpressionError(f"cast of {self.value.dtype} to {self.to} changes the number of lanes")
        self._set_dtype(self.to)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Unary(ExprNode):
    op: UnaryOp
    a: Expr

    def __post_init__(self) -> None:
        kind = self.a.dtype
        if (
            (self.op == "not" and not kind.is_bool)
            or (self.op == "~" and not kind.is_data_int)
            or (self.op == "-" and kind.is_bool)
        ):
            raise ExpressionError(f"`{self.op}` does not apply to a {kind}: {self.a}")
        self._set_dtype(kind)


_BINARY_DOMAIN: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("+", "-", "*", "min", "max"), ("int", "uint", "float", "bfloat", "index")),
    "/": ("float", "bfloat"),
    **dict.fromkeys(("//", "%"), ("int", "uint", "index")),
    **dict.fromkeys(("&", "|", "^", "<<", ">>"), ("int", "uint")),
}


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Binary(ExprNode):
    op: BinaryOp
    a: Expr
    b: Expr

    def __post_init__(self) -> None:
        kind = _same_dtype(self.op, self.a, self.b)
        if kind.kind not in _BINARY_DOMAIN[self.op]:
            advice = ": use // for integers" if self.op == "/" else ""
            raise ExpressionError(f"`{self.op}` does not apply to {kind} values{advice}: {self.a} {self.op} {self.b}")
        self._set_dtype(kind)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Compare(ExprNode):
    op: CompareOp
    a: Expr
    b: Expr

    def __post_init__(self) -> None:
        kind = _same_dtype(self.op, self.a, self.b)
        self._set_dtype(BOOL.with_lanes(kind.lanes))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Logical(ExprNode):
    op: LogicalOp
    a: Expr
    b: Expr

    def __post_init__(self) -> None:
        kind = _same_dtype(self.op, self.a, self.b)
        if not kind.is_bool:
            raise ExpressionError(f"`{self.op}` applies to bool, not to {kind}: {self.a} {self.op} {self.b}")
        self._set_dtype(kind)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Select(ExprNode):
    """``a`` where condition, else ``b``; both are evaluated. A scalar condition may choose between vectors."""

    condition: Expr
    a: Expr
    b: Expr

    def __post_init__(self) -> None:
        self._set_dtype(_choice_dtype("select", self.condition, self.a, self.b))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class IfThenElse(ExprNode):
    """``a`` if condition (a scalar), else ``b``; only the chosen one is evaluated, so it may guard an access."""

    condition: Expr
    a: Expr
    b: Expr

    def __post_init__(self) -> None:
        self._set_dtype(_choice_dtype("if_then_else", self.condition, self.a, self.b))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Let(ExprNode):
    var: Var
    value: Expr
    body: Expr

    def __post_init__(self) -> None:
        if self.var.dtype is not self.value.dtype:
            raise ExpressionError(f"let {self.var.name}: {self.var.dtype} is bound to a {self.value.dtype}")
        self._set_dtype(self.body.dtype)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Call(ExprNode):
    """A call of an intrinsic, elementwise over lanes; make one by ``call`` of ``intrinsics.py``, which checks."""

    name: str
    args: tuple[Expr, ...]
    result: DType

    def __post_init__(self) -> None:
        self._set_dtype(self.result)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Load(ExprNode):
    """``buffer[indices]``; a vector index loads as many lanes. ``mask`` (bool, same lanes) switches lanes off."""

    buffer: Buffer
    indices: tuple[Expr, ...]
    mask: Expr | None = None

    def __post_init__(self) -> None:
        self._set_dtype(access_dtype(self.buffer, self.indices, self.mask))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Ramp(ExprNode):
    base: Expr
    stride: Expr
    lanes: int

    def __post_init__(self) -> None:
        kind = _same_dtype("ramp", self.base, self.stride)
        _check_lanes(self.lanes)
        if kind.lanes != 1 or not (kind.is_index or kind.is_data_int):
            raise ExpressionError(f"a ramp needs scalar integers, not {kind}")
        self._set_dtype(kind.with_lanes(self.lanes))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Broadcast(ExprNode):
    value: Expr
    lanes: int

    def __post_init__(self) -> None:
        _check_lanes(self.lanes)
        if self.value.dtype.lanes != 1:
            raise ExpressionError(f"broadcast of a value that is already a vector: {self.value}")
        self._set_dtype(self.value.dtype.with_lanes(self.lanes))


class TensorBase:
    """What a ``TensorRead`` reads: ``te.Tensor`` is the only subclass. Compared by identity."""

    __slots__ = ()
    name: str
    dtype: DType
    shape: tuple[Expr, ...]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TensorRead(ExprNode):
    """An element of a tensor, in the body of a compute; lowering turns it into a Load."""

    tensor: TensorBase
    indices: tuple[Expr, ...]

    def __post_init__(self) -> None:
        self._set_dtype(self.tensor.dtype)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Axis(Operand):
    """An axis of a compute: ``var`` runs over ``min … min + extent - 1``. Stands for its variable in expressions."""

    var: Var
    min: Expr
    extent: Expr
    kind: Literal["spatial", "reduce", "scan"]

    @property
    def name(self) -> str:
        return self.var.name

    def as_expr(self) -> Expr:
        return self.var

    def __str__(self) -> str:
        return self.var.name

    def __repr__(self) -> str:
        return one_line(f"Axis({self.var.name}: {self.kind}, {self.min} … +{self.extent})")


@dataclass(frozen=True, slots=True, eq=False)
class Combiner:
    """How a reduction folds tuples of values: ``lhs ⊕ rhs = results``, an associative and commutative operation.

    ``identity`` is the neutral element, one value an output; ``lhs`` and ``rhs`` are the variables that ``results``
    mention.
    """

    name: str
    lhs: tuple[Var, ...]
    rhs: tuple[Var, ...]
    results: tuple[Expr, ...]
    identity: tuple[Expr, ...]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Reduce(ExprNode):
    """Output number ``index`` of folding ``sources`` over ``axes`` (where ``condition`` holds, if there is one)."""

    combiner: Combiner
    sources: tuple[Expr, ...]
    axes: tuple[Axis, ...]
    condition: Expr | None
    index: int

    def __post_init__(self) -> None:
        self._set_dtype(self.sources[self.index].dtype)


Expr: TypeAlias = (
    Var
    | Const
    | Cast
    | Unary
    | Binary
    | Compare
    | Logical
    | Select
    | IfThenElse
    | Let
    | Call
    | Load
    | Ramp
    | Broadcast
    | TensorRead
    | Reduce
)
ExprLike: TypeAlias = "Operand | bool | int | float | np.generic"


# Checks shared by the nodes.


def _same_dtype(what: str, a: Expr, b: Expr) -> DType:
    if a.dtype is not b.dtype:
        raise ExpressionError(
            f"`{what}` needs two values of one dtype, found {a.dtype} and {b.dtype}: `{a}` and `{b}`; "
            "convert one of them with te.cast"
        )
    return a.dtype


def _choice_dtype(what: str, condition: Expr, a: Expr, b: Expr) -> DType:
    kind = _same_dtype(what, a, b)
    if not condition.dtype.is_bool:
        raise ExpressionError(f"the condition of {what} must be bool, found {condition.dtype}: {condition}")
    if condition.dtype.lanes not in (1, kind.lanes):
        raise ExpressionError(f"{what}: {condition.dtype.lanes} lanes of condition for {kind}")
    return kind


def _check_lanes(lanes: int) -> None:
    if not 1 < lanes <= MAX_LANES:
        raise ExpressionError(f"a vector has 2 to {MAX_LANES} lanes, not {lanes}")


def access_dtype(buffer: Buffer, indices: tuple[Expr, ...], mask: Expr | None) -> DType:
    """The dtype that an access of ``buffer[indices]`` moves; raises ``ExpressionError`` where the parts do not fit."""
    if len(indices) != buffer.ndim:
        raise ExpressionError(
            f"{buffer.name} has {buffer.ndim} dimensions, but is accessed with {len(indices)} indices"
        )
    lanes = 1
    for index in indices:
        if not index.dtype.is_index:
            raise ExpressionError(f"an index of {buffer.name} is a {index.dtype}, expected index: {index}")
        if index.dtype.lanes != 1:
            if lanes not in (1, index.dtype.lanes):
                raise ExpressionError(f"the indices of {buffer.name} disagree in their lanes: {indices}")
            lanes = index.dtype.lanes
    if mask is not None and mask.dtype is not BOOL.with_lanes(lanes):
        raise ExpressionError(
            f"the mask of an access of {buffer.name} is a {mask.dtype}, expected {lanes} lanes of bool"
        )
    if lanes > 1 and buffer.dtype.lanes > 1:
        raise ExpressionError(f"{buffer.name} holds {buffer.dtype} elements: its index must be scalar")
    return buffer.dtype.with_lanes(max(lanes, buffer.dtype.lanes))


# Makers: convert Python values, broadcast scalars against vectors, check.


def const(value: bool | int | float | np.generic, as_dtype: str | DType) -> Expr:
    """A constant of the given dtype (lanes broadcast). Raises ``ExpressionError`` if the dtype cannot hold the value.

    Floats are rounded to the dtype; an integer must be in the range of an integer dtype.
    """
    kind = dtype(as_dtype)
    element = kind.element
    plain = value.item() if isinstance(value, np.generic) else value
    if not isinstance(plain, (bool, int, float)):
        raise ExpressionError(f"a constant is a number or a bool, found {value!r}")
    scalar = Const(_fit(plain, element), element)
    return scalar if kind.lanes == 1 else Broadcast(scalar, kind.lanes)


def _fit(value: bool | int | float, kind: DType) -> bool | int | float:
    if kind.is_bool:
        if value not in (0, 1):
            raise ExpressionError(f"{value!r} is not a bool")
        return bool(value)
    if kind.is_float:
        return round_number(kind, value)
    if isinstance(value, float):
        if not value.is_integer():
            raise ExpressionError(f"{value!r} is not an integer, but {kind} is wanted; cast explicitly")
        value = int(value)
    low, high = kind.int_range() or (-(1 << 62), 1 << 62)
    if not low <= value <= high:
        raise ExpressionError(f"{value} does not fit {kind} ({low} … {high})")
    return int(value)


def as_expr(value: ExprLike, like: DType | None = None) -> Expr:
    """Convert to an expression. A Python number takes dtype ``like``; without it int becomes index, float float32."""
    if isinstance(value, Operand):
        return value.as_expr()
    if isinstance(value, np.generic):
        if not isinstance(value, (np.bool_, np.number)):
            raise ExpressionError(f"cannot use a numpy {type(value).__name__} in an expression")
        return const(value, dtype(value.dtype))
    if isinstance(value, bool):
        return const(value, like if like is not None and like.is_bool else BOOL)
    if isinstance(value, int):
        return const(value, like.element if like is not None and not like.is_bool else INDEX)
    if isinstance(value, float):
        if like is not None and not like.is_float:
            raise ExpressionError(f"{value!r} meets a {like} value: convert one of them with te.cast")
        return const(value, like.element if like is not None else "float32")
    raise ExpressionError(f"cannot use a {type(value).__name__} in an expression: {value!r}")


def _float_of_extents(op: Operator, a: ExprLike, b: ExprLike) -> Expr | None:
    """The quotient of constant indices, or a power with a fraction, as Python has it; None for all else."""
    fraction = isinstance(b, float) and not b.is_integer()
    if op != "/" and not (op == "**" and fraction):
        return None
    left, right = (constant_index(x) if isinstance(x, Operand) else x for x in (a, b))
    if not isinstance(left, int) or not isinstance(right, (int, float)) or (op == "/" and not right):
        return None
    return const(left / right if op == "/" else left**right, "float64")


def constant_index(value: Operand) -> int | None:
    """The number that arithmetic on constant indices gives, as extents are; None for all else."""
    known = value.constant() if value.as_expr().dtype.is_index else None
    return None if known is None else int(known)


def power(base: ExprLike, exponent: ExprLike) -> Expr:
    """``base ** exponent``; the square is a product, as in numpy."""
    from .intrinsics import call  # which makes expressions

    if isinstance(exponent, (int, float)) and exponent == 2:
        return binary("*", base, base)
    return call("pow", *_pair(base, exponent))


def as_index(value: ExprLike) -> Expr:
    """Convert to an expression of dtype index; a data integer is cast."""
    made = as_expr(value, INDEX)
    if made.dtype.is_index:
        return made
    if made.dtype.is_data_int:
        return Cast(INDEX.with_lanes(made.dtype.lanes), made)
    raise ExpressionError(f"an index must be an integer, found the {made.dtype} `{made}`")


def _pair(a: ExprLike, b: ExprLike) -> tuple[Expr, Expr]:
    left = as_expr(a, b.as_expr().dtype if isinstance(b, Operand) else None)
    right = as_expr(b, left.dtype)
    lanes = max(left.dtype.lanes, right.dtype.lanes)
    return broadcast_to(left, lanes), broadcast_to(right, lanes)


def broadcast_to(value: Expr, lanes: int) -> Expr:
    """Broadcast a scalar; a vector that has the lanes already is returned as it is."""
    return value if value.dtype.lanes == lanes else Broadcast(value, lanes)


def binary(op: BinaryOp, a: ExprLike, b: ExprLike) -> Expr:
    return Binary(op, *_pair(a, b))


def bitwise(op: BitwiseOp, a: ExprLike, b: ExprLike) -> Expr:
    """``&``, ``|`` are logical on bools, ``^`` is ``!=``; on data integers all are bitwise."""
    left, right = _pair(a, b)
    if left.dtype.is_bool and right.dtype.is_bool:
        match op:
            case "&":
                return Logical("and", left, right)
            case "|":
                return Logical("or", left, right)
            case "^":
                return Compare("!=", left, right)
    return Binary(op, left, right)


def compare(op: CompareOp, a: ExprLike, b: ExprLike) -> Expr:
    return Compare(op, *_pair(a, b))


def minimum(a: ExprLike, b: ExprLike) -> Expr:
    return binary("min", a, b)


def maximum(a: ExprLike, b: ExprLike) -> Expr:
    return binary("max", a, b)


def logical_and(conditions: Sequence[Expr]) -> Expr:
    """The conjunction; true for none."""
    result: Expr | None = None
    for condition in conditions:
        result = condition if result is None else Logical("and", result, condition)
    return result if result is not None else TRUE


def cast(to: str | DType, value: ExprLike) -> Expr:
    """Conversion to another element type; the lanes stay. The same object if nothing changes."""
    made = as_expr(value)
    wanted = dtype(to).with_lanes(made.dtype.lanes)
    return made if made.dtype is wanted else Cast(wanted, made)


def const_int(value: Expr) -> int | None:
    """The value of an integer constant (or a broadcast one), else None."""
    match value:
        case Const(value=number) if not isinstance(number, float):
            return int(number)
        case Broadcast(value=inner):
            return const_int(inner)
        case _:
            return None


def is_const(value: Expr, number: int | float) -> bool:
    """Whether the expression is the constant ``number`` (``-0.0`` is not ``0.0``), or a broadcast of it."""
    match value:
        case Const(value=found):
            return found == number and math.copysign(1, found) == math.copysign(1, number)
        case Broadcast(value=inner):
            return is_const(inner, number)
        case _:
            return False


TRUE: Expr = Const(True, BOOL)
FALSE: Expr = Const(False, BOOL)
ZERO: Expr = Const(0, INDEX)
ONE: Expr = Const(1, INDEX)

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
           | TensorRead(tensor, indices)               in tensor expressions only (``tensor_expr.py``)
           | Reduce(combiner, sources, axes, condition, index, lanes, neighbours)   likewise

Semantics
  - ``index`` is an integer that never overflows; ``int8`` … ``uint64`` wrap around.
  - ``//`` and ``%`` round towards minus infinity, on integers only; ``x // 0`` and ``x % 0`` are 0 for data integers,
    the smallest integer divided by -1 wraps. An ``index`` divisor is never 0. ``/`` is for floats only.
  - Shifting by the width or more gives 0, or -1 where the shifted value is negative and the shift is ``>>``.
  - Floats follow IEEE 754, each operation rounded to its dtype, round to nearest even. ``min`` and ``max`` give NaN if
    either side is NaN; of two zeros of different sign either may come. Precision modes say which fusions are allowed.
  - Float to integer casts truncate and saturate, NaN becomes 0; integer to integer casts wrap; anything to bool is
    ``!= 0``.
  - The narrow types of ``base/dtype.py`` are moved and cast, no operator takes them. Casts to a narrow float round
    once, to nearest even. Beyond the largest number e5m2 has infinity, e4m3fn, the fnuz types and e8m0 have NaN, and
    e2m1 saturates and makes NaN a zero. e8m0 has powers of two alone: halfway goes up, what is too small becomes the
    smallest, and 0 and what is below it NaN.
  - ``Logical`` may evaluate both sides; all expressions are pure, so only faults (bounds) tell the difference.

Nodes are immutable and interned (see ``intern.py``): equal structure is one object, so compare with ``is``; ``Var`` is
the exception, each is unique. ``==``, ``<`` … build ``Compare`` nodes, and ``bool(expr)`` raises. Beware therefore of
``expr in some_list`` and ``a == b``: sets, dicts and ``is`` go by identity. Nodes are made of Python values by
``makers.py`` and ``constants.py``.
"""

from __future__ import annotations

import struct
from collections.abc import Hashable
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np

from ..base.dataclass import dataclass
from ..base.dtype import BOOL, INDEX, DType
from ..base.errors import ExpressionError
from .buffer import Buffer
from .expr_node import ExprNode
from .operand import Operand
from .operand_types import BINARY_DOMAIN, access_dtype, check_lanes, choice_dtype, same_dtype
from .tensor_expr import Axis, Combiner, Reduce, TensorBase, TensorRead

__all__ = [
    "ArithmeticOp", "Axis", "Binary", "BinaryOp", "BitwiseOp", "Broadcast", "Call", "Cast", "Combiner", "Compare",
    "CompareOp", "Const", "Dimension", "Expr", "ExprLike", "IfThenElse", "Let", "Load", "Logical", "LogicalOp", "Ramp",
    "Reduce", "ReduceVar", "Select", "TensorBase", "TensorRead", "Unary", "UnaryOp", "Var",
]  # fmt: skip

UnaryOp = Literal["-", "not", "~"]
ArithmeticOp = Literal["+", "-", "*", "/", "//", "%", "min", "max"]
BitwiseOp = Literal["&", "|", "^", "<<", ">>"]
BinaryOp = Literal[ArithmeticOp, BitwiseOp]
CompareOp = Literal["==", "!=", "<", "<=", ">", ">="]
LogicalOp = Literal["and", "or"]


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


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Dimension(Var):
    """A symbolic dimension that is known to lie from ``low`` to ``high``, None if there is no largest value. ``unit``
    times it is the dimension that a caller knows, by the name ``declared``."""

    low: int = 0
    high: int | None = None
    unit: int = 1
    declared: str = ""

    def __deepcopy__(self, memo: dict[int, Any]) -> Var:
        made = Dimension(self.name, self.var_dtype, self.low, self.high, self.unit, self.declared)
        return memo.setdefault(id(self), made)  # type: ignore[no-any-return]


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
        """What makes two constants one object: floats are told apart by their bits, so that 0.0 is not -0.0, and other
        values by their Python type, too, so that 1 is not True."""
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


def _key_of_two(args: tuple[Any, ...]) -> Hashable:
    """The key of an operator with two operands."""
    op, a, b = args
    return op, id(a), id(b)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Unary(ExprNode):
    """``-a`` of a number, ``not a`` of a bool, ``~a`` of a data integer, of its dtype. Raises ``ExpressionError``
    for others."""

    op: UnaryOp
    a: Expr

    def __post_init__(self) -> None:
        kind = self.a.dtype
        if (
            (self.op == "not" and not kind.is_bool)
            or (self.op == "~" and not kind.is_data_int)
            or (self.op == "-" and (kind.is_bool or kind.is_narrow))
        ):
            raise ExpressionError(f"`{self.op}` does not apply to a {kind}: {self.a}")
        self._set_dtype(kind)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Binary(ExprNode):
    """``a op b`` of two values of one dtype, which is the result's: ``/`` of floats, ``//`` and ``%`` of integers,
    bitwise operators and shifts of data integers, the others of all numbers. Raises ``ExpressionError`` otherwise."""

    op: BinaryOp
    a: Expr
    b: Expr
    intern_key = staticmethod(_key_of_two)

    def __post_init__(self) -> None:
        kind = same_dtype(self.op, self.a, self.b)
        if kind.kind not in BINARY_DOMAIN[self.op]:
            advice = ": use // for integers" if self.op == "/" else ""
            raise ExpressionError(f"`{self.op}` does not apply to {kind} values{advice}: {self.a} {self.op} {self.b}")
        self._set_dtype(kind)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Compare(ExprNode):
    """``a op b`` of two values of one dtype: a bool, with their lanes. Raises ``ExpressionError`` where the dtypes
    differ."""

    op: CompareOp
    a: Expr
    b: Expr
    intern_key = staticmethod(_key_of_two)

    def __post_init__(self) -> None:
        kind = same_dtype(self.op, self.a, self.b)
        if kind.is_narrow:
            raise ExpressionError(f"`{self.op}` does not apply to {kind}: {self.a} {self.op} {self.b}; cast them")
        self._set_dtype(BOOL.with_lanes(kind.lanes))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Logical(ExprNode):
    """``a op b`` of two bools of the same lanes. Both may be evaluated. Raises ``ExpressionError`` for other dtypes."""

    op: LogicalOp
    a: Expr
    b: Expr
    intern_key = staticmethod(_key_of_two)

    def __post_init__(self) -> None:
        kind = same_dtype(self.op, self.a, self.b)
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
        self._set_dtype(choice_dtype("select", self.condition, self.a, self.b))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class IfThenElse(ExprNode):
    """``a`` if condition (a scalar), else ``b``; only the chosen one is evaluated, so it may guard an access."""

    condition: Expr
    a: Expr
    b: Expr

    def __post_init__(self) -> None:
        self._set_dtype(choice_dtype("if_then_else", self.condition, self.a, self.b))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Let(ExprNode):
    """``body``, in which ``var`` stands for ``value``, which is computed once. Raises ``ExpressionError`` where
    their dtypes differ."""

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
    """The vector base, base + stride, …, of so many ``lanes``; both are scalar integers of one dtype. Raises
    ``ExpressionError`` otherwise."""

    base: Expr
    stride: Expr
    lanes: int

    def __post_init__(self) -> None:
        kind = same_dtype("ramp", self.base, self.stride)
        check_lanes(self.lanes)
        if kind.lanes != 1 or not (kind.is_index or kind.is_data_int):
            raise ExpressionError(f"a ramp needs scalar integers, not {kind}")
        self._set_dtype(kind.with_lanes(self.lanes))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Broadcast(ExprNode):
    """A scalar in each of so many ``lanes``. Raises ``ExpressionError`` for a vector."""

    value: Expr
    lanes: int

    def __post_init__(self) -> None:
        check_lanes(self.lanes)
        if self.value.dtype.lanes != 1:
            raise ExpressionError(f"broadcast of a value that is already a vector: {self.value}")
        self._set_dtype(self.value.dtype.with_lanes(self.lanes))


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

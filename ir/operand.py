"""What stands in an arithmetic expression: Python's operators on expressions and axes, which build expressions."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

from ..base.errors import ExpressionError
from .operators import Operator, Operators

if TYPE_CHECKING:
    from .expr import Const, Expr, ExprLike


@cache
def _maker() -> Callable[[Operator, ExprLike, ExprLike], Expr]:
    """What makes expressions of operators. Expressions are operands, so that it is imported when the first is made."""
    from .makers import operate

    return operate


class Operand(Operators["ExprLike", "Expr"]):
    """What stands in an arithmetic expression: expressions, and axes, which convert to one."""

    __slots__ = ()

    @abstractmethod
    def as_expr(self) -> Expr:
        """The expression this stands for."""

    @staticmethod
    def operate(op: Operator, a: ExprLike, b: ExprLike) -> Expr:
        return _maker()(op, a, b)

    def __neg__(self) -> Expr:
        from .expr import Unary  # which is an operand itself

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
        from .makers import inverted  # which makes expressions

        return inverted(self.as_expr())

    def __eq__(self, other: ExprLike) -> Expr:  # type: ignore[override]
        from .makers import compare  # which makes expressions

        return compare("==", self, other)

    def __ne__(self, other: ExprLike) -> Expr:  # type: ignore[override]
        from .makers import compare  # which makes expressions

        return compare("!=", self, other)

    __hash__ = object.__hash__

    def constant(self) -> Const | None:
        """The value of arithmetic on constants alone, as of extents that are numbers; None where there are others."""
        from .contents import free_vars
        from .expr import Const  # which is an operand itself
        from .simplify import simplify

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

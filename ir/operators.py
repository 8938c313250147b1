"""Python's operators on values that are computed later: those of expressions (``expr.py``) and of graph nodes.

Each is a method that hands on its symbol. ``==`` and ``!=`` are left out, since not all classes take them for
comparisons of values.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Generic, Literal, TypeAlias, TypeVar

Operator: TypeAlias = Literal[
    "+", "-", "*", "/", "//", "%", "**", "&", "|", "^", "<<", ">>", "==", "!=", "<", "<=", ">", ">="
]
Given = TypeVar("Given")
Made = TypeVar("Made")


class Operators(Generic[Given, Made]):
    """The operators of what takes a ``Given`` at its side, and gives a ``Made``."""

    __slots__ = ()

    @staticmethod
    @abstractmethod
    def operate(op: Operator, a: Any, b: Any) -> Made:
        """What ``a op b`` stands for."""

    def __add__(self, other: Given) -> Made:
        return self.operate("+", self, other)

    def __radd__(self, other: Given) -> Made:
        return self.operate("+", other, self)

    def __sub__(self, other: Given) -> Made:
        return self.operate("-", self, other)

    def __rsub__(self, other: Given) -> Made:
        return self.operate("-", other, self)

    def __mul__(self, other: Given) -> Made:
        return self.operate("*", self, other)

    def __rmul__(self, other: Given) -> Made:
        return self.operate("*", other, self)

    def __truediv__(self, other: Given) -> Made:
        return self.operate("/", self, other)

    def __rtruediv__(self, other: Given) -> Made:
        return self.operate("/", other, self)

    def __floordiv__(self, other: Given) -> Made:
        return self.operate("//", self, other)

    def __rfloordiv__(self, other: Given) -> Made:
        return self.operate("//", other, self)

    def __mod__(self, other: Given) -> Made:
        return self.operate("%", self, other)

    def __rmod__(self, other: Given) -> Made:
        return self.operate("%", other, self)

    def __pow__(self, other: Given) -> Made:
        return self.operate("**", self, other)

    def __rpow__(self, other: Given) -> Made:
        return self.operate("**", other, self)

    def __and__(self, other: Given) -> Made:
        return self.operate("&", self, other)

    def __rand__(self, other: Given) -> Made:
        return self.operate("&", other, self)

    def __or__(self, other: Given) -> Made:
        return self.operate("|", self, other)

    def __ror__(self, other: Given) -> Made:
        return self.operate("|", other, self)

    def __xor__(self, other: Given) -> Made:
        return self.operate("^", self, other)

    def __rxor__(self, other: Given) -> Made:
        return self.operate("^", other, self)

    def __lshift__(self, other: Given) -> Made:
        return self.operate("<<", self, other)

    def __rlshift__(self, other: Given) -> Made:
        return self.operate("<<", other, self)

    def __rshift__(self, other: Given) -> Made:
        return self.operate(">>", self, other)

    def __rrshift__(self, other: Given) -> Made:
        return self.operate(">>", other, self)

    def __lt__(self, other: Given) -> Made:
        return self.operate("<", self, other)

    def __le__(self, other: Given) -> Made:
        return self.operate("<=", self, other)

    def __gt__(self, other: Given) -> Made:
        return self.operate(">", self, other)

    def __ge__(self, other: Given) -> Made:
        return self.operate(">=", self, other)

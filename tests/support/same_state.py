"""Whether two states of schedules are the same but for the identity of what steps made: a replay must give that."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import fields, is_dataclass
from typing import cast

from loopwright.ir.expr import Expr, TensorBase, Var
from loopwright.ir.expr_node import ExprNode
from loopwright.ir.structural import structural_key
from loopwright.lowering.state import ScheduleState


def same_state(a: ScheduleState, b: ScheduleState) -> bool:
    """Whether the states differ in nothing but which objects their tensors and variables are; names count."""
    return _Description().of(a) == _Description().of(b)


class _Description:
    """Writes a state down as nested tuples. Mutable: numbers tensors and variables as they come up."""

    def __init__(self) -> None:
        self._numbers: dict[object, int] = {}

    def _number(self, thing: object) -> int:
        return self._numbers.setdefault(thing, len(self._numbers))

    def of(self, value: object) -> Hashable:
        match value:
            case None | str() | int() | float():
                return (type(value).__name__, value)
            case tuple() | list():
                return tuple(self.of(item) for item in value)
            case Mapping():
                return tuple((self.of(key), self.of(item)) for key, item in sorted(value.items()))
            case TensorBase():
                return ("tensor", self._number(value), value.name, str(value.dtype), self.of(value.shape))
            case Var():
                return ("variable", self._number(value), value.name, str(value.dtype))
            case ExprNode():
                return structural_key(cast(Expr, value), self._number)
            case _ if is_dataclass(value):
                parts = ((f.name, self.of(getattr(value, f.name))) for f in fields(value) if f.init)
                return (type(value).__name__, *parts)
            case _:
                return ("object", id(value))

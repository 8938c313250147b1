"""The primitive that chooses a value by its name: ``decide``. It changes nothing; later steps go by the value."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from ...base.dataclass import dataclass
from ..decisions import Decision, DecisionValue, is_legal
from ..report import literal
from ..state import ScheduleState
from ..step import Step


@dataclass(frozen=True, slots=True, repr=False)
class Decide(Step):
    """Choose a value by its name, and remember which others there were.

    Arguments: ``legal``, the values that there are, which may depend on the decisions before; ``default``, what the
    schedule takes by itself; ``value``, what it takes here; ``reorders_sum``, whether another value than the default
    changes the order in which a sum of floats is folded, so that builds with strict precision refuse it.
    Preconditions: no decision of the schedule has the name; the legal values are integers, bools and strings, and the
    default and the value are among them.

    Rewrite, ``s.decide("rows", [1, 2, 4], 2)``: none. The steps after it hold plain numbers.
    """

    primitive: ClassVar[str] = "decide"

    name: str
    legal: tuple[DecisionValue, ...]
    default: DecisionValue
    value: DecisionValue
    reorders_sum: bool = False

    def apply(self, state: ScheduleState) -> ScheduleState:
        return state.with_decision(Decision(self.name, self.legal, self.default, self.value, self.reorders_sum))

    def call(self, write: Callable[[object], str]) -> str:
        given = [literal(self.name), literal(self.legal), literal(self.default)]
        given += [f"value={literal(self.value)}"] if not is_legal(self.value, (self.default,)) else []
        given += ["reorders_sum=True"] if self.reorders_sum else []
        return f"s.decide({', '.join(given)})"

"""Named decisions: the numbers and alternatives that a schedule function chooses by name, so that others can, too.

A function calls ``s.decide(name, legal, default)`` for each; whoever has it run again, on another shape or with other
operators fused around, gives values by these names, and the function's later steps follow.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias, TypeVar

from ..base.brief import BriefRepr
from ..base.dataclass import dataclass
from ..base.errors import ScheduleError
from ..te.tensor import Tensor

DecisionValue: TypeAlias = bool | int | str
V = TypeVar("V", bool, int, str)


class _NoneDecided(Mapping[str, DecisionValue]):
    """No values at all. Unlike a proxy of a dict, it can be pickled; unlike a dict, nobody can add to it."""

    def __getitem__(self, name: str) -> DecisionValue:
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0


NONE_DECIDED: Mapping[str, DecisionValue] = _NoneDecided()


@dataclass(frozen=True, slots=True, repr=False)
class Decision(BriefRepr):
    """A value that was chosen by its name among the ``legal`` ones, of which the schedule takes ``default`` by itself.
    ``reorders_sum``: another value than the default changes the order in which a sum of floats is folded.

    Raises ``ScheduleError`` where the default or the value is not legal.
    """

    name: str
    legal: tuple[DecisionValue, ...]
    default: DecisionValue
    value: DecisionValue
    reorders_sum: bool = False

    def __post_init__(self) -> None:
        name: object = self.name
        if not isinstance(name, str) or not name:
            raise ScheduleError(f"a decision has a name, found {name!r}")
        wrong = [value for value in self.legal if type(value) not in (bool, int, str)]
        if wrong or not self.legal:
            found = f"found {wrong[0]!r}" if wrong else "found none"
            raise ScheduleError(f"the legal values of decision {self.name!r} are numbers, bools or texts, {found}")
        for what, value in (("default", self.default), ("value", self.value)):
            if not is_legal(value, self.legal):
                raise ScheduleError(
                    f"the {what} of decision {self.name!r} should be one of {values_text(self.legal)}, found {value!r}"
                )

    def __str__(self) -> str:
        default = "" if self.value == self.default else f", by default {self.default!r}"
        marked = ", reorders a sum" if self.reorders_sum else ""
        return f"{self.name} = {self.value!r} of {values_text(self.legal)}{default}{marked}"


class Outputs(tuple[Tensor, ...]):  # noqa: SLOT001  # a tuple has no room for slots
    """The outputs of a function that is to be scheduled, with the values ``decided`` for its decisions.

    A schedule function is given them as ``outputs``; ``create_schedule(outputs)`` makes a schedule with these values.
    """

    decided: Mapping[str, DecisionValue] = NONE_DECIDED

    @classmethod
    def of(cls, outputs: Iterable[Tensor], decided: Mapping[str, DecisionValue]) -> Outputs:
        """The outputs with values for decisions, by name."""
        made = cls(outputs)
        made.decided = decided
        return made


def is_legal(value: object, legal: Iterable[DecisionValue]) -> bool:
    """Whether a value is one of those, of the same type: True is not 1 here."""
    return any(type(value) is type(each) and value == each for each in legal)


def nearest(wanted: DecisionValue, decision: Decision) -> DecisionValue:
    """The legal value that stands for one that was decided elsewhere: itself; of numbers, the nearest, the smaller of
    two; else the default.

    Raises ``ScheduleError`` where no legal value is of its type, which no other shape explains.
    """
    if is_legal(wanted, decision.legal):
        return wanted
    if not any(type(value) is type(wanted) for value in decision.legal):
        raise ScheduleError(
            f"the decision {decision.name!r} should be one of {values_text(decision.legal)}, found {wanted!r}"
        )
    if type(wanted) is not int:
        return decision.default
    numbers = (value for value in decision.legal if type(value) is int)
    return min(numbers, key=lambda value: (abs(value - wanted), value))


def beside(decision: Decision) -> list[DecisionValue]:
    """The values next to that of a decision: of numbers the next smaller and larger one, of others all others."""
    if all(type(value) is int for value in decision.legal):
        ordered = sorted(decision.legal)
        at = ordered.index(decision.value)
        return [*ordered[max(0, at - 1) : at], *ordered[at + 1 : at + 2]]
    return [value for value in decision.legal if value != decision.value]


def require_known(decided: Mapping[str, DecisionValue], made: Sequence[Decision], who: str) -> None:
    """Raises ``ScheduleError`` where values are decided by names that the schedule of ``who`` has no decision of."""
    names = [decision.name for decision in made]
    for name in decided:
        if name not in names:
            near = difflib.get_close_matches(name, names, 1)
            hint = f"did you mean {near[0]!r}? " if near else ""
            known = f"it decides {', '.join(names)}" if names else "it decides nothing"
            raise ScheduleError(f"{who} has no decision {name!r}: {hint}{known}")


def departures(decided: Mapping[str, DecisionValue], made: Sequence[Decision]) -> tuple[str, ...]:
    """What became of each decision whose value is not the one that was asked for, as text."""
    return tuple(
        f"{d.name} is {d.value!r} here, as {decided[d.name]!r} is none of {values_text(d.legal)}"
        for d in made
        if d.name in decided and not is_legal(decided[d.name], (d.value,))
    )


def values_text(values: Sequence[DecisionValue]) -> str:
    """``1, 2, 3``; of many, some."""
    texts = [repr(value) for value in values]
    return ", ".join(texts if len(texts) <= 12 else [*texts[:8], "…", texts[-1]])

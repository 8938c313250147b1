"""What tuning has come to so far, and in the end: plain data, which prints as a table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from ..base.brief import BriefRepr
from ..base.dataclass import dataclass
from ..base.errors import RuntimeArgumentError
from ..base.quantities import count_text, ratio_text, seconds_text, share_text

if TYPE_CHECKING:
    from rich.table import Table

MOST_UNTRIED = 4
"""Of so few tasks that were not tried each has a row."""


@dataclass(frozen=True, slots=True, repr=False)
class TaskProgress(BriefRepr):
    """``share`` is the part of the untuned model's time, ``tried`` how many candidates were, and ``failed`` how many of
    these failed. ``best`` is the fastest, ``gain`` how many times as fast as the untuned code. ``state`` is what is
    done with it."""

    name: str
    operator: str
    share: float
    seconds: float
    tried: int
    failed: int
    best: str
    gain: float
    state: str


@dataclass(frozen=True, slots=True, repr=False)
class TuningProgress(BriefRepr):
    """``phase`` is what is done at the moment, ``seconds_left`` of the time that was granted."""

    phase: str
    tasks: tuple[TaskProgress, ...]
    seconds_left: float

    def table(self) -> Table:
        """A table that rich prints: a row a task; those that were not tried, for one reason, share a row if they are
        many."""
        from ..base.table import lines_of, number_table

        table = number_table(["task and best"], ["share", "time", "tried", "failed", "gain"], ["state"])
        for task in _rows(self.tasks):
            seconds = seconds_text(task.seconds) if task.seconds else ""
            gain = ratio_text(task.gain) if task.gain else ""
            numbers = (share_text(task.share), seconds, str(task.tried), str(task.failed), gain)
            table.add_row(lines_of(task.name, task.best or task.operator), *numbers, task.state)
        return table


def _rows(tasks: Sequence[TaskProgress]) -> Sequence[TaskProgress]:
    untried: dict[str, list[TaskProgress]] = {}
    for task in tasks:
        if not task.tried:
            untried.setdefault(task.state, []).append(task)
    joined = {state: _joined(each) for state, each in untried.items() if len(each) > MOST_UNTRIED}
    return [*(task for task in tasks if task.tried or task.state not in joined), *joined.values()]


def _joined(tasks: Sequence[TaskProgress]) -> TaskProgress:
    share, seconds = (sum(numbers) for numbers in zip(*((t.share, t.seconds) for t in tasks), strict=True))
    return replace(tasks[0], name=f"{len(tasks)} other tasks", operator="", share=share, seconds=seconds)


def listener_of(given: object) -> Callable[[TuningProgress], None]:
    """What progress is told to; nobody, if that is None. Raises ``RuntimeArgumentError`` for what cannot be called."""
    if given is None:
        return lambda progress: None
    if not callable(given):
        raise RuntimeArgumentError(f"progress should be a function of a TuningProgress, found {given!r}")
    return given


@dataclass(frozen=True, slots=True, repr=False)
class TuningReport(BriefRepr):
    """``records`` is the file, ``written`` how many records came into it, and ``taken_back`` how many of these were
    taken back. ``gain`` is how many times as fast the tuned model is as the untuned one, with a bound ``at_least``;
    both are 1 where no record serves it. ``tries`` are candidates, ``measured`` those whose outcome was not known.
    ``note`` says why there was nothing to tune."""

    tasks: tuple[TaskProgress, ...]
    records: str
    written: int
    taken_back: int
    gain: float
    at_least: float
    tries: int
    measured: int
    note: str = ""

    def __str__(self) -> str:
        """A table of tasks, and what became of the model."""
        from ..base.table import table_text, text_width

        width = text_width()
        table = TuningProgress("", self.tasks, 0.0).table()
        return "\n".join([*([table_text(table, width), ""] if self.tasks else []), *self.lines()])

    def lines(self) -> Sequence[str]:
        """What became of the model."""
        if self.note:
            return [self.note]
        tried = f"{count_text(self.tries, 'candidate')} tried, {self.measured} of them in this run"
        kept = self.written - self.taken_back
        back = f", {self.taken_back} taken back" if self.taken_back else ""
        found = f"{count_text(kept, 'new record')} in {self.records}{back}"
        faster = f"the model is {ratio_text(self.gain)} as fast as untuned (at least {self.at_least:.3f}×)"
        return [tried, found, faster if self.gain != 1 else "the model is as it was"]

    def to_json(self) -> dict[str, Any]:
        """All as JSON values."""
        return asdict(self)

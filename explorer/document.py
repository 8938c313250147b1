"""What a page of the explorer shows, as plain data: texts in panes, which line comes from which, times, the machine.

``stages → document → page``: ``panes.py`` makes the panes of a schedule, ``page.py`` writes the whole as HTML, and the
scripts in ``assets/`` read its JSON.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any, Literal, TypeAlias

from ..artifact.machine_rates import MachineRates
from ..base.dataclass import dataclass
from .loop_prediction import LoopPrediction

Role: TypeAlias = Literal["compute", "steps", "nest", "pass", "llvm", "assembly", "model"]
"""What kind of text a pane has. Of compute, nest and pass, what is indented below a line belongs to it."""

RateUnit: TypeAlias = Literal["GFLOP/s", "Gop/s"]

MATCHED_LINES = 4000
"""Of longer texts that differ in the middle, the middle counts as changed as a whole: matching it would take long."""


@dataclass(frozen=True, slots=True)
class Note:
    """What became of the loop that begins on a line: ``text``, all that ``costs``, and what its ``code`` consists of.
    ``brief`` stands beside the line; it is empty where there is nothing to say."""

    line: int
    loop: str
    brief: str
    text: str
    costs: tuple[str, ...]
    code: str


@dataclass(frozen=True, slots=True)
class Pane:
    """One text of the page. ``origins`` has for each line those of the pane ``parent`` that it comes from, counted from
    1, and ``previous`` is the pane that a difference is shown to."""

    id: str
    role: Role
    title: str
    lines: tuple[str, ...]
    parent: str = ""
    origins: tuple[tuple[int, ...], ...] = ()
    previous: str = ""
    notes: tuple[Note, ...] = ()


@dataclass(frozen=True, slots=True)
class PassEntry:
    """A lowering pass, and the pane of the function behind it; without one the pass changed nothing."""

    name: str
    title: str
    pane: str


@dataclass(frozen=True, slots=True)
class ScheduleEntry:
    """A schedule, by the ids of its panes; ``model`` is empty where no machine model reads the code. ``nests`` are the
    one before the first step and that after each; ``step_of`` has for each line of ``steps`` the number of its step,
    from 1, or 0. ``predictions`` are what the pane of the model says. ``seconds`` is None if not measured."""

    name: str
    compute: str
    steps: str
    step_of: tuple[int, ...]
    nests: tuple[str, ...]
    passes: tuple[PassEntry, ...]
    llvm: tuple[str, ...]
    assembly: str
    model: str = ""
    predictions: tuple[LoopPrediction, ...] = ()
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Peer:
    """Another program that computes the same, and the seconds that it takes."""

    name: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Work:
    """What a compute takes by its definition: ``operations``, 0 where that does not tell, on ``bytes`` of arguments.
    ``rate_unit`` is that of 10⁹ such operations a second."""

    operations: int
    bytes: int
    rate_unit: RateUnit


@dataclass(frozen=True, slots=True)
class Document:
    """All that a page shows. ``machine`` and ``work`` are what its roofline needs."""

    title: str
    subtitle: str
    panes: tuple[Pane, ...]
    schedules: tuple[ScheduleEntry, ...]
    peers: tuple[Peer, ...] = ()
    work: Work | None = None
    machine: MachineRates | None = None

    def to_json(self) -> dict[str, Any]:
        """The document as JSON values."""
        by_id = {pane.id: pane for pane in self.panes}
        return {
            "title": self.title,
            "subtitle": self.subtitle,
            "panes": [_pane_json(pane, by_id) for pane in self.panes],
            "schedules": [_entry_json(schedule) for schedule in self.schedules],
            "peers": [asdict(peer) for peer in self.peers],
            **self.roofline_json(),
        }

    def roofline_json(self) -> dict[str, Any]:
        """The work, and what the machine gives at best."""
        return {
            "work": self.work and asdict(self.work),
            "machine": self.machine and self._machine_json(self.machine),
        }

    def _machine_json(self, machine: MachineRates) -> dict[str, Any]:
        least = machine.least_seconds(self.work.operations, self.work.bytes) if self.work else 0.0
        return {"operations": machine.operations, "bandwidths": machine.bandwidths, "least_seconds": least}


def _entry_json(entry: ScheduleEntry) -> dict[str, Any]:
    """The entry without its predictions, which the page shows as the text of a pane."""
    return asdict(replace(entry, predictions=()))


def _pane_json(pane: Pane, by_id: Mapping[str, Pane]) -> dict[str, Any]:
    return {
        "id": pane.id,
        "role": pane.role,
        "title": pane.title,
        "text": "\n".join(pane.lines),
        "parent": pane.parent,
        "origins": [_origin_json(lines) for lines in pane.origins],
        "previous": pane.previous,
        "changes": changed_lines(by_id[pane.previous].lines, pane.lines) if pane.previous else [],
        "notes": [asdict(note) for note in pane.notes],
    }


def _origin_json(lines: Sequence[int]) -> int | list[int]:
    """The one line, 0 for none, a list of several."""
    return list(lines) if len(lines) > 1 else lines[0] if lines else 0


def changed_lines(before: Sequence[str], after: Sequence[str]) -> list[tuple[int, int, int, int]]:
    """Where two texts differ: lines ``a:b`` of the one stand in the place of ``c:d`` of the other, as ``(a, b, c, d)``.

    >>> changed_lines(["x", "y", "z"], ["x", "w", "z", "v"])
    [(1, 2, 1, 2), (3, 3, 3, 4)]
    """
    head = _equal_lines(before, after)
    tail = min(_equal_lines(before[::-1], after[::-1]), len(before) - head, len(after) - head)
    old, new = before[head : len(before) - tail], after[head : len(after) - tail]
    if not old and not new:
        return []
    if len(old) + len(new) > MATCHED_LINES:
        return [(head, head + len(old), head, head + len(new))]
    codes = difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    return [(head + a, head + b, head + c, head + d) for tag, a, b, c, d in codes if tag != "equal"]


def _equal_lines(a: Sequence[str], b: Sequence[str]) -> int:
    """How many lines two texts begin with in common."""
    return next((k for k, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))

"""A page in brief, for scripts: times, rates, and the verdict on each loop. ``loopwright explore --json`` prints it."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from .document import Document, Note, ScheduleEntry
from .loop_prediction import LoopPrediction


def summary(shown: Document) -> dict[str, Any]:
    """The schedules and peers of a page with their times as JSON values; what was not measured is None.

    ``rate`` is in ``work.rate_unit``; ``of_roofline`` is the least time that the machine could take by that measured.
    ``innermost`` are the predictions for the innermost loops of the machine code.
    """
    return {
        "title": shown.title,
        "about": shown.subtitle,
        **shown.roofline_json(),
        "schedules": [
            {
                "name": entry.name,
                **_speed(shown, entry.seconds),
                "loops": _loops(shown, entry),
                "innermost": [_innermost(found) for found in entry.predictions],
            }
            for entry in shown.schedules
        ],
        "peers": [{"name": peer.name, **_speed(shown, peer.seconds)} for peer in shown.peers],
    }


def _speed(shown: Document, seconds: float | None) -> dict[str, float | None]:
    work, machine = shown.work, shown.machine
    if seconds is None or work is None:
        return {"seconds": seconds, "rate": None, "of_roofline": None}
    return {
        "seconds": seconds,
        "rate": work.operations / seconds / 1e9 if work.operations else None,
        "of_roofline": machine.least_seconds(work.operations, work.bytes) / seconds if machine else None,
    }


def _loops(shown: Document, entry: ScheduleEntry) -> list[dict[str, Any]]:
    """The loops of the schedule's nest, in its order."""
    nest = next(pane for pane in shown.panes if pane.id == entry.nests[-1])
    return [_loop(note) for note in sorted(nest.notes, key=lambda note: note.line)]


def _loop(note: Note) -> dict[str, Any]:
    return {
        "line": note.line,
        "loop": note.loop,
        "became": note.text,
        "costs": list(note.costs),
        "code": note.code,
    }


def _innermost(found: LoopPrediction) -> dict[str, Any]:
    return {
        "loop": found.name,
        "cycles": found.cycles,
        "bottleneck": found.bottleneck,
        "bounds": {bound.of: bound.cycles for bound in found.bounds},
        "left_out": list(found.beyond),
        "llvm_mca": asdict(found.mca),
    }

"""``loopwright records``: what files of tuning records hold, and moving the best of them between files."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable
from pathlib import Path
from typing import TypeAlias, TypeVar

from .. import RuntimeArgumentError, TuningRecords
from ..artifact.records.record import Record
from ..artifact.records.record_file import read_trials, rewrite_records
from ..artifact.records.workload import TargetKey, Workload
from ..base.quantities import count_text, ratio_text, seconds_text
from ..base.table import Name, lines_of, number_table, print_table
from ..base.target import brief_target
from .output_file import check_output_file
from .report import make_console

Subject: TypeAlias = tuple[Workload, TargetKey, int | None]
"""What records are compared by: the workload, the target and its threads."""
RecordT = TypeVar("RecordT", bound=Record)


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of ``records``."""
    parser.description = "List, compare, prune or copy tuning records. Files merge by concatenation."
    parser.epilog = "example: loopwright records copy tuned.jsonl all.jsonl"
    actions = parser.add_subparsers(title="actions", metavar="action", required=True)
    listing = actions.add_parser("ls", help="list the records of files")
    listing.add_argument("files", type=Path, nargs="+", metavar="FILE.jsonl")
    listing.add_argument("--best", action="store_true", help="only the fastest of each workload and target")
    listing.add_argument("--json", action="store_true", help="print JSON")
    listing.set_defaults(run=_list)
    comparing = actions.add_parser("compare", help="compare the fastest records of two files")
    comparing.add_argument("first", type=Path, metavar="FILE.jsonl")
    comparing.add_argument("second", type=Path, metavar="FILE.jsonl")
    comparing.add_argument("--json", action="store_true", help="print JSON")
    comparing.set_defaults(run=_compare)
    prune = actions.add_parser(
        "prune", help="leave only the fastest record of each workload and target, and nothing of what was tried"
    )
    prune.add_argument("file", type=Path, metavar="FILE.jsonl")
    prune.add_argument("--dry-run", action="store_true", help="only say what would be removed")
    prune.set_defaults(run=_prune)
    copy = actions.add_parser("copy", help="append the fastest records of a file to another, which lacks them")
    copy.add_argument("source", type=Path, metavar="FROM.jsonl")
    copy.add_argument("destination", type=Path, metavar="TO.jsonl")
    copy.set_defaults(run=_copy)


def _list(arguments: argparse.Namespace) -> int:
    records = [record for file in arguments.files for record in TuningRecords.load(file)]
    shown = best_of(records) if arguments.best else records
    if arguments.json:
        print(json.dumps([record.to_json() for record in shown], indent=2, ensure_ascii=False))
        return 0
    table = number_table(["workload and choice"], ["time", "threads"])
    table.add_column("target")
    for record in shown:
        threads = "" if record.threads is None else str(record.threads)
        names = lines_of(workload_text(record.workload), _choice(record))
        table.add_row(names, seconds_text(record.cost), threads, Name(brief_target(record.target.line)))
    console = make_console()
    if shown:
        print_table(console, table)
    trials = sum(len(read_trials(file)) for file in arguments.files)
    print(f"{count_text(len(shown), 'record')}, {count_text(trials, 'note')} of what tuning tried")
    return 0


def _compare(arguments: argparse.Namespace) -> int:
    first, second = (
        {subject_of(record): record for record in best_of(TuningRecords.load(file))}
        for file in (arguments.first, arguments.second)
    )
    rows = [(subject, first.get(subject), second.get(subject)) for subject in dict.fromkeys((*first, *second))]
    if arguments.json:
        print(json.dumps([_comparison(*row) for row in rows], indent=2, ensure_ascii=False))
        return 0
    table = number_table(["workload"], ["first", "second", "ratio"])
    for subject, one, other in rows:
        times = ("" if each is None else seconds_text(each.cost) for each in (one, other))
        ratio = ratio_text(one.cost / other.cost) if one is not None and other is not None else ""
        table.add_row(lines_of(workload_text(subject[0]), brief_target(subject[1].line)), *times, ratio)
    if rows:
        print_table(make_console(), table)
    common = sum(one is not None and other is not None for _, one, other in rows)
    print(
        f"{count_text(common, 'workload')} in both, {len(first) - common} in the first alone, "
        f"{len(second) - common} in the second alone"
    )
    return 0


def _prune(arguments: argparse.Namespace) -> int:
    records = list(TuningRecords.load(arguments.file))
    notes = len(read_trials(arguments.file))
    if not arguments.dry_run:
        rewrite_records(arguments.file, best_of)
    removed = len(records) - len(best_of(records))
    said = "would remove" if arguments.dry_run else "removed"
    print(f"{said} {count_text(removed, 'record')} and {count_text(notes, 'note')} from {arguments.file}")
    return 0


def _copy(arguments: argparse.Namespace) -> int:
    check_output_file(arguments.destination, "records")
    if arguments.destination.exists() and arguments.destination.samefile(arguments.source):
        raise RuntimeArgumentError(f"{arguments.source} and {arguments.destination} are one file")
    there = set(TuningRecords.load(arguments.destination)) if arguments.destination.exists() else set()
    copied = [record for record in best_of(TuningRecords.load(arguments.source)) if record not in there]
    TuningRecords.append(arguments.destination, *copied)
    print(f"copied {count_text(len(copied), 'record')} to {arguments.destination}")
    return 0


def subject_of(record: Record) -> Subject:
    """What a record is compared with others by."""
    return record.workload, record.target, record.threads


def best_of(records: Iterable[RecordT]) -> list[RecordT]:
    """The fastest record of each workload, target and number of threads, in the order in which these came up."""
    best: dict[Subject, RecordT] = {}
    for record in records:
        known = best.get(subject_of(record))
        if known is None or record.cost < known.cost:
            best[subject_of(record)] = record
    return list(best.values())


def workload_text(workload: Workload) -> str:
    """A workload on one line, as ``nn.matmul(float32[24, 20], float32[20, 40])``."""
    arguments = (f"{a.dtype}[{', '.join(map(str, a.shape))}]" for a in workload.arguments)
    return f"{workload.op}({', '.join(arguments)})"


def _choice(record: Record) -> str:
    how = record.decisions if record.decisions is not None else "a trace" if record.trace_text else ""
    return f"{record.implementation} {how}".rstrip()


def _comparison(subject: Subject, one: Record | None, other: Record | None) -> dict[str, object]:
    return {
        "workload": subject[0].to_json(),
        "first": None if one is None else one.to_json(),
        "second": None if other is None else other.to_json(),
    }

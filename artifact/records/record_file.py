"""The file that records are kept in: one JSON object a line, only ever appended to, by any number of processes.

A line is read by itself: what is wrong with one never hides the others.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Literal, TypeVar

from filelock import FileLock

from ...base.errors import RecordError
from .record import FORMAT, Record
from .workload import canonical_json

_log = logging.getLogger("loopwright.records")
Read = TypeVar("Read", bound=Record)


@dataclass(frozen=True, slots=True)
class SkippedLine:
    """A line that gave no record: it is damaged, or of a format to come."""

    path: str
    number: int
    why: Literal["damaged", "newer"]
    problem: str

    def __str__(self) -> str:
        return f"{self.path}, line {self.number}: {self.problem}"


def read_records(
    path: str | os.PathLike[str], read: Callable[[object], Read]
) -> tuple[tuple[Read, ...], tuple[SkippedLine, ...]]:
    """The records of a file as ``read`` makes them of JSON, and the lines that were skipped, of which the log tells.

    Raises ``RecordError`` for a file that cannot be read.
    """
    records, skipped = [], []
    try:
        lines = Path(path).read_bytes().split(b"\n")
    except OSError as error:
        raise RecordError(f"the tuning records {os.fspath(path)} cannot be read: {error.strerror or error}") from error
    for line in _parsed(lines, os.fspath(path), read):
        if isinstance(line, SkippedLine):
            _log.warning("skipping a tuning record: %s", line)
            skipped.append(line)
        else:
            records.append(line)
    return tuple(records), tuple(skipped)


def _parsed(lines: Iterable[bytes], path: str, read: Callable[[object], Read]) -> Iterator[Read | SkippedLine]:
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            data = json.loads(line)
        except (ValueError, RecursionError) as error:
            yield SkippedLine(path, number, "damaged", f"this is no JSON: {error}")
            continue
        if not isinstance(data, dict) or type(data.get("format")) is not int or data["format"] < 1:
            yield SkippedLine(path, number, "damaged", "a record is a JSON object with a number from 1 as its 'format'")
        elif data["format"] > FORMAT:
            problem = f"it has format {data['format']}, this version reads up to {FORMAT}: use a newer loopwright"
            yield SkippedLine(path, number, "newer", problem)
        else:
            try:
                yield read(data)
            except (RecordError, RecursionError, ValueError, OverflowError) as error:
                yield SkippedLine(path, number, "damaged", str(error))


def append_records(path: str | os.PathLike[str], records: Iterable[Record]) -> None:
    """Write records behind those of a file, which is made if need be; each line is there whole, or not at all.

    Raises ``RecordError`` where the file cannot be written.
    """
    lines = b"".join(map(_line, records))
    try:
        with FileLock(f"{os.fspath(path)}.lock"), Path(path).open("a+b", buffering=0) as file:
            if _is_torn(file):  # a writer that crashed left half a line
                lines = b"\n" + lines
            written = file.write(lines)
            while written < len(lines):
                written += file.write(lines[written:])
    except OSError as error:
        why = error.strerror or error
        raise RecordError(f"the tuning records {os.fspath(path)} cannot be written: {why}") from error


def _line(record: object) -> bytes:
    if not isinstance(record, Record):
        raise RecordError(f"only tuning records are appended to a file of them, found {record!r}")
    return canonical_json(record.to_json()).encode() + b"\n"


def _is_torn(file: BinaryIO) -> bool:
    if file.seek(0, os.SEEK_END) == 0:
        return False
    file.seek(-1, os.SEEK_END)
    return file.read(1) != b"\n"

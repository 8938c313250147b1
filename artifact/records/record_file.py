"""The file that records are kept in: one JSON object a line, only ever appended to, by any number of processes.

A line is read by itself: what is wrong with one never hides the others. Beside records stand notes of what tuning tried
(``trial.py``) and which records it has taken back (``withdrawal.py``): these have a ``kind``.
"""

from __future__ import annotations

import json
import logging
import os
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, BinaryIO, Literal, TypeAlias, TypeVar

from ...base.dataclass import dataclass
from ...base.errors import RecordError
from .note import NOTE_FORMAT
from .record import FORMAT, Record
from .trial import Trial
from .withdrawal import Withdrawal, digest_of
from .workload import canonical_json

_log = logging.getLogger("loopwright.records")
Read = TypeVar("Read", bound=Record)
Note: TypeAlias = Trial | Withdrawal
HEAD_BYTES = 65536
"""A file of records has a line that begins as one in its first bytes."""
_NOTES: dict[str, type[Trial] | type[Withdrawal]] = {Trial.KIND: Trial, Withdrawal.KIND: Withdrawal}


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
    """The records of a file as ``read`` makes them of JSON, but for those that were taken back, and the lines that were
    skipped, of which the log tells.

    Raises ``RecordError`` for a file that cannot be read.
    """
    records: list[Read] = []
    skipped, withdrawn = [], set()
    for line in _parsed(path, read):
        match line:
            case SkippedLine():
                _log.warning("skipping a tuning record: %s", line)
                skipped.append(line)
            case Withdrawal():
                withdrawn.add(line.record)
            case Record():
                records.append(line)
    if withdrawn:
        records = [record for record in records if digest_of(record) not in withdrawn]
    return tuple(records), tuple(skipped)


def read_trials(path: str | os.PathLike[str]) -> tuple[Trial, ...]:
    """What tuning has tried, by the notes of a file. Damaged lines are passed over: they are measured again.

    Raises ``RecordError`` for a file that cannot be read.
    """
    return tuple(line for line in _parsed(path, Record.from_json) if isinstance(line, Trial))


def _parsed(path: str | os.PathLike[str], read: Callable[[object], Read]) -> Iterator[Read | Note | SkippedLine]:
    name = os.fspath(path)
    try:
        lines = Path(path).read_bytes().split(b"\n")
    except OSError as error:
        raise RecordError(f"the tuning records {name} cannot be read: {error.strerror or error}") from error
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            data = json.loads(line)
        except (ValueError, RecursionError) as error:
            yield SkippedLine(name, number, "damaged", f"this is no JSON: {error}")
            continue
        if not isinstance(data, dict) or type(data.get("format")) is not int or data["format"] < 1:
            yield SkippedLine(name, number, "damaged", "a record is a JSON object with a number from 1 as its 'format'")
        elif data["format"] > FORMAT and not _is_note(data):
            problem = f"it has format {data['format']}, this version reads up to {FORMAT}: use a newer loopwright"
            yield SkippedLine(name, number, "newer", problem)
        else:
            try:
                yield read(data) if data["format"] <= FORMAT else _NOTES[data["kind"]].from_json(data)
            except (RecordError, RecursionError, ValueError, OverflowError) as error:
                yield SkippedLine(name, number, "damaged", str(error))


def _is_note(data: Mapping[str, Any]) -> bool:
    return data["format"] == NOTE_FORMAT and isinstance(data.get("kind"), str) and data["kind"] in _NOTES


def append_records(path: str | os.PathLike[str], records: Iterable[Record]) -> None:
    """Write records behind those of a file, which is made if need be; each line is there whole, or not at all.

    Raises ``RecordError`` where the file cannot be written.
    """
    _append(path, b"".join(map(_line, records)))


def append_notes(path: str | os.PathLike[str], notes: Iterable[Note]) -> None:
    """Write what tuning notes behind the lines of a file, as ``append_records`` writes records."""
    _append(path, b"".join(canonical_json(note.to_json()).encode() + b"\n" for note in notes))


def check_can_append(path: str | os.PathLike[str]) -> None:
    """Raise ``RecordError`` where lines cannot be appended: before what they tell of is measured rather than after."""
    file = Path(path)
    try:
        if file.exists():
            with file.open("rb") as opened:
                _check_is_ours(path, opened)
    except OSError as error:
        raise _unwritable(path, error.strerror or error) from error
    if not file.parent.is_dir():
        raise _unwritable(path, f"there is no folder {file.parent}")
    for each in (file, file.parent) if file.exists() else (file.parent,):  # the lock stands beside the file
        if not os.access(each, os.W_OK):
            raise _unwritable(path, f"{each} may not be written")


def rewrite_records(path: str | os.PathLike[str], kept: Callable[[Sequence[Record]], Iterable[Record]]) -> None:
    """Have a file hold those of its records that ``kept`` gives, and no notes. It is replaced as a whole, while other
    writers wait. Raises ``RecordError`` where it cannot be read or written, and where what would be lost is not known:
    records of a newer loopwright, or something else."""
    file = Path(path)
    aside = file.with_name(f".{file.name}-{secrets.token_hex(8)}")
    try:
        with _lock(file):
            with file.open("rb") as opened:
                _check_is_ours(file, opened)
            records, skipped = read_records(file, Record.from_json)
            if newer := next((line for line in skipped if line.why == "newer"), None):
                raise RecordError(f"{newer}; nothing is removed")
            try:
                aside.write_bytes(b"".join(map(_line, kept(records))))
                aside.replace(file)
            finally:
                aside.unlink(missing_ok=True)
    except OSError as error:
        raise _unwritable(file, error.strerror or error) from error


def _lock(path: str | os.PathLike[str]) -> AbstractContextManager[object]:
    """Held by one writer of a file at a time."""
    from filelock import FileLock  # engines read records, and seldom write any

    return FileLock(f"{os.fspath(path)}.lock")


def _append(path: str | os.PathLike[str], lines: bytes) -> None:
    try:
        with _lock(path), Path(path).open("a+b", buffering=0) as file:
            _check_is_ours(path, file)
            if _is_torn(file):  # a writer that crashed left half a line
                lines = b"\n" + lines
            written = file.write(lines)
            while written < len(lines):
                written += file.write(lines[written:])
    except OSError as error:
        raise _unwritable(path, error.strerror or error) from error


def _check_is_ours(path: str | os.PathLike[str], file: BinaryIO) -> None:
    """Raise ``RecordError`` for a file that begins like none of records, such as a model that was named by mistake."""
    file.seek(0)
    begin = file.read(HEAD_BYTES)
    if begin.strip() and not any(line.startswith(b"{") for line in begin.split(b"\n")):
        raise _unwritable(path, "the file holds something else; give another")


def _unwritable(path: str | os.PathLike[str], why: object) -> RecordError:
    return RecordError(f"the tuning records {os.fspath(path)} cannot be written: {why}")


def _line(record: object) -> bytes:
    if not isinstance(record, Record):
        raise RecordError(f"only tuning records are appended to a file of them, found {record!r}")
    return canonical_json(record.to_json()).encode() + b"\n"


def _is_torn(file: BinaryIO) -> bool:
    if file.seek(0, os.SEEK_END) == 0:
        return False
    file.seek(-1, os.SEEK_END)
    return file.read(1) != b"\n"

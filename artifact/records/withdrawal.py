"""A withdrawal: a record that tuning has taken back, as it did not make a model faster, or another one replaced it.

Files are only ever appended to, so that a line says it, which names the record by its content: the order of lines does
not count, and files merge by concatenation.
"""

from __future__ import annotations

import hashlib
from typing import Any, ClassVar, Self

from ...base.dataclass import dataclass
from ...base.json_object import read_object
from .note import NOTE_FORMAT
from .record import Record
from .workload import canonical_json


def digest_of(record: Record) -> str:
    """What tells a record from all others."""
    return hashlib.sha256(canonical_json(record.to_json()).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Withdrawal:
    """The digest of a ``record``, and for people why it does not count any more."""

    KIND: ClassVar[str] = "withdrawn"

    record: str
    why: str

    @classmethod
    def of(cls, record: Record, why: str) -> Self:
        """The withdrawal of a record, by its digest."""
        return cls(digest_of(record), why)

    def to_json(self) -> dict[str, Any]:
        """The withdrawal as a JSON object."""
        return {"format": NOTE_FORMAT, "kind": self.KIND, "record": self.record, "why": self.why}

    @classmethod
    def from_json(cls, data: object) -> Self:
        """The withdrawal that ``to_json`` gave. Raises ``RecordError`` for anything else."""
        given = read_object("withdrawal", data, {"format": int, "kind": str, "record": str, "why": str})
        return cls(given["record"], given["why"])

"""The file that a library is kept in, in the cache as well: a header of JSON, then sections of bytes, each on a cache
line, to be mapped.

file   ::= MAGIC size(8 bytes) digest(32 bytes) header padding (section padding)*
header ::= JSON object {"format": number, "sections": [[begin, size, digest]…], "content": what the writer gives}

``digest`` is SHA-256, of the header in binary, of sections in hex. ``begin`` counts from the end of the header, rounded
up to a cache line. Digests find damage, not malice.
"""

from __future__ import annotations

import hashlib
import json
import mmap
import os
import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..base.aligned import ARENA_ALIGNMENT
from ..base.errors import ModelError

FORMAT = 15
MAGIC = b"loopwright model"
_SIZE_BYTES = 8
_DIGEST_BYTES = 32
_START = len(MAGIC) + _SIZE_BYTES + _DIGEST_BYTES
Section = bytes | npt.NDArray[Any]


class _Place(NamedTuple):
    begin: int
    size: int
    digest: str


def write_sections(path: Path, content: object, sections: Sequence[Section]) -> None:
    """Write a file, aside first, then move it into place: it is there whole, or not at all."""
    aside = path.with_name(f".{path.name}-{secrets.token_hex(8)}")
    try:
        with aside.open("xb") as file:  # with the permissions that new files have here
            write_sections_to(file, content, sections)
        aside.replace(path)
    except BaseException:
        aside.unlink(missing_ok=True)
        raise


def write_sections_to(file: IO[bytes], content: object, sections: Sequence[Section]) -> str:
    """Write a new file as far as the disk, and give its ``SectionFile.digest``."""
    digest = _write(file, content, [_bytes_of(section) for section in sections])
    file.flush()
    os.fsync(file.fileno())
    return digest


def _bytes_of(section: Section) -> memoryview:
    """The bytes of a section, without a copy unless its array is not contiguous."""
    if isinstance(section, bytes):
        return memoryview(section)
    return np.ascontiguousarray(section).reshape(-1).view(np.uint8).data


def _write(file: IO[bytes], content: object, sections: Sequence[memoryview]) -> str:
    places: list[_Place] = []
    end = 0
    for section in sections:
        places.append(_Place(end, section.nbytes, hashlib.sha256(section).hexdigest()))
        end = _rounded(end + section.nbytes)
    header = json.dumps({"format": FORMAT, "sections": places, "content": content}).encode()
    digest = hashlib.sha256(header)
    file.write(MAGIC + len(header).to_bytes(_SIZE_BYTES, "little") + digest.digest() + header)
    for section in sections:
        file.write(bytes(_rounded(file.tell()) - file.tell()))
        file.write(section)
    return digest.hexdigest()


def _rounded(position: int) -> int:
    return -(-position // ARENA_ALIGNMENT) * ARENA_ALIGNMENT


def is_section_file(path: str | os.PathLike[str]) -> bool:
    """Whether a file begins as those do that are written here."""
    try:
        with Path(path).open("rb") as file:
            return file.read(len(MAGIC)) == MAGIC
    except OSError:
        return False


class SectionFile:
    """A file that is mapped: what is not asked for is not read. It stays mapped as long as an array of it is in use.
    ``digest`` is that of its header in hex, which has those of all sections."""

    def __init__(self, file: IO[bytes]) -> None:
        """``file`` may be closed afterwards. Raises ``ModelError`` for one that is foreign, cut short, of another
        format, or with a damaged header."""
        if file.read(len(MAGIC)) != MAGIC:
            raise ModelError("it does not begin as a library does")
        self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        size = int.from_bytes(self._map[len(MAGIC) : len(MAGIC) + _SIZE_BYTES], "little")
        end = _START + size
        if end > len(self._map):
            raise ModelError(f"its header should have {size} bytes, but it ends before")
        header = self._map[_START:end]
        digest = hashlib.sha256(header)
        if digest.digest() != self._map[_START - _DIGEST_BYTES : _START]:
            raise ModelError("its header does not have the digest that stands before it")
        self.digest = digest.hexdigest()
        fields = json.loads(header)
        if fields["format"] != FORMAT:
            raise ModelError(f"it has format {fields['format']}, this version reads {FORMAT}")
        self.content: Any = fields["content"]
        self._first = _rounded(end)
        self._places = [_Place(*place) for place in fields["sections"]]
        for number, place in enumerate(self._places):
            if not 0 <= place.begin <= self._first + place.begin + place.size <= len(self._map) or place.size < 0:
                raise ModelError(f"section {number} lies outside of its {len(self._map)} bytes")

    def section(self, number: int) -> bytes:
        """A copy of a section, once its digest has been checked."""
        self._check(number)
        begin, end = self._span(number)
        return self._map[begin:end]

    def array(self, number: int, kind: np.dtype[Any], shape: Sequence[int]) -> npt.NDArray[Any]:
        """A section as an array, mapped: the system reads it when it is used. Its digest is not checked."""
        begin, end = self._span(number)
        found: npt.NDArray[Any] = np.frombuffer(self._map, np.uint8, end - begin, begin)
        return found.view(kind).reshape(shape)

    def check_all(self) -> None:
        """Read everything, and raise ``ModelError`` where a section is damaged."""
        for number in range(len(self._places)):
            self._check(number)

    def _span(self, number: int) -> tuple[int, int]:
        place = self._places[number]
        return self._first + place.begin, self._first + place.begin + place.size

    def _check(self, number: int) -> None:
        begin, end = self._span(number)
        with memoryview(self._map) as whole, whole[begin:end] as part:
            digest = hashlib.sha256(part).hexdigest()
        if digest != self._places[number].digest:
            raise ModelError(f"section {number} does not have the digest that the header states")

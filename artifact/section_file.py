"""The file that a library is kept in, in the cache as well: sections of bytes, each on a cache line, to be mapped, then
a header of JSON.

file   ::= MAGIC begin(8 bytes) size(8 bytes) digest(32 bytes) (padding section)* padding header
header ::= JSON object {"format": number, "sections": [[begin, size, digest]…], "content": what the writer gives}

The header is last, so that sections can be written before all is known of them; ``begin`` and ``size`` tell where it
is. ``digest`` is SHA-256, of the header in binary, of sections in hex. Digests find damage, not malice.
"""

from __future__ import annotations

import hashlib
import json
import mmap
import os
import secrets
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..base.aligned import ARENA_ALIGNMENT
from ..base.background import background_executor
from ..base.errors import ModelError

FORMAT = 17
MAGIC = b"loopwright model"
_NUMBER_BYTES = 8
_DIGEST_BYTES = 32
_START = len(MAGIC) + 2 * _NUMBER_BYTES + _DIGEST_BYTES
_OLD_START = _START - _NUMBER_BYTES
_OLD_HEADER = b'{"format": '
"""Up to format 15 the header was first, behind one number and the digest."""
Section = bytes | npt.NDArray[Any]


class _Section(NamedTuple):
    begin: int
    size: int
    digest: str


class SectionList:
    """Sections that are numbered as they come. An array that is there already keeps its number. Mutable."""

    def __init__(self) -> None:
        self.sections: list[Section] = []
        self._arrays: dict[int, int] = {}

    def add(self, section: Section) -> int:
        """The number of a section."""
        if isinstance(section, np.ndarray):
            if id(section) in self._arrays:
                return self._arrays[id(section)]
            self._arrays[id(section)] = len(self.sections)
        self.sections.append(section)
        return len(self.sections) - 1


def write_sections(path: Path, content: object, sections: Sequence[Section]) -> None:
    """Write a file, aside first, then move it into place: it is there whole, or not at all."""
    aside = path.with_name(f".{path.name}-{secrets.token_hex(8)}")
    try:
        with aside.open("xb") as file:  # with the permissions that new files have here
            write_sections_to(file, sections, lambda: content)
        aside.replace(path)
    except BaseException:
        aside.unlink(missing_ok=True)
        raise


def write_sections_to(file: IO[bytes], sections: Iterable[Section], content: Callable[[], object]) -> str:
    """Write a new file as far as the disk, and give its ``SectionFile.digest``. Sections are written as they come,
    while a thread digests them; the content is asked for when all are."""
    file.write(bytes(_START))
    written: list[tuple[int, int, Future[str]]] = []
    with background_executor() as digests:
        for section in map(_bytes_of, sections):
            begin = _padded(file)
            written.append((begin, section.nbytes, digests.submit(_sha256, section)))
            file.write(section)
    spans = [_Section(begin, size, digest.result()) for begin, size, digest in written]
    begin = _padded(file)
    header = json.dumps({"format": FORMAT, "sections": spans, "content": content()}).encode()
    digest = hashlib.sha256(header)
    file.write(header)
    file.seek(0)
    numbers = (number.to_bytes(_NUMBER_BYTES, "little") for number in (begin, len(header)))
    file.write(b"".join((MAGIC, *numbers, digest.digest())))
    file.flush()
    os.fsync(file.fileno())
    return digest.hexdigest()


def _sha256(section: memoryview) -> str:
    return hashlib.sha256(section).hexdigest()


def _bytes_of(section: Section) -> memoryview:
    """The bytes of a section, without a copy unless its array is not contiguous."""
    if isinstance(section, bytes):
        return memoryview(section)
    return np.ascontiguousarray(section).reshape(-1).view(np.uint8).data


def _padded(file: IO[bytes]) -> int:
    """The beginning of what is written next, on a cache line."""
    end = file.tell()
    begin = -(-end // ARENA_ALIGNMENT) * ARENA_ALIGNMENT
    file.write(bytes(begin - end))
    return begin


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
        begin, size = (self._number(len(MAGIC) + k * _NUMBER_BYTES) for k in range(2))
        if self._map[_OLD_START : _OLD_START + len(_OLD_HEADER)] == _OLD_HEADER:
            raise ModelError(f"it has a format before {FORMAT}, which this version reads")
        if not _START <= begin <= begin + size <= len(self._map):
            raise ModelError(f"its header should be {size} bytes at {begin}, which are not there")
        header = self._map[begin : begin + size]
        digest = hashlib.sha256(header)
        if digest.digest() != self._map[_START - _DIGEST_BYTES : _START]:
            raise ModelError("its header does not have the digest that stands before it")
        self.digest = digest.hexdigest()
        fields = json.loads(header)
        if fields["format"] != FORMAT:
            raise ModelError(f"it has format {fields['format']}, this version reads {FORMAT}")
        self.content: Any = fields["content"]
        self._sections = [_Section(*section) for section in fields["sections"]]
        for number, section in enumerate(self._sections):
            if not _START <= section.begin <= section.begin + section.size <= begin or section.size < 0:
                raise ModelError(f"section {number} lies outside of the {begin} bytes before the header")

    def _number(self, at: int) -> int:
        return int.from_bytes(self._map[at : at + _NUMBER_BYTES], "little")

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
        for number in range(len(self._sections)):
            self._check(number)

    def _span(self, number: int) -> tuple[int, int]:
        section = self._sections[number]
        return section.begin, section.begin + section.size

    def _check(self, number: int) -> None:
        begin, end = self._span(number)
        with memoryview(self._map) as whole, whole[begin:end] as part:
            digest = _sha256(part)
        if digest != self._sections[number].digest:
            raise ModelError(f"section {number} does not have the digest that the header states")

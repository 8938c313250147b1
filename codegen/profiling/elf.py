"""What lies where in an object file: sections, symbols and relocations of 64-bit little-endian ELF.

The layout is that of the System V ABI, chapter 4.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

from ...base.dataclass import dataclass

_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_RELOCATION = struct.Struct("<QQq")
_SYMBOL_TABLE = 2
RELOCATIONS = 4
"""The kind of sections that hold relocations of another, which is their ``info``."""
_NO_BITS = 8
_ENTRY_SIZES = {_SYMBOL_TABLE: _SYMBOL.size, RELOCATIONS: _RELOCATION.size}
_GLOBAL = 1
FUNCTION = 2
"""The type of symbols that are functions."""


class _Head(NamedTuple):
    name: int
    kind: int
    flags: int
    address: int
    offset: int
    size: int
    link: int
    info: int
    alignment: int
    entry_size: int


@dataclass(frozen=True, slots=True)
class Section:
    """``link`` and ``info`` are numbers of other sections, as the kind of section has it; ``size`` is in memory."""

    number: int
    name: str
    kind: int
    data: bytes
    link: int
    info: int
    size: int
    alignment: int


@dataclass(frozen=True, slots=True)
class Symbol:
    """``value`` is the place in the section of that number, 0 of what is not defined here."""

    name: str
    kind: int
    is_global: bool
    section: int
    value: int
    size: int


@dataclass(frozen=True, slots=True)
class Relocation:
    """An address that a linker fills in: that of the symbol plus ``addend``, at ``offset`` of a section, in the form
    that ``kind`` says."""

    offset: int
    kind: int
    symbol: Symbol
    addend: int


class ElfObject:
    """An object file, read. Raises ``ValueError`` for what is none of 64 bits and little-endian."""

    def __init__(self, data: bytes) -> None:
        if data[:6] != b"\x7fELF\x02\x01":
            raise ValueError("this is no 64-bit little-endian ELF object")
        self.kind, self.machine = struct.unpack_from("<HH", data, 0x10)
        (start,) = struct.unpack_from("<Q", data, 0x28)
        size, count, names = struct.unpack_from("<HHH", data, 0x3A)
        if size != _SECTION.size or start + size * count > len(data) or names >= count:
            raise ValueError("its table of sections is not in the file")
        heads = [_Head(*_SECTION.unpack_from(data, start + size * k)) for k in range(count)]
        if any(head.entry_size != _ENTRY_SIZES.get(head.kind, head.entry_size) for head in heads):
            raise ValueError("it has a table whose entries are of another size")
        strings = _content(data, heads[names])
        self.sections = tuple(
            Section(k, _text(strings, h.name), h.kind, _content(data, h), h.link, h.info, h.size, h.alignment)
            for k, h in enumerate(heads)
        )
        self.symbols = tuple(self._read_symbols())

    def section(self, name: str) -> Section | None:
        """The first section of this name; None if there is none."""
        return next((section for section in self.sections if section.name == name), None)

    def relocations(self, section: Section) -> dict[int, Relocation]:
        """What is to be put into a section, by its offsets."""
        found = {}
        for table in self.sections:
            if table.kind == RELOCATIONS and table.info == section.number:
                for offset, info, addend in _RELOCATION.iter_unpack(table.data):
                    found[offset] = Relocation(offset, info & 0xFFFFFFFF, self.symbols[info >> 32], addend)
        return found

    def _read_symbols(self) -> Iterator[Symbol]:
        for table in self.sections:
            if table.kind == _SYMBOL_TABLE:
                strings = self.sections[table.link].data
                for name, info, _, section, value, size in _SYMBOL.iter_unpack(table.data):
                    yield Symbol(_text(strings, name), info & 15, info >> 4 == _GLOBAL, section, value, size)


def _content(data: bytes, head: _Head) -> bytes:
    if head.kind == _NO_BITS:
        return b""
    if head.offset + head.size > len(data):
        raise ValueError("a section is not in the file")
    return data[head.offset : head.offset + head.size]


def _text(data: bytes, start: int) -> str:
    return data[start : data.index(b"\0", start)].decode()

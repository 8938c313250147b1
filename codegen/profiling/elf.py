"""What lies where in an object file: sections, symbols and relocations of 64-bit little-endian ELF.

The layout is that of the System V ABI, chapter 4.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_RELOCATION = struct.Struct("<QQq")
_SYMBOL_TABLE = 2
_RELOCATIONS = 4
_NO_BITS = 8
_GLOBAL = 1
FUNCTION = 2
"""The type of symbols that are functions."""


@dataclass(frozen=True, slots=True)
class Section:
    """``link`` and ``info`` are numbers of other sections, as the kind of section has it."""

    number: int
    name: str
    kind: int
    data: bytes
    link: int
    info: int


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
    """At ``offset`` of a section belongs the address of the symbol, plus ``addend``."""

    offset: int
    symbol: Symbol
    addend: int


class ElfObject:
    """An object file, read. Raises ``ValueError`` for what is none of 64 bits and little-endian."""

    def __init__(self, data: bytes) -> None:
        if data[:6] != b"\x7fELF\x02\x01":
            raise ValueError("this is no 64-bit little-endian ELF object")
        (self.machine,) = struct.unpack_from("<H", data, 0x12)
        (start,) = struct.unpack_from("<Q", data, 0x28)
        size, count, names = struct.unpack_from("<HHH", data, 0x3A)
        heads = [_SECTION.unpack_from(data, start + size * k) for k in range(count)]
        strings = heads[names][4]
        self.sections = tuple(
            Section(
                k, _text(data, strings + h[0]), h[1], b"" if h[1] == _NO_BITS else data[h[4] : h[4] + h[5]], h[6], h[7]
            )
            for k, h in enumerate(heads)
        )
        self.symbols = tuple(self._read_symbols())

    def section(self, name: str) -> Section | None:
        return next((section for section in self.sections if section.name == name), None)

    def relocations(self, section: Section) -> dict[int, Relocation]:
        """What is to be put into a section, by its offsets."""
        found = {}
        for table in self.sections:
            if table.kind == _RELOCATIONS and table.info == section.number:
                for offset, info, addend in _RELOCATION.iter_unpack(table.data):
                    found[offset] = Relocation(offset, self.symbols[info >> 32], addend)
        return found

    def _read_symbols(self) -> Iterator[Symbol]:
        for table in self.sections:
            if table.kind == _SYMBOL_TABLE:
                strings = self.sections[table.link].data
                for name, info, _, section, value, size in _SYMBOL.iter_unpack(table.data):
                    yield Symbol(_text(strings, name), info & 15, info >> 4 == _GLOBAL, section, value, size)


def _text(data: bytes, start: int) -> str:
    return data[start : data.index(b"\0", start)].decode()

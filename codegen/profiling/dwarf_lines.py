"""The line table of an object file: DWARF 5, section 6.2, as far as LLVM writes it for our functions."""

from __future__ import annotations

import struct
from collections.abc import Iterator

from ...base.dataclass import dataclass
from .elf import ElfObject, Relocation

_HEADER = struct.Struct("<IHBBIBBBbBB")
"""Length of the unit, version, bytes of an address and of a segment, length of the rest of the header; then the least
length of an instruction, instructions a word, whether rows begin statements, and how special opcodes advance the line:
from which number on, in what range, and which opcode is the first of them."""
_NUMBERS_OF = {3: 1, 4: 1, 5: 1, 12: 1}
"""How many numbers follow the standard opcodes that have any, but for those that matter here."""
_END, _SET_ADDRESS = 1, 2
_COPY, _ADVANCE, _ADVANCE_LINE, _CONST_ADVANCE, _FIXED_ADVANCE = 1, 2, 3, 8, 9


@dataclass(frozen=True, slots=True)
class LineRow:
    """A row of a line table: instructions from ``address`` in a section of code up to that of the next row are of this
    line, or of none if it is 0."""

    section: int
    address: int
    line: int


def line_rows(found: ElfObject) -> list[LineRow]:
    """The rows of an object's line table, in order, if it has one. Raises ``ValueError`` for other versions."""
    table = found.section(".debug_line")
    if table is None:
        return []
    rows: list[LineRow] = []
    start = 0
    while start < len(table.data):
        program = _Program(table.data, start, found.relocations(table))
        rows += program.rows()
        start = program.end
    return rows


class _Program:
    """The program of one unit, which makes its rows. Mutable: reads on from ``at``."""

    def __init__(self, data: bytes, start: int, patches: dict[int, Relocation]) -> None:
        length, version, _, _, rest, step, _, _, base, lines, first = _HEADER.unpack_from(data, start)
        if version != 5:
            raise ValueError(f"a line table of DWARF {version}, where 5 is read")
        self.end = start + 4 + length
        self._data, self._patches = data, patches
        self._step, self._base, self._lines, self._first = step, base, lines, first
        self._at = start + 12 + rest

    def rows(self) -> Iterator[LineRow]:
        section, address, line = 0, 0, 1
        while self._at < self.end:
            opcode = self._byte()
            if opcode >= self._first:
                advance, lines = divmod(opcode - self._first, self._lines)
                address, line = address + advance * self._step, line + self._base + lines
                yield LineRow(section, address, line)
            elif opcode == 0:
                after = self._number() + self._at
                kind = self._byte()
                if kind == _SET_ADDRESS:
                    section, address = self._address()
                elif kind == _END:
                    yield LineRow(section, address, 0)
                    section, address, line = 0, 0, 1
                self._at = after
            elif opcode == _COPY:
                yield LineRow(section, address, line)
            elif opcode == _ADVANCE:
                address += self._number() * self._step
            elif opcode == _ADVANCE_LINE:
                line += self._signed()
            elif opcode == _CONST_ADVANCE:
                address += (255 - self._first) // self._lines * self._step
            elif opcode == _FIXED_ADVANCE:
                address += self._byte() + 256 * self._byte()
            else:
                for _ in range(_NUMBERS_OF.get(opcode, 0)):
                    self._number()

    def _address(self) -> tuple[int, int]:
        """A section and an address in it: addresses are put in where code is loaded."""
        patch = self._patches.get(self._at)
        if patch is None:
            raise ValueError("a line table that does not say which section it is of")
        return patch.symbol.section, patch.symbol.value + patch.addend

    def _byte(self) -> int:
        byte: int = self._data[self._at]
        self._at += 1
        return byte

    def _number(self) -> int:
        return self._leb128()[0]

    def _signed(self) -> int:
        value, bits, negative = self._leb128()
        return value - (1 << bits) if negative else value

    def _leb128(self) -> tuple[int, int, int]:
        """A number, its bits, and the highest of these: seven in each byte, from the lowest on."""
        value, bits = 0, 0
        while True:
            byte = self._byte()
            value |= (byte & 0x7F) << bits
            bits += 7
            if byte < 0x80:
                return value, bits, byte & 0x40

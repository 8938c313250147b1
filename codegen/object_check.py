"""Object code that was read from a file, looked at before LLVM links it, which ends the process over some of what is no
object file.

Machine code can do anything: whether it may run is for whoever chose the file to know. This finds what was put together
wrongly, or is for another machine.
"""

from __future__ import annotations

import struct

from ..base.errors import ModelError
from ..base.target import Target
from .profiling.elf import FUNCTION, RELOCATIONS, ElfObject, Section, Symbol

_MACHINES = {"x86_64": 62, "aarch64": 183, "arm64": 183, "riscv64": 243}
"""ELF's numbers of architectures."""
_RELOCATABLE = 1
_UNDEFINED, _ABSOLUTE = 0, 0xFFF1
_LAST_KIND = 4
"""Of symbols: those of no kind, objects, functions, sections and files; behind them are those of shared memory."""
_KINDS = frozenset({1, 2, 3, RELOCATIONS, 8, 14, 15, 17, 18, 0x6FFF4C03, 0x70000001, 0x70000003})
"""Contents, tables of symbols, strings and relocations, zeros, addresses of functions, groups, further tables of LLVM,
and what unwinds x86 or tells of RISC-V."""
_MOST_BYTES = 1 << 30
_BEGINNINGS = {"macos": (b"\xcf\xfa\xed\xfe",), "windows": (b"\x64\x86", b"\x64\xaa")}


def check_object(data: bytes, target: Target, symbol: str) -> None:
    """Raise ``ModelError`` for what cannot be an object file for a target, with a function ``symbol``."""
    if target.system in _BEGINNINGS:
        if not data.startswith(_BEGINNINGS[target.system]):
            raise ModelError(f"the code of {symbol} is no object file for {target.triple}")
        return
    if target.arch not in _MACHINES:
        return
    try:
        found = ElfObject(data)
        problem = _problem(found, target, symbol)
    except (ValueError, IndexError, struct.error, UnicodeDecodeError) as error:
        raise ModelError(f"the code of {symbol} is no object file: {error}") from error
    if problem is not None:
        raise ModelError(f"the code of {symbol} {problem}")


def _problem(found: ElfObject, target: Target, symbol: str) -> str | None:
    if found.kind != _RELOCATABLE:
        return "is no object file, but a program or a library"
    if found.machine != _MACHINES[target.arch]:
        return f"is not for {target.arch}"
    if not all(_fits(section, len(found.sections)) for section in found.sections):
        return "has a section that cannot be"
    if not all(_lies(each, found) for each in found.symbols):
        return "has a symbol that cannot be"
    if not all(offset < section.size for section in found.sections for offset in found.relocations(section)):
        return "has a relocation that lies outside of its section"
    if not any(s.name == symbol and s.kind == FUNCTION and s.section for s in found.symbols):
        return "does not define that function"
    return None


def _fits(section: Section, count: int) -> bool:
    """Whether the head of one of so many sections is as compilers write it; the first stands for none."""
    if section.number == 0 or section.kind == 0:
        return section.number == section.kind == section.size == 0
    if section.name.startswith(".rela") != (section.kind == RELOCATIONS) or section.kind not in _KINDS:
        return False
    aligned = section.alignment.bit_count() == 1 and max(section.alignment, section.size) <= _MOST_BYTES
    return aligned and section.link < count and (section.kind != RELOCATIONS or section.info < count)


def _lies(symbol: Symbol, found: ElfObject) -> bool:
    """Whether a symbol is of a kind that compilers write, in a section that has it."""
    if symbol.kind > _LAST_KIND:
        return False
    if symbol.section in (_UNDEFINED, _ABSOLUTE):
        return True
    return symbol.value + symbol.size <= found.sections[symbol.section].size

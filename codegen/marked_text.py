"""LLVM IR and assembly that carry line tables, read as what they are without, and the source line of each line.

What is left is what a kernel without line tables prints, so that one text serves both: to be read, and to be marked.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..base.dataclass import dataclass

_LOCATION = re.compile(r"!(\d+) = (?:distinct )?!DI(?:Location|Subprogram)\(.*?\bline: (\d+)")
_DEBUG = re.compile(r"(?: ?,)? !dbg !(\d+)")
_METADATA = re.compile(r"!(\d+) = ")
_NUMBER = re.compile(r"!(\d+)\b")
_FLAGS = re.compile(r"!llvm\.(?:module\.flags|dbg\.cu) = ")
_LOC = re.compile(r"\t\.loc\t\d+ (\d+)")
_OF_DEBUG_INFO = re.compile(r"\t\.(?:loc|cfi_\w+|file\t0)\b|\.L(?:tmp|func_begin|cfi)\d+:")
_DEBUG_SECTION = re.compile(r"\t\.section\t\.debug_")
_OTHER_SECTION = re.compile(r"\t\.(?:section|ident|addrsig|text)\b")
_INSTRUCTION = re.compile(r"\t[a-zA-Z]")
_FUNCTION_END = re.compile(r"\.Lfunc_end\d+:")


@dataclass(frozen=True, slots=True)
class MarkedLine:
    """A line without what belongs to the line tables; ``source`` is the line of their source that it comes from, from
    1, None where there is none: it is no instruction, or LLVM merged several into it."""

    text: str
    source: int | None


def read_llvm_ir(text: str) -> list[MarkedLine]:
    """LLVM IR with debug metadata, as llvmlite or LLVM prints it."""
    rows = text.rstrip("\n").split("\n")
    lines = {found[1]: int(found[2]) for row in rows if (found := _LOCATION.match(row))}
    code = [row for row in rows if not _METADATA.match(row) and not _FLAGS.match(row)]
    while not code[-1]:
        code.pop()
    kept = _kept_metadata(code, rows)
    numbers = {old: str(new) for new, old in enumerate(kept)}
    marked = []
    for row in [*code, *([""] if kept else []), *kept.values()]:
        location = _DEBUG.search(row)
        plain = _NUMBER.sub(lambda found: f"!{numbers.get(found[1], found[1])}", _DEBUG.sub("", row))
        marked.append(MarkedLine(plain, (lines.get(location[1]) or None) if location else None))
    return marked


def _kept_metadata(code: list[str], rows: list[str]) -> dict[str, str]:
    """The rows of metadata that code refers to, apart from its locations, by their numbers, in order."""
    table = {found[1]: row for row in rows if (found := _METADATA.match(row))}
    wanted: set[str] = set()
    todo = [number for row in code for number in _NUMBER.findall(_DEBUG.sub("", row))]
    while todo:
        number = todo.pop()
        if number not in wanted and number in table:
            wanted.add(number)
            todo += _NUMBER.findall(_METADATA.sub("", table[number]))
    return {number: table[number] for number in sorted(wanted, key=int)}


def read_assembly_lines(text: str) -> list[MarkedLine]:
    """Assembly with ``.loc``, as LLVM prints it for ELF targets."""
    return list(_assembly_lines(text.rstrip("\n").split("\n")))


def _assembly_lines(rows: list[str]) -> Iterator[MarkedLine]:
    source: int | None = None
    skipping = False
    for row in rows:
        if _DEBUG_SECTION.match(row):
            skipping = True
        elif skipping and _OTHER_SECTION.match(row):
            skipping = False
        if skipping:
            continue
        if place := _LOC.match(row):
            source = int(place[1]) or None
        elif _FUNCTION_END.match(row):
            source = None
        if not _OF_DEBUG_INFO.match(row):
            yield MarkedLine(row, source if _INSTRUCTION.match(row) else None)

"""``LOOPWRIGHT_PERF``: whether, and how, Linux's perf is told of the functions that are loaded into this process.

``map`` appends their names to ``/tmp/perf-PID.map``, where perf looks them up; ``jitdump`` writes their code too, and
the lines of what has line tables, to ``/tmp/jit-PID.dump``. Otherwise nothing is done.
"""

from __future__ import annotations

import ctypes
import logging
import os
import stat
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, TypeAlias

from ...base.errors import RuntimeArgumentError
from .dwarf_lines import line_rows
from .elf import FUNCTION, ElfObject, Symbol
from .jitdump import JitDump

_log = logging.getLogger("loopwright.perf")
VARIABLE = "LOOPWRIGHT_PERF"
FOLDER = Path("/tmp")
"""Where perf looks for the one, and finds the other as the process maps it."""
How: TypeAlias = Literal["map", "jitdump"]


def perf_wanted() -> How | None:
    """What the environment asks for. Raises ``RuntimeArgumentError`` for another value."""
    match os.environ.get(VARIABLE, ""):
        case "" | "0":
            return None
        case "map" | "jitdump" as how:
            if sys.platform != "linux" or sys.byteorder != "little" or sys.maxsize < 1 << 32:
                raise RuntimeArgumentError(f"{VARIABLE} is for Linux on little-endian machines of 64 bits: unset it")
            return how
        case other:
            raise RuntimeArgumentError(f"{VARIABLE} is map or jitdump, found {other!r}")


class LoadedFunctions:
    """The functions of an object file that is loaded. ``anchor`` is the name of one that others can see: where it lies
    tells where all lie that are in its section."""

    def __init__(self, image: bytes) -> None:
        self._found = ElfObject(image)
        self._functions = [s for s in self._found.symbols if s.kind == FUNCTION and s.section and s.size]
        self._anchor = next(s for s in self._functions if s.is_global)

    @property
    def anchor(self) -> str:
        """The symbol whose address has to be looked up, for ``tell``."""
        return self._anchor.name

    def tell(self, how: How, address: int, source: Path | None) -> None:
        """Tell perf, with the anchor at an address; ``source`` is the file that the line table is of."""
        base = address - self._anchor.value
        functions = [s for s in self._functions if s.section == self._anchor.section]
        try:
            if how == "map":
                _append_to_map([(base + s.value, s.size, s.name) for s in functions])
            else:
                self._dump(base, functions, source)
        except OSError as error:
            _log.warning("perf is not told of %s: %s", self.anchor, error)

    def _dump(self, base: int, functions: Sequence[Symbol], source: Path | None) -> None:
        dump = _own_dump.get(self._found.machine)
        rows = [row for row in line_rows(self._found) if row.section == self._anchor.section] if source else []
        for function in functions:
            start, end = function.value, function.value + function.size
            lines = [(base + row.address, row.line) for row in rows if start <= row.address < end and row.line]
            code = ctypes.string_at(base + start, function.size)
            dump.add(function.name, base + start, code, lines, str(source))


def _append_to_map(entries: Sequence[tuple[int, int, str]]) -> None:
    text = "".join(f"{address:x} {size:x} {name}\n" for address, size, name in entries)
    # In a folder that all may write to, nobody else's file is taken for ours; opening a FIFO would wait for a reader.
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    file = os.open(FOLDER / f"perf-{os.getpid()}.map", flags, 0o600)
    try:
        status = os.fstat(file)
        if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid() or status.st_nlink != 1:
            raise PermissionError(f"{FOLDER}/perf-{os.getpid()}.map was made by another")
        os.write(file, text.encode())
    finally:
        os.close(file)


class _OwnDump:
    """The jitdump file of this process, opened when first needed; a forked child begins one of its own. Mutable."""

    def __init__(self) -> None:
        self.renew()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self.renew)

    def renew(self) -> None:
        self._opening = threading.Lock()  # another thread may have held that of the parent
        self._opened: JitDump | None = None

    def get(self, machine: int) -> JitDump:
        with self._opening:
            if self._opened is None:
                self._opened = JitDump(FOLDER, machine)
            return self._opened


_own_dump = _OwnDump()

"""Code in memory as a file for perf, in its format jitdump: a head, then records that begin with kind, length and time.

tools/perf/Documentation/jitdump-specification.txt in Linux's sources has the format.

``perf record -k mono`` notes that the process maps the file, ``perf inject --jit`` makes a library of each function in
it, with a line table, and ``perf annotate`` shows that.
"""

from __future__ import annotations

import itertools
import mmap
import os
import struct
import threading
import time
from collections.abc import Sequence
from pathlib import Path

_MAGIC = 0x4A695444
_HEAD = struct.Struct("<IIIIIIQQ")
_RECORD = struct.Struct("<IIQ")
_LOAD = struct.Struct("<IIQQQQ")
_DEBUG = struct.Struct("<QQ")
_LINE = struct.Struct("<QII")
_CODE_LOAD, _CODE_DEBUG_INFO = 0, 2


class JitDump:
    """The file of this process. Several threads may write to it."""

    def __init__(self, folder: Path, machine: int) -> None:
        """Open ``jit-PID.dump`` anew; ``machine`` is ELF's number of the architecture. Raises ``OSError``."""
        self.path = folder / f"jit-{os.getpid()}.dump"
        self.path.unlink(missing_ok=True)
        # In a folder that all may write to, nobody else's file is taken for ours.
        self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o600)
        os.write(self._file, _HEAD.pack(_MAGIC, 1, _HEAD.size, machine, 0, os.getpid(), _now(), 0))
        # perf learns of the file by this mapping, and by nothing else.
        self._mapped = mmap.mmap(self._file, _HEAD.size, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_EXEC)
        self._numbers = itertools.count()

    def add(self, name: str, address: int, code: bytes, lines: Sequence[tuple[int, int]], source: str) -> None:
        """Add a function. ``lines`` are addresses, ascending, with the lines of the file ``source`` from there on."""
        records = b""
        if lines:
            # perf 6.1 does not know the short form of the same file again.
            entries = b"".join(_LINE.pack(at, line, 0) + source.encode() + b"\0" for at, line in lines)
            records = _record(_CODE_DEBUG_INFO, _DEBUG.pack(address, len(lines)) + entries)
        thread = threading.get_native_id()
        load = _LOAD.pack(os.getpid(), thread, address, address, len(code), next(self._numbers))
        os.write(self._file, records + _record(_CODE_LOAD, load + name.encode() + b"\0" + code))


def _record(kind: int, body: bytes) -> bytes:
    return _RECORD.pack(kind, _RECORD.size + len(body), _now()) + body


def _now() -> int:
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC)

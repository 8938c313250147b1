"""The loop nest as a file: the source that line tables speak of, and that debuggers and profilers show.

LLVM IR as emitted names no folder, so that it is the same on every machine; machine code is made of what ``named_in``
makes of it.
"""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

from ..base.dataclass import dataclass
from .cache import NESTS, cache_folder, disk_cache

_FILE = re.compile(r'!DIFile\(directory: "\.", filename: "[^"]*"\)')
SUFFIX = ".loops"


@dataclass(frozen=True, slots=True)
class NestSource:
    """The text of a lowered module, and where tools look for it."""

    text: str
    path: Path

    def named_in(self, llvm_ir: str) -> str:
        """LLVM IR with line tables, whose source lies at the path from now on."""
        folder, name = _quoted(str(self.path.parent)), _quoted(self.path.name)
        return _FILE.sub(lambda _: f"!DIFile(directory: {folder}, filename: {name})", llvm_ir, count=1)

    def write(self) -> None:
        """Write the file, unless it is there. Where that is not possible, tools see the numbers of lines only."""
        disk_cache().put_nest(self.path.name, self.text)


def kept_source(entry: str, text: str) -> NestSource:
    """A module's text at a place of its own, beside the cache on disk: who looks at a profile does so afterwards."""
    digest = hashlib.sha256(text.encode()).hexdigest()[:12]
    name = re.sub(r"\W", "_", entry)  # entries that are read from files may be anything
    return NestSource(text, cache_folder().absolute() / NESTS / f"{name}-{digest}{SUFFIX}")


def _quoted(text: str) -> str:
    escaped = re.sub(r'[\\"\x00-\x1f]', lambda found: f"\\{ord(found[0]):02X}", text)
    return f'"{escaped}"'

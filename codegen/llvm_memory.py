"""What LLVM takes of memory. Where it gets none it ends the process, so that this is seen to before it is asked."""

from __future__ import annotations

from collections.abc import Iterable

from ..base.memory import require_address_space, require_memory

_PASSES = 64 << 20
_A_CHARACTER = 40
"""To compile a module, 40 MiB were taken for the passes, and 22 bytes for each character of its text."""
_LINKER = 16 << 20
_COPIES = 4
"""To link objects, less than 1 MiB was taken beside copies of these."""


def require_before_lowering() -> None:
    """Raise ``OutOfMemoryError`` where LLVM could compile nothing anyway, so that Python, which may crash where it gets
    no memory, does not lower with less."""
    require_address_space(_PASSES, "LLVM")


def require_for_compiling(text: str = "") -> None:
    """Raise ``OutOfMemoryError`` unless there is memory to compile LLVM IR."""
    require_memory(_PASSES + _A_CHARACTER * len(text), "LLVM")


def require_for_linking(objects: Iterable[bytes]) -> None:
    """Raise ``OutOfMemoryError`` unless there is memory to link objects into the process."""
    require_memory(_LINKER + _COPIES * sum(map(len, objects)), "LLVM's linker")

"""What the processor at hand says of itself: its name, the instructions that may be used, its caches, the width of its
units. ``host.py`` makes the target ``"native"`` of it."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from ..base.dataclass import dataclass
from .abi import ARCH_PRCTL, REQUEST_PERMISSION, TILE_DATA
from .features import FEATURES


@dataclass(frozen=True, slots=True)
class Processor:
    """``cpu`` is LLVM's name of it. ``attributes`` are those of LLVM's features that matter and that are known to be
    on, with a ``+``, or off, with a ``-``: what the operating system does not let programs use is off.

    ``l1_bytes`` and ``l2_bytes`` are the data caches of a core. ``path_bits`` is how many bits of a vector its units
    work on at once; None where it does not say.
    """

    cpu: str
    attributes: tuple[str, ...]
    l1_bytes: int
    l2_bytes: int
    path_bits: int | None


@cache
def this_processor() -> Processor:
    """The processor that this program runs on."""
    import llvmlite.binding as llvm

    from .cpuid import vector_path_bits

    arch = llvm.get_process_triple().split("-", 1)[0]
    on = allowed(llvm.get_host_cpu_features())
    return Processor(
        cpu=llvm.get_host_cpu_name(),
        attributes=tuple(f"{'+' if on[name] else '-'}{name}" for name in FEATURES.get(arch, ()) if name in on),
        l1_bytes=_cache_bytes(1) or 32 * 1024,
        l2_bytes=_cache_bytes(2) or 512 * 1024,
        path_bits=vector_path_bits() if arch == "x86_64" else None,
    )


def allowed(features: Mapping[str, bool]) -> dict[str, bool]:
    """Which features of the processor are on, without those that the operating system gives no leave to use."""
    tiles = features.get("amx-tile", False) and _may_use_tiles()
    return {name: on and (tiles or not name.startswith("amx-")) for name, on in features.items()}


def _may_use_tiles() -> bool:
    """Whether the operating system lets this process use registers that hold small matrices, as Linux does if asked."""
    if not sys.platform.startswith("linux"):
        return False
    return bool(ctypes.CDLL(None).syscall(ARCH_PRCTL, REQUEST_PERMISSION, TILE_DATA) == 0)


def _cache_bytes(level: int) -> int | None:
    """The size of the first core's data cache of a level, from Linux's sysfs; None where that cannot be read."""
    for folder in sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        try:
            kind, found, size = ((folder / name).read_text().strip() for name in ("type", "level", "size"))
        except OSError:
            continue
        if kind in ("Data", "Unified") and found == str(level) and size.endswith("K"):
            return int(size[:-1]) * 1024
    return None

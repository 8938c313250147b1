"""How much freed memory the C library keeps for what is allocated next, in place of giving it back to the system."""

from __future__ import annotations

import ctypes

_LARGEST = (32 << 20) - (64 << 10)
"""Larger blocks tell glibc nothing: each of them has pages of its own."""

_kept = 128 << 10  # of this process, at the least: where glibc begins


def keep_freed(size: int) -> None:
    """Let the C library keep ``size`` freed bytes, or 32 MiB if that is less: what kernels allocate and free in each
    call, and the outputs that callers drop. Fresh pages cost several times what a kernel takes that fills them.

    glibc keeps twice the size of the largest block that it has seen freed. So it is shown one, of which no page is
    touched. Other libraries are not changed by it. It is as little of a setting as any large array that is freed.
    """
    global _kept  # noqa: PLW0603  (a property of the process, as what it speaks of is)
    size = min(size, _LARGEST)
    if size > _kept:
        _kept = size
        libc = ctypes.CDLL(None)
        libc.malloc.restype, libc.malloc.argtypes = ctypes.c_void_p, (ctypes.c_size_t,)
        libc.free.restype, libc.free.argtypes = None, (ctypes.c_void_p,)
        libc.free(libc.malloc(size))

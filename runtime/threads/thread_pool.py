"""The thread pools of parallel loops: completes the LLVM IR of ``thread_pool.ll`` and loads it.

A process has one for kernels, and further ones for executors of engines, which run at once.

Compiled code reaches it through the external symbol ``lw_parallel_for``, which the JIT linker takes from
``thread_pool_symbols()``; exports link ``thread_pool_ir(triple)``, or ``serial_pool_ir()`` where a target has
no threads.
"""

from __future__ import annotations

import functools
import itertools
import weakref
from collections import deque
from importlib import resources
from typing import TypeAlias

import llvmlite.binding as llvm

from ...base.errors import TargetError
from ...base.target import system_of
from .fork_lock import ForkLock
from .resident import load_resident

_EXPORTS = ("lw_parallel_for",)
_load_lock = ForkLock()

PoolKey: TypeAlias = int | tuple[int, ...]
"""Which of the pools of this process: by number, or the one whose threads stay on these cores."""
SHARED_POOL: PoolKey = 0
"""That of kernels, and of executors that have no thread but their caller's unless a call asks for more."""

_returned: deque[int] = deque()
_numbers = itertools.count(1)


class PoolLease:
    """A pool for one executor alone, which gives it back when it is gone: pools, and their threads, stay for the life
    of the process, so there are as many as were ever leased at once."""

    def __init__(self) -> None:
        # No lock: a lease may be collected, and so returned, at any moment.
        try:
            self.pool = _returned.pop()
        except IndexError:
            self.pool = next(_numbers)
        weakref.finalize(self, _returned.append, self.pool).atexit = False


_PAUSE: dict[str, str] = {
    "x86_64": "  call void @llvm.x86.sse2.pause()\n",
    "aarch64": "  call void @llvm.aarch64.hint(i32 1)\n",
    "arm64": "  call void @llvm.aarch64.hint(i32 1)\n",
}
_PAUSE_DECLARATION: dict[str, str] = {
    "x86_64": "declare void @llvm.x86.sse2.pause()\n",
    "aarch64": "declare void @llvm.aarch64.hint(i32)\n",
    "arm64": "declare void @llvm.aarch64.hint(i32)\n",
}


def thread_pool_ir(triple: str) -> str:
    """The whole LLVM IR of the pool for a 64-bit target, without a data layout. It calls pthreads."""
    arch = triple.split("-", 1)[0]
    # CLOCK_MONOTONIC and SIG_SETMASK have other numbers on macOS.
    clock, set_mask = (6, 3) if system_of(triple) == "macos" else (1, 2)
    return (
        f'target triple = "{triple}"\n{_text("thread_pool.ll")}\n{_placement(triple)}'
        f"@pool.monotonic = internal constant i32 {clock}\n"
        f"@pool.sig_setmask = internal constant i32 {set_mask}\n"
        f"{_PAUSE_DECLARATION.get(arch, '')}"
        f"define internal void @lw_pause() alwaysinline {{\n{_PAUSE.get(arch, '')}  ret void\n}}\n"
    )


def _placement(triple: str) -> str:
    """How workers are kept off the cpu of their caller: left to the system where it has no masks that we know."""
    if system_of(triple) == "linux" and "android" not in triple:
        return _text("linux_placement.ll")
    return "define internal void @pool.keep.apart() alwaysinline {\n  ret void\n}\n"


def _text(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


def has_threads(triple: str) -> bool:
    """Whether a target has threads and mapped files, as we know it."""
    return not triple.startswith("wasm")


def serial_pool_ir() -> str:
    """What stands for the pool where there are no threads: parallel loops run on their caller's."""
    return (
        "define i32 @lw_parallel_for(ptr %ctx, ptr %task, ptr %closure, i64 %extent) {\n"
        "  %some = icmp sgt i64 %extent, 0\n"
        "  br i1 %some, label %run, label %done\n"
        "run:\n"
        "  %code = call i32 %task(ptr %ctx, ptr %closure, i64 0, i64 %extent)\n"
        "  ret i32 %code\n"
        "done:\n"
        "  ret i32 0\n"
        "}\n"
    )


def thread_pool_symbols(pool: PoolKey = SHARED_POOL) -> dict[str, int]:
    """Name → address of what a pool exports, for the JIT linker. The first call compiles it, in about 20 ms.

    Raises ``TargetError`` on Windows, whose Python has no pthreads for it.
    """
    if system_of(triple := llvm.get_process_triple()) == "windows":
        raise TargetError(f"the thread pool needs pthreads, which {triple} lacks: build with -threads=1 there")
    with _load_lock.held:
        return dict(_load(pool))


@functools.cache
def _load(pool: PoolKey) -> dict[str, int]:
    return load_resident(thread_pool_ir(llvm.get_process_triple()), _EXPORTS)

"""How much memory there is: what a model may take, of it and of steps, and whether there is what LLVM needs, which ends
the process where it gets none."""

from __future__ import annotations

import errno
import mmap
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .cgroup import cgroup_bounds
from .choices import is_count
from .errors import OutOfMemoryError, RuntimeArgumentError
from .quantities import bytes_text

SHARE = 0.8
"""Of the memory that is granted to this process, what a model may take unless somebody says otherwise."""
VARIABLE = "LOOPWRIGHT_MEMORY_LIMIT"
STEPS_VARIABLE = "LOOPWRIGHT_STEP_LIMIT"
_STEPS = 1 << 36
"""The most elements of a value of an imported model, unless somebody says otherwise: more take a loop minutes."""
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_HUGE = 1 << 60
"""Version 1 of cgroups writes a number beyond this where there is no limit."""
NO_MEMORY_STATUS = 77
"""The exit status of a process of ours that has no memory to start in."""
_RESERVE = 24 << 20
"""What Python is to have before a block of work begins. Where it gets no memory for a small object, it may crash."""


def memory_limit(given: int | None = None) -> int:
    """The bytes that a model may take: as given, else as ``LOOPWRIGHT_MEMORY_LIMIT`` says (``"24G"``), else a share of
    what the cgroup grants, or the machine has.

    Raises ``RuntimeArgumentError`` for what is no positive number.
    """
    if given is not None:
        if not is_count(given, least=1):
            raise RuntimeArgumentError(f"memory should be a positive number of bytes, found {given!r}")
        return int(given)
    said = _said(VARIABLE)
    return int(SHARE * granted_memory()) if said is None else said


def step_limit() -> int:
    """How many elements a value of an imported model may have, and with them how many steps the loop that makes it:
    as ``LOOPWRIGHT_STEP_LIMIT`` says, else 2**36. Raises ``RuntimeArgumentError`` for what is no positive number."""
    said = _said(STEPS_VARIABLE)
    return _STEPS if said is None else said


def _said(variable: str) -> int | None:
    """The number of an environment variable, if it is set."""
    value = os.environ.get(variable, "").strip()
    if not value:
        return None
    number, unit = (value[:-1], value[-1].upper()) if value[-1].upper() in _UNITS else (value, "")
    if not number.isdecimal() or int(number) < 1:
        raise RuntimeArgumentError(
            f"the environment variable {variable} should be a positive number, which may end in K, M, G or T, "
            f"found {value!r}"
        )
    return int(number) * _UNITS[unit]


def granted_memory(root: Path = Path("/")) -> int:
    """The bytes that this process may have at the most, by its cgroups and the machine. ``root`` is for tests."""
    return min([_machine_memory(root), *cgroup_bounds("memory", _limit_v2, _limit_v1, root)])


def require_memory(size: int, what: str) -> None:
    """Raise ``OutOfMemoryError`` unless so many bytes can be had now: LLVM does not fail where it gets none, but ends
    the process. What other threads take meanwhile is not foreseen."""
    require_address_space(size, what)
    if min(cgroup_bounds("memory", _left_v2, _left_v1), default=size) < size:
        raise _too_little(size, what)


def require_address_space(size: int, what: str) -> None:
    """Raise ``OutOfMemoryError`` unless the limits of this process, which may be below those of its cgroups, leave it
    so many bytes. That takes microseconds."""
    try:
        mmap.mmap(-1, size).close()  # address space, which RLIMIT_AS and RLIMIT_DATA bound, and no memory yet
    except (OSError, MemoryError, OverflowError):
        raise _too_little(size, what) from None


def _too_little(size: int, what: str) -> OutOfMemoryError:
    return OutOfMemoryError(
        f"there should be {bytes_text(size)} of memory for {what}, and this process may not have as much more: raise "
        "its limit (ulimit -v, or that of its cgroup), or let it hold less"
    )


@contextmanager
def memory_errors(what: str) -> Iterator[None]:
    """Where memory ends in the midst of something, ``OutOfMemoryError`` says of what. It does not begin with so little
    that Python itself could get none."""
    require_address_space(_RESERVE, what)
    try:
        yield
    except OutOfMemoryError:
        raise
    except MemoryError as error:
        raise OutOfMemoryError(f"{what}: there is not enough memory ({error})") from error
    except OSError as error:
        if error.errno != errno.ENOMEM:
            raise
        raise OutOfMemoryError(f"{what}: there is not enough memory ({error})") from error
    except RuntimeError as error:
        if str(error) != "can't start new thread":  # all that Python says of it
            raise
        raise OutOfMemoryError(f"{what}: there is not enough memory for another thread") from error


def is_address_space_limited() -> bool:
    """Whether the system refuses this process, and those that it starts, memory beyond some size (``ulimit -v``)."""
    import resource

    limits = (resource.getrlimit(kind)[0] for kind in (resource.RLIMIT_AS, resource.RLIMIT_DATA))
    return any(limit != resource.RLIM_INFINITY for limit in limits)


def ended_without_memory(status: int) -> bool:
    """Whether a child process of this status ended as where there is not enough memory: Linux kills it; C++, the
    interpreter and the linker end it where it is refused memory, and so do imports of Python."""
    refused = status in (-signal.SIGABRT, -signal.SIGSEGV, 127, 1) and is_address_space_limited()
    return refused or status in (-signal.SIGKILL, NO_MEMORY_STATUS)


def _machine_memory(root: Path) -> int:
    try:
        lines = (root / "proc/meminfo").read_text(encoding="utf-8").splitlines()
        return next(int(line.split()[1]) << 10 for line in lines if line.startswith("MemTotal:"))
    except (OSError, ValueError, IndexError, StopIteration):
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _limit_v2(folder: Path) -> int | None:
    """``memory.max`` reads ``max`` without a limit."""
    return _number(folder / "memory.max")


def _limit_v1(folder: Path) -> int | None:
    limit = _number(folder / "memory.limit_in_bytes")
    return limit if limit is not None and limit < _HUGE else None


def _left_v2(folder: Path) -> int | None:
    return _left(_limit_v2(folder), _number(folder / "memory.current"), folder, "inactive_file")


def _left_v1(folder: Path) -> int | None:
    return _left(_limit_v1(folder), _number(folder / "memory.usage_in_bytes"), folder, "total_inactive_file")


def _left(limit: int | None, used: int | None, folder: Path, cached: str) -> int | None:
    """What a group may still take: pages of files that are not in use make room."""
    if limit is None or used is None:
        return None
    try:
        lines = (folder / "memory.stat").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    files = sum(int(line.split()[1]) for line in lines if line.startswith(f"{cached} "))
    return max(0, limit - used + files)


def _number(path: Path) -> int | None:
    try:
        return int(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None

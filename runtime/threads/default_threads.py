"""How many threads a kernel may use when nobody says: the environment first, then what the system grants us."""

from __future__ import annotations

import math
import os
from pathlib import Path

from ...base.cgroup import cgroup_bounds
from ...base.errors import RuntimeArgumentError
from ...base.granted_cpus import granted_cpus

MAX_THREADS = 1024


def default_threads() -> int:
    """``LOOPWRIGHT_NUM_THREADS``, else ``OMP_NUM_THREADS``, else the cpus that affinity mask and cgroup quota leave us.

    Raises ``RuntimeArgumentError`` if the variable that counts is not a positive number.
    """
    for name in ("LOOPWRIGHT_NUM_THREADS", "OMP_NUM_THREADS"):
        value = os.environ.get(name, "").strip()
        if value:
            # OMP_NUM_THREADS may list one number for each level of nesting.
            first = value.split(",")[0].strip() if name == "OMP_NUM_THREADS" else value
            if not first.isdecimal() or not 1 <= int(first) <= MAX_THREADS:
                raise RuntimeArgumentError(
                    f"the environment variable {name} should be a number from 1 to {MAX_THREADS}, found {value!r}"
                )
            return int(first)
    return _available_cpus()


def check_threads(threads: object) -> int:
    """A number of threads that a caller gave, checked. Raises ``RuntimeArgumentError``."""
    if not isinstance(threads, int) or isinstance(threads, bool) or not 1 <= threads <= MAX_THREADS:
        raise RuntimeArgumentError(f"threads should be a whole number from 1 to {MAX_THREADS}, found {threads!r}")
    return threads


def _available_cpus() -> int:
    quota = cgroup_quota()
    # Rounded down: a quota of 1.5 cpus lets two threads run, and then stops both.
    return max(1, min(granted_cpus(), MAX_THREADS if quota is None else math.floor(quota)))


def cgroup_quota(root: Path = Path("/")) -> float | None:
    """The cpus that the cgroups of this process may use the time of; None without a limit. ``root`` is for tests."""
    return min(cgroup_bounds("cpu", _quota_v2, _quota_v1, root), default=None)


def _quota_v2(folder: Path) -> float | None:
    """``cpu.max`` reads ``max 100000`` or ``<microseconds of cpu time> <microseconds of period>``."""
    try:
        limit, period = (folder / "cpu.max").read_text(encoding="utf-8").split()
        return None if limit == "max" else int(limit) / int(period)
    except (OSError, ValueError, ZeroDivisionError):
        return None


def _quota_v1(folder: Path) -> float | None:
    """``cpu.cfs_quota_us`` is -1 without a limit."""
    try:
        limit = int((folder / "cpu.cfs_quota_us").read_text(encoding="utf-8"))
        period = int((folder / "cpu.cfs_period_us").read_text(encoding="utf-8"))
        return limit / period if limit > 0 else None
    except (OSError, ValueError, ZeroDivisionError):
        return None

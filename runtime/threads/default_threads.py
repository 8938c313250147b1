"""How many threads a kernel may use when nobody says: the environment first, then what the system grants us."""

from __future__ import annotations

import math
import os
from pathlib import Path

from ...ir.errors import RuntimeArgumentError
from ...ir.granted_cpus import granted_cpus

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
    """The cpu time that the cgroups of this process may use, in cpus, or None without a limit. ``root`` is for tests.

    Each group is bounded by its ancestors too. Inside a container the path of a group may not be visible; its own group
    then stands at the mount point, which is among the ancestors tried.
    """
    try:
        lines = (root / "proc/self/cgroup").read_text(encoding="utf-8").splitlines()
    except OSError:
        return None
    quotas: list[float] = []
    for line in lines:
        number, controllers, path = line.split(":", 2)
        if number == "0":
            mount, read = root / "sys/fs/cgroup", _quota_v2
        elif "cpu" in controllers.split(","):
            mount, read = _mount_v1(root), _quota_v1
        else:
            continue
        group = Path(path.lstrip("/"))
        found = (read(mount / folder) for folder in (group, *group.parents))
        quotas.extend(quota for quota in found if quota is not None)
    return min(quotas, default=None)


def _mount_v1(root: Path) -> Path:
    base = root / "sys/fs/cgroup"
    return next((base / name for name in ("cpu", "cpu,cpuacct", "cpuacct,cpu") if (base / name).is_dir()), base)


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

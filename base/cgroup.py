"""The control groups of this process, which bound what it may use: cpus, memory."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

Bound = TypeVar("Bound", int, float)


def cgroup_bounds(
    controller: str,
    read_v2: Callable[[Path], Bound | None],
    read_v1: Callable[[Path], Bound | None],
    root: Path = Path("/"),
) -> list[Bound]:
    """What ``read`` finds in the folders of the groups of this process, of version 2 and of version 1, where it finds
    something. ``root`` is for tests.

    Each group is bounded by its ancestors too. Inside a container the path of a group may not be visible; its own group
    then stands at the mount point, which is among the ancestors tried.
    """
    try:
        lines = (root / "proc/self/cgroup").read_text(encoding="utf-8").splitlines()
    except OSError:
        return []
    bounds: list[Bound] = []
    for line in lines:
        number, controllers, path = line.split(":", 2)
        if number == "0":
            mount, read = root / "sys/fs/cgroup", read_v2
        elif controller in controllers.split(","):
            mount, read = _mount_v1(root, controller), read_v1
        else:
            continue
        group: Path = Path(path.lstrip("/"))
        found = [read(mount / folder) for folder in (group, *group.parents)]
        bounds.extend(bound for bound in found if bound is not None)
    return bounds


def _mount_v1(root: Path, controller: str) -> Path:
    """Controllers may be mounted together, as ``cpu,cpuacct``."""
    base = root / "sys/fs/cgroup"
    together = (f"{controller},{controller}acct", f"{controller}acct,{controller}")
    return next((base / name for name in (controller, *together) if (base / name).is_dir()), base)

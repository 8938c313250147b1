"""How many cpus the system lets this process use: compilers take as many processes, kernels as many threads."""

from __future__ import annotations

import os


def granted_cpus() -> int:
    """The cpus of the affinity mask; all of them on systems that have none, such as macOS."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1

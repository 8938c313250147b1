"""The settings of one executor of an engine."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace

from ..base.brief import BriefRepr
from ..base.dataclass import dataclass
from ..base.errors import RuntimeArgumentError
from .threads.default_threads import check_threads, default_threads


@dataclass(frozen=True, slots=True, repr=False)
class ExecutorConfig(BriefRepr):
    """``threads`` is the most that a run uses. ``cores`` are the cpus that its threads stay on, by their numbers;
    without them, threads go where the system sends them. ``tactics`` are the names of those that it
    prefers to all others, the first that serves a call.

    Raises ``RuntimeArgumentError`` for cpus that this process may not use.
    """

    threads: int | None = None
    cores: tuple[int, ...] = ()
    tactics: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.threads is not None:
            check_threads(self.threads)
        object.__setattr__(self, "cores", _checked_cores(self.cores))
        object.__setattr__(self, "tactics", _checked_names(self.tactics))

    @property
    def has_own_pool(self) -> bool:
        """Whether the executor has threads that no other one uses: more than its caller's, and no cores of its own,
        whose pool all executors on these cores share."""
        return self.threads != 1 and not self.cores


def executor_configs(executors: object, threads: int | None) -> tuple[ExecutorConfig, ...]:
    """The settings of all executors, with their threads: those said for the executor, else for the engine, else one a
    core of its list, else an equal part of what the environment says or the system grants."""
    if isinstance(executors, int) and not isinstance(executors, bool) and executors >= 1:
        configs: Sequence[ExecutorConfig] = (ExecutorConfig(),) * executors
    elif isinstance(executors, Sequence) and executors and all(isinstance(c, ExecutorConfig) for c in executors):
        configs = executors
    else:
        raise RuntimeArgumentError(
            f"executors should be a positive whole number, or a list of lw.ExecutorConfig, found {executors!r}"
        )
    if threads is not None:
        check_threads(threads)
    return tuple(
        replace(c, threads=c.threads or threads or len(c.cores) or max(1, default_threads() // len(configs)))
        for c in configs
    )


def _checked_cores(cores: object) -> tuple[int, ...]:
    if not isinstance(cores, Sequence) or any(not isinstance(core, int) or isinstance(core, bool) for core in cores):
        raise RuntimeArgumentError(f"cores should be a list of the numbers of cpus, found {cores!r}")
    wanted = tuple(sorted(set(cores)))
    if wanted and not hasattr(os, "sched_setaffinity"):
        raise RuntimeArgumentError("this system cannot keep threads on cores: leave cores out")
    if wanted and (missing := sorted(set(wanted) - os.sched_getaffinity(0))):
        granted = ", ".join(map(str, sorted(os.sched_getaffinity(0))))
        raise RuntimeArgumentError(
            f"cores {', '.join(map(str, missing))} are not among those that this process may use: {granted}"
        )
    return wanted


def _checked_names(tactics: object) -> tuple[str, ...]:
    if isinstance(tactics, str) or not isinstance(tactics, Sequence) or any(not isinstance(n, str) for n in tactics):
        raise RuntimeArgumentError(f"tactics should be a list of names, found {tactics!r}")
    return tuple(tactics)

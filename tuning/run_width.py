"""How many jobs of a tuning run go on at once, and other numbers that users give for one."""

from __future__ import annotations

from ..base.choices import check_count
from ..base.dataclass import dataclass
from ..base.errors import RuntimeArgumentError
from ..base.granted_cpus import granted_cpus
from ..base.target import Target
from ..codegen.host import host_target
from ..runtime.foreign import why_not_here
from ..runtime.threads.default_threads import check_threads, default_threads
from .jobs import machine_of
from .workers import check_workers


@dataclass(frozen=True, slots=True)
class RunWidth:
    """How many jobs run at once, compiling and measuring, and how many threads a run uses."""

    threads: int
    jobs: int
    measuring: int

    @classmethod
    def of(cls, threads: int | None, workers: object, jobs: int | None, target: Target) -> RunWidth:
        """The width that the arguments of ``lw.tune`` ask for. Raises ``RuntimeArgumentError`` for counts that are no
        whole numbers of at least 1, and for more threads than there are cores to measure them on."""
        if jobs is not None:
            check_count(jobs, "jobs", 1)
        own = granted_cpus()
        count = own if jobs is None else jobs
        if workers is not None:
            check_workers(workers)
            used = target.threads or 1 if threads is None else check_threads(threads)
            return cls(used, count, count)
        if (problem := why_not_here(target)) is not None:
            raise RuntimeArgumentError(f"{problem}: give workers= that have it")
        if (cpu := machine_of(target)) != (here := host_target().cpu):
            raise RuntimeArgumentError(
                f"what is for {cpu} is measured on one, and this cpu is {here}: give workers= that have it, or the "
                "target of a level, as x86-64-v3"
            )
        used = target.threads or min(default_threads(), own) if threads is None else check_threads(threads)
        if used > own:
            raise RuntimeArgumentError(
                f"runs of {used} threads are measured with as many cpus free, and {own} are granted here"
            )
        return cls(used, count, max(1, min(count, own // used)))


def check_numbers(minutes: object, seed: object, timeout: object) -> None:
    """Raise ``RuntimeArgumentError`` for numbers that are none."""
    for name, value in (("minutes", minutes), ("timeout", timeout)):
        if not isinstance(value, (int, float)) or isinstance(value, bool) or not value > 0:
            raise RuntimeArgumentError(f"{name} should be a positive number, found {value!r}")
    check_count(seed, "seed")

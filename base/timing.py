"""Where the time of a compilation goes: a tree of stages with seconds and counts of work.

``with TimedStage("lower"):`` is a part of the stage that the same thread is in. Each stage measures itself, and its
parts with it: nothing has to be switched on, and what is made does not depend on it. The counts, unlike the seconds,
hardly depend on the machine.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from contextvars import ContextVar, Token
from typing import Any, ClassVar, Literal, ParamSpec, Self, TypeVar

from .brief import BriefRepr
from .dataclass import dataclass

P = ParamSpec("P")
T = TypeVar("T")
Kind = Literal["stage", "function"]
"""A stage of the compiler, or all stages of one of the functions that a model consists of."""


@dataclass(frozen=True, slots=True, repr=False)
class CompileTiming(BriefRepr):
    """What a stage took, its ``parts`` included: ``seconds``; ``nodes`` of the loop IR made; ``simplifications``, which
    are calls of the simplifier, and ``visits``, the expressions and statements that it looked at for them; and
    ``instructions`` of LLVM IR emitted."""

    COUNTS: ClassVar[tuple[str, ...]] = ("nodes", "simplifications", "visits", "instructions")

    name: str
    kind: Kind
    seconds: float
    nodes: int = 0
    simplifications: int = 0
    visits: int = 0
    instructions: int = 0
    parts: tuple[CompileTiming, ...] = ()

    def __str__(self) -> str:
        from .timing_text import timing_text  # tables take a library, which few programs need

        return timing_text(self)

    def _repr_html_(self) -> str:
        from .timing_html import timing_html  # it knows timings

        return timing_html(self)

    @property
    def html(self) -> str:
        """A page with a flame graph: each stage as wide as its seconds, above its parts."""
        from .timing_html import timing_page  # as above

        return timing_page(self)

    @property
    def functions(self) -> tuple[CompileTiming, ...]:
        """The functions among all parts, in the order in which they were compiled."""
        found: list[CompileTiming] = []
        for part in self.parts:
            found += [part] if part.kind == "function" else part.functions
        return tuple(found)

    def to_json(self) -> dict[str, Any]:
        """The tree as JSON values."""
        counts = {name: getattr(self, name) for name in self.COUNTS}
        parts = {"parts": [part.to_json() for part in self.parts]} if self.parts else {}
        return {"name": self.name, "kind": self.kind, "seconds": self.seconds} | counts | parts


class TimedStage:
    """A stage of a compilation, as a context manager. Mutable: counts what happens in its block, in the thread that
    entered it; ``timing`` is there when the block has ended, however it ends."""

    timing: CompileTiming

    def __init__(self, name: str, kind: Kind = "stage") -> None:
        self.name, self.kind = name, kind
        self.nodes = self.simplifications = self.visits = self.instructions = 0
        self._parts: list[CompileTiming] = []
        self._start = 0.0
        self._token: Token[TimedStage | None]

    def __enter__(self) -> Self:
        self._token = CURRENT.set(self)
        self._start = time.perf_counter()
        return self

    def __exit__(self, *_: object) -> None:
        seconds = time.perf_counter() - self._start
        counts = (self.nodes, self.simplifications, self.visits, self.instructions)
        self.timing = CompileTiming(self.name, self.kind, seconds, *counts, tuple(self._parts))
        CURRENT.reset(self._token)
        add_part(self.timing)

    def add(self, part: CompileTiming) -> None:
        """Take in a part whose time is in that of the stage, and its counts with it."""
        self._parts.append(part)
        self.nodes += part.nodes
        self.simplifications += part.simplifications
        self.visits += part.visits
        self.instructions += part.instructions


CURRENT: ContextVar[TimedStage | None] = ContextVar("loopwright_stage", default=None)
"""The innermost stage that this thread is in. What counts work adds to it."""


def add_part(timing: CompileTiming) -> None:
    """Make a timing, perhaps of another process, part of the stage that this thread is in, if it is in one."""
    stage = CURRENT.get()
    if stage is not None:
        stage.add(timing)


def timed(run: Callable[P, T], *args: P.args, **options: P.kwargs) -> T:
    """What the function returns, computed as a stage of its name."""
    with TimedStage(run.__name__.lstrip("_")):
        return run(*args, **options)


def merged(timings: Iterable[CompileTiming]) -> tuple[CompileTiming, ...]:
    """The timings with those of one name summed, and their parts likewise, in the order of first appearance."""
    groups: dict[str, list[CompileTiming]] = {}
    for timing in timings:
        groups.setdefault(timing.name, []).append(timing)
    return tuple(_sum(same) for same in groups.values())


def _sum(same: list[CompileTiming]) -> CompileTiming:
    return CompileTiming(
        same[0].name,
        same[0].kind,
        sum(timing.seconds for timing in same),
        **{count: sum(getattr(timing, count) for timing in same) for count in CompileTiming.COUNTS},
        parts=merged(part for timing in same for part in timing.parts),
    )

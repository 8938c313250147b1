"""Targets from outside: kinds that other distributions add, each found by its name among their entry points.

    [project.entry-points."loopwright.targets"]
    edge9 = "edge9_target:kind"          a function that gives a TargetKind, and registers strategies for its keys

A distribution is imported when its kind is first asked for, by a target's text or by a strategy look-up in a process
that got the target from another one. Mutable: what has been loaded, under a lock.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from importlib.metadata import EntryPoint, entry_points
from typing import Final

from .dataclass import dataclass
from .errors import TargetError
from .target import LLVM, Target

GROUP: Final = "loopwright.targets"
OWN_KEYS: Final = frozenset({LLVM, "default", "generic", "cpu", "x86", "arm", "riscv"})
"""What is registered for these serves targets of all kinds, so no kind may have one for its own."""


@dataclass(frozen=True, slots=True)
class TargetKind:
    """What stands for ``name`` in a target's text; options in the text, as in ``"edge9 -mcpu=…"``, go before it.

    ``keys`` are those that strategies are registered for, the most specific first; those of the architecture follow.
    What is None is that of the machine at hand (``triple``), or of any CPU of the architecture. ``attributes`` are LLVM
    features, each with its sign.
    """

    name: str
    keys: tuple[str, ...]
    triple: str | None = None
    cpu: str | None = None
    attributes: tuple[str, ...] = ()
    l1_bytes: int | None = None
    l2_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Provided:
    """A kind, and the distribution that adds it with its version: ``"edge9-target 1.0"``."""

    kind: TargetKind
    provider: str


_loaded: dict[str, Provided | TargetError] = {}
_lock = threading.RLock()


def find_kind(name: str) -> Provided | None:
    """The kind of that name; None if no distribution has it. Raises ``TargetError`` where one fails to provide it."""
    with _lock:
        if name not in _loaded:
            found = tuple(entry_points(group=GROUP, name=name))
            if not found:
                return None
            try:
                _loaded[name] = _load(name, found)
            except TargetError as error:
                _loaded[name] = error  # it may have registered half of its strategies: once more would be no better
        loaded = _loaded[name]
    if isinstance(loaded, TargetError):
        raise TargetError(str(loaded))
    return loaded


def known_kinds() -> tuple[str, ...]:
    """The names of all kinds that distributions add, none of which is loaded for it."""
    return tuple(sorted({point.name for point in entry_points(group=GROUP)}))


def require_kind(target: Target) -> None:
    """See to it that what a target's distribution registers is registered in this process."""
    if target.kind != LLVM and find_kind(target.kind) is None:
        raise TargetError(f"no installed distribution adds the target {target.kind} of {target.provider}")


def _load(name: str, found: tuple[EntryPoint, ...]) -> Provided:
    if len(found) > 1:
        raise TargetError(f"the target {name} is added by {' and by '.join(sorted(map(_provider, found)))}: keep one")
    provider = _provider(found[0])
    try:
        make: Callable[[], object] = found[0].load()
        kind = make()
    except Exception as error:  # code of others: whatever it raises is told as theirs
        raise TargetError(
            f"{provider}, which adds the target {name}, failed: {type(error).__name__}: {error}"
        ) from error
    problem = _problem(kind, name)
    if problem is not None or not isinstance(kind, TargetKind):
        raise TargetError(f"{provider}, which adds the target {name}, {problem}")
    return Provided(kind, provider)


def _provider(point: EntryPoint) -> str:
    return f"{point.dist.name} {point.dist.version}" if point.dist is not None else point.value


def _problem(kind: object, name: str) -> str | None:
    if not isinstance(kind, TargetKind):
        return f"should give a TargetKind, found {kind!r}"
    if kind.name != name or re.fullmatch(r"[a-z][a-z0-9_-]*", name) is None or name in OWN_KEYS:
        return (
            f"gives a kind named {kind.name!r}: it should be its entry point's name, in lower-case letters and digits"
        )
    own = sorted(OWN_KEYS.intersection(kind.keys))
    if own or not kind.keys:
        return f"should give its kind keys of its own, found {', '.join(own) or 'none'}"
    return None

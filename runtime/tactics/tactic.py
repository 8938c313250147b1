"""Tactics: what can serve a call of an operator when an engine runs it. Compiled code is one; others are registered.

Mutable: a ``TacticRegistry``, under a lock. A tactic belongs to one executor, which calls it on one thread at a time.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from ...artifact.function import TensorSpec
from ...base.brief import listed
from ...base.dataclass import dataclass
from ...base.errors import LoopwrightError
from ...base.op_names import check_op_name
from ..arrays import Array
from ..threads.fork_lock import ForkLock


class AbstractTactic(ABC):
    """One way to compute an operator, in Python. ``init`` is called once, when an engine is initialised, and takes what
    runs need; ``enqueue`` is called by each run."""

    def supports(self, attrs: Mapping[str, Any], types: Sequence[TensorSpec]) -> bool:
        """Whether it serves a call of these attributes, and of these inputs and outputs, in order. Asked before
        ``init``; a dimension that runs choose is a name or a formula."""
        return True

    def init(self, attrs: Mapping[str, Any], types: Sequence[TensorSpec]) -> None:  # noqa: B027  may do nothing
        """Prepare for calls of this kind."""

    @abstractmethod
    def enqueue(self, args: Sequence[Array]) -> None:
        """Fill the outputs, which come last, from the inputs, which are read-only. None of them may be kept."""


Creator: TypeAlias = Callable[[], AbstractTactic]


@dataclass(frozen=True, slots=True)
class RegisteredTactic:
    """``priority`` is compared with that of the compiled implementation, its ``plevel``, which is 10 or more."""

    name: str
    creator: Creator
    priority: int


class TacticRegistry:
    """Creators of tactics by operator, several each; safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = ForkLock()
        self._tactics: dict[str, dict[str, RegisteredTactic]] = {}

    def __repr__(self) -> str:
        with self._lock.held:
            found = [f"{op} {name}" for op, known in self._tactics.items() for name in known]
        return f"<TacticRegistry: {listed(found) or 'no tactics'}>"

    def register(self, op: str, name: str, creator: Creator, priority: int = 0, override: bool = False) -> None:
        """Add a way to compute an operator, such as ``nn.matmul``. ``creator()`` makes a tactic for each executor and
        each kind of call. By default compiled code comes before it, unless records or settings say otherwise.

        Raises ``LoopwrightError`` for an operator that is not registered, and for a name that it has already, unless
        ``override`` is asked for.
        """
        check_op_name(op)
        if not callable(creator):
            raise LoopwrightError(f"the tactic {name} of {op} needs a function that makes it, found {creator!r}")
        with self._lock.held:
            known = self._tactics.setdefault(op, {})
            if name in known and not override:
                raise LoopwrightError(f"{op} has a tactic {name} already; say override=True to replace it")
            known[name] = RegisteredTactic(name, creator, priority)

    def of(self, op: str) -> tuple[RegisteredTactic, ...]:
        """The tactics of an operator, in order of registration; none of one that is not registered here, as an operator
        of a loaded library need not be. Raises ``LoopwrightError`` for what is no name."""
        if not isinstance(op, str):
            raise LoopwrightError(f"operators are named by strings, found {op!r}")
        with self._lock.held:
            return tuple(self._tactics.get(op, {}).values())


tactics = TacticRegistry()
"""What engines choose from unless they are given another registry."""

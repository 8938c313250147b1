"""Operator strategies: which implementations an operator has for a target, under which conditions, at which priority.

    OpStrategy → OpSpecialization (a condition) → OpImplementation (compute, schedule, name, plevel)

A strategy function, registered per operator and target key, makes an ``OpStrategy`` for a call;
``compiler/selection.py`` chooses. Mutable: the table of strategy functions, under a lock.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

from ..graph.types import Type
from ..ir.errors import LoopwrightError, SelectionError
from ..ir.expr import Expr
from ..ir.facts import NO_FACTS
from ..ir.simplify import simplify
from ..ir.target import Target
from ..lowering.default_schedule import default_schedule
from ..lowering.schedule import Schedule
from ..te.tensor import Tensor
from .registry import Op

Tensors: TypeAlias = tuple[Tensor, ...]


class Compute(Protocol):
    """``attrs``, the input tensors, and the inferred result type → the output tensors."""

    def __call__(self, attrs: Any, inputs: Tensors, result: Type) -> Tensor | Tensors: ...


class ScheduleFunction(Protocol):
    """How to schedule a fused function: ``anchor`` are the outputs of the operator whose implementation was chosen,
    ``outputs`` those of the function, which elementwise operators may have been added to after the anchor."""

    def __call__(self, attrs: Any, anchor: Tensors, outputs: Tensors, target: Target) -> Schedule: ...


def schedule_default(attrs: Any, anchor: Tensors, outputs: Tensors, target: Target) -> Schedule:
    """The schedule from general rules, for any operator; it keeps the order of sums, which strict builds insist on."""
    return default_schedule(outputs, target, reassociate=False)


@dataclass(frozen=True, slots=True)
class OpImplementation:
    """A compute with the schedule that belongs to it. ``plevel`` is its priority: the highest valid one is chosen."""

    compute: Compute
    schedule: ScheduleFunction
    name: str
    plevel: int


@dataclass(frozen=True, slots=True, eq=False)
class SpecializedCondition:
    """Clauses over shapes that must all hold; each clause is an expression, an ``or`` of comparisons at most."""

    clauses: tuple[Expr, ...]

    def verdicts(self) -> tuple[tuple[Expr, bool | None], ...]:
        """Each clause with whether it holds; None where that depends on symbolic dimensions."""
        return tuple((clause, _decided(clause)) for clause in self.clauses)


def _decided(clause: Expr) -> bool | None:
    value = getattr(simplify(clause, NO_FACTS), "value", None)
    return value if isinstance(value, bool) else None


@dataclass(frozen=True, slots=True)
class OpSpecialization:
    """Implementations that share a condition; None holds always."""

    condition: SpecializedCondition | None
    implementations: tuple[OpImplementation, ...]


@dataclass(slots=True)
class OpStrategy:
    """All that a strategy function offers for one call. Mutable while the function fills it."""

    specializations: list[OpSpecialization] = field(default_factory=list)
    _scope: SpecializedCondition | None = None

    @contextmanager
    def specialized(self, *clauses: Expr) -> Iterator[None]:
        """Implementations added inside hold only where all clauses do."""
        outer = self._scope
        self._scope = SpecializedCondition((*(outer.clauses if outer is not None else ()), *clauses))
        try:
            yield
        finally:
            self._scope = outer

    def add_implementation(self, compute: Compute, schedule: ScheduleFunction, name: str, plevel: int = 10) -> None:
        """Offer an implementation, under the conditions of the enclosing ``specialized`` blocks."""
        made = OpImplementation(compute, schedule, name, plevel)
        self.specializations.append(OpSpecialization(self._scope, (made,)))

    def candidates(self) -> Iterator[tuple[SpecializedCondition | None, OpImplementation]]:
        for specialization in self.specializations:
            for implementation in specialization.implementations:
                yield specialization.condition, implementation


StrategyFunction: TypeAlias = Callable[[Any, Sequence[Type], Type, Target], OpStrategy]

_strategies: dict[tuple[str, str], StrategyFunction] = {}
_lock = threading.Lock()
DEFAULT_KEY = "default"


def register_strategy(op: Op, key: str = DEFAULT_KEY, override: bool = False) -> Callable[[StrategyFunction], Any]:
    """Decorator: the strategy of an operator for targets that have ``key``; ``"default"`` serves all others.

    A second registration is a ``LoopwrightError`` unless ``override`` is asked for.
    """

    def register(function: StrategyFunction) -> StrategyFunction:
        with _lock:
            if (op.name, key) in _strategies and not override:
                raise LoopwrightError(f"operator {op.name} has a strategy for {key!r} already; say override=True")
            _strategies[op.name, key] = function
        return function

    return register


def register_compute(
    op: Op, compute: Compute, schedule: ScheduleFunction = schedule_default, name: str | None = None
) -> None:
    """The strategy of an operator that has one implementation for all targets."""

    @register_strategy(op)
    def strategy(attrs: Any, inputs: Sequence[Type], result: Type, target: Target) -> OpStrategy:
        made = OpStrategy()
        made.add_implementation(compute, schedule, name or f"{op.name}.generic")
        return made


def strategy_of(op: Op, attrs: Any, inputs: Sequence[Type], result: Type, target: Target) -> OpStrategy:
    """What an operator offers for a call on a target: the function of the target's most specific key decides."""
    for key in (*target.keys, DEFAULT_KEY):
        function = _strategies.get((op.name, key))
        if function is not None:
            return function(attrs, inputs, result, target)
    raise SelectionError(f"operator {op.name} has no implementation for {target.cpu}")

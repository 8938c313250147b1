"""Operator strategies: which implementations an operator has for a target, under which conditions, at which priority.

    OpStrategy → OpSpecialization (a condition) → OpImplementation (compute, schedule, name, plevel)

A strategy function, registered per operator, level and target key, makes an ``OpStrategy`` for a call;
``compiler/selection/select.py`` chooses. Mutable: the tables of what is registered, under a lock.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import field, replace
from functools import partial
from typing import Any, TypeAlias, TypeVar, overload

from ...base.dataclass import dataclass
from ...base.errors import LoopwrightError, SelectionError
from ...base.foreign_errors import naming_code
from ...base.target import Target
from ...base.target_kind import require_kind
from ...graph.types import Type
from ...lowering.schedule import Schedule
from ...schedules.around import auto_inline_injective
from ...te.tensor import Tensors
from .condition import Clause, ClauseLike, SpecializedCondition, clause, condition_of, of_terms
from .foreign_code import foreign_digest, note
from .generic import DEFAULT_KEY, GenericFunction, where
from .implementation import (
    Compute,
    OpImplementation,
    ScheduleFunction,
    Stages,
    outputs_of,
    wrap_compute,
    wrap_schedule,
)
from .pattern_schedules import BY_PATTERN, broadcast_schedule, injective_schedule, reduce_schedule, schedule_default
from .registry import Op

__all__ = [
    "DEFAULT_KEY",
    "DEFAULT_LEVEL",
    "Clause",
    "Compute",
    "OpImplementation",
    "OpSpecialization",
    "OpStrategy",
    "ScheduleFunction",
    "SpecializedCondition",
    "Stages",
    "StrategyFunction",
    "Tensors",
    "auto_inline_injective",
    "clause",
    "foreign_code",
    "inherited_strategy",
    "of_terms",
    "outputs_of",
    "register_broadcast_schedule",
    "register_compute",
    "register_injective_schedule",
    "register_reduce_schedule",
    "register_schedule",
    "register_strategy",
    "schedule_default",
    "strategy_of",
    "wrap_compute",
    "wrap_schedule",
]

DEFAULT_LEVEL = 10


@dataclass(frozen=True, slots=True)
class OpSpecialization:
    """Implementations that share a condition; None holds always."""

    condition: SpecializedCondition | None
    implementations: tuple[OpImplementation, ...]


@dataclass(slots=True)
class OpStrategy:
    """All that a strategy function offers for one call. Mutable while the function fills it."""

    _offered: list[tuple[SpecializedCondition | None, OpImplementation]] = field(default_factory=list)
    _scope: SpecializedCondition | None = None

    @contextmanager
    def specialized(self, *clauses: ClauseLike) -> Iterator[None]:
        """Implementations added inside hold only where all clauses do, and those of the scopes around.

        A clause is a comparison of extents, ``te.any`` or ``te.all`` of several, a bool, or one with a name made by
        ``clause``.
        """
        outer = self._scope
        self._scope = condition_of(clauses, outer)
        try:
            yield
        finally:
            self._scope = outer

    def add_implementation(
        self,
        compute: Compute,
        schedule: ScheduleFunction,
        name: str,
        plevel: int = DEFAULT_LEVEL,
        keeps_order: bool = True,
        cost: float | None = None,
        direct: bool = True,
        sums: str | None = None,
    ) -> None:
        """Offer an implementation, under the conditions of the enclosing ``specialized`` blocks.

        A tuning record sets the decisions that ``schedule`` makes by name (``Schedule.decide``). Records and
        explanations tell implementations by their names: one that is taken is a ``SelectionError``.
        """
        if not name or not isinstance(plevel, int):
            raise SelectionError(f"an implementation has a name and a whole plevel, found {name!r} and {plevel!r}")
        if any(made.name == name for _, made in self._offered):
            raise SelectionError(f"a strategy offers an implementation {name!r} already; give each a name of its own")
        made = OpImplementation(compute, schedule, name, plevel, keeps_order, cost, direct, sums)
        self._offered.append((self._scope, made))

    @property
    def specializations(self) -> tuple[OpSpecialization, ...]:
        """One for each scope that offers something, in the order of their first implementations."""
        scopes: dict[SpecializedCondition | None, list[OpImplementation]] = {}
        for condition, implementation in self._offered:
            scopes.setdefault(condition, []).append(implementation)
        return tuple(OpSpecialization(condition, tuple(made)) for condition, made in scopes.items())

    def candidates(self) -> Iterator[tuple[SpecializedCondition | None, OpImplementation]]:
        """Each implementation with its condition, in order of registration."""
        yield from self._offered


F = TypeVar("F")
StrategyFunction: TypeAlias = Callable[[Any, Sequence[Type], Type, Target], OpStrategy]

_strategies: dict[str, dict[int, GenericFunction[StrategyFunction]]] = {}
_lock = threading.Lock()


@overload
def register_strategy(
    op: Op, fstrategy: None = None, *, key: str = ..., level: int = ..., override: bool = ...
) -> Callable[[StrategyFunction], StrategyFunction]: ...
@overload
def register_strategy(
    op: Op,
    fstrategy: StrategyFunction | GenericFunction[StrategyFunction],
    *,
    key: str = ...,
    level: int = ...,
    override: bool = ...,
) -> None: ...


def register_strategy(
    op: Op,
    fstrategy: StrategyFunction | GenericFunction[StrategyFunction] | None = None,
    *,
    key: str = DEFAULT_KEY,
    level: int = DEFAULT_LEVEL,
    override: bool = False,
) -> Callable[[StrategyFunction], StrategyFunction] | None:
    """The strategy of an operator for targets that have ``key``; a decorator if ``fstrategy`` is left out.

    The highest level that has a function for the target decides, and within it the target's most specific key. A
    generic function takes all keys of its level. What is registered already is a ``LoopwrightError``, which says
    where, unless ``override`` is asked for.
    """
    if fstrategy is None:
        return _decorator(partial(register_strategy, op, key=key, level=level, override=override))
    if not isinstance(op, Op):
        raise LoopwrightError(f"a strategy is registered for an operator, as get_op(name) gives it, not for {op!r}")
    purpose = f"the strategy of {op.name} at level {level}"
    with _lock:
        levels = _strategies.setdefault(op.name, {})
        if isinstance(fstrategy, GenericFunction):
            if level in levels and not override:
                raise LoopwrightError(
                    f"{purpose} is registered already, for {', '.join(levels[level].keys())}, and now as "
                    f"{where(fstrategy)}; say override=True to replace it, or register at another level"
                )
            levels[level] = fstrategy
            return None
        functions = levels.setdefault(level, GenericFunction(purpose))
    functions.register(key, override)(fstrategy)
    return None


def _decorator(register: Callable[[F], object]) -> Callable[[F], F]:
    def decorate(function: F) -> F:
        register(function)
        return function

    return decorate


_schedules: dict[str, GenericFunction[ScheduleFunction]] = {}
"""Of the operators that have one compute for all targets."""


@dataclass(frozen=True, slots=True)
class _SharedCompute:
    """The strategy of ``register_compute``: one implementation, whose schedule depends on the target."""

    compute: Compute
    name: str | None
    op: Op
    schedules: GenericFunction[ScheduleFunction]

    def __repr__(self) -> str:
        return f"the shared compute {where(self.compute)}"

    def __call__(self, attrs: Any, inputs: Sequence[Type], result: Type, target: Target) -> OpStrategy:
        key = self.schedules.key_for(target)
        variant = "generic" if key is None or key == DEFAULT_KEY else key
        made = OpStrategy()
        made.add_implementation(self.compute, self.schedule(target), self.name or f"{self.op.name}.{variant}")
        return made

    def schedule(self, target: Target) -> ScheduleFunction:
        """What is registered for the operator; else for its pattern; else the default schedule."""
        of_pattern = BY_PATTERN.get(self.op.pattern)
        found = self.schedules.find(target) or (of_pattern and of_pattern.find(target)) or schedule_default
        return found.of(target) if isinstance(found, _OfTarget) else found


@dataclass(frozen=True, slots=True)
class _OfTarget:
    """A schedule that stands for that of a generic function."""

    schedules: GenericFunction[ScheduleFunction]

    def __repr__(self) -> str:
        return self.schedules.purpose

    def of(self, target: Target) -> ScheduleFunction:
        return self.schedules.for_target(target)

    def __call__(self, attrs: Any, anchor: Tensors, outputs: Tensors, target: Target) -> Schedule:
        return self.of(target)(attrs, anchor, outputs, target)


def register_compute(
    op: Op, compute: Compute, schedule: ScheduleFunction | None = None, name: str | None = None
) -> None:
    """The strategy of an operator that has one compute for all targets.

    Its schedule is ``schedule``, or what ``register_schedule`` registers, or that of the operator's pattern. ``name``
    is the implementation's.
    """
    schedules: GenericFunction[ScheduleFunction] = GenericFunction(f"the schedule of {op.name}", schedule)
    note(compute)
    register_strategy(op, _SharedCompute(compute, name, op, schedules))
    with _lock:
        _schedules[op.name] = schedules


@overload
def register_schedule(
    op: Op, schedule: None = None, *, key: str = ..., override: bool = ...
) -> Callable[[ScheduleFunction], ScheduleFunction]: ...
@overload
def register_schedule(op: Op, schedule: ScheduleFunction, *, key: str = ..., override: bool = ...) -> None: ...


def register_schedule(
    op: Op, schedule: ScheduleFunction | None = None, *, key: str = DEFAULT_KEY, override: bool = False
) -> Callable[[ScheduleFunction], ScheduleFunction] | None:
    """Another schedule for the compute that ``register_compute`` shares, on targets that have ``key``.

    A decorator if ``schedule`` is left out. A second registration is a ``LoopwrightError`` unless ``override`` is
    asked for; so is an operator whose strategy offers implementations of its own.
    """
    if schedule is None:
        return _decorator(partial(register_schedule, op, key=key, override=override))
    schedules = _schedules.get(op.name)
    if schedules is None:
        raise LoopwrightError(
            f"{op.name} shares no compute that a schedule could be registered for: use register_compute first, or, "
            f"where it has a strategy, register_strategy({op.name}, …, key={key!r})"
        )
    schedules.register(key, override)(schedule)
    return None


def register_injective_schedule(op: Op, *, key: str = DEFAULT_KEY, override: bool = False) -> None:
    """Schedule an operator as those that rearrange elements, whatever its pattern; else as ``register_schedule``."""
    register_schedule(op, _OfTarget(injective_schedule), key=key, override=override)


def register_broadcast_schedule(op: Op, *, key: str = DEFAULT_KEY, override: bool = False) -> None:
    """Schedule an operator as elementwise ones, whatever its pattern; else as ``register_schedule``."""
    register_schedule(op, _OfTarget(broadcast_schedule), key=key, override=override)


def register_reduce_schedule(op: Op, *, key: str = DEFAULT_KEY, override: bool = False) -> None:
    """Schedule an operator as reductions, whatever its pattern; else as ``register_schedule``."""
    register_schedule(op, _OfTarget(reduce_schedule), key=key, override=override)


def inherited_strategy(
    key: str, op: Op, attrs: Any, inputs: Sequence[Type], result: Type, target: Target
) -> OpStrategy:
    """What an operator offers without what is registered for ``key``: a strategy for a key may add to it."""
    return strategy_of(op, attrs, inputs, result, replace(target, keys=target.keys[target.keys.index(key) + 1 :]))


def strategy_of(op: Op, attrs: Any, inputs: Sequence[Type], result: Type, target: Target) -> OpStrategy:
    """What an operator offers for a call on a target; ``register_strategy`` says which function decides."""
    function = _deciding(op, target)
    if function is None:
        raise SelectionError(f"operator {op.name} has no implementation for {target.cpu}")
    what = f"the strategy {where(function)} of {op.name}"
    with naming_code(what, SelectionError):
        made = function(attrs, inputs, result, target)
    if not isinstance(made, OpStrategy):
        raise SelectionError(f"{what} should return an OpStrategy, found {made!r}")
    return made


def foreign_code(op: Op, target: Target) -> str:
    """A text that tells the code from outside apart that decides about an operator; empty where all of it is ours."""
    function = _deciding(op, target)
    if isinstance(function, _SharedCompute):
        return foreign_digest(op.relation, function.compute, function.schedule(target))
    return foreign_digest(op.relation, function)


def _deciding(op: Op, target: Target) -> StrategyFunction | None:
    require_kind(target)
    levels = _strategies.get(op.name, {})
    found = (levels[level].find(target) for level in sorted(levels, reverse=True))
    return next((function for function in found if function is not None), None)

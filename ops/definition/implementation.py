"""Implementations: a compute with the schedule that belongs to it; adapters for functions in classic TVM's style."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from functools import update_wrapper
from typing import Any, Protocol, TypeAlias, overload

from ... import te
from ...base.dataclass import dataclass
from ...base.errors import SelectionError
from ...base.foreign_errors import naming_code
from ...base.target import Target
from ...graph.node import Call
from ...graph.types import Type, leaf_types
from ...lowering.checked_late import checked_late
from ...lowering.decisions import NONE_DECIDED, Decision, DecisionValue, Outputs, require_known
from ...lowering.schedule import Schedule
from ...te.tensor import Tensor, Tensors


@dataclass(frozen=True, slots=True, eq=False)
class Stages(Sequence[Tensor]):
    """The ``result`` of a compute; a subclass has the stages on the way to it that its schedule asks for as fields.

    A compute returns them in place of its output tensors, so that its schedule need not search for stages. A schedule
    that asks for none may take them for the sequence of the outputs, which is the result alone unless a subclass says
    otherwise.
    """

    result: Tensor

    @property
    def outputs(self) -> Tensors:
        """The output tensors."""
        return (self.result,)

    def __len__(self) -> int:
        return len(self.outputs)

    @overload
    def __getitem__(self, index: int) -> Tensor: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Tensor]: ...
    def __getitem__(self, index: int | slice) -> Tensor | Sequence[Tensor]:
        return self.outputs[index]


Computed: TypeAlias = Tensors | Stages
"""What a compute gives, and its schedule is given: the output tensors, or the stages on the way to them."""


def outputs_of(computed: Tensor | Computed) -> Tensors:
    """The output tensors of what a compute gives."""
    if isinstance(computed, Stages):
        return computed.outputs
    return computed if isinstance(computed, tuple) else (computed,)


class Compute(Protocol):
    """``attrs``, the input tensors, and the inferred result type → the output tensors, or its ``Stages``."""

    def __call__(self, attrs: Any, inputs: Tensors, result: Type) -> Tensor | Computed: ...


class ScheduleFunction(Protocol):
    """How to schedule a fused function. ``anchor`` is what the compute of the chosen implementation gave: its
    ``Stages``, or else a tuple of its outputs. ``outputs`` are those of the function, which elementwise operators may
    have been added to after the anchor; ``create_schedule(outputs)`` makes a schedule whose decisions get the values
    that a record has for them."""

    def __call__(self, attrs: Any, anchor: Any, outputs: Tensors, target: Target) -> Schedule: ...


@dataclass(frozen=True, slots=True)
class OpImplementation:
    """A compute with the schedule that belongs to it. ``plevel`` is its priority: the highest valid one is chosen,
    among equals that of least ``cost``.

    ``keeps_order`` False says that floats are summed in another order than that of the operator's definition whatever
    the schedule, as a library does it: strict precision refuses it. ``direct`` False says that it multiplies other
    numbers than the definition of what it stands for, such as sums of them: direct arithmetic refuses it.
    ``sums`` names the order in which it sums floats: implementations of a call that share the name give the same bits,
    so that the number of samples may decide between them; None: an order of its own.
    ``cost`` is an estimate in cycles of one core (``cost.py``), by which layouts are planned, too; None: unknown.
    Planning then takes it to be as fast as memory, and among equals those that state a cost come before it.
    ``decided`` are values for the decisions of its schedule, by name.
    """

    compute: Compute
    schedule: ScheduleFunction
    name: str
    plevel: int
    keeps_order: bool = True
    cost: float | None = None
    direct: bool = True
    sums: str | None = None
    decided: Mapping[str, DecisionValue] = field(default_factory=dict)

    @property
    def rank(self) -> tuple[int, float]:
        """What is least of the implementation that is chosen: by priority, then by cost."""
        return -self.plevel, math.inf if self.cost is None else self.cost

    def configured(self, decided: Mapping[str, DecisionValue]) -> OpImplementation:
        """This implementation with the decisions of a record."""
        return dataclasses.replace(self, decided=decided)

    def decisions(
        self, call: Call, target: Target, decided: Mapping[str, DecisionValue] = NONE_DECIDED
    ) -> tuple[Decision, ...]:
        """What its schedule of a call by itself decides, in order, with the values ``decided`` so far: each has its
        name, its legal values, its default, its value, and whether that may change the order of a sum. What is decided
        later goes by it, so that one choice after the other is a walk.

        Raises ``ScheduleError`` where the schedule has no decision of such a name, or is illegal.
        """
        return dataclasses.replace(self, decided={**self.decided, **decided}).schedule_alone(call, target).decisions

    def schedule_alone(self, call: Call, target: Target) -> Schedule:
        """The schedule of a call by itself, of inputs p0, p1, …, as they are called in fused functions."""
        made = self.computed_alone(call)
        return self.scheduled(call.op.name, call.attrs, made, outputs_of(made), target)

    def computed_alone(self, call: Call) -> Computed:
        """What it computes for a call by itself, of inputs p0, p1, …."""
        kinds = [kind for argument in call.args for kind in leaf_types(argument.type)]
        inputs = (te.placeholder(kind.shape, kind.dtype, f"p{number}") for number, kind in enumerate(kinds))
        return self.computed(call.op.name, call.attrs, tuple(inputs), call.type)

    def computed(self, op: str, attrs: Any, inputs: Tensors, result: Type) -> Computed:
        """What the compute gives for a call of the operator named ``op``. Raises ``SelectionError`` where it fails, or
        gives no tensors."""
        what = f"the compute {self.name} of {op}"
        with naming_code(what, SelectionError):
            given = self.compute(attrs, inputs, result)
        outputs = outputs_of(given)
        if not all(isinstance(tensor, Tensor) for tensor in outputs):
            raise SelectionError(f"{what} should compute {result}, but it gives {given!r}")
        return given if isinstance(given, Stages) else outputs

    def scheduled(self, op: str, attrs: Any, anchor: Computed, outputs: Tensors, target: Target) -> Schedule:
        """The schedule of a function of these outputs, whose ``anchor`` ``computed`` gave. Raises ``SelectionError``
        where the function that makes it fails, or gives no schedule; ``ScheduleError`` where that has no decision of a
        name in ``decided``."""
        what = f"the schedule of {self.name} of {op}"

        def make() -> Schedule:
            with naming_code(what, SelectionError):
                made: object = self.schedule(attrs, anchor, Outputs.of(outputs, self.decided), target)
            if not isinstance(made, Schedule):
                raise SelectionError(f"{what} should give what create_schedule gives, but it gives {made!r}")
            return made

        made = checked_late(make)
        require_known(self.decided, made.decisions, self.name)
        if self.decided and made.decided is not self.decided:
            raise SelectionError(
                f"{what} loses the values that are decided: give create_schedule its outputs as they are"
            )
        return made


def wrap_compute(function: Callable[..., Tensor | Sequence[Tensor]], *attributes: str) -> Compute:
    """The compute of a function in the style of TVM's operator inventory, ``function(*tensors, *attributes)``.

    ``attributes`` name those that are passed, in this order; by default all are, as their class lists them.
    """

    def compute(attrs: Any, inputs: Tensors, result: Type) -> Tensor | Tensors:
        names = attributes or _names(attrs)
        made = function(*inputs, *(getattr(attrs, name) for name in names))
        return made if isinstance(made, Tensor) else tuple(made)

    update_wrapper(compute, function)  # whoever asks where the code comes from means that of the function
    return compute


def wrap_schedule(function: Callable[..., Schedule], with_target: bool = False) -> ScheduleFunction:
    """The schedule of a function in the style of TVM: ``function(outputs)``, or ``function(outputs, target)``."""

    def schedule(attrs: Any, anchor: Tensors, outputs: Tensors, target: Target) -> Schedule:
        return function(outputs, target) if with_target else function(outputs)

    update_wrapper(schedule, function)
    return schedule


def _names(attrs: Any) -> tuple[str, ...]:
    return () if attrs is None else tuple(each.name for each in dataclasses.fields(attrs))

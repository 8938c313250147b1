"""Lowers a closed function to its loop nest: the computes of its calls are chained, and the anchor's schedule is
applied and lowered, once for each of the kernels that its anchor may need. Where a schedule is refused, the next
implementation is taken.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import reduce
from itertools import islice
from typing import NamedTuple

from ... import te
from ...artifact.choice import Choice
from ...base.dataclass import dataclass
from ...base.errors import ScheduleError, SelectionError
from ...base.timing import timed
from ...graph.node import Call, Constant, Function, Node, Tuple, TupleGet, Var, tensor_of
from ...graph.types import TensorType, leaf_types, leaves_of_field
from ...graph.visit import post_order
from ...ir.constants import ZERO, const_int
from ...ir.expr import Compare, Expr, Logical
from ...ir.makers import as_index
from ...ir.stmt import PrimFunc
from ...lowering.rules.fold_order import require_order_of_definition
from ...lowering.schedule import Schedule
from ...lowering.variants import Variant, lower_variants
from ...ops.definition.implementation import Computed, OpImplementation, outputs_of
from ...schedules.default_schedule import default_schedule
from ...te.tensor import PlaceholderOp, Tensor
from ...te.work import operations
from ..selection.choices import FunctionChoice, choose
from ..selection.select import Refusal, Selection, select_implementation
from ..selection.traced_schedule import schedule_by_trace
from ..settings import CompileSettings


class LoweredFunction(NamedTuple):
    """A function's loop nest, the choices that made it, how many operations its definition takes, 0 if that does not
    tell, and the schedules that it is of: one for each of its kernels."""

    func: PrimFunc
    choices: tuple[Choice, ...]
    operations: Expr
    schedules: tuple[Schedule, ...]


class ScheduledFunction(NamedTuple):
    """A function's schedules with the conditions under which each runs, the choices that made them, and how many
    operations its definition takes, 0 if that does not tell."""

    variants: tuple[Variant, ...]
    choices: tuple[Choice, ...]
    operations: Expr


class _RefusedError(Exception):
    """The compute or the schedule of an ``implementation`` is illegal for the call of this ``number``."""

    def __init__(self, number: int, implementation: str, error: ScheduleError) -> None:
        super().__init__(str(error))
        self.number, self.implementation, self.error = number, implementation, error


@dataclass(frozen=True, slots=True)
class LoweredOutput:
    """What ``lower_call`` gives: the output tensors of a call, and the choice of what computes them."""

    outputs: tuple[Tensor, ...]
    selection: Selection

    @property
    def implementation(self) -> OpImplementation:
        """The implementation that was chosen."""
        return self.selection.chosen


def lower_call(call: Call, inputs: tuple[Tensor, ...], settings: CompileSettings) -> LoweredOutput:
    """Choose an implementation of a call, and compute its outputs from the input tensors."""
    selection = select_implementation(call, settings)
    return LoweredOutput(outputs_of(_computed_by(selection.chosen, call, inputs)), selection)


def lower_function(function: Function, settings: CompileSettings, symbol: str) -> LoweredFunction:
    """The loop nest of a closed function, scheduled by the implementation chosen for its anchor.

    Where that depends on symbolic dimensions, the function holds a nest for each implementation that may be chosen, and
    a choice for each; the operations are those of the last, which serves all shapes.
    """
    made = timed(schedule_function, function, settings)
    nest = timed(lower_variants, made.variants, symbol, settings.target, _known_size(function))
    return LoweredFunction(nest, made.choices, made.operations, tuple(variant.schedule for variant in made.variants))


def _known_size(function: Function) -> Expr | None:
    """The facts that the dimensions that count samples are the size of the batch, if that is known."""
    if function.batch_size is None:
        return None
    size = as_index(function.batch_size)
    parts: list[Expr] = [Compare("==", symbol, size) for symbol in function.batch]
    return reduce(lambda a, b: Logical("and", a, b), parts) if parts else None


def schedule_function(function: Function, settings: CompileSettings) -> ScheduledFunction:
    """The schedules of a closed function. An implementation whose compute or schedule is illegal in it is left for the
    next one that its strategy offers; the choices tell of that.

    Raises ``SelectionError`` where a call has no valid implementation; ``ScheduleError`` if one was refused.
    """
    params = [tensor for param in function.params for tensor in _placeholders(param)]
    refusals: dict[int, tuple[Refusal, ...]] = {}
    while (choice := choose(function, settings, refusals)) is not None:
        try:
            return _scheduled(function, choice, params, settings)
        except _RefusedError as refused:
            selection = choice.selections[refused.number]
            refusal = Refusal.of(selection, refused.implementation, refused.error)
            refusals[refused.number] = (*refusals.get(refused.number, ()), refusal)
    *_, outputs = _computes(function, (), params)
    general = Variant(None, default_schedule(outputs, settings.target), (*params, *outputs))
    return ScheduledFunction((general,), (), operations(outputs))


def _scheduled(
    function: Function, choice: FunctionChoice, params: Sequence[Tensor], settings: CompileSettings
) -> ScheduledFunction:
    """The function by the implementations of a choice. Raises ``_RefusedError`` where one is illegal here."""
    anchor = choice.calls[choice.anchor]
    variants: list[Variant] = []
    work, note = ZERO, None
    for kernel in choice.dispatched.kernels:
        tensors, computed, outputs = _computes(function, choice.implementations(kernel), params)
        inputs = tuple(tensor for argument in anchor.args for tensor in _tensors(argument, tensors))
        schedule, problem = _recorded_schedule(choice, inputs, tensors[anchor], outputs, settings)
        note = note or problem
        if schedule is None:
            with _refusing(choice.anchor, kernel.implementation):
                made, target = computed[anchor], settings.target
                schedule = kernel.implementation.scheduled(anchor.op.name, anchor.attrs, made, outputs, target)
                _check(schedule, settings)
            note = note or _note_of_departures(kernel.implementation, schedule)
        variants.append(Variant(kernel.guard, schedule, (*params, *outputs)))
        work = operations(outputs)
    return ScheduledFunction(tuple(variants), choice.reports(note), work)


def _note_of_departures(implementation: OpImplementation, schedule: Schedule) -> str | None:
    """What a schedule took instead of decisions of a record of another shape, where these are not legal; else None."""
    if not schedule.departures:
        return None
    return f"what was recorded for {implementation.name} is not all legal here: {'; '.join(schedule.departures)}"


@contextmanager
def _refusing(number: int, implementation: OpImplementation) -> Iterator[None]:
    """A ``ScheduleError`` in this block refuses an implementation for a call."""
    try:
        yield
    except ScheduleError as error:
        raise _RefusedError(number, implementation.name, error) from error


def _recorded_schedule(
    choice: FunctionChoice,
    inputs: tuple[Tensor, ...],
    made: tuple[Tensor, ...],
    outputs: tuple[Tensor, ...],
    settings: CompileSettings,
) -> tuple[Schedule | None, str | None]:
    """The schedule by the trace of the record that the anchor was chosen by; or why the trace does not fit."""
    match = choice.selections[choice.anchor].record
    if match is None or match.record.trace is None:
        return None, None
    try:
        schedule = schedule_by_trace(match.record.trace, inputs, made, outputs, settings.target)
        _check(schedule, settings)
    except ScheduleError as error:
        return None, f"the recorded trace does not fit this function, which has its own schedule: {error}"
    return schedule, None


def _check(schedule: Schedule, settings: CompileSettings) -> None:
    if settings.options.is_strict:
        require_order_of_definition(schedule.state)


def _computes(
    function: Function, chosen: Sequence[OpImplementation], params: Sequence[Tensor]
) -> tuple[dict[Node, tuple[Tensor, ...]], dict[Call, Computed], tuple[Tensor, ...]]:
    """The tensors of each node, and what the implementation chosen for each call computes; and those of the results."""
    given = iter(params)
    tensors: dict[Node, tuple[Tensor, ...]] = {
        param: tuple(islice(given, len(leaf_types(param.type)))) for param in function.params
    }
    computed: dict[Call, Computed] = {}
    calls = (node for node in post_order(function.body) if isinstance(node, Call))
    for number, (call, implementation) in enumerate(zip(calls, chosen, strict=True)):
        inputs = tuple(tensor for argument in call.args for tensor in _tensors(argument, tensors))
        with _refusing(number, implementation):
            computed[call] = _computed_by(implementation, call, inputs)
        tensors[call] = outputs_of(computed[call])
    return tensors, computed, tuple(_computed(tensor) for tensor in _tensors(function.body, tensors))


def _computed_by(implementation: OpImplementation, call: Call, inputs: tuple[Tensor, ...]) -> Computed:
    """What the implementation computes. Raises ``SelectionError`` where that is not of the call's type: whoever reads
    the result goes by it."""
    computed = implementation.computed(call.op.name, call.attrs, inputs, call.type)
    made = outputs_of(computed)
    kinds = leaf_types(call.type)
    if len(made) != len(kinds) or not all(map(_fits, made, kinds)):
        found = ", ".join(str(TensorType(tensor.shape, tensor.dtype)) for tensor in made) or "nothing"
        raise SelectionError(
            f"{implementation.name} of {call.op.name} should compute {call.type}, but it gives {found}"
        )
    return computed


def _fits(made: Tensor, kind: TensorType) -> bool:
    """Whether a tensor has the dtype and the shape of a type, as far as both are known."""
    if made.dtype is not kind.dtype or len(made.shape) != kind.ndim:
        return False
    extents = ((const_int(a), const_int(b)) for a, b in zip(made.shape, kind.shape, strict=True))
    return all(a is None or b is None or a == b for a, b in extents)


def _placeholders(param: Var) -> list[Tensor]:
    """The tensors that a parameter brings: one, or the fields of a tuple."""
    name = re.sub(r"^(?=\d|$)|[^A-Za-z0-9_]", "_", param.name)
    kinds = leaf_types(param.type)
    names = [name] if isinstance(param.type, TensorType) else [f"{name}_{k}" for k in range(len(kinds))]
    return [te.placeholder(kind.shape, kind.dtype, leaf) for kind, leaf in zip(kinds, names, strict=True)]


def _tensors(node: Node, tensors: dict[Node, tuple[Tensor, ...]]) -> tuple[Tensor, ...]:
    """The tensors of a node: one, or the fields of a tuple in order, those of inner tuples among them."""
    match node:
        case Tuple(parts):
            return tuple(tensor for part in parts for tensor in _tensors(part, tensors))
        case TupleGet(value, index):
            return _tensors(value, tensors)[leaves_of_field(value.type, index)]
        case Constant() if node not in tensors:
            tensors[node] = (_constant_tensor(node),)
    return tensors[node]


def _constant_tensor(node: Constant) -> Tensor:
    kind = tensor_of(node)
    value: Expr = te.const(node.value.reshape(-1)[0], kind.dtype)
    return te.compute(kind.shape, lambda *_: value, name="constant")


def _computed(tensor: Tensor) -> Tensor:
    """An output must be computed: a copy, where an operator hands its input on."""
    if isinstance(tensor.op, PlaceholderOp):
        return te.compute(tensor.shape, lambda *i: tensor[i], name="copy")
    return tensor

"""What the recurrences of all cells share: their types, the products with their states, and the schedule of a step.

The weights of a recurrence are held in panels of ``UNITS`` hidden units, ``[panels, hidden, gates, UNITS]``, so that
the sums of all gates of some units stay in registers while the state goes by, and weights are read as one stream. Where
gates are summed one after another, each of them has its panels, ``[gates · panels, hidden, 1, UNITS]``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .... import te
from ....base.dataclass import dataclass
from ....base.dtype import DType
from ....base.errors import TypeInferenceError
from ....base.target import Target
from ....graph.node import Node, tensor_of
from ....graph.types import TensorType, Type
from ....ir.constants import const_int
from ....ir.expr import Axis, Expr
from ....lowering.schedule import Schedule, create_schedule
from ....schedules.default_schedule import schedule_stage
from ....te.tensor import Tensor, Tensors
from ...definition.accumulate import accumulator, widened
from ...definition.implementation import Compute, Stages
from ...definition.registry import Op
from ...definition.relations import FLOAT_KINDS, same_extent, tensor_argument
from ...definition.strategy import OpStrategy, register_strategy
from ..matmul.panels import TERM_BY_TERM
from ..pad import pad
from ..reshape import reshape
from ..transpose import transpose

UNITS = 16
"""The hidden units of a panel: those whose weights fill a cache line, in float32."""
SUMS = 8
"""Vectors of sums side by side for a single row: a sum waits for the last that was added to it."""
REGISTERS = 0.75
"""The share of the registers that sums of several rows take."""
OPEN_ROWS = 4
"""The rows of a tile of an open batch at most."""

ARGUMENTS = [
    ("x", "the products of all steps with the input weights, with all biases, [time, batch, gates · hidden]"),
    ("r", f"the weights of the states, [panels, hidden, gates, {UNITS}]: panels of {UNITS} hidden units"),
    ("h", "the state before the first step, [batch, hidden]; or of batch 1, for all"),
]


@dataclass(frozen=True, slots=True, eq=False)
class RecurrenceType:
    """The extents of a recurrence, and the dtype of its states."""

    time: Expr
    batch: Expr
    hidden: int
    dtype: DType

    @property
    def states(self) -> tuple[Expr | int, Expr, int]:
        """The shape of all states: that before the first step, and that after each."""
        return self.time + 1, self.batch, self.hidden

    @property
    def states_type(self) -> TensorType:
        """The type of all states, that before the first step included: [time + 1, batch, hidden]."""
        return TensorType((self.time + 1, self.batch, te.const(self.hidden, "index")), self.dtype)


def recurrence_of(x: TensorType | Tensor, r: TensorType | Tensor) -> RecurrenceType:
    """The type of a recurrence over these arguments, which fit."""
    return RecurrenceType(x.shape[0], x.shape[1], const_int(r.shape[1]) or 0, x.dtype)


def recurrence_type(types: Sequence[Type], gates: int, together: bool = True) -> RecurrenceType:
    """Check the arguments that all recurrences have; ``together`` says whether panels have all gates. Raises
    ``TypeInferenceError`` where they do not fit."""
    x, r = tensor_argument(types[0], "x"), tensor_argument(types[1], "r")
    if x.dtype.kind not in FLOAT_KINDS or accumulator(x.dtype) is not x.dtype:
        raise TypeInferenceError(f"x must be of float32 or float64, in which states are kept, found {x.dtype}")
    if accumulator(r.dtype) is not x.dtype:
        raise TypeInferenceError(f"r must be of {x.dtype} as x is, or a float that is widened to it, found {r.dtype}")
    hidden = const_int(r.shape[1]) if r.ndim == 4 else None
    apart, held = (1, gates) if together else (gates, 1)
    if hidden is None or [const_int(e) for e in (r.shape[0], *r.shape[2:])] != [apart * panels_of(hidden), held, UNITS]:
        shown = f"[panels, hidden, {gates}, {UNITS}]" if together else f"[{gates} · panels, hidden, 1, {UNITS}]"
        raise TypeInferenceError(f"r must be {shown}, with known extents, found {r}")
    if x.ndim != 3 or const_int(x.shape[2]) != gates * hidden:
        raise TypeInferenceError(f"x must be [time, batch, {gates} · {hidden}], found {x}")
    made = recurrence_of(x, r)
    check_state(types[2], "h", made)
    return made


def check_state(kind: Type, name: str, of: RecurrenceType) -> None:
    """Check the type of a state before the first step."""
    state = tensor_argument(kind, name)
    if state.ndim != 2 or const_int(state.shape[1]) != of.hidden or state.dtype is not of.dtype:
        raise TypeInferenceError(f"{name} must be [batch, {of.hidden}] of {of.dtype}, found {state}")
    if const_int(state.shape[0]) != 1:
        same_extent(of.batch, state.shape[0], f"x has the batch {of.batch}, but {name} {state.shape[0]}")


def check_vector(kind: Type, name: str, extents: tuple[int, ...], of: RecurrenceType) -> None:
    """Check the type of an argument whose extents are known, which has the dtype of the states."""
    given = tensor_argument(kind, name)
    if tuple(const_int(e) for e in given.shape) != extents or given.dtype is not of.dtype:
        raise TypeInferenceError(f"{name} must be {list(extents)} of {of.dtype}, found {given}")


@dataclass(frozen=True, slots=True, eq=False)
class CellStages:
    """A part of a step that is computed for all units before the next: what it gives, the products with states that it
    is computed from, and the stages between."""

    made: Tensor
    products: Tensors
    between: Tensors = ()


@dataclass(frozen=True, slots=True, eq=False)
class RecurrentStages(Stages):
    """The states of all steps, those in ``others`` beside ``result``: the first ones, and the parts of a step in
    order."""

    first: Tensors
    parts: tuple[CellStages, ...]
    others: Tensors = ()

    @property
    def outputs(self) -> Tensors:
        return (self.result, *self.others)


def first_state(state: Tensor, of: RecurrenceType, name: str) -> Tensor:
    """The state before the first step, as the first step of a scan."""
    same = const_int(state.shape[0]) == 1

    def element(t: Axis, b: Axis, j: Axis) -> Expr:
        return state[0 if same else b, j]

    return te.compute((1, of.batch, of.hidden), element, name=name)


def products(
    of: RecurrenceType, r: Tensor, state: Callable[[Axis, Expr, Axis], Expr], first: int, gates: int, name: str
) -> Tensor:
    """The products of the weights of some gates, the first of which has the number ``first``, and a state, which is
    read at step, batch and unit: [time + 1, batch, gates, hidden]."""
    k = te.reduce_axis((0, of.hidden), name="k")
    is_apart = const_int(r.shape[2]) == 1

    def element(t: Axis, b: Axis, g: Axis, j: Axis) -> Expr:
        panel, unit = j // UNITS, j % UNITS
        gate = g + first
        weight = r[gate * panels_of(of.hidden) + panel, k, 0, unit] if is_apart else r[panel, k, gate, unit]
        return te.sum(state(t, b.var, k) * widened(weight), axis=k)

    return te.compute((of.time + 1, of.batch, gates, of.hidden), element, name=name)


def input_gate(of: RecurrenceType, x: Tensor, gate: int, t: Axis, b: Axis, j: Axis) -> Expr:
    """What ``x`` adds to a gate in the step that gives state ``t``; the state before the first step has none."""
    return te.if_then_else(t >= 1, x[t - 1, b, j + gate * of.hidden], te.const(0, of.dtype))


def register_steps(op: Op, compute: Compute) -> None:
    """Register the strategy of a recurrence with this compute. Where the batch is open, a run of a single row has a
    kernel of its own."""

    def strategy(attrs: object, inputs: Sequence[Type], result: Type, target: Target) -> OpStrategy:
        batch = tensor_argument(inputs[0], "x").shape[1]
        made = OpStrategy()
        if const_int(batch) is None:
            with made.specialized(batch <= 1):
                made.add_implementation(compute, schedule_row, f"{op.name}.one_row", sums=TERM_BY_TERM)
        made.add_implementation(compute, schedule_steps, f"{op.name}.generic", sums=TERM_BY_TERM)
        return made

    register_strategy(op, strategy)


def schedule_steps(attrs: object, anchor: RecurrentStages, outputs: Tensors, target: Target) -> Schedule:
    """Compute step by step, and in a step tiles of some rows and units in parallel; the sums of all their gates stay in
    registers."""
    return _scheduled(anchor, outputs, const_int(anchor.result.shape[1]), target)


def schedule_row(attrs: object, anchor: RecurrentStages, outputs: Tensors, target: Target) -> Schedule:
    """``schedule_steps`` for a batch of one."""
    return _scheduled(anchor, outputs, 1, target)


def _scheduled(anchor: RecurrentStages, outputs: Tensors, batch: int | None, target: Target) -> Schedule:
    schedule = create_schedule(list(outputs))
    for tensor in anchor.first:
        schedule_stage(schedule[tensor], target)
    for part in anchor.parts:
        _schedule_part(schedule, part, batch, target)
    return schedule


def _schedule_part(schedule: Schedule, part: CellStages, batch: int | None, target: Target) -> None:
    cell, lanes = schedule[part.made], min(UNITS, target.lanes(part.made.dtype))
    gates = sum(const_int(tensor.shape[2]) or 0 for tensor in part.products)
    hidden = const_int(part.made.shape[2]) or UNITS
    rows, units = _tile(batch, hidden, gates, lanes, target)
    _, b, j = cell.loops
    outer, unit = cell.split(j, factor=units)
    blocks, row = cell.split(b, factor=rows)
    cell.reorder(outer, blocks, row, unit)
    tiles = cell.fuse(outer, blocks)
    cell.vectorize(unit)
    cell.parallel(tiles)
    for view in (schedule[tensor] for tensor in part.between):
        view.compute_at(cell, row)
        view.vectorize(view.loops[-1])
    for view in (schedule[tensor] for tensor in part.products):
        view.compute_at(cell, tiles)
        _, row, gate, unit, k = view.loops
        if units == lanes or units >= hidden:  # one of several tiles of several panels may end with a part of one
            unit = view.round_up(unit, factor=lanes)
        block, lane = view.split(unit, factor=lanes)
        view.reorder(k, row, gate, block, lane)
        for loop in (row, gate, block):
            view.unroll(loop)
        view.vectorize(lane)


def _tile(batch: int | None, hidden: int, gates: int, lanes: int, target: Target) -> tuple[int, int]:
    """The rows and units whose sums are kept in registers."""
    if batch == 1:
        return 1, min(max(1, SUMS * lanes // (gates * UNITS)), panels_of(hidden)) * UNITS
    most = max(1, int(target.vector_registers * REGISTERS) // gates)
    return (min(most, OPEN_ROWS) if batch is None else -(-batch // -(-max(1, batch) // most))), lanes


def panels_of(hidden: int) -> int:
    """How many panels so many hidden units have."""
    return -(-hidden // UNITS)


def panels(op: str, r: Node, gates: int, together: bool = True) -> Node:
    """The weights of a recurrence [gates · hidden, hidden] in panels; a constant's are rearranged when the model is
    compiled. Raises ``TypeInferenceError``, with the name of the operator, for another shape."""
    kind = tensor_of(r)
    extents = [const_int(e) for e in kind.shape]
    hidden = extents[-1] if extents else None
    if hidden is None or extents != [gates * hidden, hidden]:
        raise TypeInferenceError(f"{op}: r must be [{gates} · hidden, hidden], with known extents, found {kind}")
    by_gates, count = reshape(r, (gates, hidden, hidden), allow_zero=True), panels_of(hidden)
    whole = pad(by_gates, (0, 0, 0), (0, count * UNITS - hidden, 0))
    units = reshape(whole, (gates, count, UNITS, hidden), allow_zero=True)
    if together:
        return transpose(units, (1, 3, 0, 2))
    return reshape(transpose(units, (0, 1, 3, 2)), (gates * count, hidden, 1, UNITS), allow_zero=True)

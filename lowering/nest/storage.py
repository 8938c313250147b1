"""How the tensors of a schedule lie in memory: scopes, strides, layouts. Gives the buffers that ``realize`` uses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

from ...base.dataclass import dataclass
from ...base.dtype import INDEX, DType
from ...base.errors import InternalError
from ...ir.buffer import Buffer, Scope
from ...ir.build import make_buffer
from ...ir.constants import ONE, const, const_int
from ...ir.expr import Expr
from ...ir.simplify import simplify
from ...te.tensor import Tensor
from ..stage import Stage, StrideAlignment
from ..state import ScheduleState
from .inference import Inference

STACK_BYTES = 16 * 1024
"""Memory of more bytes, or of a size that is not constant, is on the heap."""

MAX_REGISTERS = 256
"""Most elements of a buffer of scope ``register``."""


@dataclass(frozen=True, slots=True, eq=False)
class StoredBox:
    """The shape of the memory of a stage's outputs, and its strides where it is not compact."""

    shape: tuple[Expr, ...]
    strides: tuple[Expr, ...] | None


@dataclass(frozen=True, slots=True, eq=False)
class RunningFold:
    """What a stage that accumulates has folded so far: memory for each output of its reduction, in their order, with an
    ``element`` for each iteration of the loops inside the one along which it does."""

    buffers: tuple[Buffer, ...]
    element: tuple[Expr, ...]


def running_folds(state: ScheduleState, known: Inference) -> dict[str, RunningFold]:
    """The memory of the stages that accumulate, by their names."""
    return {s.name: _running_fold(s, s.along, known) for s in state.stages if s.along is not None}


def _running_fold(stage: Stage, along: str, known: Inference) -> RunningFold:
    loops, reduction = known.loops[stage.name], known.reduction(stage)
    if reduction is None:
        raise InternalError(f"{stage.name} accumulates, but folds nothing")
    inside = stage.leaves[stage.leaves.index(along) + 1 :]
    shape = tuple(loops.extents[leaf] for leaf in inside)
    kinds = [identity.dtype for identity in reduction.combiner.identity]
    buffers = (
        make_buffer(f"{stage.name}.fold", shape, kind, _scope(None, StoredBox(shape, None), kind), alignment=64)
        for kind in kinds
    )
    return RunningFold(tuple(buffers), tuple(loops.vars[leaf] for leaf in inside))


def make_buffers(state: ScheduleState, known: Inference, shared: Mapping[Tensor, Tensor]) -> dict[Tensor, Buffer]:
    """The buffers of all tensors that have memory; those that live in a loop have room for an iteration only.

    ``shared`` says of the parts of scans in whose memory they are.
    """
    buffers = {
        tensor: _make_buffer(state, known, stage, tensor)
        for stage in state.stages
        if stage.is_input or stage.name in known.regions
        for tensor in stage.tensors
        if tensor not in shared
    }
    return buffers | {part: buffers[whole] for part, whole in shared.items()}


def _make_buffer(state: ScheduleState, known: Inference, stage: Stage, tensor: Tensor) -> Buffer:
    if stage.is_input:
        return make_buffer(tensor.name, tensor.shape, tensor.dtype)
    name = stage.name if len(stage.tensors) == 1 else f"{stage.name}.v{tensor.index}"
    box = stored_box(stage, known) if stage.is_compute else StoredBox(tensor.shape, None)
    if stage.name in state.outputs:
        return make_buffer(name, box.shape, tensor.dtype)
    scope = _scope(stage.scope, box, tensor.dtype)
    return make_buffer(name, box.shape, tensor.dtype, scope, box.strides, alignment=64)


def stored_at(stage: Stage, indices: tuple[Expr, ...]) -> tuple[Expr, ...]:
    """Where in its buffer an element of a stage is; ``indices`` count from the first element that is stored."""
    return indices if stage.layout is None else stage.layout(indices)


def stored_box(stage: Stage, known: Inference) -> StoredBox:
    """The memory that the elements computed of a stage take."""
    shape = known.memory[stage.name].extents
    if stage.layout is not None:
        laid_out = stage.layout.shape(shape, known.facts)
        if laid_out is None:
            raise InternalError(f"the layout of {stage.name} has been checked, but its shape is not known")
        shape = laid_out
    return StoredBox(shape, _strides(shape, stage.alignments) if stage.alignments else None)


def _strides(shape: Sequence[Expr], alignments: Mapping[int, StrideAlignment]) -> tuple[Expr, ...]:
    """Row-major strides, the aligned ones rounded up."""
    strides: list[Expr] = []
    step: Expr = ONE
    for dim in reversed(range(len(shape))):
        if (alignment := alignments.get(dim)) is not None:
            factor, offset = const(alignment.factor, INDEX), const(alignment.offset, INDEX)
            step = simplify(step + (offset - step) % factor)
        strides.append(step)
        step = simplify(step * shape[dim])
    return tuple(reversed(strides))


def _scope(wanted: Scope | None, box: StoredBox, kind: DType) -> Scope:
    """The scope wanted if the size allows it: stack and registers are small, and known when code is made."""
    sizes = [const_int(e) for e in (box.shape if box.strides is None else (box.shape[0], box.strides[0]))]
    count = prod(s for s in sizes if s is not None) if None not in sizes else None
    if wanted == "tile":
        return wanted
    if wanted == "global" or count is None or count * kind.storage_bytes > STACK_BYTES:
        return "global"
    return "register" if wanted == "register" and count <= MAX_REGISTERS else "local"

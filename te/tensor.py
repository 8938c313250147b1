"""Tensors, and the operations that give them: a placeholder is fed by the caller, a compute says how each element is
made, a scan makes them step by step, an extern by statements written by hand.

All are immutable and compared by identity; schedules refer to them, and never change them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import ClassVar, TypeAlias

from ..base.brief import listed, one_line
from ..base.dataclass import dataclass
from ..base.dtype import DType
from ..base.errors import ExpressionError
from ..ir.expr import Axis, Expr, ExprLike, Reduce, TensorBase, TensorRead
from ..ir.makers import as_index
from ..ir.stmt import PrimFunc
from ..ir.visit import tensor_reads, walk
from .whole import WholeTensor


@dataclass(frozen=True, slots=True, eq=False, repr=False, weakref_slot=True)
class Tensor(TensorBase, WholeTensor):
    """Output ``index`` of an operation. ``tensor[i, j]`` reads an element, in the body of a compute; operators and
    functions of numpy on the whole tensor make computes, see ``WholeTensor``."""

    name: str
    dtype: DType
    shape: tuple[Expr, ...]
    op: Operation
    index: int = 0

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    def __getitem__(self, indices: ExprLike | tuple[ExprLike, ...]) -> TensorRead:
        given = indices if isinstance(indices, tuple) else (indices,)
        if len(given) != self.ndim:
            raise ExpressionError(f"{self!r} has {self.ndim} dimensions, but is read with {len(given)} indices")
        if any(isinstance(i, slice) for i in given):
            raise ExpressionError(f"{self!r} is read element by element, not by slices")
        return TensorRead(self, tuple(as_index(i) for i in given))

    def _tensor(self) -> Tensor:
        return self

    def __iter__(self) -> None:
        raise ExpressionError(f"{self!r} cannot be iterated over: read its elements by index")

    def __repr__(self) -> str:
        return one_line(f"{self.name}: {_type_text(self)}")


def _type_text(tensor: Tensor) -> str:
    return f"{tensor.dtype}[{', '.join(map(str, tensor.shape))}]"


class OperationBase:
    """The base class of all operations. It says how they are printed."""

    __slots__ = ()

    what: ClassVar[str]
    name: str
    outputs: tuple[Tensor, ...]

    def __str__(self) -> str:
        return f"{self.what} {self.name}"

    def __repr__(self) -> str:
        return one_line(f"{self}: {listed(map(_type_text, self.outputs))}")


class _WithoutLoops(OperationBase):
    """An operation that a schedule has no loops of."""

    __slots__ = ()
    axis: ClassVar[tuple[Axis, ...]] = ()
    reduce_axis: ClassVar[tuple[Axis, ...]] = ()


@dataclass(frozen=True, slots=True, eq=False, repr=False, weakref_slot=True)
class PlaceholderOp(_WithoutLoops):
    """An input of a program, whose array the caller gives. ``outputs`` holds its one tensor."""

    what: ClassVar[str] = "placeholder"

    name: str
    outputs: tuple[Tensor, ...] = field(init=False)

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """A placeholder reads no tensors."""
        return ()


@dataclass(frozen=True, slots=True, eq=False, repr=False, weakref_slot=True)
class ComputeOp(OperationBase):
    """``outputs[k][axis] = body[k]``, for all values of the axes. A body is free of reductions, or is one itself.

    If there are several bodies they are outputs 0, 1, … of one reduction, or all free of reductions. ``parts`` are the
    operations before it that a reduction in lanes was taken apart to, in order of computation.
    """

    what: ClassVar[str] = "compute"

    name: str
    axis: tuple[Axis, ...]
    body: tuple[Expr, ...]
    parts: tuple[ComputeOp, ...] = ()
    outputs: tuple[Tensor, ...] = field(init=False)

    @property
    def reduction(self) -> Reduce | None:
        """The reduction, if the operation is one."""
        first = self.body[0]
        return first if isinstance(first, Reduce) else None

    @property
    def reduce_axis(self) -> tuple[Axis, ...]:
        """The axes of the reduction; none if the operation is none."""
        reduction = self.reduction
        return reduction.axes if reduction is not None else ()

    @property
    def ragged_axes(self) -> tuple[Axis, ...]:
        """The reduction axes whose bounds are read from memory, or differ from element to element."""
        own = {axis.var for axis in self.axis}
        return tuple(
            axis
            for axis in self.reduce_axis
            if any(node in own or isinstance(node, TensorRead) for b in (axis.min, axis.extent) for node in walk(b))
        )

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """The tensors that the bodies read, bounds of reductions included, in order of appearance."""
        read = (read.tensor for body in self.body for read in tensor_reads(body))
        return tuple(dict.fromkeys(tensor for tensor in read if isinstance(tensor, Tensor)))


@dataclass(frozen=True, slots=True, eq=False, repr=False, weakref_slot=True)
class ExternOp(_WithoutLoops):
    """Outputs that a piece of loop IR computes: ``func`` takes the buffers of the inputs, then those of the outputs."""

    what: ClassVar[str] = "extern"

    name: str
    inputs: tuple[Tensor, ...]
    func: PrimFunc
    outputs: tuple[Tensor, ...] = field(init=False)


@dataclass(frozen=True, slots=True, eq=False, repr=False, weakref_slot=True)
class StateOp(_WithoutLoops):
    """What the update of a scan reads the scan's output as, while it grows. ``outputs`` holds its one tensor."""

    what: ClassVar[str] = "state"

    name: str
    outputs: tuple[Tensor, ...] = field(init=False)

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """A state reads no tensors: what it holds comes from the scan around it."""
        return ()


@dataclass(frozen=True, slots=True, eq=False, repr=False, weakref_slot=True)
class ScanOp(OperationBase):
    """``outputs[k][t]`` is ``init[k][t]`` in the first steps; from there on ``update[k][t]``, for ascending t.

    ``state[k]`` is what the update reads ``outputs[k]`` as. ``scan_axis`` runs over the steps that are updates.
    """

    reduce_axis: ClassVar[tuple[Axis, ...]] = ()
    what: ClassVar[str] = "scan"

    name: str
    scan_axis: Axis
    init: tuple[Tensor, ...]
    update: tuple[Tensor, ...]
    state: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...] = field(init=False)

    @property
    def axis(self) -> tuple[Axis, ...]:
        """The axis of the steps that are updates."""
        return (self.scan_axis,)

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """What gives the first steps, then what gives the others."""
        return (*self.init, *self.update)


Operation: TypeAlias = PlaceholderOp | ComputeOp | ExternOp | StateOp | ScanOp
Tensors: TypeAlias = tuple[Tensor, ...]
"""Each has ``axis`` and ``reduce_axis``, the loops of its stage before any primitive; most have none."""


def make_placeholder(name: str, kind: DType, shape: tuple[Expr, ...]) -> Tensor:
    """An input, without the checks of ``te.placeholder``."""
    op = PlaceholderOp(name)
    tensor = Tensor(name, kind, shape, op)
    object.__setattr__(op, "outputs", (tensor,))
    return tensor


def make_state(name: str, kind: DType, shape: tuple[Expr, ...]) -> Tensor:
    """The state of a scan, without the checks of ``te.scan_state``."""
    op = StateOp(name)
    tensor = Tensor(name, kind, shape, op)
    object.__setattr__(op, "outputs", (tensor,))
    return tensor


def make_compute(
    name: str, axis: tuple[Axis, ...], body: tuple[Expr, ...], parts: tuple[ComputeOp, ...] = ()
) -> ComputeOp:
    """A compute without the checks of ``te.compute``, for schedules, which derive computes from checked ones."""
    op = ComputeOp(name, axis, body, parts)
    shape = tuple(a.extent for a in axis)
    _set_outputs(op, [(e.dtype, shape) for e in body])
    return op


def make_extern(name: str, inputs: tuple[Tensor, ...], func: PrimFunc) -> ExternOp:
    """An extern without the checks of ``te.extern``."""
    op = ExternOp(name, inputs, func)
    _set_outputs(op, [(buffer.dtype, buffer.shape) for buffer in func.outputs])
    return op


def make_scan(
    name: str, scan_axis: Axis, init: tuple[Tensor, ...], update: tuple[Tensor, ...], state: tuple[Tensor, ...]
) -> ScanOp:
    """A scan without the checks of ``te.scan``."""
    op = ScanOp(name, scan_axis, init, update, state)
    _set_outputs(op, [(tensor.dtype, tensor.shape) for tensor in state])
    return op


def _set_outputs(op: ComputeOp | ExternOp | ScanOp, types: Sequence[tuple[DType, tuple[Expr, ...]]]) -> None:
    names = (op.name,) if len(types) == 1 else tuple(f"{op.name}.v{k}" for k in range(len(types)))
    outputs = tuple(
        Tensor(n, kind, shape, op, k) for k, (n, (kind, shape)) in enumerate(zip(names, types, strict=True))
    )
    object.__setattr__(op, "outputs", outputs)

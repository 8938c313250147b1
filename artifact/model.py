"""A compiled model as plain data: what the compiler gives to the runtime, and what a library file holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, TypeVar

import numpy.typing as npt

from ..base.brief import BriefRepr
from ..base.dtype import DType
from ..base.target import Target
from .choice import Choice
from .extents import Extent, evaluate, extent_json
from .memory_plan import Lifetime, plan_memory
from .nest_source import NestSource, kept_source
from .options import Arithmetic, Precision
from .plain_data import from_plain


@dataclass(frozen=True, slots=True, repr=False)
class TensorSpec(BriefRepr):
    """Name, shape and dtype of an input or output. A dimension that each run may choose is its name, ``"N"``; of an
    output also a formula over names."""

    name: str
    shape: tuple[Extent, ...]
    dtype: DType

    def __str__(self) -> str:
        return f"{self.name}: {self.type_text}"

    @property
    def type_text(self) -> str:
        """Dtype and shape, as in ``float32[N, 3]``."""
        return f"{self.dtype}[{', '.join(map(str, self.shape))}]"

    def to_json(self) -> dict[str, Any]:
        """The fields as JSON values."""
        return {"name": self.name, "shape": [extent_json(e) for e in self.shape], "dtype": str(self.dtype)}


Slot = TypeVar("Slot")
EXTERN = "extern"
"""The operator that calls packed functions."""


@dataclass(frozen=True, slots=True)
class OpCall:
    """A call of an operator: its attributes as canonical JSON text, and its tensors in order, those of tuples taken
    apart. Symbolic extents are those of the function that computes it; ``operands`` are the places of the inputs, then
    of the outputs, among the arguments of that, None for what the function itself computes or holds."""

    op: str
    attributes: str
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    operands: tuple[int | None, ...]

    @property
    def is_whole(self) -> bool:
        """Whether the function consists of this call, on arguments of its own."""
        return None not in self.operands

    @property
    def places(self) -> tuple[int, ...]:
        """The operands of a call that is the whole function."""
        return tuple(place for place in self.operands if place is not None)

    def to_json(self) -> dict[str, Any]:
        """The fields as JSON values."""
        tensors = {name: [s.to_json() for s in getattr(self, name)] for name in ("inputs", "outputs")}
        return {"op": self.op, "attributes": self.attributes, "operands": self.operands} | tensors


@dataclass(frozen=True, slots=True)
class KernelCall:
    """One step of a model: the symbol of a kernel's entry, and the slots of the model that hold its arguments."""

    symbol: str
    operands: tuple[int, ...]


@dataclass(frozen=True, slots=True, repr=False)
class CompiledFunction(BriefRepr):
    """One fused function. Its arguments are its inputs (constants of one element left out), then its outputs, then the
    values of ``dims``, the names of its symbolic dimensions. ``externs`` are the prototypes of the functions of C that
    it calls. ``operations`` is what its definition takes, 0 if that does not tell; ``traffic`` are the bytes of its
    inputs and outputs, each once. ``call`` is the one whose schedule it has, unless it copies. ``arguments`` are the
    types of its inputs and outputs. ``source_text`` is what its line tables speak of, empty if it has none.
    ``heap_once`` are bytes that it takes from the heap while it runs, ``heap_each`` those that each of its threads
    takes. It has no object code where the call is of a packed function, which an engine looks up."""

    name: str
    symbol: str
    dims: tuple[str, ...]
    choices: tuple[Choice, ...]
    messages: tuple[str, ...]
    loop_ir: str
    llvm_ir: str
    object: bytes
    externs: tuple[str, ...] = ()
    operations: Extent = 0
    traffic: Extent = 0
    call: OpCall | None = None
    arguments: tuple[TensorSpec, ...] = ()
    source_text: str = ""
    heap_once: Extent = 0
    heap_each: Extent = 0

    @property
    def source(self) -> NestSource | None:
        """The source of its line tables, on this machine."""
        return kept_source(self.symbol, self.source_text) if self.source_text else None

    @property
    def anchor(self) -> Choice | None:
        """The choice whose schedule the function has; of several kernels the one that serves all shapes. None for a
        function that copies."""
        return next((choice for choice in reversed(self.choices) if choice.anchor), None)

    @property
    def implementation(self) -> str:
        """The name of the implementation whose schedule the function has."""
        return "copy" if self.anchor is None else self.anchor.implementation

    @property
    def is_packed(self) -> bool:
        """Whether it stands for a packed function, so that there is no code."""
        return self.call is not None and self.call.op == EXTERN

    def to_json(self) -> dict[str, Any]:
        """The fields as JSON values; the object code as it is."""
        extents = {name: extent_json(getattr(self, name)) for name in _EXTENTS}
        call = None if self.call is None else self.call.to_json()
        arguments = [spec.to_json() for spec in self.arguments]
        plain = asdict(replace(self, operations=0, traffic=0, heap_once=0, heap_each=0, call=None, arguments=()))
        return plain | extents | {"call": call, "arguments": arguments}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> CompiledFunction:
        """What ``to_json`` wrote. Raises ``ModelError`` for anything else."""
        made: CompiledFunction = from_plain(cls, data, "function")
        return made


_EXTENTS = ("operations", "traffic", "heap_once", "heap_each")


@dataclass(frozen=True, slots=True)
class StepResult:
    """A value of the imported model that a step leaves in ``slot``: a tensor of shape ``held``, which becomes the
    model's when its axes are put into ``order`` (if there is one), and reshaped to ``shape``."""

    slot: int
    name: str
    dtype: DType
    held: tuple[Extent, ...]
    order: tuple[int, ...] | None
    shape: tuple[Extent, ...]


@dataclass(frozen=True, slots=True)
class ModelStep:
    """A call of a fused function: ``origin`` names the nodes of the imported model that it stands for, ``results`` are
    its outputs that are values of that."""

    function: CompiledFunction
    call: KernelCall
    origin: tuple[str, ...]
    results: tuple[StepResult, ...] = ()


@dataclass(frozen=True, slots=True)
class Least:
    """A symbolic dimension must be at least ``number``, for the sake of ``reason``: a call, or, where it may be no more
    than that either (``exactly``), what has fixed it."""

    dim: str
    number: int
    reason: str
    exactly: bool = False

    @property
    def demand(self) -> str:
        """What the dimension should be, and why."""
        return f"{self.dim} should be {'' if self.exactly else 'at least '}{self.number} for {self.reason}"


@dataclass(frozen=True, slots=True)
class Intermediate:
    """A value between steps, ``size`` bytes: it lives in the arena from the step that writes it, ``first``, to the last
    one that reads it."""

    size: Extent
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Slice:
    """A value between steps that lies in intermediate number ``base``, from byte ``begin`` on."""

    base: int
    begin: Extent


def slots_of(
    tensors: Sequence[Slot], constants: Sequence[Slot], places: Sequence[Slot], dims: Sequence[Slot]
) -> tuple[Slot, ...]:
    """The argument slots of a model's entry, in order. ``tensors`` are inputs and outputs, ``places`` intermediates and
    their slices."""
    return (*tensors, *constants, *places, *dims)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class CompiledModel(BriefRepr):
    """All of a model. The entry's argument slots are the addresses of inputs, outputs, constants, intermediates, slices
    of these, then the values of ``dims``, the dimensions that each run may choose, and of ``derived``, what functions
    take as dimensions of theirs and is computed from these: ``slots_of`` puts them in order.

    ``least`` are the dimensions that may not be just any number. ``extents`` are those of the model's values that
    several dimensions decide: none may come out negative. ``alternatives`` are functions of other implementations, by
    the symbols of those that they may stand for in an engine. ``precision`` and ``arithmetic`` are what it was compiled
    with.
    """

    name: str
    target: Target
    dims: tuple[str, ...]
    derived: tuple[Extent, ...]
    least: tuple[Least, ...]
    extents: tuple[Extent, ...]
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    constants: tuple[npt.NDArray[Any], ...]
    intermediates: tuple[Intermediate, ...]
    slices: tuple[Slice, ...]
    steps: tuple[ModelStep, ...]
    entry: str
    entry_object: bytes
    entry_llvm_ir: str
    alternatives: Mapping[str, tuple[CompiledFunction, ...]] = field(default_factory=dict)
    precision: Precision = "standard"
    arithmetic: Arithmetic = "fast"

    @property
    def functions(self) -> tuple[CompiledFunction, ...]:
        """The different functions, in order of first use."""
        return tuple({step.function.symbol: step.function for step in self.steps}.values())

    def dims_of(self, step: ModelStep, dims: Mapping[str, int]) -> dict[str, int]:
        """The dimensions of a step's function, of those of the model."""
        values = (self.inputs, self.outputs, self.constants, self.intermediates, self.slices)
        first = sum(map(len, values))
        own = step.call.operands[len(step.call.operands) - len(step.function.dims) :]
        numbers = (*self.dims, *self.derived)
        return {name: evaluate(numbers[slot - first], dims) for name, slot in zip(step.function.dims, own, strict=True)}

    def arena(self, dims: Mapping[str, int]) -> tuple[tuple[int, ...], int]:
        """The offsets of the intermediates and of the slices for these dimensions, and the size of the arena, in
        bytes."""
        values = {
            number: Lifetime(evaluate(value.size, dims), value.first, value.last)
            for number, value in enumerate(self.intermediates)
        }
        offsets, size = plan_memory(values)
        slices = (offsets[part.base] + evaluate(part.begin, dims) for part in self.slices)
        return (*(offsets[number] for number in values), *slices), size

"""What a compiled model runs, in order, and where its values lie: blocks of stages, as plain data.

    block  ::= RunBlock(stage+)
    stage  ::= RunStage(birth*, checks, derived extents, memory, step*)

A run has a *frame*: an array of 8-byte slots, which are the arguments of the model's entry. Each value has a slot for
its address, and each dimension one for its number. Some dimensions are known only when a part of the model has run:
a ``Birth`` reads them from memory that a step has written, and puts them into their slots. It begins a stage, which
knows all of its extents, and has its memory as a whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..base.dataclass import dataclass
from ..base.dtype import DType
from .extents import Extent, evaluate
from .memory_plan import Lifetime, plan_memory


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
    """A call of the fused function ``symbol``: ``operands`` are the slots of the frame that hold its arguments,
    ``origin`` names the nodes of the imported model that it stands for, ``results`` are its outputs that are values of
    that."""

    symbol: str
    operands: tuple[int, ...]
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
class BornDimension:
    """A dimension by its name, the slot that holds its number."""

    name: str
    slot: int


@dataclass(frozen=True, slots=True)
class Birth:
    """Numbers that a run computes become dimensions: int64, one for each of ``dims``, at the address in slot
    ``values``. ``meaning`` says what they are, ``origin`` names the nodes of the imported model that ask for them."""

    values: int
    dims: tuple[BornDimension, ...]
    meaning: str
    origin: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.meaning} (node {', '.join(self.origin)})" if self.origin else self.meaning


@dataclass(frozen=True, slots=True)
class DerivedExtent:
    """What functions take as a dimension of theirs, and is computed from dimensions of the model; in its slot."""

    slot: int
    value: Extent


@dataclass(frozen=True, slots=True)
class Intermediate:
    """A value between steps, ``size`` bytes, whose address is in ``slot``. It lives from the step of its stage that
    writes it, ``first``, to the last one that reads it; what later stages read lives to the end of its stage, the
    memory of which stays."""

    slot: int
    size: Extent
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Slice:
    """A value between steps that lies in the value of slot ``base``, from byte ``begin`` on."""

    slot: int
    base: int
    begin: Extent


@dataclass(frozen=True, slots=True)
class BornOutput:
    """An output of the model, by its number, whose ``size`` in bytes a stage is the first to know."""

    number: int
    size: Extent


@dataclass(frozen=True, slots=True)
class RunStage:
    """Steps that run on memory which is had as a whole before the first of them: all of their extents are known by
    then. ``births`` come first; then ``least`` and ``extents`` are checked, none of which may come out negative."""

    births: tuple[Birth, ...]
    least: tuple[Least, ...]
    extents: tuple[Extent, ...]
    derived: tuple[DerivedExtent, ...]
    intermediates: tuple[Intermediate, ...]
    slices: tuple[Slice, ...]
    outputs: tuple[BornOutput, ...]
    steps: tuple[ModelStep, ...]

    @property
    def locals(self) -> int:
        """How many slots it fills beside those of dimensions and outputs."""
        return len(self.derived) + len(self.intermediates) + len(self.slices)

    def places(self, dims: Mapping[str, int]) -> tuple[dict[int, int], int]:
        """The offset of each intermediate in the memory of the stage, by its slot, and the bytes of that memory, for
        these dimensions."""
        lives = {v.slot: Lifetime(evaluate(v.size, dims), v.first, v.last) for v in self.intermediates}
        return plan_memory(lives)


@dataclass(frozen=True, slots=True)
class RunBlock:
    """What runs in order. The first stage of a model has no births."""

    stages: tuple[RunStage, ...]

    def steps(self) -> Iterator[ModelStep]:
        """All calls of fused functions, in order."""
        for stage in self.stages:
            yield from stage.steps


@dataclass(frozen=True, slots=True)
class FrameLayout:
    """The slots of a frame: addresses of inputs, of outputs, of constants; the values of ``dims``, the dimensions that
    inputs have; the address of the table of memory, if the model is run in several stages; and then those that stages
    fill."""

    inputs: int
    outputs: int
    constants: int
    dims: tuple[str, ...]
    staged: bool

    @property
    def tensors(self) -> int:
        """How many slots are addresses that callers give at each run."""
        return self.inputs + self.outputs

    def output(self, number: int) -> int:
        """The slot of an output's address."""
        return self.inputs + number

    @property
    def first_dim(self) -> int:
        """The slot of the first dimension."""
        return self.tensors + self.constants

    @property
    def memory(self) -> int:
        """The slot of the table of memory."""
        return self.first_dim + len(self.dims)

    @property
    def first_local(self) -> int:
        """The first slot that stages fill."""
        return self.memory + self.staged

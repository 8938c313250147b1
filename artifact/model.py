"""A compiled model as plain data: what the compiler gives to the runtime, and what a library file holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from typing import Any

import numpy.typing as npt

from ..base.brief import BriefRepr
from ..base.dataclass import dataclass
from ..base.dtype import STRING
from ..base.output_form import OutputForm
from ..base.state import State
from ..base.target import Target
from ..base.value_form import ValueForm
from .block import FrameLayout, ModelStep, RunBlock, RunStage
from .dimension_bounds import DimensionBounds
from .extents import Extent, dimensions_in, evaluate
from .function import BoundedSpec, CompiledFunction, TensorSpec
from .options import Arithmetic, Precision


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class CompiledModel(BriefRepr):
    """All of a model. ``functions`` are the different fused functions: those that others call, then those of the steps
    in order of first use; ``by_symbol`` finds them. ``body`` is what its entry runs, on a frame whose slots ``layout``
    tells. ``dims`` are the dimensions that each run may choose.

    ``alternatives`` are functions of other implementations, by the symbols of those that they may stand for in an
    engine. ``precision`` and ``arithmetic`` are what it was compiled with. ``forms`` are those in which Python is shown
    the outputs, empty if all are the arrays. ``grouped_inputs`` and ``grouped_outputs`` say of which ``inputs`` and
    ``outputs`` the values are made that callers see, empty if each is one array. ``string_inputs`` are the positions of
    the inputs that are strings: native code has their spans there (``base/spans.py``), and the bytes of all in the last
    input. ``states`` are the outputs that are inputs of the next run, which callers neither give nor get. ``bounds``
    are those of dimensions that have any, and ``expected`` what layouts were planned for. ``repeated`` are the inputs,
    by position, and their axes that are repeated where a caller gives 1 in place of what other inputs say. ``numbers``
    are the extents that a run has in its frame, by slot: its dimensions by name, and what is derived from them.
    ``segments`` is how many segments its control flow has grow (``artifact/segment_table.py``).
    """

    name: str
    target: Target
    dims: tuple[str, ...]
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    constants: tuple[npt.NDArray[Any], ...]
    functions: tuple[CompiledFunction, ...]
    body: RunBlock
    entry: str
    entry_object: bytes
    entry_llvm_ir: str
    alternatives: Mapping[str, tuple[CompiledFunction, ...]] = field(default_factory=dict)
    precision: Precision = "standard"
    arithmetic: Arithmetic = "fast"
    forms: tuple[OutputForm | None, ...] = ()
    grouped_inputs: tuple[ValueForm, ...] = ()
    grouped_outputs: tuple[ValueForm, ...] = ()
    string_inputs: tuple[int, ...] = ()
    bounds: tuple[DimensionBounds, ...] = ()
    states: tuple[State, ...] = ()
    expected: Mapping[str, int] = field(default_factory=dict)
    repeated: tuple[tuple[int, int], ...] = ()
    segments: int = 0
    by_symbol: Mapping[str, CompiledFunction] = field(init=False)
    numbers: Mapping[int, Extent] = field(init=False)

    def __post_init__(self) -> None:
        given = {self.layout.first_dim + k: name for k, name in enumerate(self.dims)}
        born = {dim.slot: dim.name for stage in self.body.stages for birth in stage.births for dim in birth.dims}
        derived = {each.slot: each.value for stage in self.body.stages for each in stage.derived}
        object.__setattr__(self, "by_symbol", {function.symbol: function for function in self.functions})
        object.__setattr__(self, "numbers", {**given, **born, **derived})

    @property
    def shown_inputs(self) -> tuple[TensorSpec, ...]:
        """The inputs as Python gives them: of strings by themselves, without the bytes; states are none of them."""
        shown = tuple(map(self._with_bounds, self.inputs))
        if self.states:
            kept = {state.input for state in self.states}
            return tuple(spec for number, spec in enumerate(shown) if number not in kept)
        if not self.string_inputs:
            return shown
        strings = frozenset(self.string_inputs)
        return tuple(
            replace(spec, dtype=STRING) if number in strings else spec for number, spec in enumerate(shown[:-1])
        )

    def _with_bounds(self, spec: TensorSpec) -> TensorSpec:
        names = {name for extent in spec.shape for name in dimensions_in(extent)} if self.bounds else ()
        bounds = tuple(each for each in self.bounds if each.dim in names)
        return BoundedSpec(spec.name, spec.shape, spec.dtype, bounds) if bounds else spec

    @property
    def largest_dims(self) -> dict[str, int] | None:
        """The largest values of all dimensions that a run may choose; None if one of them has none."""
        high = {bounds.dim: bounds.high for bounds in self.bounds if bounds.high is not None}
        return high if high.keys() == set(self.dims) else None

    @property
    def shown_outputs(self) -> tuple[TensorSpec, ...]:
        """The outputs as Python is shown them, unless it gives buffers: of strings by themselves, without the
        bytes; without states."""
        if self.states:
            kept = {state.output for state in self.states}
            return tuple(spec for number, spec in enumerate(self.outputs) if number not in kept)
        shown = zip(self.outputs, self.forms or (None,) * len(self.outputs), strict=True)
        return tuple(
            replace(spec, dtype=STRING) if form is not None and form.kind == "strings" else spec
            for spec, form in shown
            if form is None or form.kind != "bytes"
        )

    @property
    def shown_states(self) -> tuple[TensorSpec, ...]:
        """The states as the model has them, by the names of their inputs."""
        specs = (self.inputs[state.input] for state in self.states)
        pairs = ((state, spec) for state, spec in zip(self.states, specs, strict=True))
        return tuple(
            replace(spec, shape=tuple(spec.shape[axis] for axis in state.from_native(len(spec.shape))))
            for state, spec in pairs
        )

    @property
    def is_staged(self) -> bool:
        """Whether some extents are known only when a part of it has run: its entry then has memory of its own."""
        return len(self.body.stages) > 1

    @property
    def layout(self) -> FrameLayout:
        """The slots of its frame."""
        counts = len(self.inputs), len(self.outputs), len(self.constants)
        return FrameLayout(*counts, self.dims, self.is_staged)

    @property
    def first_stage(self) -> RunStage:
        """What runs first: all of its extents are known from the inputs' shapes."""
        return self.body.stages[0]

    @property
    def steps(self) -> tuple[ModelStep, ...]:
        """All calls of fused functions, in order."""
        return tuple(self.body.steps())

    @property
    def frame_slots(self) -> int:
        """How many slots its frame has."""
        own = sum(stage.locals + sum(len(birth.dims) for birth in stage.births) for stage in self.body.stages)
        return self.layout.first_local + own

    def dims_in(self, frame: Sequence[int]) -> dict[str, int]:
        """All dimensions of a run, by name, in the frame that it has left."""
        return {name: int(frame[slot]) for slot, name in self.numbers.items() if isinstance(name, str)}

    def function_of(self, step: ModelStep) -> CompiledFunction:
        """The fused function that a step calls."""
        return self.by_symbol[step.symbol]

    def dims_of(self, step: ModelStep, dims: Mapping[str, int]) -> dict[str, int]:
        """The dimensions of a step's function, of those of the model."""
        return {name: evaluate(extent, dims) for name, extent in self.extents_of(step).items()}

    def knows_dims_of(self, step: ModelStep, dims: Mapping[str, int]) -> bool:
        """Whether these dimensions of the model are all that those of a step's function follow from."""
        return all(name in dims for extent in self.extents_of(step).values() for name in dimensions_in(extent))

    def extents_of(self, step: ModelStep) -> dict[str, Extent]:
        """What the dimensions of a step's function are, by their names, over those of the model."""
        own = self.function_of(step).dims
        slots = step.operands[len(step.operands) - len(own) :]
        return {name: self.numbers[slot] for name, slot in zip(own, slots, strict=True)}

"""Sessions: runs of a model one after the other, with its states in memory in between.

Mutable: belongs to one thread; its engine may be shared.
"""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import NoReturn, TypeAlias

import numpy as np

from ..artifact.extents import dimensions_in, evaluate
from ..artifact.model import CompiledModel
from ..base.choices import is_count
from ..base.errors import RuntimeArgumentError
from ..base.quantities import bytes_text
from ..base.weak_method import weak_method
from .arrays import Array, array_text, as_array
from .dimensions import Shape, check_shape
from .executor import Place
from .memory_budget import MemoryBudget
from .outputs import RunOutputs
from .signature import Signature, Values
from .state_memory import StateMemory
from .tensor_specs import TensorSpecs

RunPlaced: TypeAlias = Callable[[Sequence[Array], Place, int | None], list[Array]]
"""Runs the engine on all inputs, into buffers where there are any, with so many threads if given."""
_numbers = itertools.count()


class Session:
    """Runs of an engine whose model keeps states, made by ``engine.session()``: ``session(inputs)`` takes all inputs
    but the states, and gives all outputs but these. The first run finds states of growing length empty, and others
    zeros, unless ``reset`` has set them. Each session has states of its own; they count towards the memory of the
    engine.

    A run that fails leaves the states as they were; but a state of fixed shape that is written in place may have been
    written in part.
    """

    def __init__(self, model: CompiledModel, signature: Signature, run: RunPlaced, budget: MemoryBudget) -> None:
        self._model, self._signature, self._run, self._budget = model, signature, run, budget
        self._key = "session", next(_numbers)
        self._claimed = 0
        self._specs = TensorSpecs(model.shown_states)
        claim = weak_method(self._claim)
        pairs = zip(model.states, self._specs, strict=True)
        self._states = {spec.name: StateMemory(spec.name, s, spec.dtype.to_numpy(), claim) for s, spec in pairs}
        weakref.finalize(self, budget.release, self._key)

    @property
    def inputs(self) -> TensorSpecs:
        """What a call takes."""
        return self._signature.inputs

    @property
    def outputs(self) -> TensorSpecs:
        """What a call gives."""
        return self._signature.outputs

    @property
    def states(self) -> TensorSpecs:
        """Name, dtype and shape of each state, by the names of the inputs that they are."""
        return self._specs

    @property
    def length(self) -> int:
        """How long the growing states are; 0 before the first run, and where none grows."""
        return max((memory.length or 0 for memory in self._states.values()), default=0)

    @property
    def nbytes(self) -> int:
        """The memory that is held for the states."""
        return sum(memory.nbytes for memory in self._states.values())

    @property
    def used_bytes(self) -> int:
        """The bytes of the states themselves; the rest of the memory is for what comes."""
        return sum(memory.used for memory in self._states.values())

    @property
    def copied_bytes(self) -> int:
        """How many bytes of states were moved so far, since their memory became too small: it doubles then."""
        return sum(memory.copied for memory in self._states.values())

    def __repr__(self) -> str:
        return f"<Session of {self._model.name}, length {self.length}, states of {bytes_text(self.used_bytes)}>"

    def __reduce__(self) -> NoReturn:
        raise RuntimeArgumentError("a session belongs to an engine of this process: make one by engine.session() there")

    def __call__(self, inputs: Values, out: Values | None = None, threads: int | None = None) -> RunOutputs:
        """The outputs for inputs given by name, in order, or, where there is one, by itself; the states go on."""
        return self.run_arrays(self._signature.input_arrays(inputs), out, threads)

    def run_arrays(self, arrays: Sequence[Array], out: Values | None, threads: int | None) -> RunOutputs:
        """The outputs for inputs that are checked already."""
        states = {state.output: memory for state, memory in zip(self._model.states, self._states.values(), strict=True)}
        rooms: dict[int, Array] = {}

        def place(shapes: Sequence[Shape | None]) -> Sequence[Array | None]:
            for number, memory in states.items():
                if (shape := shapes[number]) is not None:
                    rooms[number] = memory.room(shape)
            shown = [number for number in range(len(shapes)) if number not in states]
            if out is None:
                return [rooms.get(number) for number in range(len(shapes))]
            given = self._signature.output_arrays(out, [shapes[number] for number in shown], arrays)
            buffers = rooms | dict(zip(shown, given, strict=True))
            return [buffers.get(number) for number in range(len(shapes))]

        outputs = self._run(self._with_states(arrays), place, threads)
        for number, memory in states.items():
            if number in rooms:
                memory.keep(rooms[number].shape)
            else:
                memory.adopt(outputs[number])
        left = [array for number, array in enumerate(outputs) if number not in states]
        return RunOutputs(left, self._signature.output_positions)

    def reset(self, states: Mapping[str, object] | None = None) -> None:
        """Begin anew: with the given states, by name, and as before the first run with all others. Memory stays, for
        the runs that follow. Values are copied."""
        given: object = {} if states is None else states
        if not isinstance(given, Mapping) or not given.keys() <= self._states.keys():
            raise RuntimeArgumentError(
                f"{self._model.name}: reset takes a mapping of states by their names, {', '.join(self._states)}, found "
                + (", ".join(map(str, given)) if isinstance(given, Mapping) else f"a {type(given).__name__}")
            )
        arrays = {str(name): self._checked(str(name), value) for name, value in given.items()}
        for memory in self._states.values():
            memory.clear()
        for name, array in arrays.items():
            memory = self._states[name]
            memory.set(array.transpose(memory.state.to_native(array.ndim)))

    def truncate(self, length: int) -> None:
        """Forget what came behind the first ``length`` of the growing states, as a decoder does with tokens that are
        taken back. Raises ``RuntimeArgumentError`` for more than there is, and for a model with states of fixed shape,
        which hold no past to go back to."""
        fixed = [name for name, memory in self._states.items() if memory.length is None]
        if fixed:
            raise RuntimeArgumentError(
                f"{self._model.name}: the state {', '.join(fixed)} has a fixed shape, and cannot be truncated: fork "
                "the session where you may want to return to"
            )
        shortest = min((memory.length or 0 for memory in self._states.values()), default=0)
        if not is_count(length, least=0) or length > shortest:
            raise RuntimeArgumentError(
                f"{self._model.name}: length should be a whole number from 0 to {shortest}, which its states have, "
                f"found {length!r}"
            )
        for memory in self._states.values():
            memory.truncate(int(length))

    def fork(self) -> Session:
        """Another session with copies of the states: both go on by themselves from here."""
        other = Session(self._model, self._signature, self._run, self._budget)
        for name, memory in self._states.items():
            if (value := memory.value) is not None:
                other._states[name].set(value)
        return other

    def state(self, name: str) -> Array | None:
        """A copy of a state, in the model's shape; None before the first run, where it was not set."""
        if name not in self._states:
            raise RuntimeArgumentError(
                f"{self._model.name} has no state {name!r}; its states are {', '.join(self._states)}"
            )
        memory = self._states[name]
        value = memory.value
        return None if value is None else value.transpose(memory.state.from_native(value.ndim)).copy()

    def _checked(self, name: str, value: object) -> Array:
        spec = self._specs[name]
        where = f"{self._model.name}: state {name}"
        array = as_array(value, where)
        wanted: np.dtype[np.generic] = spec.dtype.to_numpy()
        if array.dtype != wanted:
            raise RuntimeArgumentError(f"{where} should have dtype {wanted.name}, found {array_text(array)}")
        check_shape(spec, array.shape, where)
        return array

    def _with_states(self, arrays: Sequence[Array]) -> list[Array]:
        """All inputs of a run; states without a value get one."""
        states = {state.input: memory for state, memory in zip(self._model.states, self._states.values(), strict=True)}
        given = iter(arrays)
        inputs = [states[n].value if n in states else next(given) for n in range(len(self._model.inputs))]
        if all(array is not None for array in inputs):
            return [array for array in inputs if array is not None]
        dims = self._known_dims(inputs)
        for number, memory in states.items():
            if inputs[number] is None:
                inputs[number] = memory.begin(self._first_shape(memory, number, dims))
        return [array for array in inputs if array is not None]

    def _known_dims(self, inputs: Sequence[Array | None]) -> dict[str, int]:
        """The dimensions that given inputs tell; that along which a state without a value grows is 0."""
        dims: dict[str, int] = {}
        for spec, array in zip(self._model.inputs, inputs, strict=True):
            if array is not None:
                for extent, number in zip(spec.shape, array.shape, strict=True):
                    if isinstance(extent, str):
                        dims.setdefault(extent, number)
        for state, spec in zip(self._model.states, self._specs, strict=True):
            if inputs[state.input] is None and state.axis is not None and isinstance(spec.shape[state.axis], str):
                dims.setdefault(str(spec.shape[state.axis]), 0)
        return dims

    def _first_shape(self, memory: StateMemory, number: int, dims: Mapping[str, int]) -> Shape:
        spec = self._model.inputs[number]
        unknown = [name for extent in spec.shape for name in dimensions_in(extent) if name not in dims]
        if unknown:
            raise RuntimeArgumentError(
                f"{self._model.name}: no input tells the extent {unknown[0]} of the state {self._specs[memory.name]}: "
                f"give its first value by session.reset({{{memory.name!r}: …}})"
            )
        return tuple(evaluate(extent, dims) for extent in spec.shape)

    def _claim(self, size: int) -> None:
        self._budget.claim(self._key, self._claimed + size, "")
        self._claimed += size

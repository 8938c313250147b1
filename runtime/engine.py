"""Engines run compiled models: init, set_input, run, get_output; or all four in one call.

Mutable: an engine owns its arena and the arrays of its requests, under a lock; runs of one engine follow each other.
"""

from __future__ import annotations

import ctypes
import struct
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ..codegen.abi import OUT_OF_MEMORY
from ..codegen.entry import CODE_BITS
from ..codegen.extents import evaluate
from ..codegen.jit import LoadedCode
from ..codegen.model import CompiledModel, TensorSpec
from ..ir.aligned import aligned
from ..ir.buffer import ARENA_ALIGNMENT
from ..ir.errors import InternalError, KernelError, OutOfMemoryError, RuntimeArgumentError, TargetError
from .arrays import address_of, as_array
from .dimensions import MAX_PLANS, Plans, bind, check_shape
from .foreign import why_not_here
from .library import Library
from .profile import Profile, measure_profile
from .step_times import time_steps
from .symbols import model_symbols
from .threads import check_threads, default_threads

Array = npt.NDArray[Any]
_ENTRY = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p)
_CONTEXT = struct.Struct("q")


class Engine:
    """Runs a library. ``engine({"x": x})`` gives the outputs as new arrays; several threads may call it.

    The four phases, for callers that set inputs one by one: ``init`` loads the code and allocates the arena,
    ``set_input`` names an input by name or position, ``run`` computes, ``get_output`` gives an array.

    ``threads`` is the most that a run uses (default: as the environment says, else the cpus granted). Inputs are numpy
    or DLPack arrays of exactly the dtype and shape that ``library.inputs`` states, a symbolic dimension of which may be
    any number that is the same wherever the dimension stands; others are a ``RuntimeArgumentError``. The arena grows to
    the largest shapes met; the plans of the last sets of shapes are kept, at most ``MAX_PLANS`` of them.
    A library that was compiled for another machine is a ``TargetError`` when it is loaded.
    """

    def __init__(self, library: Library, threads: int | None = None) -> None:
        if not isinstance(library, Library):
            raise RuntimeArgumentError(f"an engine runs what lw.compile or lw.load gives, not a {_kind(library)}")
        self.library = library
        self._model: CompiledModel = library.model
        self._threads = check_threads(threads) if threads is not None else default_threads()
        self._lock = threading.Lock()
        self._core: _Core | None = None
        self._inputs: dict[int, Array] = {}
        self._outputs: list[Array] | None = None

    def __repr__(self) -> str:
        core = self._core
        return f"<Engine {self._model.name}, {self._threads} threads, {core if core is not None else 'not loaded'}>"

    def init(self) -> Engine:
        """Load the machine code and allocate the arena; done by the first run if it was not asked for."""
        with self._lock:
            self._loaded()
        return self

    def set_input(self, key: str | int, value: object) -> None:
        """Give an input. The array is read when the engine runs, not copied here; it must be contiguous."""
        number = self._number(key)
        array = _checked(value, self._model.inputs[number])
        with self._lock:
            self._inputs[number] = array
            self._outputs = None

    def run(self) -> None:
        """Compute the outputs from the inputs that were set. Raises ``RuntimeArgumentError`` if one is missing."""
        with self._lock:
            missing = [spec.name for k, spec in enumerate(self._model.inputs) if k not in self._inputs]
            if missing:
                raise RuntimeArgumentError(f"{self._model.name}: input {', '.join(missing)} is not set")
            self._outputs = self._loaded().run([self._inputs[k] for k in range(len(self._model.inputs))])

    def get_output(self, index: int) -> Array:
        """Output number ``index`` of the last run. Raises ``RuntimeArgumentError`` if there is none."""
        outputs = self._outputs
        if outputs is None:
            raise RuntimeArgumentError(f"{self._model.name} has no outputs yet: call run first")
        if index not in range(len(outputs)):
            raise RuntimeArgumentError(f"{self._model.name} has {len(outputs)} outputs, there is no number {index!r}")
        return outputs[index]

    def __call__(self, inputs: Mapping[str, object] | Sequence[object]) -> list[Array]:
        """The outputs for inputs given by name, or in order. What ``set_input`` and ``run`` did stays."""
        arrays = self._arrays(inputs)
        with self._lock:
            return self._loaded().run(arrays)

    def bind(self, inputs: Mapping[str, object] | Sequence[object]) -> Callable[[], list[Array]]:
        """The engine with its inputs checked once, and kept: calling the result runs it on them again and again, and
        gives the same output arrays, written anew. The inputs must not be resized in place."""
        arrays = self._arrays(inputs)
        with self._lock:
            run = self._loaded().bind(arrays)

        def bound() -> list[Array]:
            with self._lock:
                return run()

        return bound

    def time_steps(self, inputs: Mapping[str, object] | Sequence[object]) -> tuple[float, ...]:
        """Seconds that each of ``library.model.steps`` takes, its kernel called by itself: the least of some runs."""
        arrays = self._arrays(inputs)
        with self._lock:
            return self._loaded().time_steps(arrays)

    def profile(self, inputs: Mapping[str, object] | Sequence[object]) -> Profile:
        """Where the time of a call goes: each fused function beside the machine's peak and bandwidth of these seconds,
        and what the call takes around them. Takes about a second, and some hundred calls of the model."""
        arrays = self._arrays(inputs)
        dims = bind(self._model, [array.shape for array in arrays])
        return measure_profile(
            self._model,
            self._threads,
            dims,
            call=lambda: self(arrays),
            bound=self.bind(arrays),
            time_steps=lambda: self.time_steps(arrays),
        )

    def _arrays(self, inputs: Mapping[str, object] | Sequence[object]) -> list[Array]:
        specs = self._model.inputs
        if isinstance(inputs, Mapping):
            names = {spec.name for spec in specs}
            if inputs.keys() != names:
                lacking, extra = sorted(names - inputs.keys()), sorted(inputs.keys() - names)
                raise RuntimeArgumentError(
                    f"{self._model.name} takes the inputs {', '.join(s.name for s in specs) or 'none'}"
                    + (f"; missing: {', '.join(lacking)}" if lacking else "")
                    + (f"; unknown: {', '.join(map(str, extra))}" if extra else "")
                )
            return [_checked(inputs[spec.name], spec) for spec in specs]
        if not _is_list(inputs):
            raise RuntimeArgumentError(
                f"{self._model.name} takes a list of arrays, or a mapping from names to arrays, not a {_kind(inputs)}"
            )
        if len(inputs) != len(specs):
            raise RuntimeArgumentError(f"{self._model.name} takes {len(specs)} inputs, found {len(inputs)}")
        return [_checked(value, spec) for value, spec in zip(inputs, specs, strict=True)]

    def _number(self, key: str | int) -> int:
        names = [spec.name for spec in self._model.inputs]
        if isinstance(key, str) and key in names:
            return names.index(key)
        if isinstance(key, int) and 0 <= key < len(names):
            return key
        raise RuntimeArgumentError(f"{self._model.name} has no input {key!r}; its inputs are {', '.join(names)}")

    def _loaded(self) -> _Core:
        if self._core is None:
            self._core = _Core(self._model, self._threads)
        return self._core


class _Core:
    """The loaded code of a model, its arena, and its argument slots. Used under the engine's lock."""

    def __init__(self, model: CompiledModel, threads: int) -> None:
        if (problem := why_not_here(model.target)) is not None:
            raise TargetError(problem)
        self._model = model
        objects = [model.entry_object, *(f.object for f in model.functions)]
        self._code = LoadedCode(model.entry, objects, model.target, model_symbols(model))
        self._entry = _ENTRY(self._code.address())
        self._context = _CONTEXT.pack(threads)
        self._constants = [aligned(c) for c in model.constants]
        self.plans = Plans(model)
        self._shapes: list[tuple[int, ...]] | None = None
        self._outputs: list[tuple[tuple[int, ...], np.dtype[Any]]] = []
        self._arena = np.empty(0, np.uint8)
        self._fixed = b""
        self._pack = struct.Struct(f"{len(model.inputs) + len(model.outputs)}q").pack
        if not model.dims:
            self._lay_out([tuple(evaluate(e, {}) for e in spec.shape) for spec in model.inputs])

    def __str__(self) -> str:
        return (
            f"an arena of {self._arena.nbytes} bytes, plans for {len(self.plans)} of at most {MAX_PLANS} sets of shapes"
        )

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        outputs = self._prepare(inputs)
        code = self._entry(self._context, self._slots(inputs, outputs))
        if code:
            self._fail(code)
        return outputs

    def bind(self, inputs: Sequence[Array]) -> Callable[[], list[Array]]:
        outputs = self._prepare(inputs)
        fixed, slots = self._fixed, self._slots(inputs, outputs)

        def run() -> list[Array]:
            nonlocal fixed, slots
            if self._fixed is not fixed:  # a run on other shapes came between
                self._lay_out([array.shape for array in inputs])
                fixed, slots = self._fixed, self._slots(inputs, outputs)
            code = self._entry(self._context, slots)
            if code:
                self._fail(code)
            return outputs

        return run

    def time_steps(self, inputs: Sequence[Array]) -> tuple[float, ...]:
        outputs = self._prepare(inputs)
        slots = struct.iter_unpack("q", self._slots(inputs, outputs))
        return time_steps(self._model, [slot for (slot,) in slots], self._context, self._fail)

    def _slots(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> bytes:
        return self._pack(*map(address_of, inputs), *map(address_of, outputs)) + self._fixed

    def _prepare(self, inputs: Sequence[Array]) -> list[Array]:
        """Arrays for the outputs, and the arena laid out, for inputs of these shapes."""
        shapes = [array.shape for array in inputs]
        if shapes != self._shapes:
            self._lay_out(shapes)
        try:
            return [np.empty(shape, kind) for shape, kind in self._outputs]
        except (MemoryError, ValueError):
            shown = ", ".join(str(shape) for shape, _ in self._outputs)
            raise OutOfMemoryError(f"{self._model.name}: there is no memory for outputs of {shown}") from None

    def _lay_out(self, shapes: list[tuple[int, ...]]) -> None:
        """What does not change between runs on these shapes: the outputs' shapes, and the slots of constants,
        intermediates and dimensions."""
        plan = self.plans.plan(tuple(shapes))
        self._shapes = None  # what a failure leaves behind is not taken for laid out
        if self._arena.nbytes < plan.arena_bytes + ARENA_ALIGNMENT:
            self._arena = np.empty(0, np.uint8)
            try:
                self._arena = np.empty(plan.arena_bytes + ARENA_ALIGNMENT, np.uint8)
            except MemoryError:
                raise OutOfMemoryError(f"{self._model.name}: there is no memory for its arena") from None
        arena = -(-address_of(self._arena) // ARENA_ALIGNMENT) * ARENA_ALIGNMENT
        places = (arena + offset for offset in plan.offsets)
        slots = (*(address_of(c) for c in self._constants), *places, *plan.dims)
        self._fixed = struct.pack(f"{len(slots)}q", *slots)
        kinds = (spec.dtype.to_numpy() for spec in self._model.outputs)
        self._outputs = list(zip(plan.outputs, kinds, strict=True))
        self._shapes = shapes

    def _fail(self, code: int) -> None:
        number, low = (code >> CODE_BITS) - 1, code & ((1 << CODE_BITS) - 1)
        if not 0 <= number < len(self._model.steps):
            raise InternalError(f"{self._model.name} returned the unknown error code {code}")
        function = self._model.steps[number].function
        if low == OUT_OF_MEMORY & ((1 << CODE_BITS) - 1):
            raise OutOfMemoryError(f"{function.name}: there is no memory for its intermediate buffers")
        if 1 <= low <= len(function.messages):
            raise KernelError(f"{function.name}: {function.messages[low - 1]}")
        raise InternalError(f"{function.name} returned the unknown error code {low}")


def _is_list(value: object) -> bool:
    """An array has a length as well, but its rows are no inputs."""
    return isinstance(value, Sequence) and not isinstance(value, (str, bytes))


def _kind(value: object) -> str:
    return type(value).__name__


def _checked(value: object, spec: TensorSpec) -> Array:
    """The array behind an input, checked against what the model expects; nothing is converted or copied."""
    array = as_array(value, f"input {spec.name}")
    wanted = spec.dtype.to_numpy()
    if array.dtype != wanted:
        raise RuntimeArgumentError(
            f"input {spec.name} should have dtype {wanted.name}, found {array.dtype}; "
            f"convert it: array.astype({wanted.name!r})"
        )
    check_shape(spec, array.shape)
    if not array.flags.c_contiguous or not array.flags.aligned:
        raise RuntimeArgumentError(f"input {spec.name} is not contiguous; numpy.ascontiguousarray makes a copy that is")
    return array

"""What an engine holds in memory: known from the plan of its model, before anything runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from math import prod

from ..artifact.extent_program import ExtentProgram
from ..artifact.extents import Extent, evaluate, with_dims
from ..artifact.function import CompiledFunction, TensorSpec
from ..artifact.model import CompiledModel
from ..base.aligned import ARENA_ALIGNMENT
from ..base.choices import is_count
from ..base.dataclass import dataclass
from ..base.errors import RuntimeArgumentError
from ..base.quantities import bytes_text
from .dimensions import check_shape, largest_arena, make_plan


@dataclass(frozen=True, slots=True)
class MemoryUse:
    """The memory of an engine, in bytes. ``weights`` are held once, whatever the number of executors; ``code``, as
    object files, once for each set of threads that it is linked to. ``arena`` are the intermediates of all executors,
    ``outputs`` the new arrays of as many runs at once, ``kernels`` what these take while they run, such as panels that
    they pack. What only a run knows the size of is not among them.
    """

    weights: int
    arena: int
    code: int
    outputs: int
    kernels: int

    @property
    def peak(self) -> int:
        """All of it, while every executor runs."""
        return self.weights + self.arena + self.code + self.outputs + self.kernels

    def __str__(self) -> str:
        parts = ", ".join(f"{field.name} {bytes_text(getattr(self, field.name))}" for field in fields(self))
        return f"{parts}; at most {bytes_text(self.peak)}"


@dataclass(frozen=True, slots=True)
class Loading:
    """What is known of an executor's code: ``codes`` stand for the model's own functions of these symbols; executors of
    one ``pool`` and with the same codes share it."""

    pool: object
    threads: int
    codes: Mapping[str, CompiledFunction]

    @property
    def kind(self) -> tuple[object, ...]:
        """What is equal of executors that share what is loaded."""
        return self.pool, *((symbol, code.implementation) for symbol, code in self.codes.items())


def memory_use(
    model: CompiledModel, loadings: Sequence[Loading], shapes: Mapping[str, Sequence[int]] | None
) -> MemoryUse:
    """The memory that an engine takes for inputs of these shapes, which a model without symbolic dimensions has no need
    of, nor one whose dimensions all have largest values: then it is that for these; states are inputs, too.
    ``loadings`` are those of each executor."""
    executors = len(loadings)
    plan = make_plan(model, _input_shapes(model, {} if shapes is None else shapes))
    itemsizes = (spec.dtype.to_numpy().itemsize for spec in model.outputs)
    known = zip(itemsizes, plan.outputs, strict=True)
    outputs = sum(size * prod(shape) for size, shape in known if shape is not None)
    own = {function.symbol: function for function in model.functions}
    codes = {loading.kind: own | {**loading.codes} for loading in loadings}
    code = sum(len(model.entry_object) + sum(len(f.object) for f in fs.values()) for fs in codes.values())
    return MemoryUse(
        sum(constant.nbytes for constant in model.constants),
        (max(plan.arena_bytes, largest_arena(model)) + ARENA_ALIGNMENT) * executors,
        code,
        outputs * executors,
        sum(HeapDemand(model, loading.codes).most(plan.dims, loading.threads) for loading in loadings),
    )


class HeapDemand:
    """The bytes that kernels take from the heap; ``codes`` stand for functions by symbol. ``most(dims, threads)`` are
    those of the kernel which takes most, of those whose dimensions are known, for values of the model's ``dims``."""

    def __init__(self, model: CompiledModel, codes: Mapping[str, CompiledFunction]) -> None:
        known = dict.fromkeys(model.dims, 0)
        found: dict[tuple[Extent, Extent], None] = {}
        for step in model.steps:
            function = codes.get(step.symbol) or model.function_of(step)
            if (function.heap_once != 0 or function.heap_each != 0) and model.knows_dims_of(step, known):
                own = model.extents_of(step)
                found[with_dims(function.heap_once, own), with_dims(function.heap_each, own)] = None
        self._program = ExtentProgram([extent for pair in found for extent in pair], model.dims)

    def most(self, dims: Sequence[int], threads: int) -> int:
        """The most bytes at once, with so many threads."""
        numbers = self._program(dims)
        return max(map(lambda once, each: once + threads * each, numbers[::2], numbers[1::2]), default=0)


def _input_shapes(model: CompiledModel, shapes: Mapping[str, object]) -> list[tuple[int, ...]]:
    if not isinstance(shapes, Mapping):
        raise RuntimeArgumentError(f"shapes are those of inputs by name, as in {{'x': (1, 3)}}, found {shapes!r}")
    if unknown := sorted(map(str, shapes.keys() - {spec.name for spec in model.inputs})):
        raise RuntimeArgumentError(f"{model.name} has no input {', '.join(unknown)}")
    found = []
    states = {state.input: (state, spec) for state, spec in zip(model.states, model.shown_states, strict=True)}
    for number, native in enumerate(model.inputs):
        state, spec = states.get(number, (None, native))
        if spec.name in shapes:
            shape = _shape(spec, shapes[spec.name])
            check_shape(spec, shape, f"{model.name}: input {spec.name}")
        elif all(isinstance(extent, int) for extent in spec.shape):
            shape = tuple(evaluate(extent, {}) for extent in spec.shape)
        elif (largest := model.largest_dims) is not None:
            shape = tuple(evaluate(extent, largest) for extent in spec.shape)
        else:
            raise RuntimeArgumentError(
                f"the memory of {model.name} depends on the shape of input {spec}: "
                f"give it, as in planned_memory({{{spec.name!r}: (…)}})"
            )
        found.append(shape if state is None else tuple(shape[axis] for axis in state.to_native(len(shape))))
    return found


def _shape(spec: TensorSpec, given: object) -> tuple[int, ...]:
    """The extents that a caller gives for an input: numbers of Python or numpy."""
    extents = tuple(given) if isinstance(given, Iterable) else (given,)
    if not isinstance(given, Iterable) or not all(map(is_count, extents)):
        raise RuntimeArgumentError(f"the shape of input {spec} is a list of numbers, found {given!r}")
    return tuple(map(int, extents))

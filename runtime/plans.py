"""The plans of a model for the shapes met last, and what makes one for others in little time, as each step of a decoder
asks for.

Mutable: belongs to one executor.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Sequence

from ..artifact.extent_program import ExtentProgram
from ..artifact.extents import Extent
from ..artifact.model import CompiledModel
from ..artifact.repeated_plan import RepeatedPlan
from .arguments import MAX_BYTES
from .dimensions import Plan, Shape, make_plan

MAX_PLANS = 32
"""So many sets of shapes are remembered with their plans; the one used longest ago makes room."""


class Plans:
    """The plans of a model by the shapes of its inputs."""

    def __init__(self, model: CompiledModel) -> None:
        self._model = model
        self._plans: OrderedDict[tuple[Shape, ...], Plan] = OrderedDict()
        self._planner: _Planner | None = None

    def __len__(self) -> int:
        return len(self._plans)

    def plan(self, shapes: tuple[Shape, ...]) -> Plan:
        """The plan for inputs of these shapes. Raises ``RuntimeArgumentError`` where they contradict each other."""
        found = self._plans.get(shapes)
        if found is not None:
            self._plans.move_to_end(shapes)
            return found
        found = self._made(shapes)
        if len(self._plans) >= MAX_PLANS:
            self._plans.popitem(last=False)
        self._plans[shapes] = found
        return found

    def _made(self, shapes: tuple[Shape, ...]) -> Plan:
        if not self._plans:  # most models meet one set of shapes only
            return make_plan(self._model, shapes)
        if self._planner is None:
            self._planner = _Planner(self._model)
        return self._planner.plan(shapes) or make_plan(self._model, shapes)


class _Planner:
    """Plans as ``make_plan`` has them, by a program of all extents, and by where intermediates were before."""

    def __init__(self, model: CompiledModel) -> None:
        self._model, stage = model, model.first_stage
        fixed = {least.dim: least.number for least in stage.least if least.exactly}
        axes = {e: (n, axis) for n, spec in reversed([*enumerate(model.inputs)]) for axis, e in _named_axes(spec.shape)}
        self._dims = [(fixed[name], None) if name in fixed else (0, axes[name]) for name in model.dims]
        self._least = [(model.dims.index(least.dim), least.number) for least in stage.least if not least.exactly]
        born = {output.number for each in model.body.stages for output in each.outputs}
        self._outputs = [None if n in born else len(spec.shape) for n, spec in enumerate(model.outputs)]
        staged = model.is_staged
        groups = (
            [extent for spec in model.inputs for extent in spec.shape],
            list(stage.extents),
            [extent for n, spec in enumerate(model.outputs) if n not in born for extent in spec.shape],
            [] if staged else [each.value for each in stage.derived],
            [] if staged else [part.begin for part in stage.slices],
            [] if staged else [value.size for value in stage.intermediates],
        )
        self._counts = [len(group) for group in groups]
        self._program = ExtentProgram([extent for group in groups for extent in group], model.dims)
        self._memory = RepeatedPlan([] if staged else [(value.first, value.last) for value in stage.intermediates])
        slots = [] if staged else [value.slot for value in stage.intermediates]
        self._bases = [] if staged else [slots.index(part.base) for part in stage.slices]

    def plan(self, shapes: Sequence[Shape]) -> Plan | None:
        """The plan; None where something contradicts, which ``make_plan`` finds words for."""
        dims = [number if at is None else shapes[at[0]][at[1]] for number, at in self._dims]
        try:
            inputs, extents, outputs, derived, begins, sizes = self._numbers(dims)
        except ZeroDivisionError:
            return None
        if inputs != [extent for shape in shapes for extent in shape] or min(extents, default=0) < 0:
            return None
        if any(dims[number] < least for number, least in self._least):
            return None
        left = iter(outputs)
        known = tuple([None if rank is None else tuple([next(left) for _ in range(rank)]) for rank in self._outputs])
        if self._model.is_staged:
            return Plan(tuple(dims), (), known, (), 0)
        offsets, arena_bytes = self._memory.place(sizes)
        if arena_bytes > MAX_BYTES:
            return None
        slices = [offsets[base] + begin for base, begin in zip(self._bases, begins, strict=True)]
        return Plan(tuple(dims), tuple(derived), known, (*offsets, *slices), arena_bytes)

    def _numbers(self, dims: Sequence[int]) -> list[list[int]]:
        """The numbers of all extents, by what they are for."""
        numbers = iter(self._program(dims))
        return [[next(numbers) for _ in range(count)] for count in self._counts]


def _named_axes(shape: Sequence[Extent]) -> Iterator[tuple[int, str]]:
    """The axes that are dimensions by themselves, last one first."""
    return ((axis, extent) for axis, extent in reversed([*enumerate(shape)]) if isinstance(extent, str))

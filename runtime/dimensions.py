"""The symbolic dimensions of a model, read off the shapes of its inputs, and what follows: plans of memory."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from ..artifact.block import RunStage
from ..artifact.extents import Extent, demand, dimensions_in, evaluate
from ..artifact.function import TensorSpec
from ..artifact.model import CompiledModel
from ..base.dataclass import dataclass
from ..base.errors import RuntimeArgumentError
from .arguments import MAX_BYTES

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """What the shapes of one set of inputs come to: the values of the dimensions, and of the extents that are derived
    from them for functions; the shapes of the outputs, None for those that only a run knows. Of a model of one stage,
    where each intermediate and each slice lies in the arena, and the size of that."""

    dims: tuple[int, ...]
    derived: tuple[int, ...]
    outputs: tuple[Shape | None, ...]
    offsets: tuple[int, ...]
    arena_bytes: int


def make_plan(model: CompiledModel, shapes: Sequence[Shape]) -> Plan:
    """Bind the dimensions, and plan the memory for them."""
    dims = bind(model, shapes)
    for least in model.first_stage.least:
        found = dims[least.dim]
        if found < least.number or (least.exactly and found != least.number):
            raise RuntimeArgumentError(f"{model.name}: {least.demand}, found {found}")
    for extent in model.first_stage.extents:
        if (number := _evaluate(model, extent, dims)) < 0:
            if (wanted := demand(extent)) is not None:
                raise RuntimeArgumentError(f"{model.name}: {wanted}, found {_shown(_known(extent, dims))}")
            raise RuntimeArgumentError(f"{model.name}: {_where(extent, dims)} gives a tensor the extent {number}")
    born = {output.number for stage in model.body.stages for output in stage.outputs}
    outputs = tuple(
        None if number in born else tuple(_evaluate(model, e, dims) for e in spec.shape)
        for number, spec in enumerate(model.outputs)
    )
    values = tuple(dims[name] for name in model.dims)
    if model.is_staged:
        return Plan(values, (), outputs, (), 0)
    offsets, size = _arena(model.first_stage, dims)
    if size > MAX_BYTES:
        raise RuntimeArgumentError(f"{model.name}: for {_shown(dims)} it needs {size} bytes of memory, more than 2**47")
    derived = tuple(_evaluate(model, each.value, dims) for each in model.first_stage.derived)
    return Plan(values, derived, outputs, offsets, size)


def _arena(stage: RunStage, dims: Mapping[str, int]) -> tuple[tuple[int, ...], int]:
    """The offsets of the intermediates and of the slices of a stage, in the order of their slots, and the bytes of
    all."""
    offsets, size = stage.places(dims)
    slices = (offsets[part.base] + evaluate(part.begin, dims) for part in stage.slices)
    return (*(offsets[value.slot] for value in stage.intermediates), *slices), size


def largest_arena(model: CompiledModel) -> int:
    """The bytes of the arena where all dimensions have their largest values; 0 where one has none, and for stages,
    which ask for memory by themselves."""
    dims = model.largest_dims
    return 0 if dims is None or model.is_staged else _arena(model.first_stage, dims)[1]


def plan_text(model: CompiledModel, plan: Plan) -> str:
    """`` for n = 3, …``; nothing for a model without symbolic dimensions."""
    return f" for {_shown(dict(zip(model.dims, plan.dims, strict=True)))}" if model.dims else ""


def bind(model: CompiledModel, shapes: Sequence[Shape]) -> dict[str, int]:
    """The values of the dimensions. The shapes have the ranks that the model declares.

    Raises ``RuntimeArgumentError`` where two inputs disagree.
    """
    dims = {least.dim: least.number for least in model.first_stage.least if least.exactly}
    source: dict[str, str] = {}
    for spec, shape in zip(model.inputs, shapes, strict=True):
        for axis, (extent, number) in enumerate(zip(spec.shape, shape, strict=True)):
            if isinstance(extent, str) and extent not in dims:
                dims[extent] = number
                source[extent] = f"{extent} = {number} from dimension {axis} of input {spec.name}"
    for spec, shape in zip(model.inputs, shapes, strict=True):
        for axis, (extent, number) in enumerate(zip(spec.shape, shape, strict=True)):
            if (wanted := _evaluate(model, extent, dims)) != number:
                reason = "; ".join(source[name] for name in dimensions_in(extent))
                raise RuntimeArgumentError(
                    f"{model.name}: input {spec} should have extent {wanted} in dimension {axis}, found {number}"
                    + (f" ({reason})" if reason else "")
                    + (_for_always_one(spec, axis) if number == 1 else "")
                )
    return dims


def _for_always_one(spec: TensorSpec, axis: int) -> str:
    """How to have code for an extent of 1 that broadcasts."""
    shape = ", ".join("1" if k == axis else "None" for k in range(len(spec.shape)))
    return f"; if it is always 1, compile with shapes={{{spec.name!r}: ({shape}{',' * (len(spec.shape) == 1)})}}"


def check_shape(spec: TensorSpec, shape: Shape, where: str, repeated: Collection[int] = ()) -> None:
    """Whether a shape fits an input by itself: its rank, and the extents that are numbers, which may be 1 on axes that
    are ``repeated``. ``where`` is what errors call the input."""
    if shape == spec.shape:
        return
    fits = len(shape) == len(spec.shape) and all(
        extent == number or (number == 1 and axis in repeated)
        for axis, (extent, number) in enumerate(zip(spec.shape, shape, strict=True))
        if isinstance(extent, int)
    )
    if not fits:
        wanted = f"({', '.join(map(str, spec.shape))}{',' if len(spec.shape) == 1 else ''})"
        raise RuntimeArgumentError(f"{where} should have shape {wanted}, found {shape}")


def _evaluate(model: CompiledModel, extent: Extent, dims: Mapping[str, int]) -> int:
    try:
        return evaluate(extent, dims)
    except ZeroDivisionError:
        raise RuntimeArgumentError(f"{model.name}: {_where(extent, dims)} divides by 0") from None


def _where(extent: Extent, dims: Mapping[str, int]) -> str:
    return f"{extent}, for {_shown(_known(extent, dims))},"


def _known(extent: Extent, dims: Mapping[str, int]) -> dict[str, int]:
    return {name: dims[name] for name in dimensions_in(extent)}


def _shown(dims: Mapping[str, int]) -> str:
    return ", ".join(f"{name} = {number}" for name, number in dims.items())

"""The code of control flow as plain data: what its bodies call, once that is compiled, and where values lie."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from ...artifact.block import Birth, BornDimension
from ...artifact.extents import Extent, Formula, demand, dimensions_in, extent_of
from ...artifact.function import CompiledFunction
from ...artifact.stage_refusals import MAX_EXTENT
from ...base.dataclass import dataclass
from ...base.errors import InternalError
from ...codegen.control.code import (
    AppendCode,
    BodyBirth,
    BodyCall,
    BodyCode,
    BodyMemory,
    BodyStage,
    CarriedCode,
    ControlCode,
    IfCode,
    LoopCode,
    ReadCode,
    RowsCode,
    SegmentCode,
)
from ...graph.node import Call, Node, tensor_of
from ...graph.types import TensorType, leaf_types
from ...ops.definition.extent_formulas import extent_of_formula
from ...ops.families.branch import IfAttrs
from ...ops.families.loop import LoopAttrs
from ...ops.families.segments import APPEND, ReadAttrs, SegmentAttrs
from ..passes.constraints import least_extents
from ..symbols import Symbol, checked_extents
from .parts import BodyPlan, ControlPlan
from .placement import Placement, byte_size
from .units import BirthUnit, Unit

FOREIGN_FAILURE = "the native function returned an error code"


@dataclass(frozen=True, slots=True, eq=False)
class CompiledBody:
    """A body, and the compiled function of each of its units."""

    plan: BodyPlan
    functions: tuple[CompiledFunction, ...]

    def extents_of(self, number: int) -> dict[str, Extent]:
        """The most that the dimensions of a function can be, by their names, as formulas over those of the unit that
        has the body; 0 where nothing bounds them."""
        symbols = self.plan.parts.units[number].symbols
        return {name: self.plan.largest(symbols[name]) or 0 for name in self.functions[number].dims}


def call_of(unit: Unit) -> Call:
    """The call that a unit of control flow is."""
    if not isinstance(unit.function.body, Call):
        raise InternalError(f"{unit.function.name} is no call of control flow")
    return unit.function.body


def control_code(unit: Unit, plan: ControlPlan, bodies: Sequence[CompiledBody], segments: Iterator[int]) -> ControlCode:
    """What the native function of a unit is emitted from; ``segments`` are numbers of those that nothing has yet."""
    call = call_of(unit)
    position: dict[Node, int] = {param: number for number, param in enumerate(unit.function.params)}
    given = [position[arg] for arg in call.args]
    results = tuple(range(len(unit.inputs), len(unit.inputs) + len(unit.outputs) - 1))
    codes = tuple(_body_code(body, segments) for body in bodies)
    match call.attrs:
        case IfAttrs():
            return IfCode(given[0], tuple(given[1:]), results, codes)
        case LoopAttrs() as attrs:
            return _loop_code(call, attrs, given, results, plan, codes[0])
        case SegmentAttrs(number):
            return SegmentCode(number, results[0])
        case None if call.op is APPEND:
            return AppendCode(given[0], given[1], byte_size(tensor_of(call.args[1]), plan.names), results[0])
        case ReadAttrs():
            return ReadCode(given[0], byte_size(tensor_of(call), plan.names), results[0])
        case _:
            raise InternalError(f"{call.op.name} is no operator of control flow")


def _loop_code(
    call: Call, attrs: LoopAttrs, given: Sequence[int], results: Sequence[int], plan: ControlPlan, body: BodyCode
) -> LoopCode:
    carried, sliced, captured = attrs.parts_of(given)
    kinds = [arg.type for arg in call.args]
    sizes = [byte_size(kind, plan.names) for kind in leaf_types(call.type)[: attrs.carried]]
    rows = [_row_size(kind, plan.names) for kind in attrs.parts_of(kinds)[1]]
    stacked = [_row_size(kind, plan.names) for kind in leaf_types(call.type)[attrs.carried : -1]]
    return LoopCode(
        limit=given[0] if attrs.limited else None,
        condition=given[attrs.first - 1] if attrs.conditional else None,
        carried=tuple(map(CarriedCode, carried, results, plan.seconds, sizes)),
        sliced=tuple(map(RowsCode, sliced, rows, attrs.sliced)),
        captured=tuple(captured),
        stacked=tuple(map(RowsCode, results[attrs.carried : -1], stacked, attrs.stacked)),
        trips=None if attrs.trips is None else extent_of(extent_of_formula(attrs.trips, kinds), plan.names),
        count=results[-1],
        body=body,
    )


def _checks(plan: BodyPlan) -> dict[int, list[tuple[Extent, str]]]:
    """The extents that may not be negative when a body is run, with what is said of them otherwise, by the stage that
    knows them. The size of a batch is checked around it."""
    body, place = plan.parts.graph, plan.placement
    found: dict[int, list[tuple[Extent, str]]] = {}
    for least in least_extents(replace(body, batch_size=None), plan.names):
        checked = Formula("-", least.dim, least.number), least.demand
        found.setdefault(place.stage_of([least.dim]), []).append(checked)
    for extent in checked_extents(body, plan.names):
        text = demand(extent) or f"the extent {extent} should not be negative"
        found.setdefault(place.stage_of(dimensions_in(extent)), []).append((extent, text))
    return found


def _row_size(kind: object, names: Mapping[Symbol, str]) -> Extent:
    if not isinstance(kind, TensorType):
        raise InternalError(f"a {kind} has no rows")
    return byte_size(TensorType(kind.shape[1:], kind.dtype), names)


def _body_code(body: CompiledBody, segments: Iterator[int]) -> BodyCode:
    plan = body.plan
    placement, parts = plan.placement, plan.parts
    functions = iter(body.functions)
    checks = _checks(plan)
    stages = []
    for number, stage in enumerate(placement.stages):
        own = {value.slot for value in stage.intermediates} | {part.slot for part in stage.slices}
        extents = {slot: extent_of(extent, plan.names) for extent, slot in placement.dims.items()}
        known = {
            slot: extent for slot, extent in extents.items() if placement.stage_of(dimensions_in(extent)) == number
        }
        stages.append(
            BodyStage(
                births=tuple(_birth(birth, unit, plan) for birth, unit in zip(stage.born, stage.births, strict=True)),
                memory=BodyMemory(next(segments), plan.grown[number]) if number in plan.grown else None,
                places={slot: place for slot, place in plan.places.items() if slot in own},
                extents=known,
                checks=tuple(checks.get(number, ())),
                calls=tuple(_call(unit, next(functions), placement) for unit in stage.units),
            )
        )
    return BodyCode(
        params=tuple(placement.slots[param, 0] for param in parts.graph.params),
        results=tuple(placement.slots[value] for value in parts.results),
        stages=tuple(stages),
    )


def _birth(birth: Birth, unit: BirthUnit, plan: BodyPlan) -> BodyBirth:
    return BodyBirth(
        birth.values, tuple(_born(birth, *each, plan) for each in zip(birth.dims, unit.symbols, strict=True))
    )


def _born(birth: Birth, dim: BornDimension, symbol: Symbol, plan: BodyPlan) -> tuple[str, Extent, str]:
    most = plan.largest(symbol)
    if most is None:
        return dim.name, MAX_EXTENT, f"{birth} should be 0 or more, and no more than 2^47"
    return dim.name, most, f"{birth} should be from 0 to {most}"


def _call(unit: Unit, function: CompiledFunction, placement: Placement) -> BodyCall:
    values = (placement.slots[value] for value in (*unit.inputs, *unit.outputs))
    dims = (placement.dims[unit.symbols[name]] for name in function.dims)
    at = f" ({', '.join(unit.origin)})" if unit.origin else ""
    texts = (FOREIGN_FAILURE,) if function.is_packed else function.messages
    messages = tuple(f"{function.name}{at}: {text}" for text in texts)
    return BodyCall(function.symbol, (*values, *dims), messages, function.is_packed)

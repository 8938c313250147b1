"""A graph function taken apart: the functions to run, where values lie in others, and the same of each body.

A unit that is control flow has one workspace, which is a value as any other to what is around it: the model, or the
body that it is in. The values of its bodies lie in it, those of two branches at the same place.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from ...artifact.extents import Extent, expression_of, extent_of
from ...artifact.formula_plan import SizedLife, largest, plan_offsets, plus, whole_lines
from ...base.dataclass import dataclass
from ...base.dtype import UINT8
from ...base.errors import InternalError
from ...base.timing import timed
from ...codegen.control.code import HEAD_BYTES, BodyPlace
from ...graph.node import Call, Function, Node, Var
from ...graph.types import TensorType, leaf_types
from ...graph.visit import bodies_of
from ...ir.contents import free_vars
from ...ir.expr import Expr
from ...ir.extent_bounds import bounds_of
from ...ir.simplify import simplify
from ...ops.families.loop import LoopAttrs
from ...ops.families.segments import SEGMENT_OPS
from ..symbols import Symbol, symbols_of, with_born_names
from .placement import Placement, byte_size, place_values
from .units import BirthUnit, Ordered, Unit, Value, in_order, units_of
from .views import View, find_views


@dataclass(frozen=True, slots=True, eq=False)
class Parts:
    """A graph as what is run in order, what of it a run gives, and the values that lie in others. ``controls``
    are the plans of the units that are control flow."""

    graph: Function
    ordered: Sequence[Ordered]
    results: Sequence[Value]
    views: Mapping[Value, View]
    controls: Mapping[Unit, ControlPlan]

    @property
    def units(self) -> list[Unit]:
        """The functions among what is run, in order."""
        return list(units_of(self.ordered))

    def kernels(self) -> Iterator[Unit]:
        """The units that are compiled as kernels, those of bodies among them, in order."""
        for unit in self.units:
            if unit in self.controls:
                for body in self.controls[unit].bodies:
                    yield from body.parts.kernels()
            else:
                yield unit


@dataclass(frozen=True, slots=True, eq=False)
class BodyPlan:
    """A body: its parts, the slots of its values, and where those lie, by slot. ``names`` are the dimensions that its
    formulas are over: those of the unit that has it, and those that it computes itself, each no more than ``most``
    says, if it does. ``grown`` are the bytes of those stages, by number, that have a segment since nothing bounds what
    they take."""

    parts: Parts
    placement: Placement
    places: Mapping[int, BodyPlace]
    grown: Mapping[int, Extent]
    names: Mapping[Symbol, str]
    most: Mapping[Symbol, Expr | None]

    def largest(self, extent: Expr) -> Extent | None:
        """The most that an extent can be, over the dimensions of the unit; None where nothing bounds it."""
        return _largest(extent, self.most, self.names)


@dataclass(frozen=True, slots=True, eq=False)
class ControlPlan:
    """The bodies of a unit, and the bytes of its workspace; of a loop also the offsets of the second buffers of what is
    carried. ``names`` are the dimensions that formulas are over."""

    names: Mapping[Symbol, str]
    bodies: tuple[BodyPlan, ...]
    seconds: tuple[Extent, ...]
    workspace: Extent


def take_apart(graph: Function, unfused: Collection[str] = ()) -> Parts:
    """The parts of a function that all passes have been over. Calls of the operators ``unfused`` are functions of their
    own."""
    ordered, results = timed(in_order, graph, unfused)
    plans = {unit: _plan(unit.function, unfused) for unit in units_of(ordered) if _is_control(unit.function.body)}
    with_memory: dict[Ordered, Unit] = {unit: _with_workspace(unit, plan) for unit, plan in plans.items()}
    left, views = timed(find_views, [with_memory.get(each, each) for each in ordered], results)
    controls = {with_memory[unit]: plan for unit, plan in plans.items()}
    return Parts(graph, left, results, views, controls)


def _is_control(node: Node) -> bool:
    """Whether a call is native code around kernels, or of segments."""
    return bool(bodies_of(node)) or (isinstance(node, Call) and node.op in SEGMENT_OPS)


def with_units(parts: Parts, others: Mapping[Unit, Unit]) -> Parts:
    """The parts with other units in place of some, in bodies, too. They read and write the same values."""
    if not others:
        return parts
    ordered = [others.get(each, each) if isinstance(each, Unit) else each for each in parts.ordered]
    controls = {
        unit: _placed(unit.function, [with_units(body.parts, others) for body in plan.bodies])
        for unit, plan in parts.controls.items()
    }
    return replace(parts, ordered=ordered, controls=controls)


def _with_workspace(unit: Unit, plan: ControlPlan) -> Unit:
    """The unit with its workspace as one more value that it writes."""
    size = simplify(expression_of(plan.workspace, unit.symbols))
    return replace(unit, outputs=(*unit.outputs, (Var("workspace", TensorType((size,), UINT8)), 0)))


def _plan(function: Function, unfused: Collection[str]) -> ControlPlan:
    """The plan of a closed function that is one call of control flow."""
    in_batch = (
        replace(body, batch=function.batch, batch_size=function.batch_size) for body in bodies_of(function.body)
    )
    return _placed(function, [take_apart(body, unfused) for body in in_batch])


def _placed(function: Function, bodies: Sequence[Parts]) -> ControlPlan:
    """The plan of control flow whose bodies have been taken apart."""
    names = {symbol: symbol.name for symbol in symbols_of(param.type for param in function.params)}
    begin, seconds = _head(function, names)
    placed = [_place_body(parts, begin, names) for parts in bodies]
    workspace = plus(begin, largest([size for _, size in placed]))
    return ControlPlan(names, tuple(plan for plan, _ in placed), seconds, workspace)


def _head(function: Function, names: Mapping[Symbol, str]) -> tuple[Extent, tuple[Extent, ...]]:
    """Where the values of bodies begin, and the second buffers of what a loop carries, which come before these."""
    call = function.body
    if not isinstance(call, Call) or not isinstance(call.attrs, LoopAttrs):
        return 0, ()
    end: Extent = HEAD_BYTES
    begins = []
    for kind in leaf_types(call.type)[: call.attrs.carried]:
        begins.append(end)
        end = plus(end, whole_lines(byte_size(kind, names)))
    return end, tuple(begins)


def _place_body(parts: Parts, begin: Extent, names: Mapping[Symbol, str]) -> tuple[BodyPlan, Extent]:
    """A body whose values lie in the workspace from an offset on, and how many bytes they take."""
    body = parts.graph
    most = _most_of_births(parts)
    names = with_born_names(names, body)
    placement = place_values(body, parts.ordered, parts.results, parts.views, names)
    if placement.constants:
        raise InternalError(f"{body.name} holds constants, which should be operands")
    symbols = {name: symbol for symbol, name in names.items()}
    places: dict[int, BodyPlace] = {}
    grown: dict[int, Extent] = {}
    end: Extent = 0
    for number, stage in enumerate(placement.stages):
        values = stage.intermediates
        sizes = [_largest(expression_of(value.size, symbols), most, names) for value in values]
        bounded = [size for size in sizes if size is not None]
        in_workspace = len(bounded) == len(values)
        lives = zip(bounded if in_workspace else [value.size for value in values], values, strict=True)
        offsets, size = plan_offsets([SizedLife(size, value.first, value.last) for size, value in lives])
        if in_workspace:
            owner, at, end = None, plus(begin, end), plus(end, size)
        else:
            owner, at, grown[number] = number, 0, size
        pairs = zip(values, offsets, strict=True)
        places |= {value.slot: BodyPlace(owner, plus(at, offset)) for value, offset in pairs}
    for part in (part for stage in placement.stages for part in stage.slices):
        base = places[part.base]
        places[part.slot] = replace(base, offset=plus(base.offset, part.begin))
    return BodyPlan(parts, placement, places, grown, names, most), end


def _largest(extent: Expr, most: Mapping[Symbol, Expr | None], names: Mapping[Symbol, str]) -> Extent | None:
    bounds = {symbol: bound for symbol, bound in most.items() if bound is not None}
    bound = bounds_of(extent, bounds)[1]
    known = bound is not None and not any(symbol in most for symbol in free_vars(bound))
    return extent_of(bound, names) if bound is not None and known else None


def _most_of_births(parts: Parts) -> dict[Symbol, Expr | None]:
    """The most that each extent can be which a body computes, None where nothing bounds it."""
    most: dict[Symbol, Expr | None] = {}
    for unit in parts.ordered:
        if isinstance(unit, BirthUnit):
            bounds = unit.birth.most or (None,) * len(unit.birth.extents)
            pairs = zip(unit.birth.extents, bounds, strict=True)
            most.update({symbol: bound for symbol, bound in pairs if isinstance(symbol, Symbol)})
    return most

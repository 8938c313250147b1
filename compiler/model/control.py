"""Units that are control flow as compiled functions: native code that calls the kernels of their bodies."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ...artifact.choice import CandidateReport, Choice
from ...artifact.extents import Extent, Formula, with_dims
from ...artifact.formula_plan import largest, plus
from ...artifact.function import CompiledFunction
from ...base.dataclass import dataclass
from ...codegen.control.code import LoopCode
from ...codegen.control.compile import compile_control
from ...codegen.control.frame import FlowArguments
from ...graph.node import Call
from ...graph.types import leaf_types
from ...ops.definition.strategy import DEFAULT_LEVEL
from ..fusion.closed_function import entry_symbol
from ..selection.choices import call_text
from ..settings import CompileSettings
from .control_code import CompiledBody, call_of, control_code
from .parts import BodyPlan, ControlPlan, Parts
from .placement import byte_size, tensor_spec
from .units import Unit


class ControlCompiler:
    """Compiles control flow around kernels that are compiled, of a graph with so many ``segments``. Mutable: keeps what
    it has compiled, by symbol."""

    def __init__(self, kernels: Mapping[Unit, CompiledFunction], settings: CompileSettings, segments: int) -> None:
        self._kernels = kernels
        self._settings = settings
        self._made: dict[str, CompiledFunction] = {}
        self.inner: dict[str, CompiledFunction] = {}
        """The functions that those of control flow call, by symbol, each after what it calls itself."""
        self.segments = segments
        """How many segments there are: those of the graph, and those of bodies compiled so far."""

    def function_of(self, unit: Unit, parts: Parts) -> CompiledFunction:
        """The function of a unit among ``parts``."""
        plan = parts.controls.get(unit)
        if plan is None:
            return self._kernels[unit]
        symbol = entry_symbol(unit.function)
        if symbol not in self._made:
            self._made[symbol] = self._compiled(symbol, unit, plan)
        return self._made[symbol]

    def _body(self, plan: BodyPlan) -> CompiledBody:
        functions = tuple(self.function_of(unit, plan.parts) for unit in plan.parts.units)
        self.inner.update({function.symbol: function for function in functions})
        return CompiledBody(plan, functions)

    def _new_segments(self) -> Iterator[int]:
        while True:
            self.segments += 1
            yield self.segments - 1

    def _compiled(self, symbol: str, unit: Unit, plan: ControlPlan) -> CompiledFunction:
        bodies = [self._body(body) for body in plan.bodies]
        code = control_code(unit, plan, bodies, self._new_segments())
        dims = tuple(plan.names.values())
        tensors = len(unit.inputs) + len(unit.outputs)
        arguments = FlowArguments(
            tensors + len(dims), tensors - 1, tuple((dim, tensors + k) for k, dim in enumerate(dims))
        )
        made = compile_control(symbol, code, arguments, self._settings.target, self._settings.options)
        costs = [_cost(body) for body in bodies]
        trips = code.trips if isinstance(code, LoopCode) and code.trips is not None else 1
        operations = largest([cost.operations for cost in costs])
        kinds = [leaf for node in (*unit.function.params, unit.function.body) for leaf in leaf_types(node.type)]
        traffic: Extent = 0
        for kind in kinds:
            traffic = plus(traffic, byte_size(kind, plan.names))
        return CompiledFunction(
            unit.function.name,
            symbol,
            dims,
            (_choice(call_of(unit)),),
            made.messages,
            str(unit.function),
            made.llvm_ir,
            made.object,
            operations=operations if trips == 1 else Formula("*", trips, operations),
            traffic=traffic,
            arguments=tuple(tensor_spec(f"tensor{k}", kind, plan.names) for k, kind in enumerate(kinds)),
            heap_once=largest([cost.heap_once for cost in costs]),
            heap_each=largest([cost.heap_each for cost in costs]),
            calls=tuple(dict.fromkeys(function.symbol for body in bodies for function in body.functions)),
        )


@dataclass(frozen=True, slots=True)
class _Cost:
    """What one run of a body takes, over the dimensions of its unit: see ``CompiledFunction``."""

    operations: Extent
    heap_once: Extent
    heap_each: Extent


def _cost(body: CompiledBody) -> _Cost:
    operations: Extent = 0
    once: list[Extent] = []
    each: list[Extent] = []
    for number, function in enumerate(body.functions):
        dims = body.extents_of(number)
        operations = plus(operations, with_dims(function.operations, dims))
        once.append(with_dims(function.heap_once, dims))
        each.append(with_dims(function.heap_each, dims))
    return _Cost(operations, largest(once), largest(each))


def _choice(call: Call) -> Choice:
    """What explains a call of control flow."""
    name = call.op.name
    reason = "native code around the kernels of its bodies"
    return Choice(name, call_text(call), name, reason, (CandidateReport(name, DEFAULT_LEVEL, (), None),), anchor=True)

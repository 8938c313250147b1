"""From a graph to a compiled model: passes, fusion, one native function a group, the arena, and the entry point."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ..codegen.entry import KernelCall, Operand, compile_entry
from ..codegen.model import CompiledFunction, CompiledModel, ModelStep, TensorSpec
from ..codegen.options import CodegenOptions
from ..graph.node import Call, Constant, Function, Node, Tuple, TupleGet, Var
from ..graph.types import TensorType, TupleType, Type
from ..ir.errors import ModelError, RuntimeArgumentError
from ..ir.target import Target
from .fold_constants import Evaluate, fold_constants
from .fused import as_function, group_key, is_inlined_constant
from .memory_plan import Lifetime, plan_memory
from .partition import partition
from .simplify_inference import simplify_inference
from .workers import compile_all

Value: TypeAlias = tuple[Node, int]
"""A tensor in memory: an input, a constant, or output number k of a call."""
Progress = Callable[[int, int, str], None]
"""Called with how many functions are done, of how many, and the name of the last."""


@dataclass(frozen=True, slots=True, eq=False)
class Unit:
    """One function to run: what it reads, and what it writes."""

    function: Function
    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]
    origin: tuple[str, ...]


def compile_model(
    function: Function,
    target: Target,
    options: CodegenOptions,
    jobs: int | None = None,
    progress: Progress | None = None,
    evaluate: Evaluate | None = None,
) -> CompiledModel:
    """Compile a graph function whose dimensions are all numbers.

    ``jobs`` is the number of processes (default: one a core). ``evaluate`` runs what depends on constants alone;
    without it that is computed at each run. Raises ``ModelError`` for symbolic dimensions, ``RuntimeArgumentError`` for
    ``jobs`` that are no positive number.
    """
    count = _job_count(jobs)
    simplified = simplify_inference(function)
    folded = simplified if evaluate is None else fold_constants(simplified, evaluate)
    units, results = _units(folded)
    distinct: dict[str, Function] = {}
    keys = []
    for unit in units:
        key = group_key(unit.function, target, options)
        distinct.setdefault(key, unit.function)
        keys.append(key)
    done: list[str] = []

    def note(name: str) -> None:
        done.append(name)
        if progress is not None:
            progress(len(done), len(distinct), name)

    compiled = dict(zip(distinct, compile_all(list(distinct.values()), target, options, count, note), strict=True))
    plan = _plan(folded, units, results)
    steps = [_step(unit, compiled[key], plan) for unit, key in zip(units, keys, strict=True)]
    entry = compile_entry(f"{function.name}_run", [s.call for s in steps], target, options)
    names = function.output_names or tuple(f"output{k}" for k in range(len(results)))
    return CompiledModel(
        function.name,
        target,
        tuple(_spec(p.name, p.type) for p in function.params),
        tuple(_spec(name, _type_of(value)) for name, value in zip(names, results, strict=True)),
        plan.constants,
        plan.arena_bytes,
        tuple(steps),
        entry.entry,
        entry.object,
        entry.llvm_ir,
    )


def _job_count(jobs: object) -> int:
    if jobs is None:
        return len(os.sched_getaffinity(0))
    if not isinstance(jobs, int) or isinstance(jobs, bool) or jobs < 1:
        raise RuntimeArgumentError(f"jobs should be a whole number of processes, at least 1, found {jobs!r}")
    return jobs


def _units(function: Function) -> tuple[list[Unit], list[Value]]:
    """The functions to run in order, and the values of the results, each of which is written by one of them."""
    units = []
    for group in partition(function):
        closed = as_function(group)
        inputs = tuple(_value(n) for n in group.inputs if not is_inlined_constant(n))
        outputs = tuple(v for node in group.outputs for v in _outputs_of(node))
        units.append(Unit(closed, inputs, outputs, tuple(o for call in group.calls for o in call.origin)))
    written = {value for unit in units for value in unit.outputs}
    results: list[Value] = []
    for node in _fields(function.body):
        value = _value(node)
        if value not in written or value in results:
            param = Var("p0", _type_of(value))
            copy: Value = (Tuple((node,)), 0)
            units.append(Unit(Function((param,), param, "copy"), (value,), (copy,), ()))
            value = copy
        results.append(value)
    return units, results


def _fields(node: Node) -> list[Node]:
    if isinstance(node, Tuple):
        return [leaf for field in node.fields for leaf in _fields(field)]
    if isinstance(node.type, TupleType):
        return [TupleGet(node, k) for k in range(len(node.type.fields))]
    return [node]


def _value(node: Node) -> Value:
    match node:
        case TupleGet(Tuple(fields), index):
            return _value(fields[index])
        case TupleGet(Call() as call, index):
            return call, index
        case Var() | Constant() | Call():
            return node, 0
        case _:
            raise ModelError(f"a {node.type} cannot be a value of a compiled model")


def _outputs_of(node: Node) -> list[Value]:
    count = len(node.type.fields) if isinstance(node.type, TupleType) else 1
    return [(node, k) for k in range(count)]


def _type_of(value: Value) -> Type:
    node, index = value
    return node.type.fields[index] if isinstance(node.type, TupleType) else node.type


def _spec(name: str, kind: Type) -> TensorSpec:
    if not isinstance(kind, TensorType):
        raise ModelError(f"{name} is a {kind}; inputs and outputs of a compiled model are tensors")
    shape = kind.static_shape
    if shape is None:
        raise ModelError(f"{name} has the symbolic shape {kind}: give its extents, as in shapes={{{name!r}: (1, 3)}}")
    return TensorSpec(name, shape, kind.dtype)


@dataclass(frozen=True, slots=True, eq=False)
class _Plan:
    """Where each value lies."""

    places: dict[Value, Operand]
    constants: tuple[npt.NDArray[Any], ...]
    arena_bytes: int


def _plan(function: Function, units: Sequence[Unit], results: Sequence[Value]) -> _Plan:
    places: dict[Value, Operand] = {}
    for node in (*((p, 0) for p in function.params), *results):
        places[node] = Operand(len(places))
    constants: dict[Value, npt.NDArray[Any]] = {}
    for unit in units:
        for value in unit.inputs:
            if isinstance(value[0], Constant) and value not in constants:
                places[value] = Operand(len(places))
                constants[value] = value[0].value
    arena = len(places)
    offsets, size = plan_memory(_lifetimes(units, places))
    places.update((value, Operand(arena, offset)) for value, offset in offsets.items())
    return _Plan(places, tuple(np.ascontiguousarray(c) for c in constants.values()), size)


def _lifetimes(units: Sequence[Unit], placed: dict[Value, Operand]) -> dict[Value, Lifetime]:
    first: dict[Value, int] = {}
    last: dict[Value, int] = {}
    for number, unit in enumerate(units):
        for value in unit.outputs:
            first[value] = last[value] = number
        for value in unit.inputs:
            last[value] = number
    return {
        value: Lifetime(_spec("an intermediate value", _type_of(value)).size, first[value], last[value])
        for value in first
        if value not in placed
    }


def _step(unit: Unit, compiled: CompiledFunction, plan: _Plan) -> ModelStep:
    operands = tuple(plan.places[value] for value in (*unit.inputs, *unit.outputs))
    return ModelStep(compiled, KernelCall(compiled.symbol, operands), unit.origin)

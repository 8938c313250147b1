"""``lw.tasks``: what there is to tune in a model."""

from __future__ import annotations

import difflib
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ..api.model_graph import planned_graph
from ..artifact.options import Arithmetic, CodegenOptions, Precision
from ..artifact.records.workload import Workload
from ..base.errors import LoopwrightError, RuntimeArgumentError
from ..base.target import Target
from ..codegen.host import resolve_target
from ..compiler.model.function_cache import function_key
from ..compiler.model.op_call import packed_choice
from ..compiler.model.parts import take_apart
from ..compiler.model.units import Unit
from ..compiler.selection.choices import anchor_number
from ..compiler.selection.records import NO_RECORDS, TuningRecords, records_from
from ..compiler.selection.select import get_valid_implementations, select_implementation
from ..compiler.selection.workload import workload_of
from ..compiler.settings import CompileSettings
from ..graph.node import Call, Function
from ..graph.structural import graph_hash
from ..graph.visit import post_order
from ..ir.constants import const_int
from ..ops.definition.cost import moved
from ..ops.definition.implementation import outputs_of
from ..ops.definition.registry import all_ops
from ..te.work import operations
from .task import FusedUse, TuningTask

if TYPE_CHECKING:
    from onnx import ModelProto


def tasks(
    model: ModelProto | bytes | str | os.PathLike[str] | Function,
    target: str | Target | None = "native",
    shapes: Mapping[str, Sequence[int | None]] | None = None,
    precision: Precision = "standard",
    records: TuningRecords | str | os.PathLike[str] | None = None,
    arithmetic: Arithmetic | None = None,
    only: Collection[str] = (),
) -> tuple[TuningTask, ...]:
    """What there is to tune in a model: its fused functions, those of one workload together, which most of the time is
    predicted for first. The arguments are those of ``compile``; ``only`` are the names of the operators to be tuned,
    by default all.

    Calls with open dimensions are none, nor are those that there is one way to compute. The shares of the time are
    those of all functions, by the operations and bytes of their definitions. Raises what ``compile`` raises.

    >>> import loopwright as lw
    >>> a, b = lw.var("a", (64, 256)), lw.var("b", (256, 128))
    >>> (task,) = lw.tasks(lw.Function([a, b], lw.nn.relu(lw.nn.matmul(a, b))), "x86-64-v3")
    >>> print(task)
    nn.matmul(float32[64, 256], float32[256, 128]): 100.0% of the time, 1 call of 1 function as fused_nn_matmul_relu
    >>> task.untuned
    'matmul.paneled'
    """
    options = CodegenOptions(precision=precision, arithmetic=arithmetic)
    settings = CompileSettings(resolve_target(target), options, records_from(records))
    return tasks_of(planned_graph(model, shapes, settings, False), settings, only)


def tasks_of(graph: Function, settings: CompileSettings, only: Collection[str] = ()) -> tuple[TuningTask, ...]:
    """The tasks of a graph behind all passes, those that the most time is predicted for first."""
    _check_names(only)
    units: dict[str, FusedUse] = {}
    for function in _functions(graph, settings):
        key = graph_hash(function)
        units[key] = replace(units[key], calls=units[key].calls + 1) if key in units else FusedUse(function, 1)
    anchors = {key: _anchor(use.function) for key, use in units.items()}
    cycles = {key: _cycles(use.function, anchors[key], settings) * use.calls for key, use in units.items()}
    groups: dict[Workload, list[str]] = {}
    for key, anchor in anchors.items():
        if anchor is not None and (not only or anchor.op.name in only):
            workload = workload_of(anchor)
            if workload is not None and _has_choice(anchor, settings):
                groups.setdefault(workload, []).append(key)
    total = sum(cycles.values())
    made = []
    for workload, keys in groups.items():
        keys.sort(key=lambda key: -cycles[key])
        call = anchors[keys[0]]
        assert call is not None
        share = sum(cycles[key] for key in keys) / total if total else 0.0
        uses = tuple(units[key] for key in keys)
        plain = settings.with_records(NO_RECORDS)
        untuned = select_implementation(call, plain).chosen.name
        made.append(TuningTask(call, workload, uses, share, settings, untuned, function_key(uses[0].function, plain)))
    return tuple(sorted(made, key=lambda task: -task.share))


def _check_names(only: Collection[str]) -> None:
    if isinstance(only, str) or not all(isinstance(name, str) for name in only):
        raise RuntimeArgumentError(f"only should be a list of names of operators, found {only!r}")
    known = [op.name for op in all_ops()]
    for name in only:
        if name not in known:
            near = difflib.get_close_matches(name, known, 1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise RuntimeArgumentError(f"only: there is no operator {name!r}{hint}")


def why_none(graph: Function, settings: CompileSettings, only: Collection[str]) -> str:
    """Why there are no tasks of the operators in a graph, for who asked for them."""
    others = sorted({task.call.op.name for task in tasks_of(graph, settings)}) if only else []
    if others:
        return f"nothing is tuned: there are tasks of {', '.join(others)}, and none of {', '.join(only)}"
    return "nothing is tuned: each operator has open dimensions, which shapes would fix, or one way to be computed"


def _functions(graph: Function, settings: CompileSettings) -> Iterator[Function]:
    """The closed functions that a model runs, as often as it is written in it."""
    units: Iterator[Unit] = take_apart(graph, settings.unfused).kernels()
    return (unit.function for unit in units if packed_choice(unit.function) is None)


def _anchor(function: Function) -> Call | None:
    calls = [node for node in post_order(function.body) if isinstance(node, Call)]
    return calls[anchor_number(calls)] if calls else None


def _has_choice(call: Call, settings: CompileSettings) -> bool:
    valid = get_valid_implementations(call, settings)
    if len(valid) != 1:
        return len(valid) > 1
    try:
        decisions = valid[0].implementation.decisions(call, settings.target)
    except LoopwrightError:  # it is refused when it is compiled
        return False
    return any(len(decision.legal) > 1 for decision in decisions)


def _cycles(function: Function, anchor: Call | None, settings: CompileSettings) -> float:
    """What a function takes at the least, in cycles of one core: its multiplications at the peak, or its bytes."""
    traffic = moved([*(param.type for param in function.params), function.body.type])
    if anchor is None:
        return traffic
    try:
        outputs = outputs_of(select_implementation(anchor, settings).chosen.computed_alone(anchor))
    except LoopwrightError:
        return traffic
    count = const_int(operations(outputs)) or 0
    target = settings.target
    return max(traffic, count / (2 * target.fma_per_cycle * target.lanes(outputs[0].dtype)))

"""From a closed function to its loop nest: computes of the calls chained, the anchor's schedule applied, lowered."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from .. import te
from ..codegen.model import Choice
from ..codegen.options import Precision
from ..graph.node import Call, Constant, Function, Node, Tuple, TupleGet
from ..graph.types import TensorType
from ..graph.visit import post_order
from ..ir.errors import InternalError
from ..ir.expr import Expr
from ..ir.stmt import PrimFunc
from ..ir.target import Target
from ..lowering.default_schedule import default_schedule
from ..lowering.pipeline import lower
from ..lowering.rules.fold_order import require_order_of_definition
from ..lowering.schedule import Schedule
from ..ops.strategy import OpImplementation
from ..te.tensor import PlaceholderOp, Tensor
from .partition import pattern_of
from .selection import Selection, select_implementation


@dataclass(frozen=True, slots=True)
class LoweredOutput:
    """What ``lower_call`` gives: the output tensors of a call, and the choice of what computes them."""

    outputs: tuple[Tensor, ...]
    selection: Selection

    @property
    def implementation(self) -> OpImplementation:
        return self.selection.chosen


def lower_call(call: Call, inputs: tuple[Tensor, ...], target: Target) -> LoweredOutput:
    """Choose an implementation of a call for a target, and compute its outputs from the input tensors."""
    selection = select_implementation(call, target)
    made = selection.chosen.compute(call.attrs, inputs, call.type)
    return LoweredOutput(made if isinstance(made, tuple) else (made,), selection)


def lower_function(
    function: Function, target: Target, symbol: str, precision: Precision = "standard"
) -> tuple[PrimFunc, tuple[Choice, ...]]:
    """The loop nest of a closed function, scheduled by the implementation chosen for its anchor."""
    tensors: dict[Node, tuple[Tensor, ...]] = {}
    params: list[Tensor] = []
    for param in function.params:
        params.append(_placeholder(param, param.name))
        tensors[param] = (params[-1],)
    calls = [node for node in post_order(function.body) if isinstance(node, Call)]
    lowered: list[LoweredOutput] = []
    for call in calls:
        inputs = tuple(_tensor(argument, tensors) for argument in call.args)
        lowered.append(lower_call(call, inputs, target))
        tensors[call] = lowered[-1].outputs
    results = function.body.fields if isinstance(function.body, Tuple) else (function.body,)
    outputs = tuple(_computed(t) for result in results for t in tensors[result])
    schedule = _schedule(calls, lowered, outputs, target)
    if precision == "strict":
        require_order_of_definition(schedule.state)
    func = lower(schedule, [*params, *outputs], symbol, target)
    choices = tuple(Choice(x.selection.op, x.implementation.name, x.selection.reason) for x in lowered)
    return func, choices


def _schedule(
    calls: Sequence[Call], lowered: Sequence[LoweredOutput], outputs: tuple[Tensor, ...], target: Target
) -> Schedule:
    """The schedule of the anchor's implementation; of a function without calls, which copies, the default one."""
    if not calls:
        return default_schedule(outputs, target)
    anchor = anchor_number(calls)
    return lowered[anchor].implementation.schedule(calls[anchor].attrs, lowered[anchor].outputs, outputs, target)


def anchor_number(calls: Sequence[Call]) -> int:
    """The last call of the highest pattern: its schedule serves the function."""
    best = max(pattern_of(call) for call in calls)
    return max(number for number, call in enumerate(calls) if pattern_of(call) is best)


def _placeholder(node: Node, name: str) -> Tensor:
    kind = node.type
    if not isinstance(kind, TensorType):
        raise InternalError(f"a fused function takes tensors only, found a {kind}")
    return te.placeholder(kind.shape, kind.dtype, re.sub(r"^(?=\d|$)|[^A-Za-z0-9_]", "_", name))


def _tensor(node: Node, tensors: dict[Node, tuple[Tensor, ...]]) -> Tensor:
    match node:
        case TupleGet(value, index):
            return tensors[value][index]
        case Constant():
            if node not in tensors:
                tensors[node] = (_constant_tensor(node),)
            return tensors[node][0]
        case _:
            return tensors[node][0]


def _constant_tensor(node: Constant) -> Tensor:
    kind = node.type
    assert isinstance(kind, TensorType)
    value: Expr = te.const(node.value.reshape(-1)[0], kind.dtype)
    return te.compute(kind.shape, lambda *_: value, name="constant")


def _computed(tensor: Tensor) -> Tensor:
    """An output must be computed: a copy, where an operator hands its input on."""
    if isinstance(tensor.op, PlaceholderOp):
        return te.compute(tensor.shape, lambda *i: tensor[i], name="copy")
    return tensor

"""The call that a compiled function computes, or is scheduled by, as plain data: tactics and packed functions serve
calls by it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...artifact.choice import CandidateReport, Choice
from ...artifact.extents import extent_of
from ...artifact.function import CompiledFunction, OpCall, TensorSpec
from ...artifact.records.workload import canonical_json
from ...base.errors import ModelError
from ...graph.node import Call, Function, Node, Tuple, TupleGet
from ...graph.printer import attributes_text
from ...graph.types import TensorType, Type, leaf_types, leaves_of_field
from ...graph.visit import post_order
from ...ir.contents import free_vars
from ...ir.expr import Var as Dim
from ...ops.definition.strategy import DEFAULT_LEVEL
from ...ops.families.extern import EXTERN
from ..fusion.closed_function import entry_symbol
from ..selection.choices import anchor_number, call_text


def op_call(function: Function, names: Mapping[Dim, str]) -> OpCall | None:
    """The call whose schedule a closed function has; None where there is none. ``names`` are those of symbolic
    dimensions: a function that has some tells of the call only if it consists of that."""
    calls = [node for node in post_order(function.body) if isinstance(node, Call)]
    if not calls:
        return None
    call = calls[anchor_number(calls)]
    positions: dict[Node, range] = {}
    count = 0
    for param in function.params:
        positions[param] = range(count, count := count + len(leaf_types(param.type)))
    positions[function.body] = range(count, count + len(leaf_types(function.body.type)))
    operands = [position for node in (*call.args, call) for position in _positions(node, positions)]
    if names and None in operands:
        return None
    inputs = tuple(s for k, arg in enumerate(call.args) for s in _specs(f"input{k}", arg.type, names))
    outputs = _specs("output", call.type, names)
    attributes = {} if call.attrs is None else call.attrs.to_json()
    return OpCall(call.op.name, canonical_json(attributes), inputs, outputs, tuple(operands))


def packed_function(function: Function) -> CompiledFunction | None:
    """The function as one that calls a packed function, of which nothing is compiled; None for any other function."""
    if not isinstance(function.body, Call) or function.body.op is not EXTERN:
        return None
    kinds = [kind for node in (*function.params, function.body) for kind in leaf_types(node.type)]
    dims: dict[Dim, str] = {var: var.name for kind in kinds for extent in kind.shape for var in free_vars(extent)}
    symbol = entry_symbol(function)
    call, choice = op_call(function, dims), packed_choice(function)
    if call is None or choice is None or not call.is_whole:
        told = ", ".join(attributes_text(function.body.attrs))
        raise ModelError(f"extern({told}): an argument is a constant of one element; pass it in the options")
    arguments = (*call.inputs, *call.outputs)
    return CompiledFunction(
        function.name, symbol, tuple(dims.values()), (choice,), (), "", "", b"", call=call, arguments=arguments
    )


def packed_choice(function: Function) -> Choice | None:
    """What explains a call of a packed function; None for any other function."""
    call = function.body
    if not isinstance(call, Call) or call.op is not EXTERN:
        return None
    name = call.attrs.function
    candidates = (CandidateReport(name, DEFAULT_LEVEL, (), None),)
    reason = "a packed function, looked up by engines"
    return Choice(call.op.name, call_text(call), name, reason, candidates, anchor=True)


def _positions(node: Node, known: Mapping[Node, range]) -> Sequence[int | None]:
    """The numbers of the arguments that the tensors of a value are, None for those that are none."""
    match node:
        case _ if node in known:
            return known[node]
        case Tuple(fields):
            return [position for field in fields for position in _positions(field, known)]
        case TupleGet(value, index):
            return _positions(value, known)[leaves_of_field(value.type, index)]
        case _:
            return (None,) * len(leaf_types(node.type))


def _specs(name: str, kind: Type, names: Mapping[Dim, str]) -> tuple[TensorSpec, ...]:
    """A spec for each tensor of a type, a number behind the name where there are several."""
    leaves = leaf_types(kind)
    called = [name] if isinstance(kind, TensorType) else [f"{name}_{k}" for k in range(len(leaves))]
    return tuple(
        TensorSpec(each, tuple(extent_of(extent, names) for extent in leaf.shape), leaf.dtype)
        for each, leaf in zip(called, leaves, strict=True)
    )

"""The call that a compiled function computes, as plain data: tactics and packed functions serve calls by it."""

from __future__ import annotations

from collections.abc import Mapping

from ..codegen.choice import CandidateReport, Choice
from ..codegen.extents import extent_of
from ..codegen.model import CompiledFunction, OpCall, TensorSpec
from ..codegen.records.workload import canonical_json
from ..graph.node import Call, Function, Node
from ..graph.printer import attributes_text
from ..graph.structural import graph_hash
from ..graph.types import TensorType, Type, leaf_types
from ..ir.errors import ModelError
from ..ir.expr import Var as Dim
from ..ir.visit import free_vars
from ..ops.extern import EXTERN
from ..ops.strategy import DEFAULT_LEVEL
from .choices import call_text


def op_call(function: Function, names: Mapping[Dim, str]) -> OpCall | None:
    """The call that a closed function consists of; None where it is another function, or the code holds an argument.
    ``names`` are those of symbolic dimensions."""
    call = function.body
    if not isinstance(call, Call) or not call.args or any(arg not in function.params for arg in call.args):
        return None
    places: dict[Node, range] = {}
    count = 0
    for param in function.params:
        places[param] = range(count, count := count + len(leaf_types(param.type)))
    inputs = tuple(s for k, arg in enumerate(call.args) for s in _specs(f"input{k}", arg.type, names))
    outputs = _specs("output", call.type, names)
    operands = (*(place for arg in call.args for place in places[arg]), *range(count, count + len(outputs)))
    attributes = {} if call.attrs is None else call.attrs.to_json()
    return OpCall(call.op.name, canonical_json(attributes), inputs, outputs, operands)


def packed_function(function: Function) -> CompiledFunction | None:
    """The function as one that calls a packed function, of which nothing is compiled; None for any other function."""
    if not isinstance(function.body, Call) or function.body.op is not EXTERN:
        return None
    kinds = [kind for node in (*function.params, function.body) for kind in leaf_types(node.type)]
    dims: dict[Dim, str] = {var: var.name for kind in kinds for extent in kind.shape for var in free_vars(extent)}
    symbol = f"{function.name}_{graph_hash(function)[:12]}"
    call, choice = op_call(function, dims), packed_choice(function)
    if call is None or choice is None:
        told = ", ".join(attributes_text(function.body.attrs))
        raise ModelError(f"extern({told}): an argument is a constant of one element; pass it in the options")
    return CompiledFunction(function.name, symbol, tuple(dims.values()), (choice,), (), "", "", b"", call=call)


def packed_choice(function: Function) -> Choice | None:
    """What explains a call of a packed function; None for any other function."""
    call = function.body
    if not isinstance(call, Call) or call.op is not EXTERN:
        return None
    name = call.attrs.function
    candidates = (CandidateReport(name, DEFAULT_LEVEL, (), None),)
    return Choice(call.op.name, call_text(call), name, "a packed function, looked up by engines", candidates)


def _specs(name: str, kind: Type, names: Mapping[Dim, str]) -> tuple[TensorSpec, ...]:
    """A spec for each tensor of a type, a number behind the name where there are several."""
    leaves = leaf_types(kind)
    called = [name] if isinstance(kind, TensorType) else [f"{name}_{k}" for k in range(len(leaves))]
    return tuple(
        TensorSpec(each, tuple(extent_of(extent, names) for extent in leaf.shape), leaf.dtype)
        for each, leaf in zip(called, leaves, strict=True)
    )

"""The workloads of calls, by which tuning records are looked up."""

from __future__ import annotations

from ...artifact.records.workload import TensorKey, Workload, canonical_json
from ...base.errors import TypeInferenceError
from ...graph.node import Call, Function
from ...graph.types import leaf_types
from ...graph.visit import post_order


def workload_of(call: Call) -> Workload | None:
    """The workload of a call; None where a dimension is symbolic, or an argument is no tensor or tuple of tensors."""
    try:
        kinds = [kind for argument in call.args for kind in leaf_types(argument.type)]
    except TypeInferenceError:
        return None
    arguments = [TensorKey(shape, str(kind.dtype)) for kind in kinds if (shape := kind.static_shape) is not None]
    attributes = {} if call.attrs is None else call.attrs.to_json()
    known = len(arguments) == len(kinds)
    return Workload(call.op.name, tuple(arguments), canonical_json(attributes)) if known else None


def workloads_of(function: Function) -> list[Workload]:
    """The workloads of a function's calls, in order of computation; those of symbolic shapes are left out."""
    calls = [node for node in post_order(function.body) if isinstance(node, Call)]
    return [workload for call in calls if (workload := workload_of(call)) is not None]

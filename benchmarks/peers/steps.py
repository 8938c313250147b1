"""A model as a list of calls, for libraries that know no ONNX: each node by the function that a table has for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

Attributes = Mapping[str, Any]
Make = Callable[[Attributes], Callable[..., Any]]


def attributes_of(node: onnx.NodeProto) -> dict[str, Any]:
    """Strings as such, not as bytes."""
    found = {a.name: helper.get_attribute_value(a) for a in node.attribute}
    return {key: value.decode() if isinstance(value, bytes) else value for key, value in found.items()}


def steps(
    path: Path, inputs: Mapping[str, np.ndarray], table: Mapping[str, Make], convert: Callable[[np.ndarray], Any]
) -> Callable[[], list[Any]]:
    """Runs the nodes in turn. ``table`` gives an operator's function for its attributes. Raises ``LookupError`` if one
    is not there."""
    graph = onnx.load(path).graph
    values = {i.name: convert(numpy_helper.to_array(i)) for i in graph.initializer}
    values |= {name: convert(array) for name, array in inputs.items()}
    values[""] = None
    calls = []
    for node in graph.node:
        if node.op_type not in table:
            raise LookupError(f"no function for {node.op_type}")
        calls.append((table[node.op_type](attributes_of(node)), tuple(node.input), node.output[0]))
    wanted = [output.name for output in graph.output]
    if len(calls) == 1 and wanted == [calls[0][2]]:  # a kernel: no detour over names
        function, names, _ = calls[0]
        arguments = tuple(values[name] for name in names)
        return lambda: [function(*arguments)]

    def run() -> list[Any]:
        for function, names, result in calls:
            values[result] = function(*(values[name] for name in names))
        return [values[name] for name in wanted]

    return run

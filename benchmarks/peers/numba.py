"""numba, as one loop a person would write: elementwise chains, and what works on rows."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numba
import numpy as np
import onnx
from onnx import numpy_helper

from .steps import attributes_of

ELEMENTWISE = {
    "Add": "{0} + {1}",
    "Sub": "{0} - {1}",
    "Mul": "{0} * {1}",
    "Neg": "-{0}",
    "Abs": "abs({0})",
    "Exp": "math.exp({0})",
    "Log": "math.log({0})",
    "Tanh": "math.tanh({0})",
    "Erf": "math.erf({0})",
    "Sin": "math.sin({0})",
    "Sqrt": "math.sqrt({0})",
    "Relu": "max({0}, ZERO)",
    "Sigmoid": "ONE / (ONE + math.exp(-{0}))",
}
GELU = {
    "none": "HALF * {0} * (ONE + math.erf({0} * np.float32(0.7071067811865476)))",
    "tanh": "HALF * {0} * (ONE + math.tanh(np.float32(0.7978845608) * ({0} + np.float32(0.044715) * {0} * {0} * {0})))",
}
PROLOGUE = "import math\nimport numpy as np\nZERO, HALF, ONE = np.float32(0), np.float32(0.5), np.float32(1)\n"

ROWS = {
    "Softmax": "m = x[i].max()\n        y[i] = np.exp(x[i] - m)\n        y[i] *= ONE / y[i].sum()",
    "LogSoftmax": "m = x[i].max()\n        y[i] = x[i] - m\n        y[i] -= np.log(np.exp(y[i]).sum())",
    "LayerNormalization": (
        "d = x[i] - x[i].mean()\n        y[i] = d * (ONE / math.sqrt((d * d).mean() + np.float32({epsilon}))) * a + b"
    ),
    "RMSNormalization": "y[i] = x[i] * (ONE / math.sqrt((x[i] * x[i]).mean() + np.float32({epsilon}))) * a",
}


def prepare(path: Path, inputs: Mapping[str, np.ndarray], threads: int) -> Callable[[], list[np.ndarray]]:
    """Raises ``LookupError`` for models of other operators."""
    graph = onnx.load(path).graph
    source, names = _rows(graph) if graph.node[0].op_type in ROWS else _elementwise(graph)
    scope: dict[str, Any] = {"prange": numba.prange}
    exec(PROLOGUE + source, scope)
    numba.set_num_threads(threads)
    kernel = numba.njit(parallel=threads > 1, fastmath=True)(scope["kernel"])
    stored = {i.name: numpy_helper.to_array(i) for i in graph.initializer} | dict(inputs)
    arrays = [stored[name] for name in names]
    out = np.empty(arrays[0].shape, np.float32)
    run = functools.partial(kernel, *arrays, out)

    def call() -> list[np.ndarray]:
        run()
        return [out]

    return call


def _elementwise(graph: onnx.GraphProto) -> tuple[str, list[str]]:
    names, lines = [i.name for i in graph.input], []
    if graph.initializer:
        raise LookupError("only chains of elementwise operations are written for numba, without constants")
    for node in graph.node:
        table = ELEMENTWISE | {"Gelu": GELU[attributes_of(node).get("approximate", "none")]}
        if node.op_type not in table:
            raise LookupError(f"nothing is written for {node.op_type}")
        lines.append(
            f"        v_{node.output[0]} = {table[node.op_type].format(*(f'v_{name}' for name in node.input))}"
        )
    loads = [f"        v_{name} = {name}[i]" for name in names]
    body = "\n".join([*loads, *lines, f"        out[i] = v_{graph.output[0].name}"])
    return f"def kernel({', '.join(names)}, out):\n    for i in prange(out.size):\n{body}\n", names


def _rows(graph: onnx.GraphProto) -> tuple[str, list[str]]:
    (node,) = graph.node
    epsilon = attributes_of(node).get("epsilon", 1e-5)
    parameters = ["x", "a", "b"][: len(node.input)]
    body = ROWS[node.op_type].format(epsilon=epsilon)
    return f"def kernel({', '.join(parameters)}, y):\n    for i in prange(len(x)):\n        {body}\n", list(node.input)

"""How a contender runs an ONNX model: a function each, which prepares it as its library does that best.

What a function gives is called again and again on the same inputs, and gives the outputs, as arrays that it may reuse.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, TypeAlias

import ml_dtypes
import numpy as np

from ..arrays import Array
from ..engine import Engine
from ..library import load

OURS = "loopwright"
LIBRARY = "model.lwlib"
"""The file of our compiled model in the contenders' folder."""

Outputs: TypeAlias = Callable[[], Sequence[Array]]
Prepare: TypeAlias = Callable[[Path, Mapping[str, Array], int], Outputs]
"""The path of the model, the inputs by name, and the number of threads."""


def prepare_loopwright(path: Path, inputs: Mapping[str, Array], threads: int) -> Outputs:
    """A saved library, bound to its inputs."""
    return Engine(load(path), threads=threads).bind(inputs)


def prepare_onnxruntime(path: Path, inputs: Mapping[str, Array], threads: int) -> Outputs:
    """onnxruntime on the cpu, with inputs and outputs bound once."""
    onnxruntime: Any = import_module("onnxruntime")  # optional
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    options.log_severity_level = 3  # it warns of weights that a model lists as inputs
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    binding = session.io_binding()
    for name, array in inputs.items():
        binding.bind_cpu_input(name, array)
    outputs: list[Array] = session.run(names, dict(inputs))
    for name, array in zip(names, outputs, strict=True):
        binding.bind_output(name, "cpu", 0, array.dtype, array.shape, array.ctypes.data)

    def run(_held: object = inputs) -> Sequence[Array]:  # the binding points into them
        session.run_with_iobinding(binding)
        return outputs

    return run


def prepare_openvino(path: Path, inputs: Mapping[str, Array], threads: int) -> Outputs:
    """OpenVINO, kept to the dtype of the inputs as all others, with inputs and outputs shared; shapes that the model
    leaves open are those of the inputs."""
    openvino: Any = import_module("openvino")  # optional
    halves = any(array.dtype == ml_dtypes.bfloat16 for array in inputs.values())
    settings = {
        "INFERENCE_NUM_THREADS": threads,
        "INFERENCE_PRECISION_HINT": "bf16" if halves else "f32",
        "PERFORMANCE_HINT": "LATENCY",
        "NUM_STREAMS": 1,
    }
    core = openvino.Core()
    model = core.read_model(path)
    if model.is_dynamic():
        model.reshape({name: array.shape for name, array in inputs.items()})
    compiled = core.compile_model(model, "CPU", settings)
    request = compiled.create_infer_request()
    shared = {name: _tensor(openvino, array) for name, array in inputs.items()}
    for name, tensor in shared.items():
        request.set_tensor(name, tensor)
    held = (core, compiled, inputs, shared)  # the request points into all of them

    def run(_held: object = held) -> Sequence[Array]:
        request.infer(share_inputs=True, share_outputs=True)
        return [_array(openvino, tensor) for tensor in request.output_tensors]

    return run


def _tensor(openvino: Any, array: Array) -> Any:
    if array.dtype == ml_dtypes.bfloat16:  # passed as its bits
        return openvino.Tensor(array.view(np.uint16), openvino.Shape(array.shape), openvino.Type.bf16)
    return openvino.Tensor(array, shared_memory=True)


def _array(openvino: Any, tensor: Any) -> Array:
    data: Array = tensor.data
    return data.view(ml_dtypes.bfloat16) if tensor.element_type == openvino.Type.bf16 else data


PEERS: Mapping[str, Prepare] = {"onnxruntime": prepare_onnxruntime, "openvino": prepare_openvino}
"""By the name of their package, which pip installs."""

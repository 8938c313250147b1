"""OpenVINO, kept to the dtype of the inputs as all others, with inputs and outputs shared."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import ml_dtypes
import numpy as np
import openvino


def prepare(path: Path, inputs: Mapping[str, np.ndarray], threads: int) -> Callable[[], list[np.ndarray]]:
    halves = any(array.dtype == ml_dtypes.bfloat16 for array in inputs.values())
    settings = {
        "INFERENCE_NUM_THREADS": threads,
        "INFERENCE_PRECISION_HINT": "bf16" if halves else "f32",
        "PERFORMANCE_HINT": "LATENCY",
        "NUM_STREAMS": 1,
    }
    core = openvino.Core()
    compiled = core.compile_model(path, "CPU", settings)
    request = compiled.create_infer_request()
    shared = {name: _tensor(array) for name, array in inputs.items()}
    for name, tensor in shared.items():
        request.set_tensor(name, tensor)
    held = (core, compiled, inputs, shared)  # the request points into all of them

    def run(held: object = held) -> list[np.ndarray]:
        request.infer(share_inputs=True, share_outputs=True)
        return [_array(tensor) for tensor in request.output_tensors]

    return run


def _tensor(array: np.ndarray) -> openvino.Tensor:
    if array.dtype == ml_dtypes.bfloat16:  # passed as its bits
        return openvino.Tensor(array.view(np.uint16), openvino.Shape(array.shape), openvino.Type.bf16)
    return openvino.Tensor(array, shared_memory=True)


def _array(tensor: openvino.Tensor) -> np.ndarray:
    return tensor.data.view(ml_dtypes.bfloat16) if tensor.element_type == openvino.Type.bf16 else tensor.data

"""OpenVINO, kept to float32 as all others, with inputs and outputs shared."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import openvino


def prepare(path: Path, inputs: Mapping[str, np.ndarray], threads: int) -> Callable[[], list[np.ndarray]]:
    settings = {
        "INFERENCE_NUM_THREADS": threads,
        "INFERENCE_PRECISION_HINT": "f32",
        "PERFORMANCE_HINT": "LATENCY",
        "NUM_STREAMS": 1,
    }
    core = openvino.Core()
    compiled = core.compile_model(path, "CPU", settings)
    request = compiled.create_infer_request()
    shared = {name: openvino.Tensor(array, shared_memory=True) for name, array in inputs.items()}
    for name, tensor in shared.items():
        request.set_tensor(name, tensor)
    held = (core, compiled, inputs, shared)  # the request points into all of them

    def run(held: object = held) -> list[np.ndarray]:
        request.infer(share_inputs=True, share_outputs=True)
        return [tensor.data for tensor in request.output_tensors]

    return run

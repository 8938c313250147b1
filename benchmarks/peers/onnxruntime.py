"""onnxruntime, with inputs and outputs bound once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import onnxruntime


def prepare(path: Path, inputs: Mapping[str, np.ndarray], threads: int) -> Callable[[], list[np.ndarray]]:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    options.log_severity_level = 3  # it warns of weights that a model lists as inputs
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    binding = session.io_binding()
    for name, array in inputs.items():
        binding.bind_cpu_input(name, array)
    outputs = session.run(names, dict(inputs))
    for name, array in zip(names, outputs, strict=True):
        binding.bind_output(name, "cpu", 0, array.dtype, array.shape, array.ctypes.data)

    def run(held: object = inputs) -> list[np.ndarray]:  # the binding points into them
        session.run_with_iobinding(binding)
        return outputs

    return run

"""Ours with batch, height, width and sequence left open, planned for those of the case. Reported beside, no peer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import onnx

import loopwright as lw


def prepare(path: Path, inputs: Mapping[str, np.ndarray], threads: int) -> Callable[[], list[np.ndarray]]:
    """All that may be open of most models; where the model has a number for its batch, all but that."""
    expect = {name: array.shape for name, array in inputs.items()}
    try:
        library = lw.compile(_opened(onnx.load(path), first=0), expect=expect)
    except lw.LoopwrightError:
        library = lw.compile(_opened(onnx.load(path), first=1), expect=expect)
    return lw.Engine(library, threads=threads).bind(inputs)


def _opened(model: onnx.ModelProto, first: int) -> onnx.ModelProto:
    """The model with dimensions of its inputs open, from the axis ``first`` on."""
    weights = {initializer.name for initializer in model.graph.initializer}
    for info in (info for info in model.graph.input if info.name not in weights):
        shape = info.type.tensor_type.shape
        for axis in _open_axes(len(shape.dim), info.type.tensor_type.elem_type):
            if axis >= first:
                shape.dim[axis].dim_param = f"{info.name}_{axis}" if axis else "batch"
    for info in model.graph.output:
        info.type.tensor_type.ClearField("shape")
    model.graph.ClearField("value_info")
    return model


def _open_axes(rank: int, kind: int) -> list[int]:
    """All but the channels of images, and the features of sequences and rows, which are those of weights."""
    if kind in (onnx.TensorProto.INT32, onnx.TensorProto.INT64):
        return list(range(rank))
    return [0, *range(2, rank)] if rank >= 4 else list(range(rank - 1))

"""What compiled models are compared with: ONNX models, evaluated by onnxruntime where it is installed, else by the
package onnx, or functions of the caller's."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import Any, TypeAlias

import numpy as np
import onnx
from onnx import ModelProto, ValueInfoProto

from ...base.errors import ModelError, RuntimeArgumentError
from ..arrays import Array
from ..library import Library

Reference: TypeAlias = (
    "ModelProto | str | os.PathLike[str] | Library | Callable[[Mapping[str, Array]], Mapping[str, Array]]"
)


def onnxruntime_installed() -> bool:
    """Whether onnxruntime can be imported; it is not imported for that."""
    return find_spec("onnxruntime") is not None


def onnx_evaluator(model: ModelProto | str) -> Any:
    """The evaluator of the onnx package, with batch normalisation by the stored statistics for every opset: its own
    versions before 14 mix the statistics of the batch in, which is for training only."""
    from onnx.reference import ReferenceEvaluator  # takes long to import
    from onnx.reference.ops.op_batch_normalization import BatchNormalization_14

    class BatchNormalization(BatchNormalization_14):
        op_domain = ""

    return ReferenceEvaluator(model, new_ops=[BatchNormalization])


def onnxruntime_session(model: bytes | str, threads: int = 0, optimize: bool = True) -> Any:
    """A session of onnxruntime on the cpu, which must be installed."""
    onnxruntime: Any = import_module("onnxruntime")  # optional
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3  # errors only
    if not optimize:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def reference_values(reference: object, inputs: Mapping[str, Array], library: Library) -> Mapping[str, Array]:
    """The values that a reference has for these inputs, of those that the steps of a library leave."""
    if reference == "onnx":
        if library.source is None:
            raise ModelError(
                "this library does not know the file that it was compiled from: give the model, reference=path"
            )
        reference = library.source
    if isinstance(reference, (ModelProto, str, os.PathLike)):
        names = (result.name for step in library.model.steps for result in step.results)
        return _values_of(reference, inputs, names)
    if not callable(reference):
        raise RuntimeArgumentError(
            "a reference is an ONNX model, a library or a function from inputs to values by name, not a "
            f"{type(reference).__name__}"
        )
    found = reference(dict(inputs))
    if not isinstance(found, Mapping):
        raise RuntimeArgumentError(
            f"the reference should give values by name, as a mapping, but gave a {type(found).__name__}"
        )
    return found


def _values_of(
    model: ModelProto | str | os.PathLike[str], inputs: Mapping[str, Array], names: Iterable[str]
) -> dict[str, Array]:
    """The values of a model by name, of those of ``names`` that its graph computes, for these inputs.

    Raises ``ModelError`` where the model cannot be read or evaluated.
    """
    extended = ModelProto()
    try:
        extended.CopyFrom(model if isinstance(model, ModelProto) else onnx.load(os.fspath(model)))
    except Exception as error:  # of protobuf, or of the system
        raise ModelError(f"the reference cannot be read: {error}") from error
    computed = {name for node in extended.graph.node for name in node.output if name}
    wanted = [name for name in dict.fromkeys(names) if name in computed]
    if not wanted:
        return {}
    already = {value.name for value in extended.graph.output}
    extended.graph.output.extend(ValueInfoProto(name=name) for name in wanted if name not in already)
    try:
        if onnxruntime_installed():
            found = onnxruntime_session(extended.SerializeToString(), optimize=False).run(wanted, dict(inputs))
        else:
            found = onnx_evaluator(extended).run(wanted, dict(inputs))
    except Exception as error:  # whatever it is, it is not ours
        raise ModelError(f"the reference cannot be evaluated: {error}") from error
    return {name: np.asarray(value) for name, value in zip(wanted, found, strict=True)}

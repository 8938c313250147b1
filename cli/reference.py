"""An independent evaluation of an ONNX model, to check results and latency against: onnxruntime's or onnx's own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from onnx.reference import ReferenceEvaluator
from onnx.reference.ops.op_batch_normalization import BatchNormalization_14

from ..ir.errors import LoopwrightError

Array: TypeAlias = npt.NDArray[Any]

TOLERANCE = 1e-4
"""Of the largest magnitude in an output."""
NARROW_TOLERANCE = 3e-2
"""For floats of 16 bits: four roundings to bfloat16."""


class CheckError(LoopwrightError):
    """The reference cannot run the model, or its outputs differ from ours."""


@dataclass(frozen=True, slots=True)
class Reference:
    """``run`` gives the outputs for inputs by name; ``who`` names what computes them."""

    run: Callable[[Mapping[str, Array]], list[Array]]
    who: str


def onnxruntime_installed() -> bool:
    return find_spec("onnxruntime") is not None


def load_reference(path: Path, threads: int) -> Reference:
    """onnxruntime's session on the CPU, where that is installed; else the reference evaluator of the onnx package."""
    who = "onnxruntime" if onnxruntime_installed() else "onnx's reference evaluator"
    try:
        run = _onnxruntime(path, threads) if onnxruntime_installed() else _onnx_evaluator(path)
    except Exception as error:  # whatever it is, it is not ours
        raise CheckError(f"{who} cannot load the model: {error}") from error

    def outputs(inputs: Mapping[str, Array]) -> list[Array]:
        try:
            return [np.asarray(output) for output in run(None, dict(inputs))]
        except Exception as error:
            raise CheckError(f"{who} cannot run the model: {error}") from error

    return Reference(outputs, who)


class BatchNormalization(BatchNormalization_14):
    """Batch normalisation by the stored statistics, for every opset.

    The evaluator's own versions before 14 mix the statistics of the batch in, which is for training only.
    """

    op_domain = ""


def _onnx_evaluator(path: Path) -> Any:
    return ReferenceEvaluator(str(path), new_ops=[BatchNormalization]).run


def _onnxruntime(path: Path, threads: int) -> Any:
    onnxruntime: Any = import_module("onnxruntime")  # optional
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3  # errors only
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"]).run


def largest_error(names: Sequence[str], outputs: Sequence[Array], expected: Sequence[Array], who: str) -> float:
    """The largest difference of any element, relative to the largest magnitude in its output.

    Raises ``CheckError`` for an output that differs by more than the tolerance of its dtype, in shape, or, if it
    is not of floats, at all.
    """
    return max(
        (_error(name, a, b, who) for name, a, b in zip(names, outputs, expected, strict=True)),
        default=0.0,
    )


def _error(name: str, output: Array, expected: Array, who: str) -> float:
    if output.shape != expected.shape or output.dtype != expected.dtype:
        ours, theirs = (f"{a.dtype}{list(a.shape)}" for a in (output, expected))
        raise CheckError(f"output {name} is {ours}, but {theirs} by {who}")
    if output.dtype.kind in "iub":
        if wrong := np.count_nonzero(output != expected):
            raise CheckError(f"output {name} differs from {who}'s in {wrong} of {output.size} elements")
        return 0.0
    a, b = output.astype(np.float64), expected.astype(np.float64)
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    finite = np.isfinite(b)
    scale = np.abs(b[finite]).max(initial=0.0)
    with np.errstate(invalid="ignore"):  # infinities that do not agree
        difference = np.where(same, 0.0, np.abs(a - b))
    error = float(difference.max(initial=0.0) / (scale or 1.0))
    tolerance = TOLERANCE if output.dtype.itemsize >= 4 else NARROW_TOLERANCE
    if not error <= tolerance:  # NaN where one of the two is not finite
        raise CheckError(
            f"output {name} differs from {who}'s by {error:.1e} of its largest magnitude; {tolerance:.1e} is allowed"
        )
    return error

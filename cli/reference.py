"""An independent evaluation of an ONNX model, to check results and latency against: onnxruntime's or onnx's own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..ir.errors import LoopwrightError
from ..runtime.arrays import Array
from ..runtime.measure.compare import tolerance_of
from ..runtime.measure.onnx_reference import onnx_evaluator, onnxruntime_installed, onnxruntime_session


class CheckError(LoopwrightError):
    """The reference cannot run the model, or its outputs differ from ours."""


@dataclass(frozen=True, slots=True)
class Reference:
    """``run`` gives the outputs for inputs by name; ``who`` names what computes them."""

    run: Callable[[Mapping[str, Array]], list[Array]]
    who: str


def load_reference(path: Path, threads: int) -> Reference:
    """onnxruntime's session on the CPU, where that is installed; else the reference evaluator of the onnx package."""
    who = "onnxruntime" if onnxruntime_installed() else "onnx's reference evaluator"
    try:
        run = (onnxruntime_session(str(path), threads) if onnxruntime_installed() else onnx_evaluator(str(path))).run
    except Exception as error:  # whatever it is, it is not ours
        raise CheckError(f"{who} cannot load the model: {error}") from error

    def outputs(inputs: Mapping[str, Array]) -> list[Array]:
        try:
            return [np.asarray(output) for output in run(None, dict(inputs))]
        except Exception as error:
            raise CheckError(f"{who} cannot run the model: {error}") from error

    return Reference(outputs, who)


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
    tolerance = tolerance_of(output.dtype)
    if not error <= tolerance:  # NaN where one of the two is not finite
        raise CheckError(
            f"output {name} differs from {who}'s by {error:.1e} of its largest magnitude; {tolerance:.1e} is allowed"
        )
    return error

"""An independent evaluation of an ONNX model, to check results and latency against: onnxruntime's or onnx's own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import onnx

from ..base.dataclass import dataclass
from ..base.errors import LoopwrightError
from ..base.output_form import OutputForm
from ..base.quantities import error_text
from ..runtime.arrays import Array
from ..runtime.measure.closeness import allowed_distance, distance
from ..runtime.measure.onnx_reference import onnx_evaluator, onnxruntime_installed, onnxruntime_session
from ..runtime.measure.widened_model import exact_outputs
from ..runtime.presented import as_numbers


class CheckError(LoopwrightError):
    """The reference cannot run the model, or its outputs differ from ours."""


@dataclass(frozen=True, slots=True)
class Reference:
    """``run`` gives the outputs for inputs by name; ``who`` names what computes them."""

    run: Callable[[Mapping[str, Array]], list[Array]]
    who: str


def load_reference(path: Path, threads: int, forms: Sequence[OutputForm | None]) -> Reference:
    """onnxruntime's session on the CPU, where that is installed; else the reference evaluator of the onnx package.

    ``forms`` are those in which the model gives its outputs; here they are numbers."""
    who = "onnxruntime" if onnxruntime_installed() else "onnx's reference evaluator"
    try:
        run = (onnxruntime_session(str(path), threads) if onnxruntime_installed() else onnx_evaluator(str(path))).run
    except Exception as error:  # whatever it is, it is not ours
        raise CheckError(f"{who} cannot load the model: {error}") from error

    def outputs(inputs: Mapping[str, Array]) -> list[Array]:
        try:
            return as_numbers(run(None, dict(inputs)), forms)
        except Exception as error:
            raise CheckError(f"{who} cannot run the model: {error}") from error

    return Reference(outputs, who)


@dataclass(frozen=True, slots=True)
class Checked:
    """The largest difference of any element from the reference, relative to the largest magnitude in its output; and,
    where it is too large to be rounding, the same of ours and of the reference's outputs from an evaluation in
    float64."""

    largest: float
    exact: tuple[float, float] | None = None


def check_outputs(
    path: Path, names: Sequence[str], outputs: Sequence[Array], inputs: Mapping[str, Array], reference: Reference
) -> Checked:
    """Compare outputs with those of a reference; where they differ, both with an evaluation in float64, which tells
    whose error that is.

    Raises ``CheckError`` for a difference beyond the tolerance, unless the reference is further from float64 than we.
    """
    expected = reference.run(inputs)
    try:
        return Checked(largest_error(names, outputs, expected, reference.who))
    except CheckError as error:
        problem = error
    try:
        exact = exact_outputs(onnx.load(path), inputs)
    except Exception as error:  # of onnx, or of the system
        raise CheckError(f"{problem}; whose error that is cannot be told: {error}") from error
    if any(a.shape != b.shape for a, b in zip(outputs, exact, strict=True)):
        raise problem
    ours, theirs = (_furthest(found, exact) for found in (outputs, expected))
    if not (ours <= theirs or all(distance(a, b) <= allowed_distance(a) for a, b in zip(outputs, exact, strict=True))):
        raise CheckError(
            f"{problem}. Beside float64 our largest error is {error_text(ours)}, that of {reference.who} "
            f"{error_text(theirs)}"
        )
    return Checked(_furthest(outputs, expected), (ours, theirs))


def _furthest(outputs: Sequence[Array], expected: Sequence[Array]) -> float:
    return max((distance(a, b) for a, b in zip(outputs, expected, strict=True)), default=0.0)


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
    if output.dtype.kind == expected.dtype.kind == "U" and output.shape == expected.shape:
        if wrong := np.count_nonzero(output != expected):
            raise CheckError(f"output {name} differs from {who}'s in {wrong} of {output.size} strings")
        return 0.0
    if output.shape != expected.shape or output.dtype != expected.dtype:
        ours, theirs = (f"{a.dtype}{list(a.shape)}" for a in (output, expected))
        raise CheckError(f"output {name} is {ours}, but {theirs} by {who}")
    error, tolerance = distance(output, expected), allowed_distance(output)
    if output.dtype.kind in "iub" and error:
        wrong = np.count_nonzero(output != expected)
        raise CheckError(f"output {name} differs from {who}'s in {wrong} of {output.size} elements")
    if not error <= tolerance:
        raise CheckError(
            f"output {name} differs from {who}'s by {error_text(error)} of its largest magnitude; "
            f"{error_text(tolerance)} is allowed"
        )
    return error

"""``loopwright compare model.onnx``: the first fused function whose output leaves a reference."""

from __future__ import annotations

import argparse
import json
import math
from dataclasses import asdict
from pathlib import Path

from .. import Comparison, Engine, ModelError, load
from ..artifact.section_file import is_section_file
from ..runtime.measure.compare import NARROW_TOLERANCE, TOLERANCE, Difference
from ..runtime.threads.default_threads import default_threads
from .program import add_program_options, add_threads_option, open_program

DIFFERS = 3
"""The exit code where a value is beyond the tolerance."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of ``compare``."""
    parser.description = (
        "Run a model by its fused functions, and compare each value that they leave with what onnxruntime, "
        "or else onnx's evaluator, computes for it. The exit code is 3 if one is beyond the tolerance."
    )
    parser.epilog = "example: loopwright compare model.onnx --input x=x.npy --tolerance 1e-5"
    add_program_options(parser)
    add_threads_option(parser)
    parser.add_argument(
        "--reference", type=Path, metavar="FILE", help="a model or a saved library (default: the model itself)"
    )
    default = f"of a value's largest magnitude; default {TOLERANCE:g}, {NARROW_TOLERANCE:g} for floats of 16 bits"
    parser.add_argument("--tolerance", type=_tolerance, help=default)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    program = open_program(arguments)
    if arguments.reference is None and not program.compiled:
        raise ModelError(f"{arguments.model} is a library: --reference gives the model that it was made of")
    reference = arguments.reference or arguments.model
    engine = Engine(program.library, threads=arguments.threads or default_threads())
    other = load(reference) if is_section_file(reference) else reference
    found = engine.compare(program.inputs, other, arguments.tolerance)
    print(json.dumps(_json(found), indent=2, ensure_ascii=False) if arguments.json else found)
    return 0 if found.first is None else DIFFERS


def _tolerance(text: str) -> float:
    try:
        tolerance = float(text)
    except ValueError:
        tolerance = -1.0
    if not 0 <= tolerance < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} should be a number, 0 or more")
    return tolerance


def _json(found: Comparison) -> dict[str, object]:
    first = _difference_json(found.first) if found.first is not None else None
    return asdict(found) | {"differences": [_difference_json(d) for d in found.differences], "first": first}


def _difference_json(difference: Difference) -> dict[str, object]:
    """The fields; null for numbers that are not finite, which JSON does not have."""
    fields = asdict(difference) | {"within": difference.within}
    return {k: None if isinstance(v, float) and not math.isfinite(v) else v for k, v in fields.items()}

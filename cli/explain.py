"""``loopwright explain model.onnx``: why each operator of a model is computed as it is."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from .. import Explanation, FusionReport, ModelError, explain, fusion_report
from ..artifact.section_file import is_section_file
from .fill_shapes import with_shapes
from .model_options import add_model_options, choices_of, saved_library


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of ``explain``."""
    parser.description = (
        "For each call of an ONNX model, or of a saved library: every implementation, the clauses of its "
        "condition and which of them fail, its priority, its recorded cost, and why the chosen one was chosen. A model "
        "is not compiled for that."
    )
    parser.epilog = "example: loopwright explain model.onnx --shape x=1,3,224,224"
    parser.add_argument("model", type=Path, help="the file of a model or of a library")
    add_model_options(parser)
    parser.add_argument(
        "--fusion",
        action="store_true",
        help="say instead which calls of a model become one function, and what keeps the others apart",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    report = _fusion(arguments) if arguments.fusion else _explanation(arguments)
    print(json.dumps(report.to_json(), indent=2, ensure_ascii=False) if arguments.json else report)
    return 0


def _explanation(arguments: argparse.Namespace) -> Explanation:
    library = saved_library(arguments)
    if library is not None:
        return explain(library)
    return with_shapes(
        arguments.model,
        dict(arguments.shape),
        lambda shapes: explain(arguments.model, arguments.target, shapes, **choices_of(arguments)),
    )


def _fusion(arguments: argparse.Namespace) -> FusionReport:
    if is_section_file(arguments.model):
        raise ModelError(f"{arguments.model} is a library, compiled already: give the model it was made of")
    return with_shapes(
        arguments.model,
        dict(arguments.shape),
        lambda shapes: fusion_report(arguments.model, shapes, arguments.target, **choices_of(arguments)),
    )

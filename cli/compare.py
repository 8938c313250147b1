"""``loopwright compare model.onnx``: the first fused function whose output leaves a reference."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from pathlib import Path

from .. import Comparison, Engine, ModelError, load
from ..runtime.compare import TOLERANCE
from ..runtime.section_file import is_section_file
from ..runtime.threads import default_threads
from .program import add_program_options, add_threads_option, open_program


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """The subcommand ``compare``."""
    parser = subparsers.add_parser(
        "compare",
        help="find where a model leaves a reference",
        description="Run a model by its fused functions, and compare each value that they leave with what onnxruntime, "
        "or else onnx's evaluator, computes for it. The exit code is 1 if one is beyond the tolerance.",
        epilog="example: loopwright compare model.onnx --input x=x.npy --tolerance 1e-5",
    )
    add_program_options(parser)
    add_threads_option(parser)
    parser.add_argument(
        "--reference", type=Path, metavar="FILE", help="a model or a saved library (default: the model itself)"
    )
    parser.add_argument("--tolerance", type=float, default=TOLERANCE, help=f"of a value's maximum; default {TOLERANCE}")
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
    return 0 if found.first is None else 1


def _json(found: Comparison) -> dict[str, object]:
    first = asdict(found.first) if found.first is not None else None
    return asdict(found) | {"first": first}

"""``loopwright compile model.onnx -o model.lwlib``: compile a model and keep it in a file."""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

from .. import ModelError
from ..runtime.section_file import is_section_file
from .model_options import add_model_options
from .program import compile_with_progress
from .report import make_console


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """The subcommand ``compile``."""
    parser = subparsers.add_parser(
        "compile",
        help="compile an ONNX model into a library file",
        description="Compile an ONNX model and save the library, which `loopwright run` and `loopwright.load` take "
        "without compiling anything.",
        epilog="example: loopwright compile model.onnx -o model.lwlib --shape x=1,3,224,224",
    )
    parser.add_argument("model", type=Path, help="the model's file")
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="FILE.lwlib", help="where the library goes")
    add_model_options(parser)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    if is_section_file(arguments.model):
        raise ModelError(f"{arguments.model} is a library, compiled already: give the model it was made of")
    start = time.perf_counter()
    library = compile_with_progress(arguments, dict(arguments.shape))
    library.save(arguments.output)
    seconds, size = time.perf_counter() - start, arguments.output.stat().st_size
    if arguments.json:
        facts = {"library": str(arguments.output), "bytes": size, "seconds": seconds}
        specs = {"inputs": [str(s) for s in library.inputs], "outputs": [str(s) for s in library.outputs]}
        print(json.dumps(facts | specs | {"functions": len(library.functions)}, indent=2, ensure_ascii=False))
        return 0
    make_console().print(
        f"{arguments.output}: {size / 2**20:.1f} MiB, {len(library.functions)} fused functions, in {seconds:.1f} s",
        markup=False,
        soft_wrap=True,
    )
    return 0

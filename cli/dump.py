"""``loopwright dump model.onnx --stage loop``: a model as text at a stage of its compilation."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from pathlib import Path

from .. import dump
from ..compiler.reports.dump import STAGES, StageText
from .fill_shapes import WantedShapes, with_shapes
from .model_options import add_model_options, choices_of, saved_library


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of ``dump``."""
    parser.description = (
        "Print a model behind the graph passes, or of its fused functions what they compute with the steps "
        "of their schedules (te) or in MLIR (linalg), the lowered loop nest, as it is or in MLIR (mlir), LLVM IR, or "
        "assembly. A saved library has loop, llvm and asm."
    )
    parser.epilog = "example: loopwright dump model.onnx --stage asm --function fused_softmax"
    parser.add_argument("model", type=Path, help="the file of a model or of a library")
    parser.add_argument("--stage", choices=STAGES, default="loop", help="default: loop")
    parser.add_argument("--function", metavar="NAME", help="of one fused function only, by its name or symbol")
    add_model_options(parser)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    library = saved_library(arguments)
    if library is not None:
        texts = dump(library, arguments.stage, arguments.function)
    else:
        texts = with_shapes(arguments.model, dict(arguments.shape), lambda shapes: _texts(arguments, shapes))
    if arguments.json:
        print(json.dumps([asdict(text) for text in texts], indent=2, ensure_ascii=False))
        return 0
    if len(texts) == 1:
        print(texts[0].text)
    elif arguments.stage in ("linalg", "mlir"):  # as mlir-opt --split-input-file reads it
        print("\n// -----\n\n".join(f"// {text.symbol}\n{text.text}\n" for text in texts), end="")
    else:
        print("\n".join(f"=== {text.symbol} ===\n{text.text}\n" for text in texts), end="")
    return 0


def _texts(arguments: argparse.Namespace, shapes: WantedShapes) -> list[StageText]:
    settings = arguments.stage, arguments.function, arguments.target, shapes
    return dump(arguments.model, *settings, **choices_of(arguments))

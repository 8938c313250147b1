"""``loopwright compile model.onnx -o model.lwlib``: compile a model and keep it in files."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from pathlib import Path

from .. import Library, ModelError, RuntimeArgumentError
from ..api.given_states import GivenStates
from ..artifact.section_file import is_section_file
from ..base.quantities import bytes_text, count_text, seconds_text
from ..codegen.export.names import c_function_name
from ..runtime.exports.export import Kind, Weights, shared_suffix
from .fill_shapes import with_shapes
from .model_options import add_model_options
from .output_file import check_output_file, write_text
from .program import compile_with_progress

LIBRARY = ".lwlib"
EXPORTS: dict[str, Kind] = {".o": "object", ".so": "shared", ".dylib": "shared", ".dll": "shared", ".ll": "llvm"}


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of ``compile``."""
    parser.description = (
        "Compile an ONNX model. What is written goes by the name of the output: .lwlib is a library, which "
        "`loopwright run` and `loopwright.load` take without compiling anything; .so, .o and .ll are code for programs "
        "of C, with a header beside it."
    )
    parser.epilog = "example: loopwright compile model.onnx -o model.lwlib --shape x=1,3,224,224"
    parser.add_argument("model", type=Path, help="the model's file")
    parser.add_argument(
        "-o", "--output", type=Path, required=True, metavar="FILE", help=".lwlib, .so (.dylib, .dll), .o or .ll"
    )
    parser.add_argument(
        "--weights", choices=("inside", "beside"), help="of .so and .o: inside the code (default), or in a file beside"
    )
    parser.add_argument(
        "--line-tables", action="store_true", help="let gdb and perf show the loop nests as the source of the code"
    )
    parser.add_argument(
        "--alternatives",
        action="store_true",
        help="of .lwlib: compile functions by all implementations that could serve, for engines to choose by records",
    )
    parser.add_argument(
        "--unfused",
        action="append",
        default=[],
        metavar="OPERATOR",
        help="leave the calls of an operator, such as nn.matmul, functions of their own, which tactics of Python can "
        "serve; repeatable",
    )
    parser.add_argument(
        "--state",
        action="append",
        default=[],
        metavar="OUTPUT=INPUT",
        help="of .lwlib: an output that is an input of the next run, which sessions of an engine keep in place, as "
        "present.0=past.0; repeatable; auto for the pairs that exporters' names tell of",
    )
    parser.add_argument("--timings", action="store_true", help="show what each stage of the compilation took")
    parser.add_argument("--flame-graph", type=Path, metavar="FILE", help="write what each stage took as a page of HTML")
    add_model_options(parser)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    if is_section_file(arguments.model):
        raise ModelError(f"{arguments.model} is a library, compiled already: give the model it was made of")
    state = _states(arguments.state)
    _check_output(arguments.output, arguments.weights, arguments.alternatives, state)
    if arguments.output.suffix == LIBRARY:  # exports make their folder
        check_output_file(arguments.output, "the library")
    check_output_file(arguments.flame_graph)
    start = time.perf_counter()
    options = arguments.line_tables, arguments.alternatives, arguments.unfused, state
    library = with_shapes(
        arguments.model, dict(arguments.shape), lambda shapes: compile_with_progress(arguments, shapes, *options)
    )
    files = _write(library, arguments.output, arguments.weights)
    seconds, count = time.perf_counter() - start, len(library.functions)
    if arguments.flame_graph and library.timings:
        write_text(arguments.flame_graph, library.timings.html)
    if arguments.json:
        facts = {"files": {str(path): path.stat().st_size for path in files}, "seconds": seconds, "functions": count}
        specs = {"inputs": [str(s) for s in library.inputs], "outputs": [str(s) for s in library.outputs]}
        timings = {"timings": library.timings.to_json()} if arguments.timings and library.timings else {}
        print(json.dumps(facts | specs | timings, indent=2, ensure_ascii=False))
        return 0
    written = ", ".join(f"{path} ({bytes_text(path.stat().st_size)})" for path in files)
    print(f"{written}: {count_text(count, 'fused function')}, in {seconds_text(seconds)}")
    for kind, tensors in (("input", library.inputs), ("output", library.outputs)):
        print("\n".join(f"{kind:<7} {spec}" for spec in tensors))
    if arguments.timings:
        print(f"\n{library.timings}")
    return 0


def _states(given: Sequence[str]) -> GivenStates:
    """What ``lw.compile`` takes as ``state``. Raises ``RuntimeArgumentError`` for a text that is no pair of names."""
    if not given:
        return None
    if list(given) == ["auto"]:
        return "auto"
    pairs = {}
    for text in given:
        output, equals, name = text.partition("=")
        if not (output and equals and name) or output in pairs:
            raise RuntimeArgumentError(
                f"--state takes OUTPUT=INPUT, each output once, or auto by itself, found {text!r} in {' '.join(given)}"
            )
        pairs[output] = name
    return pairs


def _check_output(output: Path, weights: Weights | None, alternatives: bool, state: GivenStates) -> None:
    """Raises ``RuntimeArgumentError`` for a name that says nothing of what to write, or that code cannot have."""
    suffix = output.suffix
    if suffix != LIBRARY and suffix not in EXPORTS:
        raise RuntimeArgumentError(f"the output {output} should end in {LIBRARY}, {', '.join(EXPORTS)}")
    if suffix == LIBRARY and weights is not None:
        raise RuntimeArgumentError(f"--weights is for {', '.join(EXPORTS)}; a library has them inside")
    if suffix in EXPORTS and alternatives:
        raise RuntimeArgumentError(
            f"--alternatives is for {LIBRARY}, where engines choose; {suffix} is code of one choice"
        )
    if suffix in EXPORTS and state is not None:
        raise RuntimeArgumentError(f"--state is for {LIBRARY}: code in {suffix} keeps none from run to run yet")
    if suffix in EXPORTS and (name := c_function_name(output.stem)) != output.stem:
        raise RuntimeArgumentError(
            f"functions of C have the name of the output, and {output.stem!r} is none that they can have: take "
            f"{output.with_name(name + suffix)}"
        )


def _write(library: Library, output: Path, weights: Weights | None) -> Sequence[Path]:
    """The files that were written, the code or library first."""
    kind = EXPORTS.get(output.suffix)
    if kind is None:
        library.save(output)
        return [output]
    if kind == "shared" and output.suffix != (suffix := shared_suffix(library.model.target)):
        raise RuntimeArgumentError(
            f"shared libraries of {library.model.target.triple} end in {suffix}: {output} does not"
        )
    made = library.export(output.parent, kind, output.stem, weights)
    return [path for path in (made.code, made.header, made.weights, *made.sources) if path is not None]

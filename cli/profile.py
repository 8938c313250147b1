"""``loopwright profile model.onnx``: where the time of a model goes."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from .. import Engine
from ..runtime.threads.default_threads import default_threads
from .output_file import check_output_file, write_text
from .program import add_program_options, add_threads_option, open_program


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of ``profile``."""
    parser.description = (
        "Measure each fused function of a model beside what the machine could do: time, share, GFLOP/s, "
        "GB/s, the fraction of the roofline, and the nodes of the model that it computes."
    )
    parser.epilog = "example: loopwright profile model.onnx --threads 1 --svg profile.svg --trace profile.json"
    add_program_options(parser)
    add_threads_option(parser)
    parser.add_argument("--trace", type=Path, metavar="FILE.json", help="write a trace for Chrome or Perfetto")
    parser.add_argument("--svg", type=Path, metavar="FILE.svg", help="write a bar chart")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    for path in (arguments.trace, arguments.svg):
        check_output_file(path)
    program = open_program(arguments)
    engine = Engine(program.library, threads=arguments.threads or default_threads())
    profile = engine.profile(program.inputs)
    for path, text in ((arguments.trace, profile.chrome_trace()), (arguments.svg, profile.svg())):
        if path is not None:
            write_text(path, text)
    print(json.dumps(profile.to_json(), indent=2, ensure_ascii=False) if arguments.json else profile)
    return 0

"""The options of subcommands that take a model: what it is compiled for, and how."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import get_args

from .. import Library, ModelError, RuntimeArgumentError, load
from ..codegen.options import Arithmetic
from ..runtime.section_file import is_section_file

ADVICE = "\n(on the command line: --shape NAME=1,3,224,224)"


def add_model_options(parser: argparse.ArgumentParser) -> None:
    """``--shape``, ``--target``, ``--records`` and ``--arithmetic``."""
    parser.add_argument(
        "--shape",
        action="append",
        default=[],
        type=_shape,
        metavar="NAME=1,3,224,224",
        help="the shape of an input whose extents the model leaves open, repeatable",
    )
    target = 'as in "native", which is the default, "x86-64-v3", "llvm -mcpu=… -mattr=…"'
    parser.add_argument("--target", help=target)
    parser.add_argument("--records", type=Path, metavar="FILE.jsonl", help="tuning records that choices go by")
    parser.add_argument(
        "--arithmetic",
        choices=get_args(Arithmetic),
        help="direct: only the products of the definitions, so that outliers, NaN and infinities reach no further than "
        "there; fast, the default: also fewer others, as of Winograd and Strassen",
    )


def saved_library(arguments: argparse.Namespace) -> Library | None:
    """The library that ``arguments.model`` is the file of, None for a model. Raises ``RuntimeArgumentError`` where
    options say how to compile it, which has been done."""
    if not is_section_file(arguments.model):
        return None
    for name in ("target", "records", "arithmetic"):
        if getattr(arguments, name) is not None:
            raise RuntimeArgumentError(f"{arguments.model} is a library, compiled already: it takes no --{name}")
    return load(arguments.model)


def _shape(text: str) -> tuple[str, tuple[int, ...]]:
    name, equals, value = text.rpartition("=")
    extents = value.split(",") if value else []
    if not equals or not name or not all(extent.isdecimal() for extent in extents):
        raise argparse.ArgumentTypeError(f"{text!r} should be a name and extents, as in x=1,3,224,224")
    return name, tuple(map(int, extents))


def with_advice(error: ModelError) -> ModelError:
    """The error, with the option that gives shapes where it asks for ``shapes=``."""
    return ModelError(f"{error}{ADVICE if 'shapes=' in str(error) else ''}")

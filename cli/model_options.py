"""The options of subcommands that take a model: what it is compiled for, and how."""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import TypedDict, get_args

from .. import Library, ModelError, RuntimeArgumentError, dim, load
from ..artifact.options import Arithmetic
from ..artifact.section_file import is_section_file
from ..graph.types import GivenExtent, GivenShape, GivenShapes

OPEN = "?"
"""What stands for an extent that the model leaves open, and that is to stay so."""


class Choices(TypedDict):
    """Options by which implementations are chosen."""

    records: Path | None
    arithmetic: Arithmetic | None
    batch_invariant: bool
    expect: GivenShapes | None


def add_model_options(parser: argparse.ArgumentParser) -> None:
    """Add the options by which a model is compiled: ``--shape``, ``--expect``, ``--target``, ``--records``,
    ``--arithmetic`` and ``--batch-invariant``."""
    add_shape_option(parser)
    parser.add_argument(
        "--expect",
        action="append",
        default=[],
        type=_shape,
        metavar="NAME=1,3,640,640",
        help="a usual shape of an input whose extents stay open, repeatable: what layouts are planned for; ? for an "
        "extent that nothing is known of",
    )
    add_target_option(parser)
    parser.add_argument("--records", type=Path, metavar="FILE.jsonl", help="tuning records that choices go by")
    add_arithmetic_option(parser)
    parser.add_argument(
        "--batch-invariant",
        action="store_true",
        help="choose nothing by the batch, so that compilations for any batch give a sample the same bits",
    )


def add_shape_option(parser: argparse.ArgumentParser) -> None:
    """Add ``--shape NAME=EXTENTS``, which may be given several times, to a subcommand."""
    parser.add_argument(
        "--shape",
        action="append",
        default=[],
        type=_shape,
        metavar="NAME=1,3,224,224",
        help="the shape of an input, repeatable; ? for an extent that is to stay open, n:1..32:8 for one from 1 to 32 "
        "that is a multiple of 8. Where numbers are needed and none are given, usual ones are taken, and told",
    )


def add_target_option(parser: argparse.ArgumentParser) -> None:
    """Add ``--target``, the text of a target, which is None where it is not given."""
    target = 'as in "native", which is the default, "x86-64-v3", "llvm -mcpu=… -mattr=…"'
    parser.add_argument("--target", help=target)


def add_arithmetic_option(parser: argparse.ArgumentParser) -> None:
    """Add ``--arithmetic``, which is None where it is not given."""
    parser.add_argument(
        "--arithmetic",
        choices=get_args(Arithmetic),
        help="direct: only the products of the definitions, so that outliers, NaN and infinities reach no further than "
        "there; fast, the default: also fewer others, as of Winograd and Strassen",
    )


def saved_library(arguments: argparse.Namespace, runs: bool = False) -> Library | None:
    """The library that ``arguments.model`` is the file of, None for a model. Raises ``RuntimeArgumentError`` where
    options say how to compile it, which has been done; shapes may be those that it ``runs`` on."""
    if not is_section_file(arguments.model):
        return None
    for name in ("target", "records", "arithmetic", "batch_invariant", "expect", *["shape"] * (not runs)):
        if getattr(arguments, name) not in (None, False, []):
            option = name.replace("_", "-")
            raise RuntimeArgumentError(f"{arguments.model} is a library, compiled already: it takes no --{option}")
    return load(arguments.model)


def choices_of(arguments: argparse.Namespace) -> Choices:
    """The options that decide what is chosen, as the functions of the package take them."""
    return Choices(
        records=arguments.records,
        arithmetic=arguments.arithmetic,
        batch_invariant=arguments.batch_invariant,
        expect=dict(arguments.expect) or None,
    )


def _shape(text: str) -> tuple[str, GivenShape]:
    name, equals, value = text.rpartition("=")
    try:
        extents = tuple(map(_extent, value.split(","))) if value else ()
    except ModelError as error:
        raise argparse.ArgumentTypeError(f"{text!r}: {error}") from None
    except ValueError:
        equals = ""
    if not equals or not name:
        raise argparse.ArgumentTypeError(
            f"{text!r} should be a name and extents, as in x=1,3,224,224, or x={OPEN},3,224,224 for any batch, "
            "x=n:1..32:8,3,224,224 for one of 8, 16, 24 and 32"
        )
    return name, extents


_BOUNDS = re.compile(r"(?P<name>[^:]+):(?P<min>\d*)\.\.(?P<max>\d*)(:(?P<unit>\d+))?")


def _extent(text: str) -> GivenExtent:
    """A number, what stays open, or a dimension with bounds, of which either may be left out. Raises ``ValueError`` for
    another text, and ``ModelError`` for bounds that no number is within."""
    if text == OPEN:
        return None
    if (found := _BOUNDS.fullmatch(text)) is not None:
        high = int(found["max"]) if found["max"] else None
        return dim(found["name"], int(found["min"] or 0), high, int(found["unit"] or 1))
    if not text.isdecimal():
        raise ValueError(text)
    return int(text)

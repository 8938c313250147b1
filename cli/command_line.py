"""Parse the command line, and run the subcommand that it names.

A subcommand is a module in this folder with what `Subcommand` says. Only that of the subcommand at hand is imported,
since the compiler comes with it.
"""

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from io import TextIOWrapper
from pathlib import Path
from typing import Protocol, cast

from .. import __version__
from ..base.errors import LoopwrightError
from .command_parser import CommandParser
from .interrupt import INTERRUPTED, interrupts_delivered

SUBCOMMANDS = {
    "run": "compile an ONNX model and run it",
    "compile": "compile an ONNX model into a library, or for programs without Python",
    "bench": "measure how long calls of a model take",
    "profile": "tell where the time of a model goes",
    "compare": "find where a model leaves a reference",
    "dump": "print a model at a stage of its compilation",
    "explain": "say why a model is computed as it is",
    "explore": "write a page that shows how schedules become machine code",
    "tune": "search faster implementations for a model by measuring, and keep them as records",
    "records": "list, compare, prune or copy tuning records",
    "ops": "list the operators",
    "cache": "list, check or clear the cache of compiled code",
    "completion": "print a script by which a shell completes these commands",
}
"""What the help says of each module."""


class Subcommand(Protocol):
    """What a subcommand's module offers."""

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        """Describe the subcommand; the parser's default ``run`` is a function from the arguments to an exit code."""


def build_parser() -> CommandParser:
    """The parser of the whole command line. That of a subcommand gets its options when it parses, or is completed."""
    parser = CommandParser(prog="loopwright", description="A tensor compiler for CPUs.")
    parser.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    parser.set_defaults(run=None)
    subparsers = parser.add_subparsers(title="commands", metavar="command [options]")
    for name, meaning in SUBCOMMANDS.items():
        subparsers.add_parser(name, help=meaning, fill=_options_of(name))
    return parser


def _options_of(name: str) -> Callable[[argparse.ArgumentParser], None]:
    def fill(parser: argparse.ArgumentParser) -> None:
        cast(Subcommand, import_module(f".{name}", __package__)).add_options(parser)

    return fill


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    """The arguments; without a subcommand they ask for the help. A usage error, and help, end the process."""
    parser = build_parser()
    arguments = parser.parse_args(argv)
    if arguments.run is None:
        parser.print_help()
        parser.exit()
    return arguments


def prepare_output() -> None:
    """Let text be written whatever the output is: none at all, or one whose encoding lacks characters."""
    if sys.stdout is None:  # closed, as by `>&-`
        sys.stdout = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")


def run(arguments: argparse.Namespace) -> int:
    """The exit code of the subcommand; its output may be cut off, as by ``head``, and ctrl-c ends it."""
    try:
        with interrupts_delivered():
            exit_code: int = arguments.run(arguments)
        sys.stdout.flush()
    except LoopwrightError as error:
        print(f"loopwright: error: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:  # whoever read our output has seen enough
        _discard_output()
        return 1
    except OSError as error:
        if error.filename is not None:  # of a file; writing to a stream names none
            raise
        _discard_output()
        print(f"loopwright: error: the output cannot be written: {error.strerror}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return INTERRUPTED
    return exit_code


def _discard_output() -> None:
    """Nothing that is still to be written can be: Python would complain when it flushes the output at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)

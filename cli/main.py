"""The ``loopwright`` command: builds the parser out of the subcommands and runs the one that was named.

A subcommand is a module in this folder with the two functions of `Subcommand`; listing it in `SUBCOMMANDS` is all
that it takes to add one.
"""

import argparse
import os
import sys
from collections.abc import Sequence
from typing import Protocol

from .. import __version__
from ..ir.errors import LoopwrightError
from . import bench, cache, compare, compile, dump, explain, explore, ops, profile, run


class Subcommand(Protocol):
    """What a subcommand's module offers."""

    def add_parser(self, subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
        """Add a parser to `subparsers`; its default ``run`` is a function from the arguments to an exit code."""


SUBCOMMANDS: tuple[Subcommand, ...] = (run, compile, bench, profile, compare, dump, explain, explore, ops, cache)

INTERRUPTED = 130
"""What shells give for a program that ctrl-c ended."""


def build_parser() -> argparse.ArgumentParser:
    """The parser of the whole command line."""
    parser = argparse.ArgumentParser(prog="loopwright", description="A tensor compiler for CPUs.")
    parser.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    parser.set_defaults(run=None)
    if SUBCOMMANDS:
        subparsers = parser.add_subparsers(title="commands", metavar="command")
        for subcommand in SUBCOMMANDS:
            subcommand.add_parser(subparsers)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line `argv` (by default the process's own) and return the exit code.

    That is 0, or 1 for an error of ours, whose message goes to stderr, and 130 where the user interrupts; a usage error
    ends the process with 2.
    """
    parser = build_parser()
    arguments = parser.parse_args(argv)
    if arguments.run is None:
        parser.print_help()
        return 0
    try:
        exit_code: int = arguments.run(arguments)
        sys.stdout.flush()
    except LoopwrightError as error:
        print(f"{parser.prog}: error: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:  # whoever read our output has seen enough, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 1
    except KeyboardInterrupt:
        return INTERRUPTED
    return exit_code

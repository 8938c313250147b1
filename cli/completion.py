"""``loopwright completion bash``: a script that lets a shell complete commands, options, models and operators."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path

from .. import RuntimeArgumentError
from ..ops.definition.registry import all_ops
from .command_line import SUBCOMMANDS, build_parser
from .command_parser import CommandParser

SHELLS = ("bash", "zsh", "fish")
_MODELS = ("onnx", "lwlib")
_MODELS_BASH = "_loopwright_model_files"  # by "_files" the script knows that slashes and spaces matter
_PREAMBLE = f"""\
{_MODELS_BASH}() {{
  compgen -d -- "$1"
  compgen -f -X '!*.onnx' -- "$1"
  compgen -f -X '!*.lwlib' -- "$1"
  compgen -f -X '!*.py' -- "$1"
}}
"""
"""A function of bash, which has no completion by suffixes of its own. Python files are for ``explore``."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of ``completion``."""
    parser.description = (
        "Print a script for a shell that completes subcommands, options and their values, the files of models, and the "
        "names of operators."
    )
    parser.epilog = 'example: eval "$(loopwright completion bash)"'
    parser.add_argument("shell", choices=SHELLS, help="the shell that reads the script")
    parser.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    try:
        import shtab
    except ImportError:
        raise RuntimeArgumentError(
            "completion needs the package shtab, which is not installed: pip install 'loopwright[completion]'"
        ) from None
    parser = build_parser()
    for command, action in parser.filled_actions():
        command.description = SUBCOMMANDS.get(command.prog.rpartition(" ")[2])  # some shells show it beside the name
        _complete(command, action, shtab.FILE)
    print(shtab.complete(parser, arguments.shell, preamble=_PREAMBLE if arguments.shell == "bash" else ""))
    return 0


def _complete(command: CommandParser, action: argparse.Action, files: Mapping[str, object]) -> None:
    """Tell shtab what the value of an option is, where argparse does not know."""
    if action.dest in ("operators", "unfused"):
        action.choices = [op.name for op in all_ops()]
    elif action.dest == "model":
        suffixes = (*_MODELS, "py") if command.prog.endswith("explore") else _MODELS
        patterns = "|".join(f"*.{suffix}" for suffix in suffixes)
        fish = " ".join(f"(__fish_complete_suffix .{suffix})" for suffix in suffixes)
        action.complete = {"bash": _MODELS_BASH, "zsh": f"_files -g '({patterns})'", "fish": fish}  # type: ignore[attr-defined]
    elif action.type is Path:
        action.complete = files  # type: ignore[attr-defined]

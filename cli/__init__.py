"""The command line: `main` parses it and calls one subcommand."""

from .main import main

__all__ = ["main"]

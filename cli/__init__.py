"""The command line: `main` parses it and calls one subcommand."""

from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line ``argv`` (by default the process's own) and return the exit code.

    That is 0, or 1 for an error of ours, whose message goes to stderr, and 130 where the user interrupts; a usage error
    ends the process with 2.
    """
    from .interrupt import exits_silently

    with exits_silently():
        from .command_line import parse, prepare_output, run

        prepare_output()
        arguments = parse(argv)
    return run(arguments)


__all__ = ["main"]

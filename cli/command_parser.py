"""The parser of a command: filled in when it is needed, and with the usage of its own subcommand in every error."""

from __future__ import annotations

import argparse
import difflib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NoReturn

Fill = Callable[[argparse.ArgumentParser], None]


class CommandParser(argparse.ArgumentParser):
    """``fill`` adds the options of a subcommand before they are asked for."""

    def __init__(self, *, fill: Fill | None = None, **options: Any) -> None:
        super().__init__(**options)
        self._fill = fill

    def filled_actions(self) -> Iterator[tuple[CommandParser, argparse.Action]]:
        """All options and arguments, each with its parser, those of subcommands included."""
        self._add_options()
        for action in self._actions:
            yield self, action
            if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
                for parser in action.choices.values():
                    yield from parser.filled_actions()

    def _add_options(self) -> None:
        fill, self._fill = self._fill, None
        if fill is not None:
            fill(self)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> tuple[Any, list[str]]:
        """Parse all arguments, so that none are left to the parser above, whose error would show another usage."""
        self._add_options()
        found, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self._refuse(unknown)
        return found, unknown

    def _refuse(self, unknown: Sequence[str]) -> NoReturn:
        names = [text.partition("=")[0] for text in unknown if text.startswith("-")]
        known = [name for name in self._option_string_actions if name.startswith("--")]
        self.error(f"unrecognized arguments: {' '.join(unknown)}{_advice(names, known)}")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if isinstance(action, argparse._SubParsersAction) and value not in action.choices:  # noqa: SLF001
            known = list(action.choices)
            advice = _advice([value], known) or f"; there are {', '.join(known)}"
            thing = str(action.metavar).split()[0]
            raise argparse.ArgumentError(None, f"there is no {thing} {value!r}{advice}")
        super()._check_value(action, value)


def _advice(names: Iterable[str], known: Sequence[str]) -> str:
    close = dict.fromkeys(near for name in names for near in difflib.get_close_matches(name, known, n=1))
    return f"; did you mean {', '.join(close)}?" if close else ""

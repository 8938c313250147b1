"""What code of other authors raises that is called here, such as the compute of an operator: told with its name."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from .errors import LoopwrightError


@contextmanager
def naming_code(what: str, kind: type[LoopwrightError]) -> Iterator[None]:
    """Calls of ``what``, such as ``"the compute rows.fast of rows"``, in the block.

    An error of ours gets a note that names it. Any other is a mistake in that code: it is raised as one of ``kind``
    that says so, with the error as its cause.
    """
    try:
        yield
    except LoopwrightError as error:
        error.add_note(f"(in {what})")
        raise
    except Exception as error:
        raise kind(f"{what} raised {type(error).__name__}: {error}") from error

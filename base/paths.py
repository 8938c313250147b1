"""Paths of files, as callers give them."""

from __future__ import annotations

import os
from pathlib import Path

from .errors import RuntimeArgumentError


def as_path(given: object) -> Path:
    """The path that a text or a path-like object names. Raises ``RuntimeArgumentError`` for anything else."""
    try:
        return Path(os.fsdecode(given))  # type: ignore[arg-type]
    except TypeError:
        raise RuntimeArgumentError(f"a path is text or a pathlib.Path, found {given!r}") from None

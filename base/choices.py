"""Choices that callers make: among texts, as ``Literal`` types list them, of yes or no, and of counts."""

from __future__ import annotations

import sys
from typing import SupportsInt, TypeGuard, get_args

import numpy as np

from .errors import RuntimeArgumentError


def is_one_of(value: object, choices: object) -> bool:
    """Whether a value is text, and one of those of a ``Literal`` type. An array, which compares by its elements, is
    none."""
    return isinstance(value, str) and value in get_args(choices)


def check_flag(value: object, name: str) -> None:
    """Raises ``RuntimeArgumentError`` for what is neither True nor False, nor a number in its place."""
    if not isinstance(value, (bool, int)):
        raise RuntimeArgumentError(f"{name} should be True or False, found {value!r}")


def is_count(value: object, least: int = 0) -> TypeGuard[SupportsInt]:
    """Whether a value is a whole number of Python or numpy, and at least so large. True and False are none."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool) and bool(value >= least)


def check_count(value: object, name: str, least: int | None = None) -> None:
    """Raises ``RuntimeArgumentError`` for what is no whole number, or one below ``least``."""
    if not is_count(value, -sys.maxsize if least is None else least):
        bound = "" if least is None else f" of at least {least}"
        raise RuntimeArgumentError(f"{name} should be a whole number{bound}, found {value!r}")

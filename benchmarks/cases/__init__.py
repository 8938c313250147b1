"""The cases of ``kernels.py``: tables by kind, a module each with ``cases()``."""

from __future__ import annotations

import fnmatch

from . import (
    attention,
    convolution,
    detection,
    few_bits,
    halves,
    images,
    integers,
    matmul,
    movement,
    recurrent,
    rows,
    signals,
    trees,
)
from .case import Bar, Case, Work, work_of

__all__ = ["Bar", "Case", "Work", "all_cases", "chosen_cases", "work_of"]

_MODULES = (
    *(matmul, convolution, images, rows, movement, attention),
    *(recurrent, signals, trees, detection, integers, few_bits, halves),
)


def all_cases() -> list[Case]:
    return [case for module in _MODULES for case in module.cases()]


def chosen_cases(patterns: list[str]) -> list[Case]:
    """Those whose full name contains one of the patterns or matches it, all without patterns; with what they need."""
    every = {case.full_name: case for case in all_cases()}
    wanted = [
        name for name in every if not patterns or any(p in name or fnmatch.fnmatchcase(name, p) for p in patterns)
    ]
    needed = {n for case in map(every.get, wanted) for n in (case.overhead, case.against) if n}
    return [case for name, case in every.items() if name in needed or name in set(wanted)]

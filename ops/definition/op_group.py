"""The groups in which ``lw.nn`` shows its operators: the file of a family, or its folder, says its own as ``GROUP``."""

from __future__ import annotations

import sys
from collections.abc import Callable
from enum import StrEnum
from typing import Any

from ...base.errors import InternalError


class OpGroup(StrEnum):
    """The groups that documentation puts operators in, in the order in which they are shown."""

    ELEMENTWISE = "elementwise"
    REDUCTIONS = "reductions"
    PRODUCTS = "products"
    CONVOLUTIONS = "convolutions"
    POOLING = "pooling"
    NORMALISATION = "normalisation"
    SHAPES = "shapes"
    PARTS = "parts"
    IMAGES = "images"
    SIGNALS = "signals"
    TREES = "trees"
    CREATION = "creation"
    CONTROL_FLOW = "control flow"
    EXTERN = "functions of Python"


def group_of(function: Callable[..., Any]) -> OpGroup:
    """The group of the family whose file defines a function that makes calls."""
    module = function.__module__
    for name in (module, module.rpartition(".")[0]):
        found = getattr(sys.modules[name], "GROUP", None)
        if isinstance(found, OpGroup):
            return found
    raise InternalError(f"{module} has no GROUP, though lw.nn offers {function.__name__}")

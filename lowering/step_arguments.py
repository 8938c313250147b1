"""What users give the primitives, as the fields of a step hold it: numbers and texts that JSON has."""

from __future__ import annotations

import math
from collections.abc import Callable
from numbers import Integral
from typing import Any, TypeVar

import numpy as np

from .index_map import index_map as parse_index_map
from .stage import Stage

T = TypeVar("T")


def plain(number: T) -> T | int:
    """An integer of numpy as Python's; steps are JSON. All else as it is: the step judges it."""
    return int(number) if isinstance(number, Integral) and not isinstance(number, bool) else number


def map_text(index_map: T | Callable[..., Any], stage: Stage) -> T | str:
    """The text of an index map of the elements of a stage, if it is a function."""
    return parse_index_map(index_map, stage.tensors[0].ndim).text if callable(index_map) else index_map


def json_number(number: Any) -> Any:
    """A number of numpy as Python's, and one that is not finite, of which JSON has none, by its name."""
    python = number.item() if isinstance(number, np.generic) else number
    return str(python) if isinstance(python, float) and not math.isfinite(python) else python

"""Open dimensions with bounds: what ``lw.dim`` gives, for the shapes that a model is compiled for."""

from __future__ import annotations

import operator

from .dataclass import dataclass
from .errors import ModelError
from .quantities import bounds_text


@dataclass(frozen=True, slots=True, repr=False)
class BoundedDimension:
    """A dimension that each run chooses, within bounds: from ``min`` to ``max``, None if there is no largest, and a
    multiple of ``multiple_of``. Those of one name are one dimension."""

    name: str
    min: int = 0
    max: int | None = None
    multiple_of: int = 1

    def __str__(self) -> str:
        return f"{self.name}: {bounds_text(self.min, self.max, self.multiple_of)}"

    def __repr__(self) -> str:
        return f"lw.dim({self.name!r}, min={self.min}, max={self.max}, multiple_of={self.multiple_of})"


def dim(name: str, min: int = 0, max: int | None = None, multiple_of: int = 1) -> BoundedDimension:
    """An open dimension with bounds, for ``shapes=``: ``{"x": (lw.dim("n", min=1, max=32, multiple_of=8), 3)}``.

    Each run may choose it within the bounds, and is refused outside of them. What is known of it makes better code, and
    where all dimensions have a largest value, the memory of all runs is taken at once. Dimensions of one name are one,
    also in several inputs, and in those that the model declares by that name.

    Raises ``ModelError`` for bounds that no number is within.
    """
    low, unit = _number("min", min), _number("multiple_of", multiple_of)
    high = None if max is None else _number("max", max)
    if not isinstance(name, str) or not name:  # type: ignore[redundant-expr]
        raise ModelError(f"a dimension has a name, as in lw.dim('n', min=1), found {name!r}")
    if unit < 1:
        raise ModelError(f"dimension {name!r}: multiple_of is a number from 1 on, found {unit}")
    if low < 0 or (high is not None and high // unit * unit < low):
        raise ModelError(f"dimension {name!r}: no extent is within the bounds {bounds_text(low, high, unit)}")
    return BoundedDimension(name, low, high, unit)


def _number(what: str, value: object) -> int:
    if isinstance(value, bool):
        raise ModelError(f"{what} of a dimension is a whole number, found {value!r}")
    try:
        return operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise ModelError(f"{what} of a dimension is a whole number, found {value!r}") from None

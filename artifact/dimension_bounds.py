"""The bounds of an open dimension, as a compiled model has them, and the checks that each run makes of them."""

from __future__ import annotations

from ..base.dataclass import dataclass
from ..base.quantities import bounds_text
from .extents import Formula, at_most, multiple_of


@dataclass(frozen=True, slots=True)
class DimensionBounds:
    """A dimension is from ``low`` to ``high``, None if there is no largest value, and a multiple of ``unit``."""

    dim: str
    low: int
    high: int | None
    unit: int

    def __str__(self) -> str:
        return f"{self.dim}: {bounds_text(self.low, self.high, self.unit)}"

    @property
    def checks(self) -> tuple[Formula, ...]:
        """What must not be negative where the dimension is within its bounds, but for the least value."""
        high = () if self.high is None else (at_most(self.dim, self.high),)
        return (*high, *((multiple_of(self.dim, self.unit),) if self.unit > 1 else ()))

"""How code is generated: the options that a kernel's machine code depends on, besides its IR and target."""

from __future__ import annotations

from typing import Literal, get_args

from ..base.choices import check_flag, is_one_of
from ..base.dataclass import dataclass
from ..base.errors import TargetError

Precision = Literal["strict", "standard", "fast"]
Arithmetic = Literal["direct", "fast"]
"""Whether a result is made of the products that its definition has (``direct``), or may also be made of other ones
(``fast``), which are fewer, as those of Winograd and of Strassen."""


def arithmetic_of(precision: Precision, arithmetic: Arithmetic | None) -> Arithmetic:
    """The arithmetic that is asked for; None leaves it to the precision: ``direct`` if strict, else ``fast``.

    Raises ``TargetError`` for an unknown one, and for ``fast`` in strict precision, which keeps every rounding.
    """
    if arithmetic is None:
        return "direct" if precision == "strict" else "fast"
    if not is_one_of(arithmetic, Arithmetic):
        raise TargetError(f"there is no arithmetic {arithmetic!r}; there are {', '.join(get_args(Arithmetic))}")
    if precision == "strict" and arithmetic == "fast":
        raise TargetError(
            "precision='strict' keeps every product and rounding of the definition, and arithmetic='fast' replaces "
            "products by fewer others: leave arithmetic out, which is then 'direct', or take another precision"
        )
    return arithmetic


@dataclass(frozen=True, slots=True)
class CodegenOptions:
    """``precision``: ``strict`` keeps every rounding, and refuses schedules that fold float reductions in another order
    than their definitions; ``standard`` lets the schedule choose that order, and contracts ``a * b + c`` to an fma
    where the target has it; ``fast`` also multiplies by the reciprocals of constants instead of dividing. NaN,
    infinities and subnormals count in all three. Only models have their layouts planned, unless ``strict``.
    ``arithmetic`` is what ``arithmetic_of`` says, None what the precision implies: with ``fast``, products may be those
    of Winograd and of Strassen, whose error is a share of the largest number that is summed with others, of other
    positions or rows of a sample, too, and NaN or infinities reach these. ``opt_level`` is LLVM's, 0 to 3. ``cache``
    says whether objects are kept on disk. ``debug`` checks each access for bounds and each index division for 0, and
    fills new memory with ones; the caller's context then holds ``abi.CONTEXT_SLOTS`` slots. ``line_tables`` puts DWARF
    into the object, whose source is the loop nest.
    """

    precision: Precision = "standard"
    arithmetic: Arithmetic | None = None
    opt_level: int = 3
    cache: bool = True
    debug: bool = False
    line_tables: bool = False

    def __post_init__(self) -> None:
        if not is_one_of(self.precision, Precision):
            raise TargetError(f"there is no precision {self.precision!r}; there are {', '.join(get_args(Precision))}")
        for name in ("cache", "debug", "line_tables"):
            check_flag(getattr(self, name), name)
        object.__setattr__(self, "arithmetic", arithmetic_of(self.precision, self.arithmetic))

    @property
    def is_strict(self) -> bool:
        """Whether every rounding of the definitions is kept."""
        return self.precision == "strict"

    @property
    def is_direct(self) -> bool:
        """Whether results are made of the products of the definitions only."""
        return self.arithmetic == "direct"

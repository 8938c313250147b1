"""How code is generated: the options that a kernel's machine code depends on, besides its IR and target."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from ..ir.errors import TargetError

Precision = Literal["strict", "standard", "fast"]


@dataclass(frozen=True, slots=True)
class CodegenOptions:
    """``precision``: ``strict`` keeps every rounding, and refuses schedules that fold float reductions in another order
    than their definitions; ``standard`` lets the schedule choose that order, and contracts ``a * b + c`` to an fma
    where the target has it; ``fast`` also lets LLVM reassociate and use reciprocals. NaN, infinities and subnormals
    count in all three. Only models have their layouts planned, unless ``strict``, with the products of Winograd and of
    Strassen: their error is a share of the largest number that is summed with others, of other places or rows of a
    sample, too, and NaN or infinities reach these. ``opt_level`` is LLVM's, 0 to 3. ``cache`` says whether objects are
    kept on disk. ``debug`` checks each access for bounds and each index division for 0, and fills new memory with ones;
    the caller's context then holds ``abi.CONTEXT_SLOTS`` slots. ``line_tables`` puts DWARF into the object, whose
    source is the loop nest.
    """

    precision: Precision = "standard"
    opt_level: int = 3
    cache: bool = True
    debug: bool = False
    line_tables: bool = False

    def __post_init__(self) -> None:
        if self.precision not in get_args(Precision):
            raise TargetError(f"there is no precision {self.precision!r}; there are {', '.join(get_args(Precision))}")

    @property
    def fast_math(self) -> tuple[str, ...]:
        """The fast-math flags on float arithmetic."""
        return ("reassoc", "arcp", "contract") if self.precision == "fast" else ()

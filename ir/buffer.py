"""Buffers: typed, shaped views of memory. Several buffers with one ``data`` variable are views of one allocation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from ..base.brief import one_line
from ..base.dataclass import dataclass
from ..base.dtype import DType

if TYPE_CHECKING:
    from .expr import Expr, Var

Scope = Literal["global", "local", "register", "tile"]
"""Where a buffer lives: ``global`` is an argument or the heap, ``local`` the stack, ``register`` a small array whose
indices are all constant in the end, which LLVM keeps in registers; ``tile`` the registers that hold small matrices,
which ``tiles.py`` describes."""


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Buffer:
    """A view of memory, compared by identity.

    The address of element ``i`` is ``data + (elem_offset + sum(i[k] * strides[k])) * bytes of dtype``. Shape, strides
    and offset count elements of ``dtype`` and are ``index`` expressions; ``strides`` None means compact and row-major.
    ``alignment`` is what may be assumed of the address of element 0, in bytes. Buffers whose ``data`` differ never
    overlap where one of them is written.
    """

    name: str
    dtype: DType
    shape: tuple[Expr, ...]
    data: Var
    strides: tuple[Expr, ...] | None
    elem_offset: Expr
    alignment: int
    scope: Scope = "global"

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    @property
    def layout(self) -> tuple[Expr, ...]:
        """The expressions that say where elements lie: shape, strides if they are explicit, offset."""
        return (*self.shape, *(self.strides or ()), self.elem_offset)

    def __repr__(self) -> str:
        return one_line(f"Buffer({self.name}: {self.dtype}[{', '.join(map(str, self.shape))}])")

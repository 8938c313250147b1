"""The base class of the nodes of ``expr.py`` and ``tensor_expr.py``: immutable, interned, printed by ``printer.py``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any, ClassVar

from ..base.brief import one_line
from ..base.dataclass import dataclass
from ..base.dtype import DType
from ..base.intern import Interned
from .operand import Operand

if TYPE_CHECKING:
    from .expr import Expr, Var
    from .linear import Linear


@dataclass(frozen=True, slots=True, eq=False, repr=False, weakref_slot=True)
class ExprNode(Operand, metaclass=Interned):
    """The base class of all expression nodes. ``dtype`` is derived by each node from its operands.

    Some fields are not there until a function puts them there: ``normal_form`` until ``linear_of``; ``marks``, the
    kinds of nodes in it, and ``variables``, those in it, until the functions of ``contents`` are asked;
    ``simplest``, what ``simplify`` makes of it without facts, None for itself, until that.
    """

    interned: ClassVar[bool] = True
    __match_args__: ClassVar[tuple[str, ...]] = ()

    dtype: DType = field(init=False)
    normal_form: Linear = field(init=False)
    marks: int = field(init=False)
    variables: Mapping[Var, None] = field(init=False)
    simplest: Expr | None = field(init=False)

    def as_expr(self) -> Expr:
        return self  # type: ignore[return-value]

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), tuple(getattr(self, name) for name in self.__match_args__)

    def __copy__(self) -> ExprNode:
        return self

    def __str__(self) -> str:
        from .printer import expr_text  # the printer knows all nodes

        return expr_text(self)  # type: ignore[arg-type]

    def __repr__(self) -> str:
        return one_line(str(self))

    def _set_dtype(self, value: DType) -> None:
        object.__setattr__(self, "dtype", value)

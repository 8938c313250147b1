"""What only tensor expressions have: reads of tensors, axes and reductions. Lowering makes loads and loops of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from ..base.brief import one_line
from ..base.dataclass import dataclass
from ..base.dtype import DType
from .expr_node import ExprNode
from .operand import Operand

if TYPE_CHECKING:
    from .expr import Expr, Var


class TensorBase:
    """What a ``TensorRead`` reads: ``te.Tensor`` is the only subclass. Compared by identity."""

    __slots__ = ()
    name: str
    dtype: DType
    shape: tuple[Expr, ...]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TensorRead(ExprNode):
    """An element of a tensor, in the body of a compute; lowering turns it into a Load."""

    tensor: TensorBase
    indices: tuple[Expr, ...]

    def __post_init__(self) -> None:
        self._set_dtype(self.tensor.dtype)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Axis(Operand):
    """An axis of a compute: ``var`` runs over ``min … min + extent - 1``. Stands for its variable in expressions."""

    var: Var
    min: Expr
    extent: Expr
    kind: Literal["spatial", "reduce", "scan"]

    @property
    def name(self) -> str:
        """The name of the axis's variable, by which a schedule finds the loop over it."""
        return self.var.name

    def as_expr(self) -> Expr:
        return self.var

    def __str__(self) -> str:
        return self.var.name

    def __repr__(self) -> str:
        return one_line(f"Axis({self.var.name}: {self.kind}, {self.min} … +{self.extent})")


@dataclass(frozen=True, slots=True, eq=False)
class Combiner:
    """How a reduction folds tuples of values: ``lhs ⊕ rhs = results``, an associative and commutative operation.

    ``identity`` is the neutral element, one value an output; ``lhs`` and ``rhs`` are the variables that ``results``
    mention.
    """

    name: str
    lhs: tuple[Var, ...]
    rhs: tuple[Var, ...]
    results: tuple[Expr, ...]
    identity: tuple[Expr, ...]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Reduce(ExprNode):
    """Output number ``index`` of folding ``sources`` over ``axes`` (where ``condition`` holds, if there is one).

    ``lanes`` partial results side by side are folded by halves, or each with its neighbour, where they are several:
    te.compute takes such a reduction apart, so that no compute holds one.
    """

    combiner: Combiner
    sources: tuple[Expr, ...]
    axes: tuple[Axis, ...]
    condition: Expr | None
    index: int
    lanes: int = 1
    neighbours: bool = False

    def __post_init__(self) -> None:
        self._set_dtype(self.sources[self.index].dtype)

"""What computes of attention share: the attributes, what shapes say, which scores count."""

from __future__ import annotations

from typing import TypeAlias

from .... import te
from ....base.dataclass import dataclass
from ....base.dtype import BOOL
from ....graph.types import TensorType
from ....ir.constants import ZERO, const_int
from ....ir.expr import Expr
from ....ir.makers import as_index
from ....ir.operand import Operand
from ...definition.accumulate import widened
from ...definition.attrs import Attrs, attr, one_of


@dataclass(frozen=True)
class AttentionAttrs(Attrs):
    """The attributes of ``nn.attention``, which all of its implementations read."""

    scale: float = attr("the products of queries and keys are multiplied by it")
    causal: bool = attr("whether a query sees the keys up to its own position only", default=False)
    layout: str = attr(
        "order of the axes batch, head, sequence and size of head in all but the mask",
        default="BHSD",
        check=one_of("BHSD", "BSHD"),
    )
    key_layout: str = attr(
        "that of keys and values, if it is another one: a cache has the sequence outermost, along which it grows",
        default="",
        check=one_of("", "SBHD"),
    )

    @property
    def layout_of_keys(self) -> str:
        """The order of the axes of keys and values."""
        return self.key_layout or self.layout

    def place(self, batch: Operand, head: Operand, position: Operand, d: Operand) -> tuple[Operand, ...]:
        """The index of an element of a query or result."""
        return _placed(self.layout, batch, head, position, d)

    def place_key(self, batch: Operand, head: Operand, position: Operand, d: Operand) -> tuple[Operand, ...]:
        """The index of an element of a key or value."""
        return _placed(self.layout_of_keys, batch, head, position, d)


def _placed(layout: str, batch: Operand, head: Operand, position: Operand, d: Operand) -> tuple[Operand, ...]:
    named = {"B": batch, "H": head, "S": position, "D": d}
    return tuple(named[axis] for axis in layout)


@dataclass(frozen=True, slots=True, eq=False)
class Extents:
    """What shapes say: batches, heads, queries, keys, the size of a head in queries and keys, and that in values."""

    batch: Expr
    heads: Expr
    queries: Expr
    keys: Expr
    size: Expr
    value_size: Expr
    group: int
    """So many heads of queries share a head of keys and values."""


Shaped: TypeAlias = te.Tensor | TensorType


def extents(attrs: AttentionAttrs, query: Shaped, key: Shaped, value: Shaped) -> Extents:
    """The extents of a call whose types have been checked."""
    own, others = attrs.layout, attrs.layout_of_keys
    heads, shared = query.shape[own.index("H")], key.shape[others.index("H")]
    group = 1 if heads is shared else (const_int(heads) or 1) // (const_int(shared) or 1)
    positions = query.shape[own.index("S")], key.shape[others.index("S")]
    return Extents(query.shape[0], heads, *positions, query.shape[3], value.shape[3], group)


def seen(score: Expr, attrs: AttentionAttrs, mask: te.Tensor | None, at: tuple[Operand, ...]) -> Expr:
    """The score at a batch, head, query and key with what the mask adds; -inf where it says that it does not count.

    The sum with a number of the mask is rounded to the mask's dtype: under the lowest number all scores are the same.
    """
    hidden = te.min_value(score.dtype)
    if mask is not None:
        extents = mask.shape
        index = at[len(at) - len(extents) :]
        value = mask[tuple(ZERO if const_int(e) == 1 else as_index(i) for e, i in zip(extents, index, strict=True))]
        score = (
            te.select(value, score, hidden)
            if mask.dtype is BOOL
            else widened(te.cast(score + widened(value), mask.dtype))
        )
    _, _, query, key = (as_index(i) for i in at)
    return te.select(key <= query, score, hidden) if attrs.causal else score


def share(total: Expr) -> Expr:
    """What the sum of exponentials makes of one; 0 where nothing is seen."""
    zero, one = te.const(0, total.dtype), te.const(1, total.dtype)
    return te.select(total == zero, zero, one / total)

"""An einsum of two tensors that sums products of matrices becomes such a product, which has packed constants, panels
and attention to become.

    ibh,hnd->ibnd      = reshape(matmul(x, reshape(y)))
    bcxd,bcyd->bcxy    = matmul(x, transpose(y))
    bnij,jbnd->ibnd    = transpose(matmul(x, transpose(y)))

The letters of one operand that the result has last are columns, those of the other one before them rows, and what both
have and the result has not is summed over, in the order of the first operand, as by the definition. All others are
batches of matrices.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

from ...base.dataclass import dataclass
from ...base.errors import TypeInferenceError
from ...graph.node import Call, Function, Node, tensor_of
from ...graph.visit import rewrite
from ...ir.constants import ONE
from ...ir.expr import Expr
from ...ir.simplify import simplify
from ...ops.definition.registry import get_op
from ...ops.families.einsum import EinsumAttrs
from ...ops.families.matmul.matmul import matmul
from ...ops.families.reshape import reshape_to_open
from ...ops.families.transpose import transpose

EINSUM = get_op("einsum")


def einsum_products(function: Function) -> Function:
    """The function with products of matrices in place of the einsums that these can stand for."""
    body = rewrite(function.body, _as_product)
    return function if body is function.body else replace(function, body=body)


def _as_product(call: Node) -> Node | None:
    if not isinstance(call, Call) or call.op is not EINSUM or not tensor_of(call).dtype.is_float:
        return None
    roles = _roles(call.args, call.attrs)
    if roles is None:
        return None
    try:
        made = roles.product()
    except TypeInferenceError:  # extents that no tensor tells by themselves
        return None
    if not isinstance(made, Call) or made.type is not call.type:
        return None
    return replace(made, origin=call.origin, value=call.value)


@dataclass(frozen=True, slots=True, eq=False)
class _Roles:
    """The operands of a product with the letters of their axes, the left one first, and what the letters are."""

    operands: tuple[Node, Node]
    terms: tuple[str, str]
    result: str
    batch: str
    rows: str
    summed: str
    columns: str

    def product(self) -> Node:
        """The product, with its axes in the order of the result."""
        (left, right), extents = self.operands, self._extents()
        rows = (self.rows,) if self.batch else tuple(self.rows)  # which are as they come where all are of one matrix
        left = self._matrices(left, self.terms[0], (*rows, self.summed), extents)
        right = self._matrices(right, self.terms[1], (self.summed, self.columns), extents)
        made = matmul(left, right)
        letters = self.batch + self.rows + self.columns
        shaped = self._reshaped(made, [extents[letter] for letter in letters])
        return _transposed(shaped, letters, self.result)

    def _extents(self) -> dict[str, Expr]:
        """The extent of each letter."""
        pairs = zip(self.terms, self.operands, strict=True)
        return {k: e for term, x in pairs for k, e in zip(term, tensor_of(x).shape, strict=True)}

    def _matrices(self, x: Node, term: str, axes: Sequence[str], extents: dict[str, Expr]) -> Node:
        """An operand as matrices, each of whose axes are these letters in one. Of letters of the batch that it does not
        have, one matrix serves all, for which no axis is needed where they come first."""
        order = "".join((*(letter for letter in self.batch if letter in term), *axes))
        batch = [extents[letter] if letter in term else ONE for letter in self.batch]
        while batch and self.batch[-len(batch)] not in term:
            del batch[0]
        merged = [_product(extents[letter] for letter in letters) for letters in axes]
        return self._reshaped(_transposed(x, term, order), [*batch, *merged])

    def _reshaped(self, x: Node, shape: Sequence[Expr]) -> Node:
        same = len(shape) == tensor_of(x).ndim and all(a is b for a, b in zip(shape, tensor_of(x).shape, strict=True))
        return x if same else reshape_to_open(x, shape, (x, *self.operands))


def _product(extents: Iterable[Expr]) -> Expr:
    return simplify(math.prod(extents, start=ONE))


def _transposed(x: Node, term: str, order: str) -> Node:
    return x if term == order else transpose(x, [term.index(letter) for letter in order])


def _roles(operands: Sequence[Node], attrs: EinsumAttrs) -> _Roles | None:
    """What the letters of an einsum are; None for one that is no product of matrices."""
    terms, result = attrs.terms, attrs.result
    if len(terms) != 2 or any(len(set(term)) < len(term) for term in terms) or not _fit(operands, terms):
        return None
    summed = "".join(letter for letter in terms[0] if letter not in result)
    only = ["".join(k for k in result if k in terms[n] and k not in terms[1 - n]) for n in range(2)]
    if not summed or set(terms[1]) - set(result) != set(summed) or not all(only):
        return None
    right = max(range(2), key=lambda n: max(result.index(letter) for letter in only[n]))
    columns = _run_before(result, result.index(only[right][-1]) + 1, only[right])
    rows = _run_before(result, result.index(columns[0]), only[1 - right]) or only[1 - right]
    batch = "".join(letter for letter in result if letter not in rows + columns)
    left = 1 - right
    return _Roles((operands[left], operands[right]), (terms[left], terms[right]), result, batch, rows, summed, columns)


def _run_before(result: str, end: int, letters: str) -> str:
    """The letters of the result before an index that are all among these."""
    begin = end
    while begin > 0 and result[begin - 1] in letters:
        begin -= 1
    return result[begin:end]


def _fit(operands: Sequence[Node], terms: Sequence[str]) -> bool:
    """Whether each letter has one extent, so that none is of one element that stretches."""
    found: dict[str, Expr] = {}
    pairs = [p for x, term in zip(operands, terms, strict=True) for p in zip(term, tensor_of(x).shape, strict=True)]
    return all(found.setdefault(letter, extent) is extent for letter, extent in pairs)

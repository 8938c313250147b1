"""einsum: products of tensors, summed over the indices that the result does not have."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import reduce
from operator import mul

from ... import te
from ...base.dataclass import dataclass
from ...base.errors import TypeInferenceError
from ...graph.node import Call, Node, tensor_of
from ...graph.types import TensorType, Type
from ...ir.constants import ZERO, const_int
from ...ir.expr import Axis, Expr, ExprLike
from ...te.tensor import Tensors
from ..definition.accumulate import narrowed, widened
from ..definition.arguments import tensors_of
from ..definition.attrs import Attrs, attr
from ..definition.op_group import OpGroup
from ..definition.registry import OpPattern, register_op
from ..definition.relations import broadcast_shapes, same_dtype, tensor_argument
from ..definition.strategy import register_compute, register_reduce_schedule

GROUP = OpGroup.PRODUCTS


@dataclass(frozen=True)
class EinsumAttrs(Attrs):
    """The attributes of ``einsum``: its equation, taken apart."""

    terms: tuple[str, ...] = attr("for each argument, the letters of its axes")
    result: str = attr("the letters of the result's axes")


def _extents(types: Sequence[TensorType | te.Tensor], attrs: EinsumAttrs) -> dict[str, Expr]:
    """The extent of each letter; those of 1 stretch."""
    found: dict[str, Expr] = {}
    for kind, letters in zip(types, attrs.terms, strict=True):
        if len(letters) != len(kind.shape):
            raise TypeInferenceError(f"the term {letters!r} does not have a letter for each axis of {kind}")
        for letter, extent in zip(letters, kind.shape, strict=True):
            known = found.get(letter, extent)
            (found[letter],) = broadcast_shapes([(known,), (extent,)])
    return found


def _relation(types: Sequence[Type], attrs: EinsumAttrs) -> Type:
    tensors = [tensor_argument(t, f"x{k}") for k, t in enumerate(types)]
    same_dtype(tensors, [f"x{k}" for k in range(len(tensors))])
    if len(tensors) != len(attrs.terms):
        raise TypeInferenceError(f"the equation has {len(attrs.terms)} terms for {len(tensors)} tensors")
    extents = _extents(tensors, attrs)
    unknown = sorted(set(attrs.result) - set(extents))
    if unknown or len(set(attrs.result)) != len(attrs.result):
        raise TypeInferenceError(f"the result {attrs.result!r} must have letters of the terms, each once")
    return TensorType(tuple(extents[letter] for letter in attrs.result), tensors[0].dtype)


def _compute(attrs: EinsumAttrs, inputs: Tensors, result: Type) -> te.Tensor:
    kind = tensor_argument(result, "result")
    extents = _extents(inputs, attrs)
    summed = [te.reduce_axis((0, extents[k]), name=k) for k in extents if k not in attrs.result]

    def element(*i: Axis) -> Expr:
        at: dict[str, Axis] = dict(zip(attrs.result, i, strict=True))
        at |= {axis.name: axis for axis in summed}
        factors = [widened(_read(x, letters, at)) for x, letters in zip(inputs, attrs.terms, strict=True)]
        product = reduce(mul, factors)
        return te.sum(product, axis=summed) if summed else product

    return narrowed(te.compute(kind.shape, element, name="einsum"), kind.dtype, "einsum.narrow")


def _read(x: te.Tensor, letters: str, at: dict[str, Axis]) -> Expr:
    indices: list[ExprLike] = [
        ZERO if const_int(extent) == 1 else at[letter] for letter, extent in zip(letters, x.shape, strict=True)
    ]
    return x[tuple(indices)]


EINSUM = register_op(
    "einsum",
    "products of tensors, summed over the indices that the result does not have",
    [("x", "tensors of one dtype")],
    _relation,
    OpPattern.OUT_ELEMENTWISE_FUSABLE,
    EinsumAttrs,
    variadic=True,
)
register_compute(EINSUM, _compute)
register_reduce_schedule(EINSUM)

_TERM = re.compile(r"[A-Za-z]*(\.\.\.)?[A-Za-z]*\Z")
_SPARE = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def einsum(equation: str, tensors: Sequence[Node] | Node) -> Call:
    """``numpy.einsum``, with ``...`` for leading axes that broadcast; the result may be left out of the equation. A
    tuple of tensors stands for its members."""
    if not isinstance(equation, str):
        raise TypeInferenceError(f"einsum: the equation is text, as in 'ij,jk->ik', found {equation!r}")
    tensors = tensors_of("einsum", tensors)
    left, arrow, right = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    if len(terms) != len(tensors) or not all(_TERM.match(t) for t in (*terms, right)):
        raise TypeInferenceError(f"einsum: the equation {equation!r} does not fit {len(tensors)} tensors")
    letters = "".join(terms).replace(".", "")
    if not arrow:
        once = sorted({k for k in letters if letters.count(k) == 1})
        right = ("..." if "..." in left else "") + "".join(once)
    ranks = [tensor_of(x).ndim - len(t.replace("...", "")) for t, x in zip(terms, tensors, strict=True) if "..." in t]
    spare = [c for c in _SPARE if c not in letters][: max([0, *ranks])]
    filled = [_filled(t, tensor_of(x).ndim, spare) for t, x in zip(terms, tensors, strict=True)]
    attrs = EinsumAttrs(tuple(filled), right.replace("...", "".join(spare)))
    return EINSUM(*tensors, attrs=attrs)


def _filled(term: str, rank: int, spare: Sequence[str]) -> str:
    """The term with letters for its dots: the last ones, as broadcasting aligns them."""
    count = rank - len(term.replace("...", ""))
    return term.replace("...", "".join(spare[len(spare) - count :] if count > 0 else ()))

"""Scaled dot-product attention, of several heads: ``nn.attention``, and ``nn.masked_attention`` where a mask is given.

    scores[s, t] = scale · Σ query[s, d] · key[t, d] + mask[s, t]
    result[s, j] = Σ softmax(scores)[s, t] · value[t, j]

Source: Vaswani et al., Attention is all you need (2017). A query that is left no key, since its scores are all -inf,
gives 0, as in ONNX's reference and in PyTorch; one whose keys are all under the lowest finite number gives the mean of
the values, as softmax of equal numbers does. Half-precision scores are kept in float32, and rounded where a mask of
such numbers is added to them; not where it is of float32.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from .... import te
from ....base.dtype import BOOL, DType
from ....base.errors import TypeInferenceError
from ....base.target import Target
from ....graph.node import Call, Node, tensor_of
from ....graph.types import TensorType, Type
from ....ir.constants import const_int
from ....ir.expr import Axis, Expr
from ....te.tensor import Tensors
from ...definition.accumulate import accumulator, widened
from ...definition.arguments import flag, real
from ...definition.folds import lowest
from ...definition.registry import Op, OpPattern, register_op
from ...definition.relations import FLOAT_KINDS, broadcast_shapes, same_dtype, same_extent, tensor_argument
from ...definition.strategy import OpStrategy, register_strategy, schedule_default
from .attrs import AttentionAttrs, Extents, extents, seen, share
from .blocks import add_blocks
from .few_queries import add_few_queries

# 2. Type relation.


def _relation(types: Sequence[Type], attrs: AttentionAttrs) -> Type:
    names = ["query", "key", "value"]
    query, key, value = given = [tensor_argument(kind, name) for kind, name in zip(types[:3], names, strict=True)]
    same_dtype(given, names)
    if query.dtype.kind not in FLOAT_KINDS:
        raise TypeInferenceError(f"query, key and value must be of {', '.join(FLOAT_KINDS)}, found {query.dtype}")
    for kind, name in zip(given, names, strict=True):
        if kind.ndim != 4:
            layout = attrs.layout if name == "query" else attrs.layout_of_keys
            raise TypeInferenceError(f"{name} must have 4 axes, {layout}, found {kind}")
    own, others = attrs.layout.index, attrs.layout_of_keys.index
    _agree("batches", query.shape[0], key.shape[others("B")], "query", "key")
    _agree("sizes of head", query.shape[3], key.shape[3], "query", "key")
    for what, axis in (("batches", "B"), ("heads", "H"), ("positions", "S")):
        _agree(what, key.shape[others(axis)], value.shape[others(axis)], "key", "value")
    _check_groups(query.shape[own("H")], key.shape[others("H")])
    if len(types) == 4:
        _check_mask(tensor_argument(types[3], "mask"), extents(attrs, query, key, value), query.dtype)
    return TensorType((*query.shape[:3], value.shape[3]), query.dtype)


def _agree(what: str, m: Expr, n: Expr, left: str, right: str) -> None:
    """Extents must agree as far as both are known."""
    same_extent(m, n, f"{left} has {m} {what}, but {right} has {n}")


def _check_groups(heads: Expr, shared: Expr) -> None:
    known, groups = const_int(heads), const_int(shared)
    if heads is not shared and (known is None or groups is None or groups == 0 or known % groups):
        raise TypeInferenceError(f"the heads of query must be a multiple of those of key, found {heads} and {shared}")


def _check_mask(mask: TensorType, shape: Extents, kind: DType) -> None:
    if mask.dtype not in (BOOL, kind, accumulator(kind)):
        names = " or ".join(dict.fromkeys(map(str, (kind, accumulator(kind)))))
        raise TypeInferenceError(f"mask must be of bool, or of {names} as query or the scores are, found {mask.dtype}")
    scores = (shape.batch, shape.heads, shape.queries, shape.keys)
    both = broadcast_shapes([scores, mask.shape], ("the scores", "mask"))
    if len(both) != 4 or any(a is not b for a, b in zip(both, scores, strict=True)):
        raise TypeInferenceError(f"mask must broadcast to the scores {TensorType(scores, kind)}, found {mask}")


# 3. Registration.

_ARGUMENTS = [
    ("query", "[batch, heads, S, size]"),
    ("key", "[batch, heads, T, size]; or fewer heads, each of which serves as many of query as there are more"),
    ("value", "[batch, heads of key, T, size of the result's heads]"),
]
_MASK = ("mask", "broadcasts to [batch, heads, S, T]: numbers to add to the scores, or bools: which of them count")


def _register(name: str, description: str, arguments: list[tuple[str, str]]) -> Op:
    return register_op(
        name, description, arguments, _relation, OpPattern.OUT_ELEMENTWISE_FUSABLE, AttentionAttrs, support_level=10
    )


ATTENTION = _register(
    "nn.attention",
    "softmax(scale · query · keyᵀ) · value for each head; where a query sees no key, 0",
    _ARGUMENTS,
)
MASKED_ATTENTION = _register(
    "nn.masked_attention",
    "softmax(scale · query · keyᵀ + mask) · value for each head; where a query sees no key, 0",
    [*_ARGUMENTS, _MASK],
)

# 4. Compute.


def _compute(attrs: AttentionAttrs, inputs: Tensors, result: Type) -> te.Tensor:
    query, key, value = inputs[:3]
    mask = inputs[3] if len(inputs) == 4 else None
    shape, kind = extents(attrs, query, key, value), accumulator(query.dtype)
    rows = (shape.batch, shape.heads, shape.queries)
    d = te.reduce_axis((0, shape.size), name="d")

    def product(b: Axis, h: Axis, s: Axis, t: Axis) -> Expr:
        left, right = query[attrs.place(b, h, s, d)], key[attrs.place_key(b, h // shape.group, t, d)]
        return te.sum(widened(left) * widened(right), axis=d)

    products = te.compute((*rows, shape.keys), product, name="attention.products")
    scores = te.compute(
        products.shape, lambda *i: seen(products[i] * attrs.scale, attrs, mask, i), name="attention.scores"
    )
    t = te.reduce_axis((0, shape.keys), name="t")
    peak = te.compute(rows, lambda *i: te.max(scores[(*i, t)], axis=t), name="attention.peak")

    def weight(*i: Axis) -> Expr:
        return te.exp(scores[i] - te.maximum(peak[i[:3]], lowest(kind)))

    weights = te.compute(scores.shape, weight, name="attention.weights")
    total = te.compute(rows, lambda *i: te.sum(weights[(*i, t)], axis=t), name="attention.total")

    def mixed(b: Axis, h: Axis, s: Axis, j: Axis) -> Expr:
        return te.sum(weights[b, h, s, t] * widened(value[attrs.place_key(b, h // shape.group, t, j)]), axis=t)

    sums = te.compute((*rows, shape.value_size), mixed, name="attention.mixed")

    def element(*i: Axis) -> Expr:
        b, h, s, j = attrs.place(*i)
        return te.cast(sums[b, h, s, j] * share(total[b, h, s]), query.dtype)

    return te.compute(tensor_argument(result, "result").shape, element, name="attention")


# 5. Strategy.


def _strategy(attrs: AttentionAttrs, inputs: Sequence[Type], result: Type, target: Target) -> OpStrategy:
    strategy = OpStrategy()
    strategy.add_implementation(_compute, schedule_default, "attention.direct")
    add_blocks(strategy, attrs, inputs, target)
    add_few_queries(strategy, attrs, inputs, target)
    return strategy


for _op in (ATTENTION, MASKED_ATTENTION):
    register_strategy(_op)(_strategy)

# 6. The call.


def attention(
    query: Node,
    key: Node,
    value: Node,
    mask: Node | None = None,
    scale: float | None = None,
    causal: bool = False,
    layout: str = "BHSD",
    key_layout: str = "",
) -> Call:
    """softmax(scale · query · keyᵀ + mask) · value, for each batch and head; ``scale`` is by default 1 / √size of head.

    ``mask`` broadcasts to [batch, heads, queries, keys]: numbers, -inf for what is hidden, or bools, False for it.
    ``causal`` hides the keys after a query's own position. With the layout ``"BSHD"``, heads stand beside their size,
    as a projection to [batch, sequence, heads · size] gives them: a reshape, no transpose. ``key_layout`` is that of
    keys and values, if it is another one: ``"SBHD"``, as caches of them lie in memory.
    """
    kind = tensor_of(query)
    size = const_int(kind.shape[-1]) if kind.ndim else None
    if scale is None and not size:
        raise TypeInferenceError(f"nn.attention: the size of heads is not known, so give scale; query is {kind}")
    attrs = AttentionAttrs(
        1 / math.sqrt(size or 1) if scale is None else real(scale, "scale"), flag(causal, "causal"), layout, key_layout
    )
    return (
        ATTENTION(query, key, value, attrs=attrs)
        if mask is None
        else MASKED_ATTENTION(query, key, value, mask, attrs=attrs)
    )

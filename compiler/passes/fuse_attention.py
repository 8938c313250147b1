"""Attention as exporters write it becomes one operator: no tensor of queries × keys, no transposed copies of heads.

softmax(scale · q · kᵀ + mask) · v = attention(q, k, v, mask, scale)
    transpose(x, BSHD → BHSD) as q, k and v: attention(x…, layout="BSHD"), and the result is transposed
    transpose(x, SBHD → BHSD) as k and v, which are states: attention(q, x…, key_layout="SBHD"), q in either layout
    reshape(broadcast(x, BG1SD → BGRSD)) as k and v, heads repeated: attention(q, x…), which shares heads of x
    of rank 3, heads of few elements that are batches: attention of one head
    v · transpose(softmax(…)), rank 3, as of pixels and their channels: transpose(attention(q, k, transpose(v)))

The scale may be a factor or a divisor of q, of k, of both or of their product. Where all scores of a row are -inf,
softmax gives NaN and attention 0; see ``ops/attention``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TypeAlias, TypeGuard

from ...base.dataclass import dataclass
from ...graph.node import Call, Constant, Function, Node, tensor_of
from ...graph.visit import inputs, post_order, rewrite, users, with_inputs
from ...ir.constants import ONE, const_int
from ...ir.expr import Expr
from ...ops.definition.registry import Op, get_op
from ...ops.families.attention.attention import attention
from ...ops.families.reshape import expand_dims, squeeze
from ...ops.families.transpose import transpose
from .transposes import simplify_transpose

ADD, DIVIDE, MATMUL, MULTIPLY, SOFTMAX, TRANSPOSE = (
    get_op(name) for name in ("add", "divide", "nn.matmul", "multiply", "softmax", "transpose")
)
SWAPPED = (0, 2, 1, 3)
"""From [batch, sequence, head, size] to [batch, head, sequence, size], and back."""
TURNED = (0, 1, 3, 2)
"""From keys to the right factor of their product with queries."""
TURNED_BATCH = (0, 2, 1)
"""The same of rank 3."""
SMALL_HEAD = (32, 64)
"""So many elements of a key, and of a value, a head has at most where it is of rank 3: products of 256 are faster."""
FROM_CACHE = (1, 2, 0, 3)
"""From [sequence, batch, head, size], as a cache that grows has it."""
RESHAPE, EXPAND_DIMS = get_op("reshape"), get_op("expand_dims")
BROADCAST_TO = get_op("broadcast_to")
Users: TypeAlias = Mapping[Node, tuple[Node, ...]]


def fuse_attention(function: Function) -> Function:
    """The function with ``nn.attention`` for the products, scales, masks and softmax that it is made of."""
    body = rewrite(function.body, simplify_transpose)  # heads that are slices of one product are split off apart
    body = rewrite(_with_attention(body), simplify_transpose)
    return function if body is function.body else replace(function, body=body)


def _with_attention(root: Node) -> Node:
    used_by = users(root)
    done: dict[Node, Node] = {}
    for node in post_order(root):
        found = _find(node, used_by)
        rebuilt = with_inputs(node, tuple(done[n] for n in inputs(node)))
        done[node] = rebuilt if found is None else found.fused(done)
    return done[root]


@dataclass(frozen=True, slots=True)
class _Found:
    """softmax(scale · query · right + mask) · value, with nodes as they were before; or value · what is ``turned`` of
    that softmax. ``shared`` are the keys and the values before their heads were repeated, if they were."""

    query: Node
    right: Node
    value: Node
    shared: tuple[Node, Node] | None
    mask: Node | None
    scale: float
    calls: tuple[Call, ...]
    turned: bool = False

    def fused(self, done: Mapping[Node, Node]) -> Node:
        """The call of attention, for what has become of the nodes."""
        mask = None if self.mask is None else done[self.mask]
        if tensor_of(self.query).ndim == 3:
            return self._of_one_head(done, mask)
        query, swapped = _behind(self.query, SWAPPED, done)
        sides = (self.right, self.value) if self.shared is None else self.shared
        for order, key_layout in ((SWAPPED, ""), (FROM_CACHE, "SBHD")):
            turned = tuple(order[axis] for axis in TURNED) if self.shared is None else order
            (key, has_key), (value, has_value) = _behind(sides[0], turned, done), _behind(sides[1], order, done)
            if has_key and has_value and (swapped or key_layout):
                layout = "BSHD" if swapped else "BHSD"
                made = self._named(attention(query, key, value, mask, self.scale, layout=layout, key_layout=key_layout))
                return replace(transpose(made, SWAPPED) if swapped else made, value=self.calls[-1].value)
        key = transpose(done[sides[0]], TURNED) if self.shared is None else done[sides[0]]
        made = self._named(attention(done[self.query], key, done[sides[1]], mask, self.scale))
        return replace(made, value=self.calls[-1].value)

    def _of_one_head(self, done: Mapping[Node, Node], mask: Node | None) -> Node:
        key, value = transpose(done[self.right], TURNED_BATCH), done[self.value]
        if self.turned:
            value = transpose(value, TURNED_BATCH)
        if mask is not None and tensor_of(mask).ndim == 3:
            mask = expand_dims(mask, (1,))
        query, key, value = (expand_dims(x, (1,)) for x in (done[self.query], key, value))
        made = squeeze(self._named(attention(query, key, value, mask, self.scale)), (1,))
        return replace(transpose(made, TURNED_BATCH) if self.turned else made, value=self.calls[-1].value)

    def _named(self, call: Call) -> Call:
        return replace(call, origin=tuple(name for old in self.calls for name in old.origin))


def _behind(node: Node, axes: tuple[int, ...], done: Mapping[Node, Node]) -> tuple[Node, bool]:
    """What has become of a value, without a transpose by these axes; whether it was one."""
    if _is(node, TRANSPOSE) and node.attrs.axes == axes:
        return done[node.args[0]], True
    return done[node], False


def _find(node: Node, used_by: Users) -> _Found | None:
    if not isinstance(node, Call) or node.op is not MATMUL:
        return None
    weights, value = node.args
    if turned := (_is(value, TRANSPOSE) and value.attrs.axes == TURNED_BATCH and len(used_by[value]) == 1):
        weights, value = value.args[0], weights
    if not _is(weights, SOFTMAX) or weights.attrs.axes != (tensor_of(weights).ndim - 1,):
        return None
    if len(used_by[weights]) > 1 or len(used_by[weights.args[0]]) > 1:
        return None
    for scores, mask in _masked(weights.args[0]):
        product, scale = _unscaled(scores, used_by)
        if _is(product, MATMUL) and len(used_by[product]) == 1:
            (query, before), (right, factor) = (_unscaled(side) for side in product.args)
            shared = _shared_heads(right, value)
            found = _Found(query, right, value, shared, mask, scale * before * factor, (product, weights, node), turned)
            if _fits(found, product, weights):
                return found
    return None


def _masked(scores: Node) -> Iterator[tuple[Node, Node | None]]:
    """The ways to read scores as a sum with a mask, and without one."""
    if _is(scores, ADD):
        a, b = scores.args
        yield from ((a, b), (b, a))
    yield scores, None


def _unscaled(node: Node, used_by: Users | None = None) -> tuple[Node, float]:
    """What a value is without factors and divisors that are one number; with ``used_by``, if nothing else reads it."""
    scale = 1.0
    while isinstance(node, Call) and node.op in (MULTIPLY, DIVIDE) and (used_by is None or len(used_by[node]) == 1):
        numbers = [n for n in node.args if isinstance(n, Constant) and n.value.size == 1]
        if len(numbers) != 1 or (node.op is DIVIDE and node.args[1] is not numbers[0]):
            break
        (other,) = (n for n in node.args if n is not numbers[0])
        if other.type is not node.type:
            break
        number = float(numbers[0].value.reshape(()))
        if node.op is DIVIDE and number == 0:
            break
        scale = scale * number if node.op is MULTIPLY else scale / number
        node = other
    return node, scale


def _shared_heads(right: Node, value: Node) -> tuple[Node, Node] | None:
    """The keys and values whose heads are repeated, as often as each other."""
    if not _is(right, TRANSPOSE) or right.attrs.axes != TURNED:
        return None
    key, value_before = _before_repeating(right.args[0]), _before_repeating(value)
    if key is None or value_before is None:
        return None
    return (key, value_before) if tensor_of(key).shape[1] is tensor_of(value_before).shape[1] else None


def _before_repeating(node: Node) -> Node | None:
    """x of [batch, groups, positions, size], of which each head is repeated beside itself."""
    if not (_is(node, RESHAPE) and isinstance(wide := node.args[0], Call) and wide.op is BROADCAST_TO):
        return None
    one = wide.args[0]
    if not isinstance(one, Call) or one.op not in (RESHAPE, EXPAND_DIMS):
        return None
    kinds = [tensor_of(n) for n in (node, wide, one, one.args[0])]
    if [kind.ndim for kind in kinds] != [4, 5, 5, 4]:
        return None
    after, repeated, single, x = (kind.shape for kind in kinds)
    batch, groups, positions, size = x
    counts = const_int(groups), const_int(repeated[2]), const_int(after[1])
    if None in counts or math.prod(c for c in counts[:2] if c is not None) != counts[2]:
        return None
    shapes = (
        (single, (batch, groups, ONE, positions, size)),
        (repeated, (batch, groups, repeated[2], positions, size)),
        (after, (batch, after[1], positions, size)),
    )
    fits = all(a is b for found, wanted in shapes for a, b in zip(found, wanted, strict=True))
    return one.args[0] if fits else None


def _fits(found: _Found, product: Call, weights: Call) -> bool:
    """Whether all have the same batches and heads, and the mask leaves the scores their shape."""
    query, right, value = (tensor_of(n) for n in (found.query, found.right, found.value))
    if query.ndim not in (3, 4) or product.type is not weights.type or (found.turned and query.ndim == 4):
        return False
    if any(other.ndim != query.ndim for other in (right, value)):
        return False
    if query.ndim == 3 and not _has_small_heads(query.shape[2], value.shape[1 if found.turned else 2]):
        return False
    batches = (zip(query.shape[:-2], other.shape[:-2], strict=True) for other in (right, value))
    return all(a is b for pairs in batches for a, b in pairs)


def _has_small_heads(*sizes: Expr) -> bool:
    numbers = map(const_int, sizes)
    return all(number is not None and number <= most for number, most in zip(numbers, SMALL_HEAD, strict=True))


def _is(node: Node, op: Op) -> TypeGuard[Call]:
    return isinstance(node, Call) and node.op is op

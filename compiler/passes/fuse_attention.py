"""Attention as exporters write it becomes one operator: no tensor of queries × keys, no transposed copies of heads.

softmax(scale · q · kᵀ + mask) · v = attention(q, k, v, mask, scale)
    transpose(x, BSHD → BHSD) as q, k and v: attention(x…, layout="BSHD"), and the result is transposed

The scale may be a factor or a divisor of q, of k, of both or of their product. Where all scores of a row are -inf,
softmax gives NaN and attention 0; see ``ops/attention``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias, TypeGuard

from ...graph.node import Call, Constant, Function, Node, tensor_of
from ...graph.visit import inputs, post_order, rewrite, users, with_inputs
from ...ops.definition.registry import Op, get_op
from ...ops.families.attention.attention import attention
from ...ops.families.transpose import transpose
from .transposes import simplify_transpose

ADD, DIVIDE, MATMUL, MULTIPLY, SOFTMAX, TRANSPOSE = (
    get_op(name) for name in ("add", "divide", "nn.matmul", "multiply", "softmax", "transpose")
)
SWAPPED = (0, 2, 1, 3)
"""From [batch, sequence, head, size] to [batch, head, sequence, size], and back."""
TURNED = (0, 1, 3, 2)
"""From keys to the right factor of their product with queries."""
SWAPPED_TURNED = (0, 2, 3, 1)
"""Both."""
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
    """softmax(scale · query · right + mask) · value, with nodes as they were before."""

    query: Node
    right: Node
    value: Node
    mask: Node | None
    scale: float
    calls: tuple[Call, ...]

    def fused(self, done: Mapping[Node, Node]) -> Node:
        """The call of attention, for what has become of the nodes."""
        mask = None if self.mask is None else done[self.mask]
        sides = ((self.query, SWAPPED), (self.right, SWAPPED_TURNED), (self.value, SWAPPED))
        before = [done[n.args[0]] for n, axes in sides if _is(n, TRANSPOSE) and n.attrs.axes == axes]
        if len(before) == len(sides):
            query, key, value = before
            made = transpose(self._named(attention(query, key, value, mask, self.scale, layout="BSHD")), SWAPPED)
            return replace(made, value=self.calls[-1].value)
        key = transpose(done[self.right], TURNED)
        made = self._named(attention(done[self.query], key, done[self.value], mask, self.scale))
        return replace(made, value=self.calls[-1].value)

    def _named(self, call: Call) -> Call:
        return replace(call, origin=tuple(name for old in self.calls for name in old.origin))


def _find(node: Node, used_by: Users) -> _Found | None:
    if not isinstance(node, Call) or node.op is not MATMUL:
        return None
    weights, value = node.args
    if not _is(weights, SOFTMAX) or weights.attrs.axes != (3,):
        return None
    if len(used_by[weights]) > 1 or len(used_by[weights.args[0]]) > 1:
        return None
    for scores, mask in _masked(weights.args[0]):
        product, scale = _unscaled(scores, used_by)
        if _is(product, MATMUL) and len(used_by[product]) == 1:
            (query, before), (right, factor) = (_unscaled(side) for side in product.args)
            found = _Found(query, right, value, mask, scale * before * factor, (product, weights, node))
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


def _fits(found: _Found, product: Call, weights: Call) -> bool:
    """Whether all have the same batches and heads, and the mask leaves the scores their shape."""
    query, right, value = (tensor_of(n) for n in (found.query, found.right, found.value))
    if query.ndim != 4 or product.type is not weights.type:
        return False
    return all(
        other.ndim == 4 and all(a is b for a, b in zip(query.shape[:2], other.shape[:2], strict=True))
        for other in (right, value)
    )


def _is(node: Node, op: Op) -> TypeGuard[Call]:
    return isinstance(node, Call) and node.op is op

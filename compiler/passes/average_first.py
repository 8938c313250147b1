"""The mean of what a pointwise convolution gives is the convolution of a mean, which has fewer elements.

mean(Σ w[k, c] · x[c] + b[k]) = Σ w[k, c] · mean(x[c]) + b[k]

Means over 2×2 elements, as between the dense blocks of a DenseNet, leave a quarter of the products.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import TypeAlias, TypeGuard

from ...base.dataclass import dataclass
from ...graph.node import Call, Constant, Function, Node, tensor_of
from ...graph.visit import inputs, post_order, users, with_inputs
from ...ir.constants import ONE
from ...ops.definition.registry import get_op, op_of
from ...ops.families.conv.attrs import ConvAttrs
from ...ops.families.conv.conv import CONVS
from ...ops.families.pool import AVG_POOL
from ...ops.families.pool_windows import AvgPoolAttrs

ADD = get_op("add")
CONV_OPS = tuple(op for op, _ in CONVS.values())
FEWER = 2
"""How many times fewer elements a mean must leave."""
Users: TypeAlias = Mapping[Node, tuple[Node, ...]]


def average_first(function: Function) -> Function:
    """The function with average pools before the pointwise convolutions that nothing else reads."""
    used_by = users(function.body)
    done: dict[Node, Node] = {}
    for node in post_order(function.body):
        found = _find(node, used_by)
        done[node] = with_inputs(node, tuple(done[n] for n in inputs(node))) if found is None else found.turned(done)
    body = done[function.body]
    return function if body is function.body else replace(function, body=body)


@dataclass(frozen=True, slots=True)
class _Found:
    """A pool of a convolution, with what is added per channel between them, as nodes were before."""

    pool: Call
    conv: Call
    shifted: Call | None

    def turned(self, done: Mapping[Node, Node]) -> Call:
        """The convolution of the pool, for what has become of the nodes."""
        x, weight = (done[node] for node in self.conv.args)
        made = op_of(self.pool)(x, attrs=self.pool.attrs, origin=self.pool.origin)
        made = op_of(self.conv)(made, weight, attrs=self.conv.attrs, origin=self.conv.origin)
        if self.shifted is not None:
            made = ADD(made, self.shifted.args[1], origin=self.shifted.origin)
        return replace(made, value=self.pool.value)


def _find(node: Node, used_by: Users) -> _Found | None:
    if not isinstance(node, Call) or node.op is not AVG_POOL or not _leaves_fewer(node):
        return None
    read = node.args[0]
    shifted = read if _is_shifted(read) and _weights_sum_to_one(node.attrs) else None
    conv = read if shifted is None else shifted.args[0]
    alone = all(len(used_by[between]) == 1 for between in (read, conv))
    return _Found(node, conv, shifted) if _is_pointwise(conv) and alone else None


def _leaves_fewer(pool: Call) -> bool:
    before, after = (tensor_of(node).static_shape for node in (pool.args[0], pool))
    plain = pool.attrs.layout in ("", str(pool.attrs.primal))
    return plain and before is not None and after is not None and FEWER * math.prod(after) <= math.prod(before)


def _weights_sum_to_one(attrs: AvgPoolAttrs) -> bool:
    """Whether a constant is its own mean: padding that counts as zeros draws it towards them."""
    return not attrs.count_include_pad or not any(attrs.padding)


def _is_shifted(node: Node) -> TypeGuard[Call]:
    """Whether a constant per channel is added to a call."""
    if not isinstance(node, Call) or node.op is not ADD or not isinstance(node.args[1], Constant):
        return False
    shape, rank = tensor_of(node.args[1]).shape, tensor_of(node).ndim
    per_channel = all(extent is ONE for axis, extent in enumerate(shape, rank - len(shape)) if axis != 1)
    return per_channel and node.args[0].type is node.type


def _is_pointwise(node: Node) -> TypeGuard[Call]:
    """Whether each element of a call's result is a sum over the channels of one element of x."""
    if not isinstance(node, Call) or node.op not in CONV_OPS:
        return False
    attrs: ConvAttrs = node.attrs
    window = attrs.kernel.extents(tensor_of(node.args[1]).shape)
    steady = not any(attrs.padding) and all(step == 1 for step in attrs.strides)
    single = all(extent is ONE for axis, extent in window.items() if axis not in "OI")
    plain = attrs.data.text == attrs.out.text and attrs.data.text.startswith("NC") and not attrs.data.is_blocked
    return steady and single and plain and tensor_of(node.args[0]).dtype is tensor_of(node).dtype

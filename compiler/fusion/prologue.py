"""What is computed as a complex operator reads it: reshapes and transposes that only move whole rows, such as a channel
shuffle before a depthwise convolution. A row is then read from where it lies, instead of being copied first. And what
is elementwise before a pool whose windows do not overlap, so that nothing is computed twice. A pad by a zero point
before a depthwise convolution of bytes, which copies its rows once in any case, is that copy.
"""

from __future__ import annotations

from ...graph.node import Call, Node, tensor_of
from ...ops.definition.accumulate import is_byte
from ...ops.definition.registry import get_op, op_of
from ...ops.families.pad import PAD
from ...ops.families.pool import AVG_POOL, LP_POOL, MAX_POOL

RESHAPE, TRANSPOSE = get_op("reshape"), get_op("transpose")
POOLS = (AVG_POOL, LP_POOL, MAX_POOL)


def may_precede(node: Call, sink: Call, anchor: Call) -> bool:
    """Whether a call that only ``sink`` reads can be computed in the function of ``anchor``, of which the sink is part:
    it is the anchor's first operand, or moves rows for it as the node does."""
    rank = op_of(anchor).axes_of_rows(anchor)
    padded = sink is anchor and _pads_bytes(node)
    if rank is None or not (padded or _moves_rows(node, rank)):
        return False
    if sink is anchor:
        return anchor.args[0] is node and all(other is not node for other in anchor.args[1:])
    return _moves_rows(sink, rank)


def _moves_rows(node: Node, rank: int) -> bool:
    """Whether each row of a call's result, ``rank`` axes long, is a row of its argument."""
    if not isinstance(node, Call) or node.op not in (RESHAPE, TRANSPOSE):
        return False
    before, after = tensor_of(node.args[0]), tensor_of(node)
    if min(before.ndim, after.ndim) < rank:
        return False
    if node.op is TRANSPOSE:
        return bool(node.attrs.axes[-rank:] == tuple(range(after.ndim))[-rank:])
    return all(a is b for a, b in zip(before.shape[-rank:], after.shape[-rank:], strict=True))


def _pads_bytes(node: Call) -> bool:
    """Whether a call adds a constant around bytes."""
    return node.op is PAD and node.attrs.mode == "constant" and is_byte(tensor_of(node).dtype)


def reads_once(call: Call) -> bool:
    """Whether a call is a pool that reads no element of its operand twice."""
    if call.op not in POOLS:
        return False
    attrs = call.attrs
    windows = zip(attrs.strides, attrs.window, attrs.dilation, strict=True)
    return all(step > (extent - 1) * spread for step, extent, spread in windows)

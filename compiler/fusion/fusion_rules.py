"""Says when calls may share a function, by the patterns of their operators, and why others may not.

A call may join its post-dominator, the *sink*, with all calls on the paths between them:

  - a complex operator (``OUT_ELEMENTWISE_FUSABLE``) with elementwise and broadcasting ones, if all results have its
    result's shape, and elements no wider: they are its *epilogue*, computed tile by tile as its schedule goes;
  - a reduction with elementwise and broadcasting ones, if all results have its result's shape;
  - elementwise, broadcasting and injective ones with each other, and with a reduction: the chain ends there;
  - elementwise and broadcasting ones with a pool that reads each element once;
  - what dequantizes or casts an operand of an epilogue, of its shape, with that.

So there is at most one complex operator or reduction in a function. An opaque operator is a function of its own, and
operands of a complex one stay outside its function, for its schedule reads them many times, or packs them first; but
what only moves the rows that it reads may join it (``prologue.py``).

A concatenation of many or short pieces stays out of the function of what moves or sums its elements, and so does a
transpose that turns rows (``written_first.py``).
A reshape to open extents stays out of the function of a change of layout. By itself it needs no code; in that function
each position of its result would be found by divisions that only a run can do, and no tile could be written as it lies.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from ...graph.node import Call, tensor_of
from ...graph.types import TensorType, Type
from ...ir.constants import const_int
from ...ops.definition.memory_view import RunsOfResult
from ...ops.definition.registry import OpPattern, op_of
from ...ops.families.cast import CAST
from ...ops.families.layout_transform import LAYOUT_TRANSFORM
from ...ops.families.quantize import DEQUANTIZE
from ...ops.families.reshape import RESHAPE
from .prologue import reads_once
from .written_first import why_written_first

MAX_CALLS = 48
"""Most calls in one function: bounds the depth of expressions and the time to compile them."""
_WORDS = {
    OpPattern.ELEMENTWISE: "elementwise",
    OpPattern.BROADCAST: "broadcasting",
    OpPattern.INJECTIVE: "injective",
    OpPattern.COMM_REDUCE: "a reduction",
    OpPattern.OUT_ELEMENTWISE_FUSABLE: "complex",
    OpPattern.TUPLE: "a tuple operator",
    OpPattern.OPAQUE: "opaque",
}


def pattern_of(call: Call) -> OpPattern:
    """The pattern of the operator; but what only puts values that are computed side by side needs no code at all, if
    these are written where they belong: it stays by itself."""
    return OpPattern.OPAQUE if is_assembled(call) else op_of(call).pattern


def is_assembled(call: Call) -> bool:
    """Whether the result is the results of other calls, one after the other in memory."""
    computed = len(dict.fromkeys(a for a in call.args if isinstance(a, Call))) == len(call.args) > 1
    return computed and isinstance(op_of(call).memory_view(call), RunsOfResult)


def obstacle(
    node: Call, between: Sequence[Call], sink: Call, anchor_of: Callable[[Call], Call], size: int
) -> str | None:
    """The rule that keeps a call from joining its sink, in words; None if nothing does.

    ``anchor_of`` gives the call of highest pattern in the function that a call belongs to by now; ``size`` is the
    number of calls that would be in one function, or one beyond ``MAX_CALLS``.
    """
    if size > MAX_CALLS:
        return f"more than {MAX_CALLS} calls would be in one function"
    anchor = anchor_of(node)
    if any(map(_is_open_reshape, (*between, sink))) and _changes_layout(node):
        return (
            f"{LAYOUT_TRANSFORM.name} writes tiles as they lie, and a reshape to open extents needs no code by itself"
        )
    if pattern_of(anchor) > OpPattern.INJECTIVE:
        return _not_an_epilogue(anchor, (*between, sink), anchor_of)
    for call in between:
        if pattern_of(anchor_of(call)) > OpPattern.INJECTIVE:
            where = f"on a path from {node.op.name} to {sink.op.name}, where its results meet"
            return f"{_membership(call, anchor_of)}, and {where}"
    into = anchor_of(sink)
    if (why := why_written_first(node, into)) is not None:
        return why
    if pattern_of(into) <= OpPattern.COMM_REDUCE:
        return None
    if into is sink and reads_once(sink) and pattern_of(anchor) <= OpPattern.BROADCAST:
        return None
    if into is not sink:
        if _converts_for(node, between, into):
            return None
        return f"{_membership(sink, anchor_of)}: its function takes in nothing else"
    return alone(sink) if pattern_of(sink) >= OpPattern.TUPLE else f"{describe(sink)}: its operands stay outside"


def _is_open_reshape(call: Call) -> bool:
    return call.op is RESHAPE and any(const_int(extent) is None for extent in tensor_of(call).shape)


def _changes_layout(call: Call) -> bool:
    """Whether a call is a change of layout, or computed from one position by position."""
    seen: dict[Call, None] = {}
    waiting = [call]
    while waiting:
        found = waiting.pop()
        if found.op is LAYOUT_TRANSFORM:
            return True
        if found not in seen and pattern_of(found) <= OpPattern.BROADCAST:
            waiting += [argument for argument in found.args if isinstance(argument, Call)]
        seen[found] = None
    return False


def _converts_for(node: Call, between: Sequence[Call], anchor: Call) -> bool:
    """Whether a call only converts what an epilogue reads at its own places, as it computes them."""
    direct = not between and anchor not in node.args
    return direct and node.op in (CAST, DEQUANTIZE) and _same_shape(node.type, anchor.type, no_wider=True)


def asked_alone(calls: Sequence[Call], unfused: Collection[str]) -> str | None:
    """What is said where one of these calls is of an operator that was asked to be fused with nothing."""
    name = next((call.op.name for call in calls if call.op.name in unfused), None)
    return None if name is None else f"{name} was asked to be a function of its own"


def _not_an_epilogue(anchor: Call, followers: Sequence[Call], anchor_of: Callable[[Call], Call]) -> str | None:
    """Why what follows cannot be computed as the results of a complex operator or a reduction come."""
    complex_one = pattern_of(anchor) is OpPattern.OUT_ELEMENTWISE_FUSABLE
    shape = "its shape, with elements no wider" if complex_one else "its shape"
    takes = f"its function takes in elementwise and broadcasting operators of {shape}"
    for call in followers:
        if pattern_of(call) >= OpPattern.TUPLE:
            return alone(call)
        if pattern_of(anchor_of(call)) > OpPattern.INJECTIVE:
            return f"{describe(anchor)}, and {_membership(call, anchor_of)}: no function has two such"
        if pattern_of(anchor_of(call)) > OpPattern.BROADCAST:
            return f"{describe(anchor)}: {takes}, and {_membership(call, anchor_of)}"
        if not _same_shape(call.type, anchor.type, no_wider=complex_one):
            return f"{describe(anchor)}: {takes}, {anchor.type}, and {call.op.name} gives {call.type}"
    return None


def _membership(call: Call, anchor_of: Callable[[Call], Call]) -> str:
    """What is said of a call that is complex, a reduction or injective, or is fused with one that is."""
    anchor = anchor_of(call)
    return (
        describe(call)
        if anchor is call
        else f"{call.op.name} is fused with {anchor.op.name}, which is {_WORDS[pattern_of(anchor)]}"
    )


def describe(call: Call) -> str:
    """What is said of a call's pattern, as ``nn.conv2d is complex``."""
    return f"{call.op.name} is {_WORDS[pattern_of(call)]}"


def alone(call: Call) -> str:
    """What is said of an operator that is fused with nothing."""
    if is_assembled(call):
        return f"{call.op.name} needs no code: what it is given is written side by side in memory"
    return f"{describe(call)}: it is a function of its own"


def _same_shape(a: Type, b: Type, no_wider: bool) -> bool:
    """Whether two tensors have one shape; and, if asked for, elements of ``a`` are no wider than those of b."""
    if not isinstance(a, TensorType) or not isinstance(b, TensorType) or a.ndim != b.ndim:
        return False
    wider = a.dtype.storage_bits > b.dtype.storage_bits
    return not (no_wider and wider) and all(m is n for m, n in zip(a.shape, b.shape, strict=True))

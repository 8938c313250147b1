"""Functions of one byte that give a byte, as tables: what stands between a dequantization and the next quantization.

quantize(f(dequantize(x))) = byte_table(x, [quantize(f(dequantize(b))) for each byte b])

The right side is what folding constants makes of it, with the code that the function has otherwise: the same bytes. All
of an activation that a quantizer has taken apart, such as GELU, is one table, however often it rounds on its way.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from ...base.target import Target
from ...graph.node import Call, Constant, Function, Node, tensor_of
from ...graph.types import TensorType
from ...graph.visit import inputs, post_order, with_inputs
from ...ops.definition.accumulate import is_byte
from ...ops.definition.registry import Op, OpPattern, op_of
from ...ops.families.byte_table import ENTRIES, byte_table
from ...ops.families.reshape import reshape
from .quantized_values import with_origin

LEAST_CALLS, LEAST_CALLS_OF_GATHERS = 3, 8
"""A function of fewer calls is computed as fast as it is looked up; the second is for targets that take a load for each
byte."""
PLACED = frozenset({"broadcast_to", "nn.batch_norm", "trilu"})
"""What is computed element by element, but from places or extents as well."""


def tabulate_bytes(function: Function, target: Target) -> Function:
    """The function with tables in place of its functions of one byte, where these have some calls."""
    least = LEAST_CALLS if target.has("avx512vbmi") else LEAST_CALLS_OF_GATHERS
    sources: dict[Node, Node | None] = {}
    done: dict[Node, Node] = {}
    tabulated: dict[Node, dict[Node, Node]] = {}
    for node in post_order(function.body):
        rebuilt = with_inputs(node, tuple(done[n] for n in inputs(node)))
        source = sources[node] = _source(node, sources)
        if isinstance(node, Call) and source is not None and source is not node and _is_bytes(node):
            calls = _calls_between(source, node)
            if len(calls) >= least:
                made = byte_table(done[source], _table(source, calls, tabulated.setdefault(source, {})))
                rebuilt = with_origin(made, node, {done[source]})
        done[node] = rebuilt
    body = done[function.body]
    return function if body is function.body else replace(function, body=body)


def _is_bytes(node: Node) -> bool:
    return isinstance(node.type, TensorType) and is_byte(node.type.dtype)


def _source(node: Node, sources: Mapping[Node, Node | None]) -> Node | None:
    """The bytes that a tensor is a function of, element by element, if it is one; bytes are one of themselves."""
    if not isinstance(node.type, TensorType) or node.type.ndim == 0 or isinstance(node, Constant):
        return None
    own = node if _is_bytes(node) else None
    if not isinstance(node, Call) or not _is_elementwise(node):
        return own
    found: list[Node] = []
    for argument in node.args:
        source = sources[argument]
        if source is not None:
            found.append(source)
        elif not _is_number(argument, node.type.ndim):
            return own
    same = bool(found) and all(source is found[0] for source in found)
    fits = same and all(a is b for a, b in zip(node.type.shape, tensor_of(found[0]).shape, strict=True))
    return found[0] if fits else own


def _is_elementwise(call: Call) -> bool:
    return isinstance(call.op, Op) and call.op.pattern <= OpPattern.BROADCAST and call.op.name not in PLACED


def _is_number(node: Node, rank: int) -> bool:
    """Whether an argument is one number, for all elements of a tensor of that rank."""
    return isinstance(node, Constant) and node.value.size == 1 and node.value.ndim <= rank


def _calls_between(source: Node, node: Node) -> list[Call]:
    """The calls that make a node of its source, the node included, in order of computation."""
    order = post_order(node, lambda n: n is source)
    return [n for n in order if isinstance(n, Call) and n is not source]


def _table(source: Node, calls: Sequence[Call], made: dict[Node, Node]) -> Call:
    """What the last of these calls gives for each byte of the source: a call of constants alone. ``made`` has what was
    made of the same source before."""
    kind = tensor_of(source)
    if source not in made:
        each = np.arange(ENTRIES, dtype=np.uint8).view(kind.dtype.to_numpy())
        made[source] = Constant(each.reshape((1,) * (kind.ndim - 1) + (ENTRIES,)))
    for call in calls:
        if call not in made:
            made[call] = op_of(call)(*(made.get(argument, argument) for argument in call.args), attrs=call.attrs)
    return reshape(made[calls[-1]], (ENTRIES,))

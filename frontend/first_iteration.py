"""Loops whose first iteration is converted by itself: behind it, what they carry has another rank than before, or
extents that it was broadcast to.

Whether there is an iteration decides between two branches: the first iteration with a loop of the others, and what
there is before the loop, with no rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ..base.errors import ModelError
from ..graph.node import Constant, Node, tensor_of
from ..ir.constants import const_int
from ..ops.families.concatenate import concatenate
from ..ops.families.reshape import expand_dims
from .onnx_loop import OnnxLoop
from .onnx_node import OnnxNode
from .refusal_causes import RanksDifferError
from .subgraphs import MOST_ITERATIONS
from .two_branches import Branch, chosen, results_of_branches
from .values import Value

HAS_ITERATIONS = "__has_iterations"
"""The attribute of a Loop in a branch that is taken where it has iterations, or where it has none."""
Converter = Callable[[OnnxLoop], Sequence[Value]]


def where_there_is_one(loop: OnnxLoop, convert: Converter) -> Sequence[Value]:
    """The results of a loop. ``convert`` gives those of the iterations behind the first one."""
    some = loop.has_iterations()
    if isinstance(some, Constant):
        return with_first(loop, convert) if some.value else without_any(loop)
    branches = [Branch("iterations", lambda: with_first(loop, convert)), Branch("none", lambda: without_any(loop))]
    given = results_of_branches(loop.node, some, branches, loop.subgraphs)
    return chosen(loop.node, some, branches, given, loop.subgraphs)


def with_first(loop: OnnxLoop, convert: Converter) -> list[Value]:
    """The results of a loop that has at least one iteration."""
    node, count = loop.node, len(loop.carried)
    holds, first = loop.iteration()
    condition = None if node.get(1) is None else _tensor(node, holds, "gives, for a condition,")
    try:
        results = list(convert(loop.others(condition, first[:count])))
    except RanksDifferError as error:
        raise ModelError(
            f"{error}: only the first iteration of a loop may change a rank, unless its iterations are known when the "
            f"model is compiled, {MOST_ITERATIONS} of them at most"
        ) from error
    rows = zip(first[count:], results[count:], strict=True)
    return [*results[:count], *(_joined(node, *pair) for pair in rows)]


def without_any(loop: OnnxLoop) -> list[Value]:
    """The results of a loop that has no iteration. Its rows have the rank that an iteration gives."""
    shapes, count = loop.node.shapes, len(loop.carried)
    if len(loop.graph.output) == 1 + count:
        return [*loop.carried]
    before = len(shapes.inputs)
    _, given = loop.iteration()
    del shapes.inputs[before:]
    return [*loop.carried, *(_none_like(loop.node, row) for row in given[count:])]


def _joined(node: OnnxNode, row: Value, others: Value) -> Node:
    """The row of the first iteration before those of others; strings among them come to be of the same bytes."""
    moved = node.forms.moved("Concat", str(node), [row, others])
    first, rest = (_tensor(node, value, "stacks") for value in moved.values)
    rows = node.finish(concatenate([node.finish(expand_dims(first, (0,))), rest], 0))
    node.forms.hand_on_moved(moved, [rows])
    return rows


def _none_like(node: OnnxNode, row: Value) -> Node:
    row = _tensor(node, row, "stacks")
    if node.forms.strings_of(row) is not None:
        raise node.unsupported("a body that stacks strings and changes the rank of what is carried")
    kind = tensor_of(row)
    return Constant(np.zeros((0, *(const_int(extent) or 0 for extent in kind.shape)), kind.dtype.to_numpy()))


def _tensor(node: OnnxNode, value: Value | None, verb: str) -> Node:
    if not isinstance(value, Node):
        raise node.unsupported(f"a body that {verb} anything but tensors")
    return value

"""Converters of Loop and Scan: one operator, whose body is the subgraph as a closed function."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
from onnx import GraphProto

from ..base.dataclass import dataclass
from ..base.errors import ModelError, TypeInferenceError
from ..graph.node import Constant, Node, tensor_of
from ..ir.constants import MAX_INDEX, ONE, ZERO
from ..ir.expr import Expr
from ..ir.makers import as_index
from ..ir.simplify import simplify
from ..ops.definition.extent_formulas import as_formulas
from ..ops.families.assume_extent import assume_extent
from ..ops.families.binary import minimum
from ..ops.families.loop import LoopAttrs, loop_call, with_unused
from ..ops.families.open_extents import open_slice
from ..ops.families.reshape import expand_dims, reshape, squeeze
from ..ops.families.select import where
from .appending import of_stacks, with_appended
from .imported_body import ImportedBody
from .integers import integers
from .loop_body import LoopBody
from .made_strings import GrownBytes
from .onnx_node import OnnxNode
from .subgraphs import MOST_ITERATIONS, Subgraphs, as_scalar, check_counts, graph_attribute, is_true
from .unrolled import unrolled
from .values import Listed, Ragged, SequenceValue, Value, value_text
from .varying import find_varying, varying_along


def convert_loop(node: OnnxNode, subgraphs: Subgraphs) -> Sequence[Value]:
    """Loop: the most iterations and the condition may both be left out, and be known or not. Few iterations over what
    has another type in each are converted one by one."""
    graph = graph_attribute(node, "body")
    counts = [found for found in (node.get(0), node.get(1)) if found is not None]
    node.forms.check_plain(counts, f"{node} takes, to know when it ends,")
    carried = [node.value(k) for k in range(2, len(node.inputs))]
    check_counts(node, graph, len(carried) + 2, len(carried) + 1)
    trips = _trips_of_loop(node, subgraphs)
    if not isinstance(trips, int) or trips > MOST_ITERATIONS:
        return _looped(node, graph, carried, trips, subgraphs)
    if all(isinstance(value, Node) for value in carried):
        try:
            with subgraphs.failing_at_once():
                return _looped(node, graph, carried, trips, subgraphs)
        except (ModelError, TypeInferenceError):
            if (found := unrolled(node, graph, carried, trips, subgraphs)) is not None:
                return found
            if subgraphs.survey is None:
                raise
            return _looped(node, graph, carried, trips, subgraphs)
    found = unrolled(node, graph, carried, trips, subgraphs)
    return _looped(node, graph, carried, trips, subgraphs) if found is None else found


def _looped(
    node: OnnxNode, graph: GraphProto, carried: Sequence[Value], trips: int | Expr | None, subgraphs: Subgraphs
) -> Sequence[Value]:
    """A Loop as one call. Without a condition, what the body gives for one is not looked at. Of a sequence it carries
    what is appended."""
    tensors = {k: value for k, value in enumerate(carried) if isinstance(value, Node)}
    sequences = {k: _carried_sequence(node, k, value) for k, value in enumerate(carried) if k not in tensors}
    body = LoopBody(node, graph, tensors, tuple(sequences), trips, subgraphs).with_strings()
    imported, written = _imported(body)
    condition = node.get(1)
    conditional = condition is not None and not (is_true(condition) and is_true(imported.holds))
    results = [*imported.carried, *imported.rows]
    if conditional:
        results = [as_scalar(imported.holds), *results]
    function, captured = subgraphs.function(graph, imported.params, results)
    first = imported.first
    limit = as_scalar(node[0]) if node.get(0) is not None and trips is None else None
    if imported.has_born_extents or (conditional and imported.rows):
        limit = _where_branches_are_taken(node, limit)
    formula, tellers = _formula(trips, subgraphs, (limit is not None) + conditional + len(first) + len(captured))
    attrs = LoopAttrs(
        with_unused(function, tellers),
        limited=limit is not None,
        conditional=conditional,
        carried=len(first),
        stacked=(False,) * len(imported.rows),
        trips=formula,
    )
    begin = as_scalar(condition) if condition is not None and conditional else None
    found = loop_call(attrs, limit, begin, first, (), (*captured, *tellers))
    parts = iter(found[: len(first)])
    last = imported.last(parts)
    imported = imported.with_bytes(parts)
    made: dict[int, Value] = {k: _of_iterations(node, v, found[-1]) if k in written else v for k, v in last.items()}
    count = _Count(node, found[-1], None if conditional else trips)
    rows = _reached(node, found[len(first) : -1], count) if conditional else found[len(first) : -1]
    stacks = iter(imported.stacks(parts, rows, count))
    for k, sequence in sequences.items():
        made[k] = _with_appended(node, imported, k, sequence, parts, stacks, count)
    return [*(made[k] for k in range(len(carried))), *stacks]


def _imported(body: LoopBody) -> tuple[ImportedBody, Mapping[int, Node]]:
    """The body, imported for the types that what it carries has in all iterations; and what stands before the loop in
    the place of carried values that it does not read."""
    node, tensors, growing = body.node, {**body.tensors}, _that_must_grow(body)
    imported = body.imported(varying_along(node, tensors, growing))
    if written := body.only_written(imported.types):
        tensors |= written
        body = replace(body, tensors=tensors)
        imported = body.imported(varying_along(node, tensors, growing))
    if growing or any(imported.types[k] is not value.type for k, value in tensors.items()):
        varying = find_varying(node, tensors, imported.types, growing, lambda found: body.imported(found).types)
        imported = body.imported(varying)
    return imported, written


def _that_must_grow(body: LoopBody) -> dict[int, set[int]]:
    """The axes of carried values that are empty before a loop whose body does not hold for empty ones, as a stack in
    one branch of which the last two rows become one: there they change. None where it holds."""
    shapes = {k: tensor_of(value).shape for k, value in body.tensors.items()}
    empty = {k: {axis for axis, extent in enumerate(shape) if extent is ZERO} for k, shape in shapes.items()}
    empty = {k: axes for k, axes in empty.items() if axes}
    if not empty:
        return {}
    try:
        with body.subgraphs.failing_at_once():
            body.imported({})
    except (ModelError, TypeInferenceError):
        return empty
    return {}


@dataclass(slots=True, eq=False)
class _Count:
    """The number of iterations that a loop had, as an extent, which is only computed if it is asked for. Mutable."""

    node: OnnxNode
    found: Node
    known: int | Expr | None

    def __call__(self) -> Expr:
        if self.known is None:
            (self.known,) = self.node.extents_of(reshape(self.found, (1,)), "the number of iterations")
        return as_index(self.known)


def _with_appended(
    node: OnnxNode,
    imported: ImportedBody,
    number: int,
    sequence: SequenceValue,
    parts: Iterator[Node],
    stacks: Iterator[Node],
    count: _Count,
) -> SequenceValue:
    """A carried sequence with what iterations have appended to it."""
    appended = imported.appended[number]
    if not appended.elements:
        return sequence
    if appended.grown is None:
        added = of_stacks(node, [next(stacks) for _ in appended.elements])
    else:
        own = [node.finish(next(parts)) for _ in appended.grown.variables("")]
        added = appended.grown.taken(node, own, simplify(count() * len(appended.elements)))
    utf8 = imported.appended_texts.get(number)
    assert not isinstance(utf8, GrownBytes)
    return with_appended(node, sequence, added, utf8)


def _of_iterations(node: OnnxNode, value: Node, count: Node) -> Node:
    """A value that only iterations give: each run checks that there was one."""
    some = minimum(node.finish(reshape(count, (1,))), Constant(np.ones(1, np.int64)))
    (rows,) = node.extents_of(some, "whether a loop whose result only iterations give has had one")
    row = open_slice(expand_dims(value, (0,)), 0, ZERO, as_index(rows), node.shapes.inputs)
    return squeeze(assume_extent(row, 0, ONE, ()), (0,))


def _carried_sequence(node: OnnxNode, number: int, value: Value) -> SequenceValue:
    """A carried value that is a sequence. Raises ``ModelError`` for another."""
    if not isinstance(value, (Listed, Ragged)):
        raise node.unsupported(
            f"{value_text(value)} as the carried value {number} of a loop whose number of iterations is not known, or "
            f"above {MOST_ITERATIONS},"
        )
    return value


def _where_branches_are_taken(node: OnnxNode, limit: Node | None) -> Node | None:
    """The most iterations, 0 where a branch is not taken that the loop stands in: what a loop gives that has extents of
    the run is computed before the branch."""
    for condition in node.shapes.conditions:
        limit = node.finish(where(condition, integers(MAX_INDEX) if limit is None else limit, integers(0)))
    return limit


def _reached(node: OnnxNode, stacks: Sequence[Node], count: _Count) -> Sequence[Node]:
    """What the loop stacks, of as many rows as it had iterations."""
    inputs = node.shapes.inputs
    return [open_slice(node.finish(made), 0, ZERO, count(), inputs) for made in stacks]


def _trips_of_loop(node: OnnxNode, subgraphs: Subgraphs) -> int | Expr | None:
    """The most iterations as a number or a formula, if they are known before the loop as such. More than any index
    counts, which exporters write for loops that only a condition ends, are not."""
    most = node.get(0)
    known = None if most is None else subgraphs.shapes.of(most)
    if known is None or known.size != 1:
        return None
    trips = known.ravel()[0]
    if isinstance(trips, Expr):
        return trips
    return max(0, int(trips)) if int(trips) <= MAX_INDEX else None


def _formula(trips: int | Expr | None, subgraphs: Subgraphs, first: int) -> tuple[int | str | None, tuple[Node, ...]]:
    """The trips as a formula over arguments behind the ``first`` ones, and these."""
    if trips is None:
        return None, ()
    (formula,), tellers = as_formulas([trips], subgraphs.shapes.inputs, first)
    return formula, tellers

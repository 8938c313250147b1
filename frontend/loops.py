"""Converters of Loop and Scan: one operator, whose body is the subgraph as a closed function."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from onnx import GraphProto

from ..base.errors import ModelError, TypeInferenceError
from ..graph.node import Constant, Node
from ..ir.constants import MAX_INDEX, ONE, ZERO
from ..ir.expr import Expr
from ..ir.makers import as_index
from ..ops.definition.extent_formulas import as_formulas
from ..ops.families.assume_extent import assume_extent
from ..ops.families.binary import maximum, minimum
from ..ops.families.cast import cast
from ..ops.families.loop import LoopAttrs, loop_call, with_unused
from ..ops.families.open_extents import open_slice
from ..ops.families.reshape import expand_dims, reshape, squeeze
from .appending import with_appended
from .counting import counting_body, is_repeatable
from .loop_body import LoopBody
from .onnx_node import OnnxNode
from .subgraphs import MOST_ITERATIONS, Subgraphs, as_scalar, check_counts, graph_attribute, is_true
from .unrolled import unrolled
from .values import Listed, Ragged, SequenceValue, Value, value_text
from .varying import find_varying


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
    node: OnnxNode,
    graph: GraphProto,
    carried: Sequence[Value],
    trips: int | Expr | None,
    subgraphs: Subgraphs,
    counted: bool = True,
) -> Sequence[Value]:
    """A Loop as one call. Without a condition, what the body gives for one is not looked at. Of a sequence it carries
    what is appended. Iterations may be ``counted`` before, where memory for so many is needed and nothing tells."""
    tensors = {k: value for k, value in enumerate(carried) if isinstance(value, Node)}
    sequences = {k: _carried_sequence(node, k, value) for k, value in enumerate(carried) if k not in tensors}
    if trips is None and (sequences or len(graph.output) > len(carried) + 1):
        rows = node.proto.output[len(tensors)] if len(node.proto.output) > len(tensors) else ""
        stacking = f"stacking rows (output {len(tensors)}, {rows!r})"
        trips = _born_trips(node, graph, carried, subgraphs, stacking, counted)
    body = LoopBody(node, graph, tensors, tuple(sequences), trips, subgraphs).with_strings()
    tensors = {**body.tensors}
    imported = body.imported({})
    if written := body.only_written(imported.types):
        tensors |= written
        body = replace(body, tensors=tensors)
        imported = body.imported({})
    if any(imported.types[k] is not value.type for k, value in tensors.items()):
        if trips is None:
            trips = _born_trips(node, graph, carried, subgraphs, "a carried value that changes its shape", counted)
        body = replace(body, trips=trips)
        varying = find_varying(
            node, tensors, imported.types, lambda varying: body.imported(varying).types, as_index(trips)
        )
        imported = body.imported(varying)
    condition = node.get(1)
    conditional = condition is not None and not (is_true(condition) and is_true(imported.holds))
    results = [*imported.carried, *imported.rows]
    if conditional:
        results = [as_scalar(imported.holds), *results]
    function, captured = subgraphs.function(graph, imported.params, results)
    first = [part for value in imported.first for part in value]
    limit = as_scalar(node[0]) if node.get(0) is not None and trips is None else None
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
    last = dict(zip(tensors, imported.last(found[: len(first)]), strict=True))
    stacks = iter(imported.as_shown(_reached(node, found, len(first), conditional)))
    made: dict[int, Value] = {k: _of_iterations(node, v, found[-1]) if k in written else v for k, v in last.items()}
    for k, sequence in sequences.items():
        made[k] = with_appended(node, sequence, imported.appended[k], stacks, imported.appended_texts.get(k))
    return [*(made[k] for k in range(len(carried))), *stacks]


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


def _reached(node: OnnxNode, found: Sequence[Node], carried: int, conditional: bool) -> Sequence[Node]:
    """What the loop stacks, of as many rows as it had iterations."""
    stacks = found[carried:-1]
    if not stacks or not conditional:
        return stacks
    *stacks, count = map(node.finish, found[carried:])
    (rows,) = node.extents_of(reshape(count, (1,)), "the number of iterations")
    return [open_slice(made, 0, ZERO, rows, node.shapes.inputs) for made in stacks]


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


def _born_trips(
    node: OnnxNode, graph: GraphProto, carried: Sequence[Value], subgraphs: Subgraphs, what: str, counted: bool
) -> int | Expr:
    """The most iterations as a dimension that the run computes before the loop: there is memory for what so many
    give."""
    most = node.get(0)
    before = len(node.shapes.inputs)
    if most is not None and not isinstance(most, Constant):
        count: Node = maximum(cast(reshape(most, (1,)), "int64"), Constant(np.zeros(1, np.int64)))
    elif counted:
        count = _counted(node, graph, carried, subgraphs, what)
    else:
        raise _has_no_most(node, what)
    (trips,) = node.extents_of(count, "the most iterations")
    subgraphs.move_out(before)
    return trips


def _counted(node: OnnxNode, graph: GraphProto, carried: Sequence[Value], subgraphs: Subgraphs, what: str) -> Node:
    """How often a loop goes round: by a loop before it, of what decides that."""
    body, kept = counting_body(graph)
    values = [carried[k] for k in kept]
    if node.get(1) is None or not is_repeatable(body) or not all(isinstance(value, Node) for value in values):
        raise _has_no_most(node, what)
    *_, count = _looped(node, body, [*values, Constant(np.array(0))], None, subgraphs, counted=False)
    assert isinstance(count, Node)
    return reshape(count, (1,))


def _has_no_most(node: OnnxNode, what: str) -> ModelError:
    return node.unsupported(f"{what} of a loop that has no most iterations (input 0)")


def _formula(trips: int | Expr | None, subgraphs: Subgraphs, first: int) -> tuple[int | str | None, tuple[Node, ...]]:
    """The trips as a formula over arguments behind the ``first`` ones, and these."""
    if trips is None:
        return None, ()
    (formula,), tellers = as_formulas([trips], subgraphs.shapes.inputs, first)
    return formula, tellers

"""Converters of Loop and Scan: one operator, whose body is the subgraph as a closed function."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

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
from .first_iteration import HAS_ITERATIONS, where_there_is_one, with_first, without_any
from .imported_body import ImportedBody
from .integers import integers
from .loop_body import LoopBody
from .made_strings import GrownBytes
from .onnx_loop import OnnxLoop
from .onnx_node import OnnxNode
from .subgraphs import MOST_ITERATIONS, Subgraphs, as_scalar, check_counts, graph_attribute, is_true
from .unrolled import unrolled
from .values import Listed, Ragged, SequenceValue, Value, value_text
from .varying import find_varying, varying_along


def convert_loop(node: OnnxNode, subgraphs: Subgraphs) -> Sequence[Value]:
    """Loop: the most iterations and the condition may both be left out, and be known or not. Few iterations over what
    has another type in each are converted one by one."""
    loop = OnnxLoop(node, graph_attribute(node, "body"), subgraphs)
    counts = [found for found in (node.get(0), node.get(1)) if found is not None]
    node.forms.check_plain(counts, f"{node} takes, to know when it ends,")
    check_counts(node, loop.graph, len(loop.carried) + 2, len(loop.carried) + 1)
    if not node.has(HAS_ITERATIONS):
        return _converted(loop)
    return with_first(loop, _converted) if node.flag(HAS_ITERATIONS) else without_any(loop)


def _converted(loop: OnnxLoop) -> Sequence[Value]:
    trips, survey = loop.trips, loop.subgraphs.survey
    if not isinstance(trips, int) or trips > MOST_ITERATIONS:
        return _looped(loop)
    if all(isinstance(value, Node) for value in loop.carried):
        try:
            with loop.subgraphs.failing_at_once():
                return _looped(loop)
        except (ModelError, TypeInferenceError):
            if (found := unrolled(loop, trips)) is not None:
                return found
            if survey is None:
                raise
            return _looped(loop)
    found = unrolled(loop, trips)
    return _looped(loop) if found is None else found


def _looped(loop: OnnxLoop) -> Sequence[Value]:
    """A Loop as one call. Without a condition, what the body gives for one is not looked at. Of a sequence it carries
    what is appended."""
    node, subgraphs, carried, trips = loop.node, loop.subgraphs, loop.carried, loop.trips
    tensors = {k: value for k, value in enumerate(carried) if isinstance(value, Node)}
    sequences = {k: _carried_sequence(node, k, value) for k, value in enumerate(carried) if k not in tensors}
    body = LoopBody(loop, tensors, tuple(sequences)).with_strings()
    imported, written = _imported(body)
    if unlike := _that_broadcast(loop, imported):
        return _looped_after_broadcast(loop, unlike)
    if around := node.shapes.meetings:
        around[-1].update(dict.fromkeys(imported.meet))
    condition = node.get(1)
    conditional = condition is not None and not (is_true(condition) and is_true(imported.holds))
    results = [*imported.carried, *imported.rows]
    if conditional:
        results = [as_scalar(imported.holds), *results]
    function, captured = subgraphs.function(loop.graph.name, imported.params, results)
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


def _that_broadcast(loop: OnnxLoop, imported: ImportedBody) -> set[Expr]:
    """Extents that meet in the body, some of which something carried has: each of them may be 1. None behind the first
    iteration, from which on extents stay: each run checks then that those which meet are equal."""
    if loop.done:
        return set()
    carried = {extent for value in loop.carried if isinstance(value, Node) for extent in tensor_of(value).shape}
    return loop.node.shapes.parts_that_meet(imported.meet, carried)


def _looped_after_broadcast(loop: OnnxLoop, extents: set[Expr]) -> Sequence[Value]:
    """The results of a loop in which these extents are broadcast to each other: what it carries has its extents from
    the first iteration on."""
    with loop.node.shapes.broadcasting(extents):
        return where_there_is_one(loop, _converted)


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


def _formula(trips: int | Expr | None, subgraphs: Subgraphs, first: int) -> tuple[int | str | None, tuple[Node, ...]]:
    """The trips as a formula over arguments behind the ``first`` ones, and these."""
    if trips is None:
        return None, ()
    (formula,), tellers = as_formulas([trips], subgraphs.shapes.inputs, first)
    return formula, tellers

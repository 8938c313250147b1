"""The converter of Scan: a loop whose states keep their types, and which slices and stacks tensors along axes."""

from __future__ import annotations

from collections.abc import Sequence, Set

from onnx import GraphProto

from ..base.dataclass import dataclass
from ..graph.node import Node, Var, tensor_of
from ..graph.types import TensorType, tensor_type
from ..ir.constants import const_int
from ..ir.expr import Expr
from ..ir.expr import Var as Symbol
from ..ir.simplify import simplify
from ..ops.definition.relations import normalize_axis
from ..ops.families.assume_extent import assume_extent
from ..ops.families.binary import subtract
from ..ops.families.gather import take
from ..ops.families.loop import LoopAttrs, loop_call
from ..ops.families.loops import scan
from ..ops.families.transpose import transpose
from . import ragged
from .carried_strings import CarriedStrings, Part, carried_strings, outside_spans
from .equivalent_loop import as_loop
from .onnx_node import OnnxNode
from .refusal_causes import MadeBytesError
from .stacking import grown_rows, has_born_extents
from .subgraphs import Subgraphs, check_counts, graph_attribute
from .values import Value


@dataclass(frozen=True, slots=True)
class _Scan:
    """A Scan by its parts: of each value that is sliced or stacked the axis, and whether it goes backwards."""

    graph: GraphProto
    states: Sequence[Node]
    sliced: Sequence[Node]
    sliced_axes: Sequence[int]
    sliced_back: Sequence[bool]
    stacked_axes: Sequence[int]
    stacked_back: Sequence[bool]


def convert_scan(node: OnnxNode, subgraphs: Subgraphs) -> Sequence[Node]:
    """Scan: axes other than the first are transposed around the loop."""
    graph = graph_attribute(node, "body")
    count = node.integer("num_scan_inputs")
    values = node.all
    states, sliced = values[: len(values) - count], values[len(values) - count :]
    check_counts(node, graph, len(values), len(states))
    stacked = len(graph.output) - len(states)
    scan = _Scan(
        graph,
        states,
        sliced,
        node.ints("scan_input_axes") or (0,) * count,
        _flags(node.ints("scan_input_directions"), count),
        node.ints("scan_output_axes") or (0,) * stacked,
        _flags(node.ints("scan_output_directions"), stacked),
    )
    try:
        return _broadcast_as_met(node, scan, subgraphs)
    except MadeBytesError:
        return _as_loop(node, scan, subgraphs)


def _broadcast_as_met(node: OnnxNode, scan: _Scan, subgraphs: Subgraphs) -> Sequence[Node]:
    """The results of a Scan. Extents of states and of what is sliced that meet others in the body may be 1."""
    shapes = node.shapes
    differing = {extent for value in (*scan.states, *scan.sliced) for extent in tensor_of(value).shape}
    shapes.meetings.append({})
    try:
        found = _scanned(node, scan, subgraphs)
        if not (extents := shapes.parts_that_meet(shapes.meetings[-1], differing)):
            return found
        with shapes.broadcasting(extents):
            return _scanned(node, scan, subgraphs)
    finally:
        shapes.meetings.pop()


def _flags(given: Sequence[int] | None, count: int) -> tuple[bool, ...]:
    return (False,) * count if given is None else tuple(map(bool, given))


def _scanned(node: OnnxNode, scan: _Scan, subgraphs: Subgraphs) -> Sequence[Node]:
    forms = node.forms
    texts = [forms.strings_of(value) for value in scan.sliced]
    spans = [value if text is None else text.spans for value, text in zip(scan.sliced, texts, strict=True)]
    sliced = [_axis_first(value, axis) for value, axis in zip(spans, scan.sliced_axes, strict=True)]
    rows = [(_row(value), None if text is None else text.utf8) for value, text in zip(sliced, texts, strict=True)]
    states, params, results, inner = _states_that_stay(node, scan, rows, subgraphs)
    given, own_rows = [part for part, _ in results[: len(states)]], [part for part, _ in results[len(states) :]]
    grown = {k: grown_rows(node, row, inner) for k, row in enumerate(own_rows) if has_born_extents(row, inner)}
    first, carried = [*states], [*params[1 : 1 + len(states)]]
    for k, each in grown.items():
        own = each.variables(f"rows{k}")
        carried += own
        first += each.first(node)
        given += each.put(node, params[0], own, own_rows[k])
    known = [k for k in range(len(own_rows)) if k not in grown]
    function, captured = subgraphs.function(
        scan.graph,
        [params[0], *carried, *params[1 + len(states) :]],
        [*given, *(own_rows[k] for k in known)],
    )
    attrs = LoopAttrs(
        function,
        carried=len(first),
        sliced=tuple(scan.sliced_back),
        stacked=tuple(scan.stacked_back[k] for k in known),
        trips=f"x{len(first)}_0",
    )
    found = loop_call(attrs, None, None, first, sliced, captured)[:-1]
    parts, stacked = iter(found[len(states) : len(first)]), dict(zip(known, found[len(first) :], strict=True))
    for k, each in grown.items():
        own_parts = [node.finish(next(parts)) for _ in each.variables("")]
        made = each.taken(node, own_parts, tensor_of(sliced[0]).shape[0])
        stacked[k] = _backwards(node, made) if scan.stacked_back[k] else made
    stacks = (_first_axis_at(stacked[k], axis) for k, axis in enumerate(scan.stacked_axes))
    last = map(node.finish, (*found[: len(states)], *stacks))
    return [forms.joined(value, utf8) for value, (_, utf8) in zip(last, results, strict=True)]


def _as_loop(node: OnnxNode, scan: _Scan, subgraphs: Subgraphs) -> Sequence[Node]:
    """A Scan whose iterations make strings, as a Loop, which has memory for these."""
    parts = [node.forms.apart(value) for value in scan.sliced]
    wholes = [_axis_first(spans, axis) for ((spans,), _), axis in zip(parts, scan.sliced_axes, strict=True)]
    texts = [None if utf8 is None else node.finish(utf8) for _, utf8 in parts]
    sliced = [
        node.finish(_backwards(node, whole) if back else whole)
        for whole, back in zip(wholes, scan.sliced_back, strict=True)
    ]

    def body(number: Node, states: Sequence[Value]) -> Sequence[Value]:
        rows = [node.finish(take(whole, number, 0)) for whole in sliced]
        given = [*states, *map(node.forms.joined, rows, texts)]
        return subgraphs.results(scan.graph, {i.name: v for i, v in zip(scan.graph.input, given, strict=True)})

    trips = node.shapes.stand_for([tensor_of(sliced[0]).shape[0]], scalar=True)
    found = as_loop(node, trips, scan.states, scan.graph.output, body, subgraphs)
    made = [value for value in found if isinstance(value, Node)]
    states, stacks = made[: len(scan.states)], made[len(scan.states) :]
    for stack, axis, back in zip(stacks, scan.stacked_axes, scan.stacked_back, strict=True):
        (rows,), utf8 = node.forms.apart(stack)
        rows = _first_axis_at(_backwards(node, rows) if back else rows, axis)
        states.append(node.forms.joined(node.finish(rows), None if utf8 is None else node.finish(utf8)))
    return states


def _states_that_stay(
    node: OnnxNode, scan: _Scan, rows: Sequence[tuple[TensorType, Node | None]], subgraphs: Subgraphs
) -> tuple[Sequence[Node], tuple[Var, ...], list[Part], Set[Symbol]]:
    """The states before a Scan, the parameters of its body, and what that gives: states of the types that they have
    before, and of strings of the same bytes; and the extents that an iteration computes. As the standard lets none
    change, each run checks that extents are those that an iteration gives where these are known better, and that what
    an iteration gives has extents that were there before."""
    given = dict(enumerate(scan.states))
    strings = carried_strings(node, given)
    states = [*{**given, **strings.spans(node)}.values()]
    while True:
        before = len(node.shapes.inputs)
        params, results = _results(node, scan, states, strings, rows, subgraphs)
        handed, wider = strings.handed_on(node, dict(enumerate(results[: len(states)])), params, subgraphs)
        if wider is not strings:
            strings = wider
            states = [*{**dict(enumerate(states)), **strings.spans(node)}.values()]
            continue
        inner = subgraphs.born_inside(before)
        better = [_as_after(node, *each) for each in zip(states, handed.values(), strict=True)]
        if all(new is old for new, old in zip(better, states, strict=True)):
            stay = [_as_before(node, *each) for each in zip(states, handed.values(), strict=True)]
            kept = [(state, strings.utf8 if k in strings else None) for k, state in enumerate(stay)]
            return (
                states,
                params,
                [*kept, *(outside_spans(node, row, params, subgraphs) for row in results[len(states) :])],
                inner,
            )
        states = better


def _results(
    node: OnnxNode,
    scan: _Scan,
    states: Sequence[Node],
    strings: CarriedStrings,
    rows: Sequence[tuple[TensorType, Node | None]],
    subgraphs: Subgraphs,
) -> tuple[tuple[Var, ...], list[Node]]:
    """The parameters of the body of a Scan, and what it gives."""
    number = Var("number", tensor_type((), "int64"))
    kinds = [*map(tensor_of, states), *(kind for kind, _ in rows)]
    variables = [Var(i.name, kind) for i, kind in zip(scan.graph.input, kinds, strict=True)]
    for k, var in enumerate(variables):
        node.forms.joined(var, rows[k - len(states)][1] if k >= len(states) else strings.utf8 if k in strings else None)
    params = (number, *variables)
    bound: dict[str, Value] = {"": number, **{var.name: var for var in variables}}
    return params, subgraphs.tensor_results(node, scan.graph, bound, params)


def _as_after(node: OnnxNode, before: Node, after: Node) -> Node:
    """A state before a Scan, with the numbers that an iteration gives for its open extents."""
    for axis, extent in _differing(before, after):
        if const_int(tensor_of(before).shape[axis]) is None and const_int(extent) is not None:
            before = node.finish(assume_extent(before, axis, extent, ()))
    return before


def _as_before(node: OnnxNode, before: Node, after: Node) -> Node:
    """What an iteration gives for a state, with the extents that the state had before."""
    for axis, _ in _differing(before, after):
        after = node.finish(assume_extent(after, axis, tensor_of(before).shape[axis], node.shapes.inputs))
    return after


def _differing(before: Node, after: Node) -> Sequence[tuple[int, Expr]]:
    """The axes along which two tensors of one rank differ, with the extents of the second; none of other ranks."""
    first, second = tensor_of(before).shape, tensor_of(after).shape
    if len(first) != len(second):
        return ()
    return [(axis, b) for axis, (a, b) in enumerate(zip(first, second, strict=True)) if a is not b]


def _row(value: Node) -> TensorType:
    kind = tensor_of(value)
    return TensorType(kind.shape[1:], kind.dtype)


def _backwards(node: OnnxNode, rows: Node) -> Node:
    """The rows from the last one on."""
    count = tensor_of(rows).shape[0]
    last = node.shapes.stand_for([simplify(count - 1)], scalar=True)
    return node.finish(take(rows, node.finish(subtract(last, ragged.numbers_below(node, count))), 0))


def _axis_first(value: Node, axis: int) -> Node:
    """The value with an axis as its first one."""
    rank = tensor_of(value).ndim
    at = normalize_axis(axis, rank)
    return transpose(value, (at, *(k for k in range(rank) if k != at))) if at else value


def _first_axis_at(value: Node, axis: int) -> Node:
    """The value with its first axis at another place."""
    rank = tensor_of(value).ndim
    at = normalize_axis(axis, rank)
    return transpose(value, (*range(1, at + 1), 0, *range(at + 1, rank))) if at else value


def convert_scan_of_batch(node: OnnxNode, subgraphs: Subgraphs) -> Sequence[Node]:
    """Scan in its first version, of samples: a loop over the first axis of all values, around one over the second."""
    if node.get(0) is not None:
        raise node.unsupported("a Scan of sequences that have lengths of their own (input 0)")
    graph = graph_attribute(node, "body")
    count = node.integer("num_scan_inputs")
    values = [node[number] for number in range(1, len(node.inputs))]
    node.forms.check_plain(values, f"{node}, in its first version, takes")
    states = len(values) - count
    check_counts(node, graph, len(values), states)
    stacked = len(graph.output) - states
    back = _flags(node.ints("directions"), count)

    def of_sample(*rows: Node) -> Sequence[Node]:
        parts = _Scan(graph, rows[:states], rows[states:], (0,) * count, back, (0,) * stacked, (False,) * stacked)
        return _scanned(node, parts, subgraphs)

    return scan(of_sample, (), values).fields

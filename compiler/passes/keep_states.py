"""States of a model: which axis of each grows, and which of them can be written where they lie.

concatenate(past, new, axis)      → append_rows(past, new), the axis moved outermost in both: new rows follow in memory
scatter(past, indices, updates)   → the same, in place, if nothing else reads the past
tensor_scatter(past, updates, at) → write_rows, in place, if nothing else reads the past

What reads the result, and what else reads a past that grows, reads it with its axes moved back. A state that is made in
another way is written whole, to other memory than it is read from: nothing is copied for a state of fixed shape.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from ...base.errors import ModelError
from ...base.state import State
from ...graph.node import Call, Function, ImportedValue, Node, Tuple, Var, tensor_of
from ...graph.types import TensorType
from ...graph.visit import inputs, post_order, users, with_inputs
from ...ops.definition.extent_formulas import OF, told_arguments
from ...ops.definition.registry import get_op, op_of
from ...ops.families.concatenate import concatenate
from ...ops.families.reshape import reshape_to_open
from ...ops.families.state_writes import APPEND_ROWS, WRITE_ROWS, AppendRowsAttrs, WriteRowsAttrs
from ...ops.families.transpose import transpose
from ..symbols import Symbol

CONCATENATE, SCATTER_ELEMENTS, SCATTER_ND, TENSOR_SCATTER = (
    get_op(name) for name in ("concatenate", "scatter_elements", "scatter_nd", "tensor_scatter")
)


def keep_states(function: Function) -> Function:
    """The function with its states' axes known, and those in place that can be. Raises ``ModelError`` for a pair that
    is no state: of other dtypes or ranks, or that differs in more than the extent of one axis."""
    results = _results(function)
    used_by = users(function.body)
    states = tuple(_placed(function, state, results, used_by) for state in function.states)
    in_place = {results[state.output]: state for state in states if state.in_place}
    growing = {function.params[state.input]: state for state in in_place.values() if state.axis is not None}
    moved: dict[Node, Var] = {past: _moved_param(past, state) for past, state in growing.items()}
    done: dict[Node, Node] = {}
    kept: dict[Node, Node] = {}
    shaped: dict[Node, Node] = {past: _of_its_shape(new, past) for past, new in moved.items()}
    for node in post_order(function.body):
        if node is function.body and isinstance(node, Tuple):
            break
        if isinstance(node, Var) and node in moved:
            done[node] = _moved_back(moved[node], growing[node])
        elif node in in_place and isinstance(node, Call):
            done[node], kept[node] = _written(node, in_place[node], moved, done)
        else:
            told = _only_told(node)
            used = (shaped[n] if k in told and n in shaped else done[n] for k, n in enumerate(inputs(node)))
            done[node] = with_inputs(node, tuple(used))
    outputs = {state.output for state in states if state.in_place}
    fields = tuple(kept[r] if number in outputs else done[r] for number, r in enumerate(results))
    body = Tuple(fields) if isinstance(function.body, Tuple) else fields[0]
    params = tuple(moved.get(param, param) for param in function.params)
    return replace(function, params=params, body=body, states=states)


def _results(function: Function) -> tuple[Node, ...]:
    body = function.body
    return body.fields if isinstance(body, Tuple) else (body,)


def _placed(function: Function, state: State, results: Sequence[Node], used_by: Mapping[Node, Sequence[Node]]) -> State:
    past, present = function.params[state.input], results[state.output]
    axis = _grown_axis(function, state, tensor_of(past), tensor_of(present))
    alone = sum(result is present for result in results) == 1
    in_place = alone and isinstance(present, Call) and _is_write(past, present, axis, used_by)
    return replace(state, axis=axis, in_place=in_place)


def _grown_axis(function: Function, state: State, past: TensorType, present: TensorType) -> int | None:
    """The axis in which the types of a state differ."""
    where = f"{function.name}: state={{{_output_name(function, state)!r}: {function.params[state.input].name!r}}}"
    if past.dtype is not present.dtype or past.ndim != present.ndim:
        raise ModelError(
            f"{where}: an output {present} cannot be the next input {past}: dtype and rank should be the same"
        )
    axes = [axis for axis, (a, b) in enumerate(zip(past.shape, present.shape, strict=True)) if a is not b]
    if not axes:
        return None
    if len(axes) > 1 or not isinstance(past.shape[axes[0]], Symbol):
        raise ModelError(
            f"{where}: an output {present} cannot be the next input {past}: it may differ in one axis, which is open "
            "in the input, and whose extent there is a dimension by itself"
        )
    return axes[0]


def _output_name(function: Function, state: State) -> str:
    names = function.output_names
    return names[state.output] if names else f"output{state.output}"


def _is_write(past: Var, present: Call, axis: int | None, used_by: Mapping[Node, Sequence[Node]]) -> bool:
    """Whether a state is its past with something written behind it or into it, so that it can lie in its memory."""
    first, *others = present.args
    if first is not past or any(other is past for other in others):
        return False
    if axis is not None:
        return present.op is CONCATENATE and present.attrs.axis == axis and bool(others)
    return present.op in (SCATTER_ELEMENTS, SCATTER_ND, TENSOR_SCATTER) and len(used_by[past]) == 1


def _moved_param(past: Var, state: State) -> Var:
    kind = tensor_of(past)
    return Var(past.name, TensorType(tuple(kind.shape[axis] for axis in state.to_native(kind.ndim)), kind.dtype))


def _moved_back(x: Node, state: State) -> Node:
    order = state.from_native(tensor_of(x).ndim)
    return transpose(x, order) if state.is_moved else x


def _of_its_shape(moved: Var, past: Node) -> Node:
    """The same memory in the shape of a state, for those that read no elements: their order is another one."""
    return reshape_to_open(moved, tensor_of(past).shape, [moved])


def _only_told(node: Node) -> frozenset[int]:
    """The arguments of a call that it reads no elements of, but their extents."""
    if not isinstance(node, Call):
        return frozenset()
    reads_none = any((each.name, each.description) == OF for each in op_of(node).arguments)
    return frozenset(k for k in told_arguments(node.attrs) if k > 0 or reads_none)


def _written(node: Call, state: State, moved: Mapping[Node, Var], done: Mapping[Node, Node]) -> tuple[Node, Node]:
    """What readers of a state get in the place of its node, and what writes it in place."""
    past, *others = node.args
    if state.axis is None:
        made = _scattered(node, [done[n] for n in node.args])
        return made, made
    rows = _rows([done[n] for n in others], state)
    shape = tensor_of(node).shape
    value = None if node.value is None else ImportedValue(node.value.name, state.from_native(len(shape)), shape)
    made = APPEND_ROWS(moved[past], rows, attrs=AppendRowsAttrs(in_place=True), origin=node.origin)
    made = replace(made, value=value)
    return _moved_back(made, state), made


def _rows(parts: Sequence[Node], state: State) -> Node:
    def turned() -> Iterator[Node]:
        for part in parts:
            yield transpose(part, state.to_native(tensor_of(part).ndim)) if state.is_moved else part

    first, *rest = turned()
    return concatenate([first, *rest], 0) if rest else first


def _scattered(node: Call, args: Sequence[Node]) -> Call:
    if node.op is TENSOR_SCATTER:
        attrs = WriteRowsAttrs(node.attrs.axis, node.attrs.circular, in_place=True)
        return replace(WRITE_ROWS(*args, attrs=attrs, origin=node.origin), value=node.value)
    return replace(node, args=tuple(args), attrs=replace(node.attrs, in_place=True))

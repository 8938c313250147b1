"""Where two dimensions have to be equal, which inputs may have 1 in place of the other's number, which broadcasts.

Code is made for equal ones. An input that is 1 long there is repeated, and gives what broadcasting gives, if everything
that is computed of it is computed position by position along that dimension, until it meets a tensor that has the other
one:

    x[n, 4] + exp(mask[m, 4])           mask may be repeated where m is 1, and x where n is 1
    x[n, 4] + mask[m, 4] / sum(mask)    mask may not be repeated: its sum would be another one

That is proved on the definitions of the operators, read by read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import Enum, auto

from ... import te
from ...base.errors import LoopwrightError
from ...base.target import Target
from ...graph.node import Call, Function, Node, Tuple, TupleGet, Var
from ...graph.types import TensorType
from ...graph.visit import bodies_of, post_order
from ...ir.contents import free_vars
from ...ir.expr import Expr, TensorRead
from ...ir.visit import Node as ExprOrStmt
from ...ir.visit import children, tensor_reads
from ...ops.definition.extent_formulas import told_arguments
from ...ops.definition.implementation import OpImplementation, outputs_of
from ...ops.definition.registry import Op
from ...ops.definition.strategy import strategy_of
from ...ops.families.repeat import BROADCAST_TO
from ...te.order import operations_behind
from ...te.tensor import ComputeOp, Operation, PlaceholderOp, Tensor
from ..symbols import Symbol, symbols_of

_TARGET = Target("x86_64-unknown-linux-gnu", "x86-64")
"""One without features: what depends on what is the same for all."""
MOST_CALLS = 64
"""Of so many calls at most it is asked whether they compute position by position: masks, positions and time steps meet
what they belong to after a few."""


def repeated_inputs(function: Function, symbol: Symbol, other: Expr) -> frozenset[tuple[int, int]]:
    """The inputs of a function, by position, and the axes of them that have the dimension ``symbol``, if what is 1 long
    there may be repeated to the extent ``other``; none where it may not."""
    found = _axes_of(function, symbol)
    if not found or function.string_inputs or function.states or function.grouped_inputs:
        return frozenset()
    try:
        _follow(function, symbol, other)
    except _MixesError:
        return frozenset()
    return found


class _MixesError(Exception):
    """Something is not computed position by position."""


class _State(Enum):
    ALONG = auto()
    """It has the dimension, and each position of it is computed of the same positions of inputs that have it."""
    MET = auto()
    """It is as long as the other dimension says."""


def _axes_of(function: Function, symbol: Symbol) -> frozenset[tuple[int, int]]:
    """Where inputs have the dimension by itself; nowhere if it stands in a formula, too, or twice in an input."""
    found = set()
    for number, param in enumerate(function.params):
        if not _mentions([param], [symbol]):
            continue
        shape = param.type.shape if isinstance(param.type, TensorType) else ()
        axes = [axis for axis, extent in enumerate(shape) if symbol in set(free_vars(extent))]
        if len(axes) != 1 or shape[axes[0]] is not symbol:
            return frozenset()
        found.add((number, axes[0]))
    return frozenset(found)


def _follow(function: Function, symbol: Symbol, other: Expr) -> None:
    """Raise ``_MixesError`` where a value that comes of the inputs with ``symbol`` is not computed by positions, or is
    a result before it met the other dimension."""
    states: dict[Node, tuple[_State, ...]] = {}
    asked = 0
    for node in post_order(function.body):
        match node:
            case Var() if _mentions([node], [symbol]):
                states[node] = (_State.ALONG,)
            case Tuple(fields):
                states[node] = tuple(_single(states, field) for field in fields)
            case TupleGet(value, index):
                states[node] = (states.get(value, ())[index : index + 1] or (_State.MET,))[:1]
            case Call():
                states[node] = _states_of_call(node, states, symbol, other)
                asked += _State.ALONG in states[node]
                if asked > MOST_CALLS:
                    raise _MixesError
            case _:
                states[node] = (_State.MET,)
    if _State.ALONG in states.get(function.body, ()):
        raise _MixesError


def _single(states: Mapping[Node, tuple[_State, ...]], node: Node) -> _State:
    found = states.get(node, (_State.MET,))
    return found[0] if len(found) == 1 else _State.ALONG if _State.ALONG in found else _State.MET


def _states_of_call(
    call: Call, states: Mapping[Node, tuple[_State, ...]], symbol: Symbol, other: Expr
) -> tuple[_State, ...]:
    told = [call.args[k] for k in told_arguments(call.attrs) if 0 < k < len(call.args)]
    read = [arg for k, arg in enumerate(call.args) if not k or k not in told_arguments(call.attrs)]
    along = [arg for arg in read if _State.ALONG in states.get(arg, ())]
    tells_symbol, tells_other = _mentions(told, [symbol]), _mentions(told, free_vars(other))
    if not along and not tells_symbol:
        return (_State.MET,)
    others = [arg for arg in read if arg not in along]
    if bodies_of(call) or (tells_symbol and _mentions(others, [symbol, *free_vars(other)])):
        raise _MixesError
    if along and tells_other and call.op is not BROADCAST_TO:
        raise _MixesError
    for implementation in _definitions(call):
        try:
            return _states_of_compute(implementation, call, along, symbol, other)
        except (_MixesError, LoopwrightError):
            continue  # another definition of the same may show it
    raise _MixesError


def _mentions(nodes: Iterable[Node], symbols: Iterable[Symbol]) -> bool:
    wanted = set(symbols)
    return any(wanted & set(symbols_of([node.type])) for node in nodes)


def _definitions(call: Call) -> Iterator[OpImplementation]:
    """The implementations that serve a call unconditionally: each defines what is computed."""
    if not isinstance(call.op, Op) or any(not isinstance(arg.type, TensorType) for arg in call.args):
        return
    try:
        offered = strategy_of(call.op, call.attrs, [a.type for a in call.args], call.type, _TARGET)
    except LoopwrightError:
        return
    yield from (implementation for condition, implementation in offered.candidates() if condition is None)


def _states_of_compute(
    implementation: OpImplementation, call: Call, along: list[Node], symbol: Symbol, other: Expr
) -> tuple[_State, ...]:
    """The states of the outputs of a call, by its compute."""
    kinds = [arg.type for arg in call.args]
    inputs = [te.placeholder(kind.shape, kind.dtype) for kind in kinds if isinstance(kind, TensorType)]
    outputs = outputs_of(implementation.computed(call.op.name, call.attrs, tuple(inputs), call.type))
    states = {
        tensor: _State.ALONG if arg in along else _State.MET for tensor, arg in zip(inputs, call.args, strict=True)
    }
    for operation in operations_behind(outputs):
        if not isinstance(operation, PlaceholderOp):
            state = _state_of_stage(operation, states, symbol, other)
            states.update((tensor, state) for tensor in operation.outputs)
    return tuple(states[tensor] for tensor in outputs)


def _state_of_stage(operation: Operation, states: Mapping[Tensor, _State], symbol: Symbol, other: Expr) -> _State:
    """The state of what a stage computes. Raises ``_MixesError`` where positions are mixed."""
    along = [tensor for tensor in operation.inputs if states[tensor] is _State.ALONG]
    if not isinstance(operation, ComputeOp):
        if along:
            raise _MixesError
        return _State.MET
    own: dict[Expr, Expr] = {axis.var: axis.extent for axis in operation.axis}
    reads = [read for body in operation.body for read in tensor_reads(body)]
    positions: set[Expr] = set()
    for read in reads:
        if read.tensor in along:
            positions |= {index for extent, index in _indices(read) if extent is symbol}
    if not along:
        positions = {var for var, extent in own.items() if extent is symbol}
        if any(index in positions for read in reads for _, index in _indices(read)):
            return _State.MET
    if any(_stands_elsewhere(body, {symbol, *positions}, symbol, other) for body in operation.body):
        raise _MixesError
    if not along and not positions:
        return _State.MET
    if len(positions) != 1 or not positions <= own.keys():
        raise _MixesError
    (position,) = positions
    meets = own[position] is not symbol or any(
        index is position for read in reads if read.tensor not in along for _, index in _indices(read)
    )
    return _State.MET if meets else _State.ALONG


def _indices(read: TensorRead) -> Iterator[tuple[Expr, Expr]]:
    """The extents of what is read, each with the index."""
    return zip(read.tensor.shape, read.indices, strict=True)


def _stands_elsewhere(body: Expr, wanted: set[Expr], symbol: Symbol, other: Expr) -> bool:
    """Whether one of the expressions stands anywhere but as the index of one of the two dimensions."""
    pending: list[ExprOrStmt] = [body]
    while pending:
        node = pending.pop()
        if node in wanted:
            return True
        if isinstance(node, TensorRead):
            own = (index in wanted and (extent is symbol or extent is other) for extent, index in _indices(node))
            pending += [index for index, is_own in zip(node.indices, own, strict=True) if not is_own]
        else:
            pending += children(node)
    return False

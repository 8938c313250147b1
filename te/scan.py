"""``te.scan``: tensors whose first axis is time: each step is computed from the steps before it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import overload

from ..base.dtype import DType
from ..base.errors import ExpressionError
from ..ir.build import index_var
from ..ir.constants import ZERO, const, const_int
from ..ir.expr import Axis, Expr, ExprLike, TensorRead
from ..ir.facts import NO_FACTS, Facts, prove
from ..ir.simplify import simplify
from .bounds import is_reached, reads_with_facts
from .compute import check_name, check_shape, scalar_dtype
from .order import operations_behind
from .tensor import ComputeOp, Operation, PlaceholderOp, StateOp, Tensor, make_scan, make_state


def scan_state(shape: Sequence[ExprLike], dtype: str | DType = "float32", name: str = "state") -> Tensor:
    """What stands for an output of ``te.scan`` in its update; the first extent is that of time.

    Raises ``ExpressionError`` as ``te.placeholder`` does, and for a shape without extents.
    """
    kind = scalar_dtype(dtype)
    extents = check_shape(check_name(name), shape, kind)
    if not extents:
        raise ExpressionError(f"{name}: the first axis of a state is time, so it needs one extent at least")
    return make_state(name, kind, extents)


@overload
def scan(
    init: Tensor, update: Tensor, state: Tensor, inputs: Sequence[Tensor] | None = ..., name: str = ...
) -> Tensor: ...
@overload
def scan(
    init: Sequence[Tensor],
    update: Sequence[Tensor],
    state: Sequence[Tensor],
    inputs: Sequence[Tensor] | None = ...,
    name: str = ...,
) -> tuple[Tensor, ...]: ...
def scan(
    init: Tensor | Sequence[Tensor],
    update: Tensor | Sequence[Tensor],
    state: Tensor | Sequence[Tensor],
    inputs: Sequence[Tensor] | None = None,
    name: str = "scan",
) -> Tensor | tuple[Tensor, ...]:
    """Tensors computed step by step along their first axis, time, from one or several states.

    ``state[k]``, from ``te.scan_state``, stands for output k while it grows. ``init[k]``, a compute of shape
    ``(steps, …)``, gives its first steps; ``update[k]``, a compute of the whole shape, says what step t is. The update,
    and the computes between it and the state (the cell), read the state of earlier steps only; what of the cell depends
    on the state has time as its first axis too. ``inputs``, if given, lists what else the update reads of placeholders.

    In a schedule the time loop stays serial; the cell is computed inside of it, and its other loops can be split,
    vectorized, run in parallel.

    Raises ``ExpressionError`` where shapes or dtypes do not fit, and for a read of the state that is not certain to be
    of an earlier step.

    >>> from loopwright import te
    >>> X = te.placeholder((8, 4), name="X")
    >>> state = te.scan_state((8, 4), name="state")
    >>> first = te.compute((1, 4), lambda _, i: X[0, i], name="first")
    >>> step = te.compute((8, 4), lambda t, i: state[t - 1, i] + X[t, i], name="step")
    >>> te.scan(first, step, state, name="cumsum")
    cumsum: float32[8, 4]
    """
    check_name(name)
    inits, updates, states = (_tensors(name, given) for given in (init, update, state))
    steps, time = _check_types(name, inits, updates, states)
    cell = _check_ops(name, inits, updates, states, _cell(updates, states))
    if inputs is not None:
        _check_inputs(name, updates, {*states, *inputs})
    _check_times(name, updates, states, cell, steps)
    extent = simplify(time - const(steps, "index"))
    known = const_int(extent)
    axis = Axis(index_var("t"), const(steps, "index"), extent if known is None or known >= 0 else ZERO, "scan")
    op = make_scan(name, axis, inits, updates, states)
    return op.outputs[0] if isinstance(state, Tensor) else op.outputs


def _tensors(name: str, given: Tensor | Sequence[Tensor]) -> tuple[Tensor, ...]:
    tensors = tuple(given) if isinstance(given, Sequence) else (given,)
    if not tensors or not all(isinstance(t, Tensor) for t in tensors):
        raise ExpressionError(f"{name}: init, update and state are tensors, or sequences of tensors, found {given!r}")
    if len(set(tensors)) != len(tensors):
        raise ExpressionError(f"{name}: a tensor is named twice: each state has its own init and update")
    return tensors


def _check_types(
    name: str, inits: Sequence[Tensor], updates: Sequence[Tensor], states: Sequence[Tensor]
) -> tuple[int, Expr]:
    """The number of first steps, and the extent of time."""
    if not len(inits) == len(updates) == len(states):
        raise ExpressionError(f"{name}: {len(states)} states, {len(inits)} inits and {len(updates)} updates: one each")
    time = states[0].shape[0] if states[0].shape else ZERO
    steps = const_int(inits[0].shape[0]) if inits[0].shape else None
    for first, update, state in zip(inits, updates, states, strict=True):
        if not (state.shape and update.shape and first.shape):
            raise ExpressionError(f"{name}: the first axis of {state!r}, its init and its update is time")
        if state.shape[0] is not time or const_int(first.shape[0]) != steps or steps is None or steps < 1:
            raise ExpressionError(
                f"{name}: all states have one extent of time, and all inits one number of first steps, "
                f"a constant of at least 1; found {state!r} with {first!r}"
            )
        if not _same(update.shape, state.shape) or not _same(first.shape[1:], state.shape[1:]):
            raise ExpressionError(f"{name}: {update!r} and {first!r} do not have the shape of {state!r}")
        if not first.dtype is update.dtype is state.dtype:
            raise ExpressionError(f"{name}: {first!r}, {update!r} and {state!r} are of different dtypes")
    assert steps is not None
    return steps, time


def _same(a: Sequence[Expr], b: Sequence[Expr]) -> bool:
    return len(a) == len(b) and all(x is y for x, y in zip(a, b, strict=True))


def _cell(updates: Sequence[Tensor], states: Sequence[Tensor]) -> list[Operation]:
    """The operations that depend on the state, readers before what they read."""
    depends: dict[Operation, bool] = {}
    for op in operations_behind(updates):
        depends[op] = any(t in states or depends[t.op] for t in op.inputs)
    ends = {t.op for t in updates}
    return [op for op in reversed(depends) if depends[op] or op in ends]


def _check_ops(
    name: str, inits: Sequence[Tensor], updates: Sequence[Tensor], states: Sequence[Tensor], cell: Sequence[Operation]
) -> list[ComputeOp]:
    """The operations of the cell, which must be computes whose first axis is time."""
    for state in states:
        if not isinstance(state.op, StateOp):
            raise ExpressionError(f"{name}: the state {state!r} must come from te.scan_state: it is not an input")
    for role, tensors in (("init", inits), ("update", updates)):
        for tensor in tensors:
            if not isinstance(tensor.op, ComputeOp) or not all(t in tensors for t in tensor.op.outputs):
                raise ExpressionError(f"{name}: each {role} is a te.compute, with all of its outputs: not {tensor!r}")
    time = states[0].shape[0]
    computes: list[ComputeOp] = []
    for op in cell:
        if not isinstance(op, ComputeOp):
            raise ExpressionError(f"{name}: {op} depends on the state: between state and update only computes stand")
        if not op.axis or op.axis[0].extent is not time:
            raise ExpressionError(
                f"{name}: {op} depends on the state, so its first axis must be time, of extent {time}"
            )
        computes.append(op)
    for tensor in inits:
        if tensor.op in cell or any(t in states or t.op in cell for t in tensor.op.inputs):
            raise ExpressionError(f"{name}: {tensor!r} gives the first steps, so it cannot depend on the state")
    return computes


def _check_inputs(name: str, updates: Sequence[Tensor], known: set[Tensor]) -> None:
    seen: set[Tensor] = set()
    stack = [*updates]
    while stack:
        tensor = stack.pop()
        if tensor in seen or tensor in known:
            continue
        seen.add(tensor)
        if isinstance(tensor.op, PlaceholderOp):
            raise ExpressionError(f"{name}: the update reads {tensor!r}, which is not among its inputs")
        stack += tensor.op.inputs


def _check_times(
    name: str,
    updates: Sequence[Tensor],
    states: Sequence[Tensor],
    cell: Sequence[ComputeOp],
    steps: int,
) -> None:
    """Each step needs earlier steps only. ``first`` is the earliest step that an operation is computed for."""
    updating = {t.op for t in updates}
    first: dict[Operation, int] = dict.fromkeys(updating, steps)
    for op in cell:
        now = op.axis[0].var
        facts = _facts(op, first[op])
        for read, known, path in reads_with_facts(op, facts):
            if not is_reached(path):
                continue
            when = read.indices[0] if read.indices else ZERO
            if read.tensor in states:
                _check_state_read(name, op, read, now, known)
            elif isinstance(read.tensor, Tensor) and read.tensor.op in cell:
                lag = const_int(simplify(now - when))
                allowed = 0 if read.tensor.op in updating else first[op]
                if lag is None or not 0 <= lag <= allowed:
                    raise ExpressionError(
                        f"{name}: {op.name} reads {read} at another step than its own, {now}: "
                        "read the state there, which holds what earlier steps gave"
                    )
                first[read.tensor.op] = min(first.get(read.tensor.op, steps), first[op] - lag)


def _facts(op: ComputeOp, first: int) -> Facts:
    """What holds where an operation of the cell is computed, of time but that it is not before ``first``."""
    facts = NO_FACTS.with_condition(op.axis[0].var >= first)
    for axis in op.axis[1:]:
        if const_int(axis.extent) != 0:
            facts = facts.with_range(axis.var, axis.min, axis.extent)
    return facts


def _check_state_read(name: str, op: ComputeOp, read: TensorRead, now: Expr, facts: Facts) -> None:
    when = read.indices[0]
    if not prove(when < now, facts):
        raise ExpressionError(
            f"{name}: {op.name} reads {read} at step {when}, which is not certain to come before {now}: "
            f"a step reads the state of earlier steps, {now} - 1 and so on"
        )
    if not prove(when >= ZERO, facts):
        raise ExpressionError(
            f"{name}: {op.name} reads {read} at step {when}, which may be before the first: "
            "give more first steps by init, or guard the read with te.if_then_else"
        )

"""Reductions in lanes, as ``te.sum(…, lanes=16)``: partial results side by side, folded by halves or by neighbours.

``te.compute`` takes them apart, so that schedules meet the stages whose order the definition fixes: the lanes, what
half as many, a quarter … of them hold, and the last two folded.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..base.errors import ExpressionError
from ..ir.build import index_var
from ..ir.constants import ONE, ZERO, const_int
from ..ir.contents import substitute
from ..ir.expr import Axis, Expr, IfThenElse, Reduce, ReduceVar, TensorRead, Var
from ..ir.makers import as_index
from ..ir.simplify import simplify
from ..ir.visit import walk
from .tensor import ComputeOp, Tensor, make_compute


def checked_lanes(name: str, lanes: object, neighbours: object) -> int:
    """The number of lanes of a reduction, 1 for None. Raises ``ExpressionError`` for what is no power of two from 2 on,
    and for ``neighbours`` that is no bool, or without lanes."""
    if type(neighbours) is not bool:
        raise ExpressionError(f"{name}: neighbours is True or False, found {neighbours!r}")
    if lanes is None:
        if neighbours:
            raise ExpressionError(f"{name}: neighbours says how lanes are folded, so it needs lanes")
        return 1
    if type(lanes) is not int or lanes < 2 or lanes & (lanes - 1):
        raise ExpressionError(f"{name}: lanes is a power of two, from 2 on, found {lanes!r}")
    return lanes


def computed_in_lanes(op: ComputeOp) -> ComputeOp:
    """A compute that is a reduction in lanes, taken apart: its ``parts`` fold the lanes, itself the last two of them.

    Lane ``l`` folds the terms ``l``, ``l + lanes``, … of the last reduction axis, in this order, inside of those of the
    other axes. A term beyond the end is the reducer's identity, so that all lanes fold as many. Raises
    ``ExpressionError`` where the bounds of the last axis differ from element to element.
    """
    name, axis = op.name, op.axis
    body = [reduce for reduce in op.body if isinstance(reduce, Reduce)]
    first, own = body[0], {a.var for a in axis}
    last = first.axes[-1]
    if any(node in own or isinstance(node, TensorRead) for bound in (last.min, last.extent) for node in walk(bound)):
        raise ExpressionError(f"{name}: {last.name} is folded in lanes, so it must be as long for all elements")
    parts = [_lanes(name, axis, body)]
    width = first.lanes
    while width > 2:
        width //= 2
        parts.append(_folded(f"{name}.half{width}", parts[-1], width, first))
    elements = [a.var for a in axis]
    total = _combined(first, parts[-1], (*elements, ZERO), (*elements, ONE))
    return make_compute(name, axis, tuple(total[reduce.index] for reduce in body), tuple(parts))


def _lanes(name: str, axis: Sequence[Axis], body: Sequence[Reduce]) -> ComputeOp:
    """The terms folded in each lane: those of the last axis a block of lanes further each time."""
    first, lanes = body[0], as_index(body[0].lanes)
    rows, values = _renewed(axis, {})
    others, values = _renewed(first.axes[:-1], values)
    last = first.axes[-1]
    extent = substitute(last.extent, values)
    block = Axis(ReduceVar("block"), ZERO, simplify((extent + (lanes - 1)) // lanes), "reduce")
    lane = Axis(index_var("lane"), ZERO, lanes, "spatial")
    number = block.var * lanes + lane.var
    values[last.var] = number if last.min is ZERO else substitute(last.min, values) + number
    sources = tuple(substitute(source, values) for source in first.sources)
    where = None if first.condition is None else substitute(first.condition, values)
    if const_int(simplify(extent % lanes)) != 0:
        sources = tuple(
            IfThenElse(number < extent, a, b) for a, b in zip(sources, first.combiner.identity, strict=True)
        )
    made = tuple(Reduce(first.combiner, sources, (*others, block), where, k) for k in range(len(sources)))
    return make_compute(f"{name}.lanes", (*rows, lane), made)


def _renewed(axes: Sequence[Axis], values: Mapping[Var, Expr]) -> tuple[tuple[Axis, ...], dict[Var, Expr]]:
    """Axes of new variables, and ``values`` with these in place of the old ones."""
    known = dict(values)
    made: list[Axis] = []
    for old in axes:
        var = index_var(old.name) if old.kind == "spatial" else ReduceVar(old.name)
        made.append(Axis(var, substitute(old.min, known), substitute(old.extent, known), old.kind))
        known[old.var] = var
    return tuple(made), known


def _folded(name: str, before: ComputeOp, width: int, reduce: Reduce) -> ComputeOp:
    """Half as many lanes: each folded with one of the upper half, or with its neighbour."""
    rows, _ = _renewed(before.axis[:-1], {})
    lane = Axis(index_var("lane"), ZERO, as_index(width), "spatial")
    elements = [a.var for a in rows]
    low, high = (lane.var * 2, lane.var * 2 + 1) if reduce.neighbours else (lane.var, lane.var + width)
    return make_compute(name, (*rows, lane), _combined(reduce, before, (*elements, low), (*elements, high)))


def _combined(reduce: Reduce, before: ComputeOp, low: tuple[Expr, ...], high: tuple[Expr, ...]) -> tuple[Expr, ...]:
    """What the combiner makes of two elements, for all its outputs."""
    combiner = reduce.combiner
    values: dict[Var, Expr] = {}
    for variables, place in ((combiner.lhs, low), (combiner.rhs, high)):
        values.update(zip(variables, (tensor[place] for tensor in before.outputs), strict=True))
    return tuple(substitute(result, values) for result in combiner.results)


def lane_parts(total: Tensor) -> tuple[Tensor, ...]:
    """The first outputs of the operations that fold the lanes of a reduction, in order: the lanes, then half as many
    each; none for what is not reduced in lanes. Raises ``ExpressionError`` for what is no tensor."""
    if not isinstance(total, Tensor):
        raise ExpressionError(f"lane_parts is of a tensor, found {total!r}")
    return tuple(part.outputs[0] for part in total.op.parts) if isinstance(total.op, ComputeOp) else ()

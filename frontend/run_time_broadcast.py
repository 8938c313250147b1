"""Values that meet in an operator which broadcasts, with extents that only a run knows: either may be 1 then.

An extent that a run computes is repeated where it is 1 and meets a number, or another dimension. Elsewhere two that
differ are taken for one, which each run checks (``compiler/passes/constraints.py``): dimensions of inputs differ by
name far more often than by number, and code for equal ones is the fastest. In the body of a loop that holds of the
dimensions that a run computes, too, since what an iteration carries keeps its extents; but where what is carried begins
with an extent of 1, and meets a dimension of an input, as the first state of a recurrence for a batch, it is repeated.
Which extents meet in a body is noted: it is converted again, so that they are repeated (``loops.py``, ``scans.py``).
In a branch all dimensions that meet a number are repeated: what only one branch asks says nothing of the inputs.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from itertools import combinations

from ..graph.node import Call, Node, tensor_of
from ..graph.types import TensorType
from ..ir.constants import ONE, ZERO, const_int
from ..ir.contents import free_vars
from ..ir.expr import Expr, Var
from ..ir.makers import maximum, minimum
from ..ir.simplify import simplify
from ..ops.families.repeat import stretched_to_extents
from .onnx_node import OnnxNode
from .shape_values import ShapeValues


def broadcast_at_run_time(node: OnnxNode, values: Sequence[Node], behind: int = 0) -> list[Node]:
    """The values, repeated along axes of extent 1 where that is known in a run only; but for so many axes ``behind``,
    as of the matrices of products."""
    if not all(isinstance(value.type, TensorType) for value in values):
        return list(values)
    born = _born_dimensions(node.shapes)
    if not born and not node.shapes.conditions and not node.shapes.meetings:
        return list(values)
    shapes = [tensor_of(value).shape for value in values]
    rank = max(map(len, shapes))
    extents = [_extent([s[dim] for s in shapes if len(s) >= -dim], born, node.shapes) for dim in range(-rank, -behind)]
    extents += [None] * min(behind, rank)
    return [_stretched(node, value, extents, born) for value in values]


def _born_dimensions(shapes: ShapeValues) -> frozenset[Expr]:
    """The dimensions that a run computes of values, as far as they are known here."""
    witnesses = (tensor_of(node).shape for node in shapes.inputs if isinstance(node, Call))
    return frozenset(extent for shape in witnesses for extent in shape if isinstance(extent, Var))


def _is_born(extent: Expr, born: frozenset[Expr]) -> bool:
    return not born.isdisjoint(free_vars(extent))


def may_meet_number_as_one(extent: Expr, shapes: ShapeValues) -> bool:
    """Whether an extent that meets a number may be 1 instead."""
    return _may_be_one(extent, _born_dimensions(shapes), shapes)


def _may_be_one(extent: Expr, born: frozenset[Expr], shapes: ShapeValues) -> bool:
    return _is_born(extent, born) or (bool(shapes.conditions) and const_int(extent) is None)


def _extent(met_here: Sequence[Expr], born: frozenset[Expr], shapes: ShapeValues) -> Expr | None:
    """What extents that meet broadcast to; None where nothing has to be repeated that is not known to be."""
    different = [e for e in dict.fromkeys(met_here) if e is not ONE]
    if len(different) < 2:
        return None
    number = next((e for e in different if const_int(e) is not None), None)
    if number is not None:
        return number if any(_may_be_one(e, born, shapes) for e in different) else None
    if all(simplify(e - different[0], shapes.facts(e)) is ZERO for e in different[1:]):
        return None
    if shapes.bounds.loops:
        differ = _begins_as_one(different, born, shapes)
    else:
        differ = bool(shapes.conditions) or any(_is_born(e, born) for e in different)
    if differ or shapes.unlike.issuperset(_parts(different, shapes)):
        return _broadcast(different, shapes)
    if shapes.meetings:
        shapes.meetings[-1].update(dict.fromkeys(combinations(different, 2)))
    return None


def _begins_as_one(extents: Sequence[Expr], born: frozenset[Expr], shapes: ShapeValues) -> bool:
    """Whether dimensions of inputs meet, in a loop, what is carried and is 1 before the first iteration."""
    parts = _parts(extents, shapes)
    return any(part in shapes.first_one for part in parts) and any(not _is_born(part, born) for part in parts)


def _parts(extents: Sequence[Expr], shapes: ShapeValues) -> tuple[Expr, ...]:
    return tuple(dict.fromkeys(part for e in extents for part in shapes.broadcast.get(e, (e,))))


def _broadcast(extents: Sequence[Expr], shapes: ShapeValues) -> Expr:
    """What dimensions broadcast to in a run: the largest of them, or 0 where one is that. What some of these broadcast
    to before stands for them."""
    parts = _parts(extents, shapes)
    for extent in extents:
        if set(shapes.broadcast.get(extent, ())) == set(parts):
            return extent
    made = simplify(reduce(maximum, parts) * minimum(reduce(minimum, parts), ONE))
    shapes.broadcast[made] = parts
    return made


def _stretched(node: OnnxNode, value: Node, extents: Sequence[Expr | None], born: frozenset[Expr]) -> Node:
    """A value with these extents, aligned at the right, where they are given: what is no dimension of a run keeps to a
    number."""
    own = tensor_of(value).shape
    wanted = [
        1
        if extent is None
        or extent is mine
        or (const_int(extent) is not None and not _may_be_one(mine, born, node.shapes))
        else extent
        for mine, extent in zip(own, extents[len(extents) - len(own) :], strict=True)
    ]
    if not any(isinstance(extent, Expr) for extent in wanted):
        return value
    return stretched_to_extents(value, wanted, node.shapes.inputs)

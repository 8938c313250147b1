"""Which axes of a compute become vector lanes, rows of a register tile, and one loop."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from ..ir.constants import const_int
from ..ir.expr import Axis, Expr, TensorRead, Var
from ..ir.visit import children
from ..lowering.access_strides import move_alike, strides_along
from ..lowering.schedule import StageView
from ..te.tensor import ComputeOp


def best_lanes(op: ComputeOp, bodies: tuple[Expr, ...]) -> Axis:
    """The spatial axis along which most reads stay or move to the next element; the last of several."""

    def rank(numbered: tuple[int, Axis]) -> tuple[bool, int, int]:
        position, axis = numbered
        strides = strides_along(bodies, axis.var)
        return const_int(axis.extent) != 1, -sum(stride not in (0, 1) for stride in strides), position

    return max(enumerate(op.axis), key=rank)[1]


def best_rows(op: ComputeOp, bodies: tuple[Expr, ...], lanes_axis: Axis) -> Axis | None:
    """The spatial axis that most of the vectors do not depend on: one load of them serves several rows. There may be
    one row where it is open, so that it has to spare some of them."""
    moving = [k for k, stride in enumerate(strides_along(bodies, lanes_axis.var)) if stride != 0]

    def shared(axis: Axis) -> int:
        strides = strides_along(bodies, axis.var)
        return sum(strides[k] == 0 for k in moving)

    def is_several(axis: Axis) -> bool:
        extent = const_int(axis.extent)
        return shared(axis) > 0 if extent is None else extent > 1

    candidates = [axis for axis in op.axis if axis is not lanes_axis and is_several(axis)]
    return max(reversed(candidates), key=shared, default=None)


def neighbouring(stage: StageView, op: ComputeOp) -> int:
    """How many of the innermost axes can be one loop: all that is read moves with them as the result does, or not. Axes
    of one element do not count."""
    moving = [d for d, axis in enumerate(op.axis) if const_int(axis.extent) != 1]
    least = len(op.axis) - (moving[-1] if moving else 0)
    candidates = range(len(op.axis), least, -1)
    return next((n for n in candidates if _are_one_loop(stage.bodies, _several(op.axis[-n:]))), least)


def _several(axes: Sequence[Axis]) -> list[Axis]:
    """The axes that have more than one element, or an open number."""
    return [axis for axis in axes if const_int(axis.extent) != 1]


def _are_one_loop(bodies: tuple[Expr, ...], axes: Sequence[Axis]) -> bool:
    own = {axis.var for axis in axes}
    return move_alike(bodies, axes) and not any(_counts(body, own) for body in bodies)


def _counts(body: Expr, axes: Collection[Var]) -> bool:
    """Whether a value depends on an axis otherwise than by what it reads."""
    rest = [body]
    while rest:
        node = rest.pop()
        if isinstance(node, Var) and node in axes:
            return True
        if not isinstance(node, TensorRead):
            rest.extend(child for child in children(node) if isinstance(child, Expr))
    return False

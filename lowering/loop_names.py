"""What users name loops, dimensions and stages by, and the one place where a name becomes what it stands for.

Steps hold ids and names of stages only (``step.py``); ``schedule.py`` asks here before it makes one.
"""

from __future__ import annotations

from typing import TypeAlias

from ..base.errors import ScheduleError
from ..ir.expr import Axis
from ..te.tensor import Operation, Tensor
from .report import literal, schedule_error
from .stage import Stage
from .state import ScheduleState


class LoopView:
    """A loop of a stage, by its stable id. It goes stale when a step splits or fuses the loop.

    ``reduce`` tells whether it runs over a reduction axis.
    """

    __slots__ = ("id", "name", "reduce", "stage")

    def __init__(self, stage: str, loop_id: str, name: str, reduce: bool) -> None:
        self.stage = stage
        self.id = loop_id
        self.name = name
        self.reduce = reduce

    def __repr__(self) -> str:
        return f"{self.name} ({self.id})"


LoopLike: TypeAlias = LoopView | Axis | str
"""A loop as users name it: what split or fuse gave, an axis of the compute, its name as ``"i_outer"``, or an id as
``"C#2"``."""


def view_of(stage: Stage, loop: str) -> LoopView:
    """The view of a loop by its id; of an id that the stage does not have, too, which the next step will refuse."""
    known = stage.loops.get(loop)
    return LoopView(stage.name, loop, loop if known is None else known.name, known is not None and known.reduce)


def stage_named(state: ScheduleState, stage: Tensor | Operation | str) -> Stage:
    """The stage of a tensor, of an operation, or of this name, which may be that of one of its tensors.

    Raises ``ScheduleError`` where there is none, and for the name of tensors of several stages.
    """
    if isinstance(stage, str):
        return _stage_of_name(state, stage)
    if isinstance(stage, Tensor):
        return state.stage_of(stage)
    if hasattr(stage, "outputs"):
        return state.stage_of(stage.outputs[0])
    raise ScheduleError(f"a stage is named by its tensor, its operation or its name, not by {stage!r}")


def _stage_of_name(state: ScheduleState, name: str) -> Stage:
    """The stage of that name; else that of a tensor of the name, as ``"S.v0"`` is one of S."""
    named = any(stage.name == name for stage in state.stages)
    found = [] if named else [stage for stage in state.stages if any(t.name == name for t in stage.tensors)]
    if len(found) > 1:
        raise ScheduleError(
            f"{len(found)} stages compute a tensor named {name}: {', '.join(stage.name for stage in found)}; name one"
        )
    return found[0] if found else state.stage(name)


def loop_id(state: ScheduleState, stage: Stage, loop: LoopLike) -> str:
    """The id of a loop of a stage, however it is named; it may be stale, which the step that holds it will refuse.

    Raises ``ScheduleError`` for loops of other stages, and for a name that several loops have.
    """
    match loop:
        case str():
            return _id_of_name(state, stage, loop)
        case LoopView():
            if loop.stage != stage.name:
                raise ScheduleError(f"loop {loop!r} belongs to stage {loop.stage}, not to {stage.name}")
            return loop.id
        case Axis():
            for found, axis in stage.axis_of.items():
                if axis.var is loop.var:
                    return found
            raise ScheduleError(
                f"axis {loop.name} is not one of {stage.name}: its axes are "
                f"{', '.join(a.name for a in stage.axis_of.values()) or 'none'}"
                f" (after cache_write or rfactor, use s[tensor].op.axis of the stage that computes)"
            )
    raise ScheduleError(f"a loop is named by what split or fuse gave, by an axis, its name or its id, not by {loop!r}")


def _id_of_name(state: ScheduleState, stage: Stage, name: str) -> str:
    """The loop of that name which stands; else the last one that had the name; else the text, as an id."""
    if name in stage.loops:
        return name
    standing = [leaf for leaf in stage.leaves if stage.loops[leaf].name == name]
    if len(standing) > 1:
        ids = [literal(leaf) for leaf in standing]
        raise schedule_error(
            state,
            f"{stage.name} has {len(standing)} loops named {name}",
            f"Name one by its id, outermost first: {', '.join(ids)}.",
            standing,
        )
    past = [known for known, loop in stage.loops.items() if loop.name == name]
    return next(iter((*standing, *reversed(past))), name)


def dimension_named(stage: Stage, dim: int | Axis | str) -> int:
    """The position of a dimension, given itself, or as an axis of the compute or its name; -1 where there is none.

    Raises ``ScheduleError`` for a name that no axis has, or several have.
    """
    if isinstance(dim, Axis):
        found = [k for k, axis in enumerate(stage.compute.axis) if axis.var is dim.var]
        return found[0] if found else -1
    if not isinstance(dim, str):
        return dim
    names = [axis.name for axis in stage.compute.axis]
    if names.count(dim) != 1:
        raise ScheduleError(
            f"{stage.name} has {names.count(dim) or 'no'} axes named {dim}; its axes are {', '.join(names) or 'none'}: "
            "give the position of the dimension, from 0"
        )
    return names.index(dim)

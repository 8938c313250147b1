"""One stage of a schedule as users hold it, with a method for each primitive on its loops; a view without state."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from ..base.brief import listed
from ..base.errors import ScheduleError
from ..ir.expr import Axis, Expr
from ..te.tensor import ComputeOp, Operation, Tensor
from .index_map import IndexMap
from .loop_names import LoopLike, LoopView, dimension_named, loop_id, view_of
from .nest.bodies import inline_bodies
from .primitives import (
    Accumulate,
    Annotate,
    ComputeAt,
    ComputeInline,
    ComputeRoot,
    Fuse,
    Parallel,
    Prefetch,
    Reorder,
    ReverseComputeAt,
    RoundUp,
    SetScope,
    Split,
    StorageAlign,
    Tensorize,
    TransformLayout,
    Unroll,
    Vectorize,
)
from .relations import Tail
from .rules.loops import stage_with_loops
from .stage import Inlined, Stage
from .step_arguments import map_text, plain
from .tensor_intrinsic import TensorIntrinsic

if TYPE_CHECKING:
    from .schedule import Schedule

StageLike: TypeAlias = "StageView | Tensor | Operation | str"
"""A stage as users name it: ``s[tensor]``, what it computes, or its name, as ``"C"``."""


class StageView:
    """One stage of a schedule; primitives on its loops are methods here."""

    __slots__ = ("_schedule", "name")

    def __init__(self, schedule: Schedule, name: str) -> None:
        self._schedule = schedule
        self.name = name

    def __repr__(self) -> str:
        return f"stage {self.name}: loops {listed(loop.name for loop in self.loops) or 'none'}"

    @property
    def _stage(self) -> Stage:
        return self._schedule.state.stage(self.name)

    @property
    def op(self) -> Operation:
        """The operation that the stage computes: ``op.axis`` and ``op.reduce_axis`` are its first loops."""
        return self._stage.op

    @property
    def layout(self) -> IndexMap | None:
        """Where the elements of the results lie, as ``transform_layout`` says; None where they lie row by row."""
        return self._stage.layout

    @property
    def computes(self) -> tuple[ComputeOp, ...]:
        """The compute of the stage, and those of the stages that are inlined into it."""
        state = self._schedule.state
        found = [self._stage]
        for stage in found:
            inputs = [state.stage_of(tensor) for tensor in stage.op.inputs]
            found += [s for s in inputs if isinstance(s.place, Inlined) and s not in found]
        return tuple(stage.compute for stage in found)

    @property
    def bodies(self) -> tuple[Expr, ...]:
        """What is computed of each output of a compute, with the inlined stages put in where they are read."""
        return inline_bodies(self._schedule.state)[self.name]

    @property
    def loops(self) -> tuple[LoopView, ...]:
        """The loops that stand now, outermost first."""
        stage = self._stage
        return tuple(view_of(stage, leaf) for leaf in stage.leaves)

    def split(
        self, loop: LoopLike, factor: int | None = None, nparts: int | None = None, tail: Tail = "guard"
    ) -> tuple[LoopView, LoopView]:
        """Split a loop into an outer and an inner one; gives both. See ``Split``."""
        self._schedule.apply(Split(self.name, self.loop_id(loop), plain(factor), plain(nparts), tail))
        outer, inner = self._newest()
        return outer, inner

    def round_up(self, loop: LoopLike, factor: int | None = None, to: int | None = None) -> LoopView:
        """Let a loop run on to a multiple of ``factor``, or ``to`` an extent; gives it. See ``RoundUp``."""
        self._schedule.apply(RoundUp(self.name, self.loop_id(loop), plain(factor), plain(to)))
        (rounded,) = self._newest()
        return rounded

    def tile(
        self, y: LoopLike, x: LoopLike, y_factor: int, x_factor: int, tail: Tail = "guard"
    ) -> tuple[LoopView, LoopView, LoopView, LoopView]:
        """Split two loops, and put the outer halves around the inner ones: y_outer, x_outer, y_inner, x_inner."""
        y, x = self._standing((y, x))
        with self._schedule.all_or_nothing():
            y_outer, y_inner = self.split(y, y_factor, tail=tail)
            x_outer, x_inner = self.split(x, x_factor, tail=tail)
            self.reorder(y_outer, x_outer, y_inner, x_inner)
        return y_outer, x_outer, y_inner, x_inner

    def fuse(self, *loops: LoopLike) -> LoopView:
        """Make one loop of several that stand directly inside each other, the outermost first. See ``Fuse``."""
        if not loops:
            raise ScheduleError("fuse needs at least one loop")
        fused, *others = self._standing(loops)
        with self._schedule.all_or_nothing():
            for loop in others:
                self._schedule.apply(Fuse(self.name, fused.id, loop.id))
                (fused,) = self._newest()
        return fused

    def reorder(self, *loops: LoopLike) -> None:
        """Put loops into the given order, outermost first. See ``Reorder``."""
        self._schedule.apply(Reorder(self.name, tuple(self.loop_id(loop) for loop in loops)))

    def accumulate(self, loop: LoopLike) -> None:
        """Fold each element along a loop from the one before it. See ``Accumulate``."""
        self._schedule.apply(Accumulate(self.name, self.loop_id(loop)))

    def vectorize(self, loop: LoopLike) -> None:
        """Run the iterations of a loop as one vector operation. See ``Vectorize``."""
        self._schedule.apply(Vectorize(self.name, self.loop_id(loop)))

    def unroll(self, loop: LoopLike) -> None:
        """Write out the iterations of a loop. See ``Unroll``."""
        self._schedule.apply(Unroll(self.name, self.loop_id(loop)))

    def parallel(self, loop: LoopLike) -> None:
        """Spread the iterations of a loop over threads. See ``Parallel``."""
        self._schedule.apply(Parallel(self.name, self.loop_id(loop)))

    def compute_at(self, target: StageLike, loop: LoopLike) -> None:
        """Compute this stage inside a loop of another. See ``ComputeAt``."""
        other = self._schedule[target]
        self._schedule.apply(ComputeAt(self.name, other.name, other.loop_id(loop)))

    def reverse_compute_at(self, target: StageLike, loop: LoopLike) -> None:
        """Compute this stage inside a loop of its producer, after the part that it reads. See ``ReverseComputeAt``."""
        other = self._schedule[target]
        self._schedule.apply(ReverseComputeAt(self.name, other.name, other.loop_id(loop)))

    def compute_inline(self) -> None:
        """Compute this stage where it is read. See ``ComputeInline``."""
        self._schedule.apply(ComputeInline(self.name))

    def compute_root(self) -> None:
        """Compute this stage whole, before the stages that read it. See ``ComputeRoot``."""
        self._schedule.apply(ComputeRoot(self.name))

    def tensorize(self, loop: LoopLike, intrinsic: TensorIntrinsic | str) -> None:
        """Replace a loop and all inside it by an intrinsic, given itself or by its name. See ``Tensorize``."""
        name = intrinsic.name if isinstance(intrinsic, TensorIntrinsic) else intrinsic
        self._schedule.apply(Tensorize(self.name, self.loop_id(loop), name))

    def prefetch(self, tensor: StageLike, loop: LoopLike, distance: int) -> None:
        """Fetch ahead what the iteration ``distance`` later reads of a tensor, or stores. See ``Prefetch``."""
        self._schedule.apply(Prefetch(self.name, self._schedule[tensor].name, self.loop_id(loop), plain(distance)))

    def annotate(self, loop: LoopLike, key: str, value: str | int | bool) -> None:
        """Write a note at a loop. See ``Annotate``."""
        self._schedule.apply(Annotate(self.name, self.loop_id(loop), key, value))

    def set_scope(self, scope: str) -> None:
        """Say in which kind of memory the elements are kept. See ``SetScope``."""
        self._schedule.apply(SetScope(self.name, scope))

    def storage_align(self, dim: int | Axis | str, factor: int, offset: int = 0) -> None:
        """Pad the memory so that a dimension's stride is a multiple of factor, plus offset. See ``StorageAlign``."""
        position = dimension_named(self._stage, dim)
        self._schedule.apply(StorageAlign(self.name, position, plain(factor), plain(offset)))

    def transform_layout(self, index_map: Callable[..., Any] | str) -> None:
        """Choose where each element is stored: ``lambda i, j: (j // 8, i, j % 8)``. See ``TransformLayout``."""
        self._schedule.apply(TransformLayout(self.name, map_text(index_map, self._stage)))

    def _standing(self, loops: Sequence[LoopLike]) -> list[LoopView]:
        """The loops that are named, after a check that all of them stand: for what takes several steps."""
        ids = tuple(self.loop_id(loop) for loop in loops)
        stage = stage_with_loops(self._schedule.state, self.name, ids)
        return [view_of(stage, loop) for loop in ids]

    def _newest(self) -> tuple[LoopView, ...]:
        stage = self._stage
        return tuple(view_of(stage, new) for new in stage.relations[-1].made)

    def loop_id(self, loop: LoopLike) -> str:
        """The id of a loop of this stage, however it is named; it may be stale."""
        return loop_id(self._schedule.state, self._stage, loop)

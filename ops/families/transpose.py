"""transpose: a tensor with its axes in another order."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from ... import te
from ...base.dataclass import dataclass
from ...base.errors import TypeInferenceError
from ...base.target import Target
from ...graph.layout import MOST_AXES, Layout
from ...graph.node import Call, Node, tensor_of
from ...graph.types import TensorType, Type
from ...ir.constants import ONE, ZERO, const_int
from ...ir.expr import Expr
from ...ir.interval import Bound, interval_of
from ...ir.makers import as_index
from ...ir.row_major import ravel_index, unravel_index
from ...ir.simplify import simplify
from ...lowering.schedule import Schedule
from ...schedules.around import schedule_around
from ...schedules.register_transpose import interleave_rows, turn_tiles
from ...te.tensor import Tensors
from ..definition.arguments import axis_of, integer_list, naming
from ..definition.attrs import Attrs, attr
from ..definition.condition import clause
from ..definition.layout_rule import LayoutCandidate, ValueLayout
from ..definition.memory_view import RunOfArgument
from ..definition.op_group import OpGroup
from ..definition.pattern_schedules import injective_schedule
from ..definition.registry import OpPattern, register_op
from ..definition.relations import tensor_argument
from ..definition.strategy import OpStrategy, register_strategy
from .rearranged import RearrangedStages, rearranging_cycles

GROUP = OpGroup.SHAPES

MOST_LANES = 16
"""Of narrow elements, vectors are shorter than they could be: tiles of whole ones would be many instructions."""

NARROW_LANES = 4
"""Vectors of tiles with a side that is shorter than usual ones: more of them fill such a side but for a little."""

MOST_INTERLEAVED = 4
"""So many vectors at most are shuffled into each one that is written."""


@dataclass(frozen=True)
class TransposeAttrs(Attrs):
    """The attributes of ``transpose``."""

    axes: tuple[int, ...] = attr("for each axis of the result, the axis of the argument that it is")


def _relation(types: Sequence[Type], attrs: TransposeAttrs) -> Type:
    x = tensor_argument(types[0], "x")
    if sorted(attrs.axes) != list(range(x.ndim)):
        raise TypeInferenceError(f"axes {attrs.axes} are not the {x.ndim} axes of x in some order")
    return TensorType(tuple(x.shape[axis] for axis in attrs.axes), x.dtype)


def _compute(attrs: TransposeAttrs, inputs: Tensors, result: Type) -> te.Tensor:
    (x,) = inputs
    position = {axis: k for k, axis in enumerate(attrs.axes)}

    def element(*i: te.Axis) -> Expr:
        return x[tuple(i[position[axis]] for axis in range(x.ndim))]

    return te.compute([x.shape[axis] for axis in attrs.axes], element, name="transpose")


@dataclass(frozen=True, slots=True)
class AxisRuns:
    """The axes of the result in runs that are neighbours, in order, in the source too: each counts as one axis."""

    runs: tuple[range, ...]
    axes: tuple[int, ...]

    @property
    def in_source(self) -> list[range]:
        """The runs in their order in the source."""
        return sorted(self.runs, key=lambda run: self.axes[run[0]])

    def lengths(self, result: TensorType) -> list[int | None]:
        """How long the runs of the result are, as far as is known."""
        return [const_int(simplify(math.prod(_extents(result, run), start=ONE))) for run in self.runs]

    def sides(self, result: TensorType) -> tuple[Bound, Bound]:
        """How long the rows of the source and those of the result are at most, as far as is known."""
        rows = (_extents(result, run) for run in (self.in_source[-1], self.runs[-1]))
        first, second = (interval_of(simplify(math.prod(extents, start=ONE))).high for extents in rows)
        return first, second

    def compute(self, attrs: TransposeAttrs, inputs: Tensors, result: Type) -> RearrangedStages:
        """The definition, of a source whose runs are axes: it is inlined."""
        (x,) = inputs
        kind = tensor_argument(result, "result")
        if len(self.runs) < x.ndim:

            def joined(*place: te.Axis) -> Expr:
                runs = zip(self.in_source, place, strict=True)
                return x[tuple(k for run, i in runs for k in unravel_index(as_index(i), _extents(kind, run)))]

            shape = [math.prod(_extents(kind, run), start=ONE) for run in self.in_source]
            x = te.compute([simplify(extent) for extent in shape], joined, name="transpose.source")

        def element(*i: te.Axis) -> Expr:
            return x[tuple(ravel_index([as_index(i[k]) for k in run], _extents(kind, run)) for run in self.in_source)]

        return RearrangedStages(te.compute(kind.shape, element, name="transpose"), x)


@dataclass(frozen=True, slots=True)
class TiledTranspose:
    """Square tiles of ``lanes`` vectors, which are read along the rows of the source, transposed in registers, and
    written along those of the result."""

    runs: AxisRuns
    lanes: int

    @classmethod
    def of(cls, runs: AxisRuns, result: TensorType, lanes: int) -> TiledTranspose:
        """Tiles of vectors of so many lanes, or of short ones where a side is known to be shorter."""
        is_narrow = any(extent is not None and extent < lanes for extent in runs.sides(result))
        return cls(runs, min(lanes, NARROW_LANES) if is_narrow else lanes)

    def fills(self, result: TensorType) -> bool:
        """Whether both sides of a tile are as long as vectors, as far as is known."""
        return all(extent is None or extent >= self.lanes for extent in self.runs.sides(result))

    def schedule(self, attrs: TransposeAttrs, anchor: RearrangedStages, outputs: Tensors, target: Target) -> Schedule:
        """The schedule of the definition: a square tile is read along the rows of the source, turned in registers, and
        written along those of the result."""
        schedule, main = schedule_around(anchor.result, outputs, [], target)
        stage = schedule[main]
        runs, source = self.runs.runs, self.runs.in_source
        loops = [stage.fuse(*(stage.loops[run[0] : run[0] + len(run)])) for run in reversed(runs)][::-1]
        last = loops.pop()
        read = runs.index(source[-1])
        loops[read], along = stage.split(loops[read], factor=self.lanes)
        block, across = stage.split(last, factor=self.lanes)
        stage.reorder(*loops, block, along, across)
        stage.unroll(along)
        stage.vectorize(across)
        stage.parallel(stage.fuse(*loops))
        turn_tiles(schedule, anchor.source, anchor.result, stage, block, source.index(runs[-1]), self.lanes)
        return schedule


@dataclass(frozen=True, slots=True)
class InterleavedTranspose:
    """Few long rows become the elements of many short ones, as channels of an image do: a vector of each row is read,
    and as many vectors are written, whose elements come from all of them in turn. The last run of the result is the one
    of the rows, and the last but one runs along them.
    """

    runs: AxisRuns
    lanes: int

    def serves(self, result: TensorType) -> bool:
        """Whether the result has 2 to ``MOST_INTERLEAVED`` elements of different rows side by side, and the rows are as
        long as a vector at least, or of open length."""
        runs, axes = self.runs.runs, self.runs.axes
        if len(runs) < 2 or axes[runs[-2][-1]] != len(axes) - 1:
            return False
        length, rows = self.runs.lengths(result)[-2:]
        return rows is not None and 1 < rows <= MOST_INTERLEAVED and (length is None or length >= self.lanes)

    def schedule(self, attrs: TransposeAttrs, anchor: RearrangedStages, outputs: Tensors, target: Target) -> Schedule:
        """The schedule of the definition: a vector of each row of the source is read, and as many are written, whose
        elements come from all rows in turn."""
        schedule, main = schedule_around(anchor.result, outputs, [], target)
        stage = schedule[main]
        runs = self.runs.runs
        rows = self.runs.in_source.index(runs[-1])
        outer, inner = stage.loops[: runs[-2][0]], stage.loops[runs[-2][0] :]
        together = (const_int(anchor.source.shape[rows]) or 1) * self.lanes
        block, within = stage.split(stage.fuse(*inner), factor=together)
        vector, lane = stage.split(within, factor=self.lanes)
        stage.unroll(vector)
        stage.vectorize(lane)
        task = stage.fuse(*outer, block)
        stage.parallel(task)
        interleave_rows(schedule, anchor.source, anchor.result, stage, task, rows, self.lanes)
        return schedule


def _extents(result: TensorType, run: range) -> list[Expr]:
    return [result.shape[k] for k in run]


def _runs(axes: Sequence[int]) -> tuple[range, ...]:
    """The axes of the result in the longest runs that are neighbours, in order, in the source."""
    starts = [k for k in range(len(axes)) if k == 0 or axes[k] != axes[k - 1] + 1]
    return tuple(range(a, b) for a, b in zip(starts, [*starts[1:], len(axes)], strict=True))


def _in_memory(call: Call) -> RunOfArgument | None:
    """Axes of one element may stand anywhere: where all others keep their order, no element is moved."""
    shape = tensor_of(call.args[0]).shape
    longer = [axis for axis in call.attrs.axes if const_int(shape[axis]) != 1]
    return RunOfArgument(ZERO) if longer == sorted(longer) else None


def _as_it_lies(call: Call, given: ValueLayout | None, target: Target) -> Iterable[LayoutCandidate]:
    """Nothing is moved: the result lies as the argument does, so that its axes stand in another order in memory."""
    rank = tensor_of(call).ndim
    if not 2 <= rank <= MOST_AXES or (given is not None and given.primal.ndim != rank):
        return
    primal = Layout.of_rank(rank) if given is None else given.primal
    layout = primal if given is None else given.layout
    places = zip(call.attrs.axes, primal.names, strict=True)
    made = layout.renamed({primal.names[axis]: name for axis, name in places})
    result = None if made is primal else ValueLayout(primal, made)
    yield LayoutCandidate((given,), None, result, is_argument=True)


TRANSPOSE = register_op(
    "transpose",
    "the axes in another order",
    [("x", "any shape")],
    _relation,
    OpPattern.INJECTIVE,
    TransposeAttrs,
    support_level=3,
    layout_rule=_as_it_lies,
    memory_rule=_in_memory,
)


@register_strategy(TRANSPOSE)
def _strategy(attrs: TransposeAttrs, inputs: Sequence[Type], result: Type, target: Target) -> OpStrategy:
    strategy = OpStrategy()
    kind = tensor_argument(result, "result")
    cost = rearranging_cycles(result)  # also of one that moves nothing: it keeps apart what would be one function
    if attrs.axes and attrs.axes[-1] != len(attrs.axes) - 1 and 0 not in map(const_int, kind.shape):
        runs, lanes = AxisRuns(_runs(attrs.axes), attrs.axes), min(target.lanes(kind.dtype), MOST_LANES)
        tiled, interleaved = TiledTranspose.of(runs, kind, lanes), InterleavedTranspose(runs, lanes)
        fills_whole = tiled.fills(kind) and tiled.lanes == lanes
        with strategy.specialized(clause("few long rows", interleaved.serves(kind) and not fills_whole)):
            strategy.add_implementation(runs.compute, interleaved.schedule, "transpose.interleaved", cost=cost)
        with strategy.specialized(clause("tiles fill vectors", tiled.fills(kind))):
            strategy.add_implementation(runs.compute, tiled.schedule, "transpose.tiled", cost=cost)
    strategy.add_implementation(_compute, injective_schedule.for_target(target), "transpose.generic", cost=cost)
    return strategy


def transpose(x: Node, axes: Sequence[int] | None = None) -> Call:
    """x with axis k of the result being axis ``axes[k]`` of x; the axes reversed, if none are given."""
    reverse = reversed(range(tensor_of(x).ndim))
    with naming("transpose", x):
        given = integer_list(reverse if axes is None else axes, "axes")
    order = tuple(axis_of("transpose", x, axis) for axis in given)
    return TRANSPOSE(x, attrs=TransposeAttrs(order))

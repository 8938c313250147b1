"""The few best of many short rows: a vector has an element of some rows each, which are searched side by side.

A value and its position are a key (``topk_keys.py``), of which no two of a row are equal. The best is the least, and
each next one the least of those above the one before: one pass through the row for each element that is found. Keys
stay in the first cache from one pass to the next.
"""

from __future__ import annotations

from functools import reduce

from ... import te
from ...base.dataclass import dataclass
from ...base.dtype import INT64
from ...base.target import Target
from ...graph.types import TensorType, Type
from ...ir.expr import Axis, Expr
from ...ir.makers import as_index
from ...lowering.schedule import Schedule, create_schedule
from ...te.tensor import Tensor, Tensors
from ..definition.accumulate import widened
from ..definition.condition import clause
from ..definition.cost import elements
from ..definition.implementation import Stages
from ..definition.strategy import OpStrategy
from .topk_keys import KEY_BITS, MOST_KEYS, fit_keys, rank

MOST_FOUND, LONGEST_ROW = 8, 512
"""Elements that are found, and those of a row: of more, a bound that few elements reach is found sooner."""
NO_SUMS = "nothing is summed"
"""The order of sums of all implementations: any may serve any batch."""
FULL_LANES, CYCLES_OF_KEY, CYCLES_OF_PASS = 8, 2.5, 0.5
"""To read an element and make its key, and to compare it once, where a vector has eight."""


def add_in_lanes(strategy: OpStrategy, x: TensorType, k: int | str, axis: int, largest: bool, target: Target) -> None:
    """Offer it for a small known number of elements, and rows that fill a vector side by side."""
    lanes, served = target.lanes(INT64), x.ndim > 1 and fit_keys(x.dtype, x.shape[axis])
    if not isinstance(k, int) or not 1 <= k <= MOST_FOUND or lanes == 1 or not served:
        return
    across = x.ndim - 1 if axis < x.ndim - 1 else x.ndim - 2
    made = TopkInLanes(k, axis, across, lanes, largest)
    short = clause("short rows", x.shape[axis] <= LONGEST_ROW)
    with strategy.specialized(short, clause("rows fill a vector", x.shape[across] >= made.lanes)):
        cost = elements(x) * (CYCLES_OF_KEY + k * CYCLES_OF_PASS) * FULL_LANES / made.lanes
        strategy.add_implementation(made.compute, made.schedule, "topk.lanes", cost=cost, sums=NO_SUMS)


@dataclass(frozen=True, slots=True, eq=False)
class RowsInLanes(Stages):
    """The values and the ``positions`` that are found, the ``keys`` of all elements, and each of the ``best``."""

    positions: Tensor
    keys: Tensor
    best: tuple[Tensor, ...]

    @property
    def outputs(self) -> Tensors:
        """Values and positions."""
        return self.result, self.positions


@dataclass(frozen=True, slots=True)
class TopkInLanes:
    """Finds the ``k`` largest elements, or the least, along ``axis`` of rows that are neighbours along axis ``across``,
    so many ``lanes`` at once."""

    k: int
    axis: int
    across: int
    lanes: int
    largest: bool

    def compute(self, attrs: object, inputs: Tensors, result: Type) -> RowsInLanes:
        """Keys as neighbours across rows, and the least above each one that is found."""
        (x, *_) = inputs
        axis = self.axis
        others = [extent for d, extent in enumerate(x.shape) if d != axis]

        def key(*index: Axis) -> Expr:
            *outer, at, across = index
            own = [*outer, across]
            value = widened(x[(*own[:axis], at, *own[axis:])])
            return (te.cast(rank(value, self.largest), INT64) << KEY_BITS) + te.cast(at, INT64)

        keys = te.compute((*others[:-1], x.shape[axis], others[-1]), key, name="topk.keys")
        worst = te.max_value(INT64)
        best: list[Tensor] = []  # of which each compute reads the last one so far

        def least(*row: Axis) -> Expr:
            at = te.reduce_axis((0, x.shape[axis]), name="at")
            met = keys[(*row[:-1], at, row[-1])]
            return te.min(te.select(met > best[-1][row], met, worst) if best else met, axis=at)

        while len(best) < self.k:
            best.append(te.compute(others, least, name=f"topk.best{len(best)}"))

        def found(*index: Axis) -> tuple[Expr, Expr]:
            row = [*index[:axis], *index[axis + 1 :]]
            chosen: Expr = best[0][tuple(row)]
            for number, tensor in enumerate(best[1:], 1):
                chosen = te.select(index[axis] == number, tensor[tuple(row)], chosen)
            position = chosen & (MOST_KEYS - 1)
            at = te.minimum(as_index(position), x.shape[axis] - 1)
            return x[(*row[:axis], at, *row[axis:])], position

        shape = (*x.shape[:axis], as_index(self.k), *x.shape[axis + 1 :])
        values, positions = te.compute(shape, found, name="topk")
        return RowsInLanes(values, positions, keys, tuple(best))

    def schedule(self, attrs: object, anchor: RowsInLanes, outputs: Tensors, target: Target) -> Schedule:
        """Run vectors of rows in parallel; each makes its keys, finds the best of them, and writes row by row."""
        schedule = create_schedule(outputs)
        stage = schedule[outputs[0]]
        loops = list(stage.loops)
        found = loops.pop(self.axis)
        *outer, across = loops
        vector, lane = stage.split(across, factor=self.lanes)
        stage.reorder(*outer, vector, lane, found)
        task = reduce(stage.fuse, [*outer, vector])
        stage.parallel(task)
        stage.unroll(found)
        for tensor in (*reversed(anchor.best), anchor.keys):
            part = schedule[tensor]
            part.compute_at(stage, task)
            *rest, last = part.loops[: tensor.ndim]
            part.reorder(*rest, *part.loops[tensor.ndim :], last)
            part.vectorize(last)
        return schedule

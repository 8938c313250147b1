"""The implementation of attention for a few queries, as a decoder has one at each step: keys and values go by once.

The lanes of vectors are elements of a *head*: a key is multiplied as it lies in memory, and its products are added
across lanes; values are weighed as they lie. Heads of queries that share one of keys are computed together.

    for each query, and some heads that share keys:
        scores[t]  = key · query                      some keys at a time, each sum in lanes, folded by halves
        weights[t] = exp(scores[t] - max scores)
        mixed[j]   = Σ value · weights
        result[j]  = mixed[j] / Σ weights
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from .... import te
from ....base.dataclass import dataclass
from ....base.target import Target
from ....graph.types import Type
from ....ir.constants import const_int
from ....ir.expr import Axis, Expr
from ....ir.makers import as_index
from ....ir.open_extents import SEQUENCE
from ....lowering.schedule import LoopView, Schedule, StageView
from ....schedules.around import schedule_around
from ....schedules.blocks import largest_divisor
from ....te.tensor import Tensor, Tensors
from ...definition.accumulate import accumulator, widened
from ...definition.cost import moved
from ...definition.folds import peak_of
from ...definition.implementation import Stages
from ...definition.relations import tensor_argument
from ...definition.strategy import OpStrategy
from .attrs import AttentionAttrs, extents, seen, share

LANES = 16
"""Sums along a head and along the keys have so many lanes at most, whatever the target."""
LEAST_LANES = 4
HEADS, KEYS = 4, 8
"""Heads of queries, and keys, that are computed together at most."""
TERMS_UNROLLED = 4
FOLDING = 3.0
"""What it takes to add the lanes of a sum, in products of a vector."""
REREAD_BYTES = 96
"""What comes in a cycle of the keys and values of a head that are read again, for another query, where they are more
than the first cache holds, in the time that multiplications do not hide."""


@dataclass(frozen=True, slots=True)
class FewQueriesStages(Stages):
    """The stages of attention for a few queries, all of [batch, heads of keys, queries, heads that share them, …]."""

    products: Tensor
    scores: Tensor
    peak: Tensor
    weights: Tensor
    total: Tensor
    mixed: Tensor


@dataclass(frozen=True, slots=True)
class FewQueries:
    """``heads`` that share keys, of a group, and ``keys`` at a time, each a sum in ``lanes``; vectors of values have
    ``width`` elements, and others ``vector``."""

    group: int
    heads: int
    keys: int
    lanes: int
    width: int
    vector: int

    def compute(self, attrs: AttentionAttrs, inputs: Tensors, result: Type) -> FewQueriesStages:
        """The result over its stages, as the head of this file lists them."""
        query, key, value, *mask = inputs
        shape, group = extents(attrs, query, key, value), self.group
        shared = key.shape[attrs.layout_of_keys.index("H")]
        rows = (shape.batch, shared, shape.queries, group)
        d, t = te.reduce_axis((0, shape.size), name="d"), te.reduce_axis((0, shape.keys), name="t")

        def product(b: Axis, h: Axis, s: Axis, g: Axis, t: Axis) -> Expr:
            left, right = query[attrs.place(b, h * group + g, s, d)], key[attrs.place_key(b, h, t, d)]
            return te.sum(widened(left) * widened(right), axis=d, lanes=self.lanes)

        products = te.compute((*rows, shape.keys), product, name="attention.products")

        def score(b: Axis, h: Axis, s: Axis, g: Axis, t: Axis) -> Expr:
            scaled = products[b, h, s, g, t] * attrs.scale
            return seen(scaled, attrs, mask[0] if mask else None, (b, h * group + g, s, t))

        scores = te.compute(products.shape, score, name="attention.scores")
        peak = te.compute(rows, lambda *i: peak_of(scores[(*i, t)], axis=t, lanes=LANES), name="attention.peak")
        weights = te.compute(
            scores.shape, lambda *i: te.exp2((scores[i] - peak[i[:-1]]) * math.log2(math.e)), name="attention.weights"
        )
        total = te.compute(rows, lambda *i: te.sum(weights[(*i, t)], axis=t, lanes=LANES), name="attention.total")

        def weighed(b: Axis, h: Axis, s: Axis, g: Axis, j: Axis) -> Expr:
            return te.sum(weights[b, h, s, g, t] * widened(value[attrs.place_key(b, h, t, j)]), axis=t)

        mixed = te.compute((*rows, shape.value_size), weighed, name="attention.mixed")

        def element(*i: Axis) -> Expr:
            b, h, s, j = (as_index(k) for k in attrs.place(*i))
            row = (b, h // group, s, h % group)
            return te.cast(mixed[(*row, j)] * share(total[row]), value.dtype)

        made = te.compute(tensor_argument(result, "result").shape, element, name="attention")
        return FewQueriesStages(made, products, scores, peak, weights, total, mixed)

    def schedule(self, attrs: AttentionAttrs, anchor: FewQueriesStages, outputs: Tensors, target: Target) -> Schedule:
        """The schedule of ``compute``: some heads of a query are a task, in which all stages are computed."""
        folds = (anchor.products, anchor.peak, anchor.total)
        parts = [part for fold in folds for part in te.lane_parts(fold)]
        own = [*folds, *parts, anchor.scores, anchor.weights, anchor.mixed]
        schedule, main = schedule_around(anchor.result, outputs, own, target)
        task = self._tasks(schedule[main], attrs)
        schedule[anchor.mixed].compute_at(schedule[main], task)
        self._weigh_values(schedule[anchor.mixed])
        self._fold_row(schedule, anchor.total, schedule[main], task)
        weights = schedule[anchor.weights]
        weights.compute_at(schedule[main], task)
        _, lane = weights.split(weights.loops[-1], factor=self.vector)
        weights.vectorize(lane)
        self._fold_row(schedule, anchor.peak, schedule[main], task)
        scores = schedule[anchor.scores]
        scores.compute_at(schedule[main], task)
        self._multiply_keys(schedule, anchor.products, scores)
        return schedule

    def _tasks(self, stage: StageView, attrs: AttentionAttrs) -> LoopView:
        """The loop over some heads of one query, in parallel; what it makes of them is unrolled vectors."""
        batch, head, row, element = (stage.loops[attrs.layout.index(axis)] for axis in "BHSD")
        heads, head = stage.split(head, factor=self.heads)
        vector, lane = stage.split(element, factor=self.width)
        stage.reorder(batch, heads, row, head, vector, lane)
        stage.vectorize(lane)
        task = stage.fuse(batch, heads, row)
        stage.parallel(task)
        return task

    def _weigh_values(self, stage: StageView) -> None:
        """Sums of values in registers, for all heads of a task."""
        *outer, head, element, term = stage.loops
        term, step = stage.split(term, factor=TERMS_UNROLLED)
        vector, lane = stage.split(element, factor=self.width)
        stage.reorder(*outer, term, step, head, vector, lane)
        stage.vectorize(lane)
        for loop in (step, head, vector):
            stage.unroll(loop)

    def _fold_row(self, schedule: Schedule, total: Tensor, reader: StageView, at: LoopView) -> None:
        """A fold along the keys, in vectors; then the lanes by halves."""
        first, *halves = te.lane_parts(total)
        for part in (total, *reversed(halves), first):
            schedule[part].compute_at(reader, at)
        *outer, lane, term = schedule[first].loops
        schedule[first].reorder(*outer, term, lane)
        for part in (first, *halves):
            stage = schedule[part]
            stage.vectorize(stage.loops[part.ndim - 1 if part is not first else -1])

    def _multiply_keys(self, schedule: Schedule, products: Tensor, scores: StageView) -> None:
        """Scores of some keys at a time, whose sums in lanes are in registers, for all heads of a task."""
        first, *halves = te.lane_parts(products)
        *outer, head, key = scores.loops
        block, key = scores.split(key, factor=self.keys)
        scores.reorder(*outer, block, head, key)
        scores.vectorize(key)
        scores.unroll(head)
        for part in (products, *reversed(halves), first):
            schedule[part].compute_at(scores, block)
        *outer, head, key = schedule[products].loops[: products.ndim]
        schedule[products].unroll(head)
        schedule[products].vectorize(key)
        *outer, head, key, lane, term = schedule[first].loops
        schedule[first].reorder(*outer, term, head, key, lane)
        for loop in (term, head, key):
            schedule[first].unroll(loop)
        schedule[first].vectorize(lane)
        for half in halves:
            *_, head, key, lane = schedule[half].loops[: half.ndim]
            schedule[half].unroll(head)
            schedule[half].unroll(key)
            schedule[half].vectorize(lane)


def add_few_queries(strategy: OpStrategy, attrs: AttentionAttrs, inputs: Sequence[Type], target: Target) -> None:
    """Offer it for fewer queries than a block has at least, two vectors, and sizes of head that are known and of whole
    vectors."""
    types = [tensor_argument(kind, "operand") for kind in inputs]
    shape, kind = extents(attrs, *types[:3]), accumulator(types[0].dtype)
    size, value_size = const_int(shape.size), const_int(shape.value_size)
    lanes, width = math.gcd(size or 1, LANES), math.gcd(value_size or 1, target.lanes(kind))
    if lanes < LEAST_LANES or width < LEAST_LANES:
        return
    vectors = (value_size or 1) // width
    heads = largest_divisor(shape.group, max(1, min(HEADS, target.vector_registers * 3 // 4 // vectors)))
    sums = math.ceil(lanes / target.lanes(kind)) * heads
    keys = min(KEYS, 1 << (max(1, target.vector_registers // 2 // sums).bit_length() - 1))
    made = FewQueries(shape.group, heads, keys, lanes, width, target.lanes(kind))
    rows = [const_int(e) or 1 for e in (shape.batch, shape.heads)]
    queries, count = (const_int(extent) or other for extent, other in ((shape.queries, 1), (shape.keys, SEQUENCE)))
    steps = math.prod(rows) * queries * count * ((size or 1) / lanes + FOLDING + vectors)
    cost = moved(types[:3]) + steps / target.fma_per_cycle
    read = count * ((size or 1) + (value_size or 1)) * types[1].dtype.storage_bytes
    if read > target.l1_bytes:
        cost += math.prod(rows) / heads * (queries - 1) * read / REREAD_BYTES
    with strategy.specialized(shape.queries < 2 * target.lanes(kind)):
        strategy.add_implementation(made.compute, made.schedule, "attention.few_queries", keeps_order=False, cost=cost)

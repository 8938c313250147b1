"""The implementation of attention that computes a block of queries at a time, and keeps its scores in cache.

No tensor of queries × keys exists. The lanes of all vectors are *queries*: a key or a value is broadcast as it lies in
memory, so neither is copied, and the maximum and the sum of softmax go from vector to vector, never across lanes.

    for each block of queries:
        scores[t, q] = key · query                     as a product in register tiles, of all keys
        peak[q]      = max scores[t, q]
        for each block of keys:
            weights[t, q] = exp(scores[t, q] - peak[q]) in the first cache
            mixed[j, q]  += value · weights            the last row j sums the weights
        result[q, j] = mixed[j, q] / mixed[last, q]

As in Dao et al., FlashAttention (2022), but that the maximum is known before the first exponential is taken: the scores
of a block of queries fit into the second cache, and to go over them once more costs less than to scale the sums again
for each block of keys.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from .... import te
from ....base.dataclass import dataclass
from ....base.dtype import DType
from ....base.target import Target
from ....graph.types import Type
from ....ir.constants import const_int
from ....ir.expr import Axis, Expr
from ....ir.makers import as_index
from ....ir.open_extents import SEQUENCE
from ....ir.simplify import simplify
from ....lowering.schedule import LoopView, Schedule, StageView
from ....schedules.around import schedule_around
from ....schedules.machine import CORE
from ....schedules.register_transpose import schedule_transposed, transposed
from ....te.tensor import Tensor, Tensors
from ...definition.accumulate import accumulator, widened
from ...definition.cost import multiplied
from ...definition.folds import peak_of
from ...definition.relations import tensor_argument
from ...definition.strategy import OpStrategy
from .attrs import AttentionAttrs, Extents, extents, seen, share

WIDTHS = (4, 3, 2)
"""How many vectors of queries a block may have: a key that is broadcast once serves all of them."""


@dataclass(frozen=True, slots=True)
class Blocks:
    """Blocks of ``vectors`` × ``lanes`` queries, and of ``keys``; register tiles of as many vectors, of ``score_rows``
    keys and of ``mixed_rows`` elements of values. ``masked``: the mask differs from query to query."""

    vectors: int
    lanes: int
    keys: int
    score_rows: int
    mixed_rows: int
    masked: bool

    @property
    def queries(self) -> int:
        """How many queries a block has: every lane of its vectors is one."""
        return self.vectors * self.lanes

    def compute(self, attrs: AttentionAttrs, inputs: Tensors, result: Type) -> Tensor:
        """The result, over the stages of a block that the head of this file lists: scores, their peak, weights,
        weighted sums of values and the share of each query. Tiles of queries and of the result are transposed in stages
        of their own."""
        shape, width = extents(attrs, *inputs[:3]), self.queries
        tile = (shape.batch, shape.heads, simplify((shape.queries + (width - 1)) // width))
        scores = self._scores(attrs, inputs, shape, tile)
        t = te.reduce_axis((0, shape.keys), name="t")
        peak = te.compute(
            (*tile, width), lambda b, h, n, q: peak_of(scores[b, h, n, t, q], axis=t), name="attention.peak"
        )

        def weight(b: Axis, h: Axis, n: Axis, k: Axis, q: Axis) -> Expr:
            # As a power of 2, which takes less. The difference is scaled, not the scores: they may be finite, and not
            # so by this factor, as those under a mask of the lowest number.
            return te.exp2((scores[b, h, n, k, q] - peak[b, h, n, q]) * math.log2(math.e))

        weights = te.compute(scores.shape, weight, name="attention.weights")
        last, one, value = shape.value_size, te.const(1, weights.dtype), _in_accumulator(inputs[2], "value")

        def mixed(b: Axis, h: Axis, n: Axis, j: Axis, q: Axis) -> Expr:
            factor = te.if_then_else(j < last, value[attrs.place_key(b, h // shape.group, t, j)], one)
            return te.sum(factor * weights[b, h, n, t, q], axis=t)

        sums = te.compute((*tile, simplify(last + 1), width), mixed, name="attention.mixed")
        shares = te.compute((*tile, width), lambda b, h, n, q: share(sums[b, h, n, last, q]), name="attention.share")
        lanes = self.lanes

        def shared(b: Axis, h: Axis, n: Axis, y: Axis, x: Axis, e: Axis) -> Expr:
            j, q = y * lanes + e // lanes, x * lanes + e % lanes
            value = sums[b, h, n, j, q] * shares[b, h, n, q]
            return te.if_then_else(j < last, value, te.const(0, value.dtype))

        made = te.compute(self._tiles(tile, last), shared, name="attention.result.rows")
        columns, *_ = transposed(made, lanes, "attention.result")

        def element(*i: Axis) -> Expr:
            b, h, row, j = (as_index(k) for k in attrs.place(*i))
            q = row % width
            found = columns[b, h, row // width, j // lanes, q // lanes, q % lanes * lanes + j % lanes]
            return te.cast(found, inputs[2].dtype)

        return te.compute(tensor_argument(result, "result").shape, element, name="attention")

    def _tiles(self, block: tuple[Expr, ...], size: Expr) -> tuple[Expr | int, ...]:
        """The shape of what is transposed for each block: tiles along a head's size, tiles of queries, elements of a
        tile."""
        return (*block, simplify((size + (self.lanes - 1)) // self.lanes), self.vectors, self.lanes * self.lanes)

    def _scores(self, attrs: AttentionAttrs, inputs: Tensors, shape: Extents, tile: tuple[Expr, ...]) -> Tensor:
        """[batch, heads, blocks, keys, queries of a block]."""
        query, key, *mask = inputs[0], _in_accumulator(inputs[1], "key"), *inputs[3:]
        width = self.queries
        partial, lanes = const_int(simplify(shape.queries % width)) != 0, self.lanes

        def scaled(b: Axis, h: Axis, n: Axis, y: Axis, x: Axis, e: Axis) -> Expr:
            d, row = y * lanes + e % lanes, n * width + x * lanes + e // lanes
            value = widened(query[attrs.place(b, h, row, d)]) * attrs.scale
            return te.if_then_else(te.all(d < shape.size, row < shape.queries), value, te.const(0, value.dtype))

        rows = te.compute(self._tiles(tile, shape.size), scaled, name="attention.query.rows")
        columns, *_ = transposed(rows, lanes, "attention.query")

        def across(b: Axis, h: Axis, n: Axis, d: Axis, q: Axis) -> Expr:
            return columns[b, h, n, d // lanes, q // lanes, d % lanes * lanes + q % lanes]

        panel = te.compute((*tile, shape.size, width), across, name="attention.query")
        d = te.reduce_axis((0, shape.size), name="d")

        def product(b: Axis, h: Axis, n: Axis, t: Axis, q: Axis) -> Expr:
            return te.sum(key[attrs.place_key(b, h // shape.group, t, d)] * panel[b, h, n, d, q], axis=d)

        products = te.compute((*tile, shape.keys, width), product, name="attention.products")

        def score(b: Axis, h: Axis, n: Axis, t: Axis, q: Axis) -> Expr:
            row, value = n * width + q, products[b, h, n, t, q]
            made = seen(value, attrs, mask[0] if mask else None, (b, h, row, t))
            return te.if_then_else(row < shape.queries, made, value) if partial and self.masked else made

        return te.compute(products.shape, score, name="attention.scores") if mask or attrs.causal else products

    def schedule(self, attrs: AttentionAttrs, anchor: Tensors, outputs: Tensors, target: Target) -> Schedule:
        """The schedule of ``compute``: blocks of queries are parallel tasks, in which all stages of a block are
        computed; scores and weighted sums stand in register tiles, weights in the first cache block by block of
        keys."""
        own = _own_stages(anchor[0])
        schedule, main = schedule_around(anchor[0], outputs, own, target)
        stages = {tensor.name.removeprefix("attention."): schedule[tensor] for tensor in own}
        if not self.masked and "scores" in stages:
            stages.pop("scores").compute_inline()
        task, tile = self._tasks(schedule[main], attrs)
        self._transpose(schedule, own, "attention.result", schedule[main], tile)
        stages["share"].compute_at(schedule[main], task)
        stages["mixed"].compute_at(schedule[main], task)
        keys = self._tile(stages["mixed"], self.mixed_rows, self.keys)
        stages["weights"].compute_at(stages["mixed"], keys)
        for name in ("peak", "scores", "products", "query"):  # readers first
            if name in stages:
                stages[name].compute_at(schedule[main], task)
        rows = self._tile(stages["products"], self.score_rows)
        for name in ("share", "weights", "peak", "scores"):
            if name in stages:
                self._vectorize(stages[name])
        for name, reader, at in (("key", "products", rows), ("value", "mixed", keys)):
            if name in stages:
                stages[name].compute_at(stages[reader], at)
                self._vectorize(stages[name])
        at = self._transposing(stages["query"], *stages["query"].loops[-2:])
        self._transpose(schedule, own, "attention.query", stages["query"], at)
        return schedule

    def _tasks(self, stage: StageView, attrs: AttentionAttrs) -> tuple[LoopView, LoopView]:
        """The loop over blocks of queries of the result, in parallel; and that over its tiles."""
        order = [attrs.layout.index(axis) for axis in "BHSD"]
        batch, head, row, element = (stage.loops[axis] for axis in order)
        block, row = stage.split(row, factor=self.queries)
        stage.reorder(batch, head, block, row, element)
        task = stage.fuse(batch, head, block)
        stage.parallel(task)
        return task, self._transposing(stage, row, element)

    def _transposing(self, stage: StageView, row: LoopView, column: LoopView) -> LoopView:
        """What reads transposed tiles goes tile by tile; the loop over them."""
        outer, row = stage.split(row, factor=self.lanes)
        tile, lane = stage.split(column, factor=self.lanes)
        stage.reorder(outer, tile, row, lane)
        stage.unroll(row)
        stage.vectorize(lane)
        return tile

    def _transpose(self, schedule: Schedule, own: Sequence[Tensor], name: str, reader: StageView, at: LoopView) -> None:
        stages = [tensor for tensor in own if tensor.name.startswith(f"{name}.")]
        schedule_transposed(schedule, stages, reader, at, self.lanes)

    def _tile(self, stage: StageView, height: int, terms: int | None = None) -> LoopView:
        """Sums in register tiles; of so many ``terms`` at a time, if given. The loop over these, or over the tiles."""
        *outer, row, query, term = stage.loops
        tile, row = stage.split(row, factor=height)
        vector, lane = stage.split(query, factor=self.lanes)
        blocks = [tile]
        if terms is not None:
            block, term = stage.split(term, factor=terms)
            blocks.insert(0, block)
        stage.reorder(*outer, *blocks, term, row, vector, lane)
        stage.vectorize(lane)
        stage.unroll(vector)
        stage.unroll(row)
        return blocks[0]

    def _vectorize(self, stage: StageView) -> None:
        """The vectors of a block of queries side by side, those of a reduction in registers."""
        queries = [loop for loop in stage.loops if not loop.reduce][-1]
        vector, lane = stage.split(queries, factor=self.lanes)
        stage.reorder(*(loop for loop in stage.loops if loop.reduce), vector, lane)
        stage.vectorize(lane)
        stage.unroll(vector)


def _in_accumulator(source: Tensor, name: str) -> Tensor:
    """Keys or values in the type that they are summed in: a copy of the half-precision ones, which are so converted in
    vectors, once for a tile, and not one by one where they are broadcast."""
    if accumulator(source.dtype) is source.dtype:
        return source
    return te.compute(source.shape, lambda *i: widened(source[i]), name=f"attention.{name}")


def _own_stages(anchor: Tensor) -> list[Tensor]:
    """The tensors that the compute makes on the way to the anchor."""
    found: dict[Tensor, None] = {}
    todo = [anchor]
    while todo:
        made = [t for t in todo.pop().op.inputs if t.name.startswith("attention.") and t not in found]
        found.update(dict.fromkeys(made))
        todo += made
    return list(found)


def add_blocks(strategy: OpStrategy, attrs: AttentionAttrs, inputs: Sequence[Type], target: Target) -> None:
    """Offer it for sizes of head that are known."""
    types = [tensor_argument(kind, "operand") for kind in inputs]
    shape, kind = extents(attrs, *types[:3]), accumulator(types[0].dtype)
    size, value_size = const_int(shape.size), const_int(shape.value_size)
    if not size or not value_size:
        return
    queries, keys = (const_int(extent) or SEQUENCE for extent in (shape.queries, shape.keys))
    masked = any(mask.ndim > 1 and const_int(mask.shape[-2]) != 1 for mask in types[3:])
    blocks = _blocks(queries, keys, value_size, masked, target, kind)
    padded = math.ceil(queries / blocks.queries) * blocks.queries
    products = (const_int(shape.batch) or 1) * (const_int(shape.heads) or 1) * padded * keys * (size + value_size)
    cost = multiplied(products, kind, target, CORE.shares.attention)
    strategy.add_implementation(blocks.compute, blocks.schedule, "attention.blocks", cost=cost)


def _blocks(queries: int, keys: int, value_size: int, masked: bool, target: Target, kind: DType) -> Blocks:
    """Blocks as wide as leaves the fewest lanes empty; scores take half of the second cache at most, weights of the
    first."""
    lanes = target.lanes(kind)
    line = lanes * kind.storage_bytes
    fitting = [v for v in WIDTHS if keys * v * line <= target.l2_bytes // 2] or [WIDTHS[-1]]
    vectors = min(fitting, key=lambda v: (math.ceil(queries / (v * lanes)) * v, -v))
    terms = max(1, target.l1_bytes // 2 // (vectors * line))
    terms = math.ceil(keys / math.ceil(keys / terms))  # blocks of about one size
    score_rows, mixed_rows = (_tile_rows(count, vectors, target) for count in (keys, value_size + 1))
    return Blocks(vectors, lanes, terms, score_rows, mixed_rows, masked)


def _tile_rows(count: int, vectors: int, target: Target) -> int:
    """The height of a register tile that covers ``count`` rows in the least time: two products a cycle, and one cycle
    for all else that a step does. A vector of each row's sums is in registers, one of each column's, and a factor."""
    most = max(1, (target.vector_registers - 1) // vectors - 1)
    return min(range(1, most + 1), key=lambda rows: (math.ceil(count / rows) * (rows * vectors / 2 + 1), -rows))

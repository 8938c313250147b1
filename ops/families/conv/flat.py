"""Implementations of convolutions for known extents, with all spatial axes as one: vectors fit, loads are contiguous.

Windows of one element (pointwise): a product of matrices, weight[k, c] · x[c, positions].

Else, for a stride s, the source is split into phases, source[n, c, phase, j] = padded x[n, c, j·s + phase], where the
tap r·dilation = shift·s + phase is at the constant distance ``shift``; a row of the source is as wide as a row of
outputs plus the largest shift. So a tap is at a constant distance in the flattened source too, and the sums are
products of matrices with shifted columns. Positions between the end of an output row and the begin of the next are
computed, too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from .... import te
from ....base.errors import SelectionError
from ....base.target import Target
from ....graph.types import TensorType, Type
from ....ir.expr import Axis, Expr
from ....ir.makers import as_index
from ....ir.row_major import ravel_index, unravel_index
from ....lowering.schedule import Schedule
from ....schedules.around import schedule_around
from ....schedules.product import PACKED_USES, schedule_core, schedule_product
from ....schedules.register_tile import RegisterTile, register_tile
from ....te.tensor import Tensors
from ...definition.cost import elements, moved, multiplied
from ...definition.strategy import Compute, OpStrategy, ScheduleFunction
from ...definition.tile_config import configured_panels, configured_tile
from ..window import inside
from .attrs import ConvAttrs
from .problem import ConvProblem
from .stages import ConvStages

UNROLLED_TAPS = 3
"""Windows up to this extent on the last axis are unrolled."""
EFFICIENCY, STRIDED_EFFICIENCY = 0.55, 0.4
"""Of the multiplications that a core can do, which it does here, as measured on layers of usual networks."""
Number = TypeVar("Number", int, Expr)


@dataclass(frozen=True, slots=True)
class Terms:
    """What is summed: ``prepare`` is applied to what is read of x, pads included, once; ``finish`` to the sums of a
    filter."""

    prepare: Callable[[Expr], Expr] = lambda value: value
    multiply: Callable[[Expr, Expr], Expr] = lambda value, factor: value * factor
    finish: Callable[[Expr, Axis], Expr] = lambda sums, k: sums


PRODUCTS = Terms()


@dataclass(frozen=True, slots=True)
class Flat:
    """The numbers of a flattened convolution."""

    attrs: ConvAttrs
    window: tuple[int, ...]
    outputs: tuple[int, ...]
    filters: int

    @property
    def pointwise(self) -> bool:
        return all(w == 1 for w in self.window) and not any(self.attrs.padding)

    @property
    def shifts(self) -> tuple[int, ...]:
        """How far the last tap is from the first one, per spatial axis, within a phase."""
        a = self.attrs
        return tuple((w - 1) * d // s for w, d, s in zip(self.window, a.dilation, a.strides, strict=True))

    @property
    def phases(self) -> tuple[int, ...]:
        """Number of phases that taps fall into: one, where all are at multiples of the stride."""
        a = self.attrs
        return tuple(
            1 if w == 1 or d % s == 0 else s for w, d, s in zip(self.window, a.dilation, a.strides, strict=True)
        )

    @property
    def widths(self) -> tuple[int, ...]:
        """Extents of a phase of the source."""
        return tuple(o + s for o, s in zip(self.outputs, self.shifts, strict=True))

    @property
    def positions(self) -> int:
        """How many there are from the first output to the last one, in the flattened source."""
        return 1 + ravel_index([o - 1 for o in self.outputs], self.widths)

    @property
    def group_filters(self) -> int:
        return self.filters // self.attrs.groups


def add_flat(strategy: OpStrategy, problem: ConvProblem) -> None:
    """Offer the flattened implementation, where it can serve: N and C before the spatial axes, all known but N."""
    x, kind, target, outputs = problem.x, problem.result, problem.target, problem.outputs
    if not (problem.is_plain and problem.has_plain_kernel) or outputs is None:
        return
    flat = Flat(problem.attrs, problem.window, outputs, problem.filters)
    factors = problem.reduction_extent
    tile = register_tile(flat.group_filters, flat.positions, target, kind.dtype, factors, divides=True)
    images = elements(kind) // math.prod(flat.outputs)
    products = images * math.ceil(flat.positions / tile.columns) * tile.columns * factors
    efficiency = STRIDED_EFFICIENCY if problem.is_strided else EFFICIENCY
    copied = [] if flat.pointwise else [x, x]
    cost = multiplied(products, kind.dtype, target, efficiency) + moved([*problem.types, *copied])
    if flat.pointwise:
        pack = problem.is_strided or flat.group_filters >= PACKED_USES * tile.rows
        pointwise = Pointwise(flat, tile, pack)
        strategy.add_implementation(
            pointwise.compute, pointwise.schedule, "conv.pointwise", 20, configure=pointwise.configure, cost=cost
        )
    else:
        shifted = Shifted(flat, tile)
        strategy.add_implementation(
            shifted.compute, shifted.schedule, "conv.shifted", 15, configure=shifted.configure, cost=cost
        )


def _channel(flat: Flat, weight: te.Tensor, k: Expr, c: Axis) -> Expr:
    """The channel of x that a filter's channel c is."""
    return as_index(c) if flat.attrs.groups == 1 else k // flat.group_filters * weight.shape[1] + c


@dataclass(frozen=True, slots=True)
class Pointwise:
    """A product of matrices, with the columns in panels of a register tile's width."""

    flat: Flat
    tile: RegisterTile
    pack: bool

    def compute(self, attrs: ConvAttrs, inputs: Tensors, result: Type) -> ConvStages:
        return self.compute_terms(attrs, inputs, result, PRODUCTS)

    def compute_terms(self, attrs: ConvAttrs, inputs: Tensors, result: Type, terms: Terms) -> ConvStages:
        x, weight = inputs
        assert isinstance(result, TensorType)
        flat, width = self.flat, self.tile.columns
        tiles = math.ceil(flat.positions / width)
        ones = (0,) * len(flat.window)

        def panel(n: Axis, t: Axis, c: Axis, j: Axis) -> Expr:
            position = t * width + j
            place = (p * s for p, s in zip(unravel_index(position, flat.widths), attrs.strides, strict=True))
            value = terms.prepare(x[(n, c, *place)])
            known = tiles * width == flat.positions
            return value if known else te.if_then_else(position < flat.positions, value, te.const(0, value.dtype))

        panels = te.compute((x.shape[0], tiles, x.shape[1], width), panel, name="conv.panels")
        c = te.reduce_axis((0, weight.shape[1]), name="c")

        def element(n: Axis, k: Axis, t: Axis, j: Axis) -> Expr:
            value = panels[n, t, _channel(flat, weight, as_index(k), c), j]
            return te.sum(terms.multiply(value, weight[(k, c, *ones)]), axis=c)

        core = te.compute((x.shape[0], flat.filters, tiles, width), element, name="conv.sums")
        return ConvStages(_unfold(flat, core, result, terms), x, panels, weight, core)

    def schedule(self, attrs: ConvAttrs, anchor: ConvStages, outputs: Tensors, target: Target) -> Schedule:
        return self.schedule_terms(anchor, outputs, target)

    def schedule_terms(
        self, anchor: ConvStages, outputs: Tensors, target: Target, keep: Sequence[te.Tensor] = ()
    ) -> Schedule:
        """``keep`` are stages that the caller schedules."""
        return schedule_product(
            anchor.result, anchor.sums, anchor.source, 1, self.pack, outputs, self.tile, target, keep
        )

    def configure(self, config: Mapping[str, Any]) -> tuple[Compute, ScheduleFunction]:
        """The compute and the schedule with the ``rows``, ``vectors`` and ``pack`` of a tuning record."""
        made = self.with_config(config)
        return made.compute, made.schedule

    def with_config(self, config: Mapping[str, Any]) -> Pointwise:
        tile, pack = configured_panels(config, self.tile, self.pack)
        return replace(self, tile=_within_group(tile, self.flat), pack=pack)


@dataclass(frozen=True, slots=True)
class Shifted:
    """Products of matrices with shifted columns, of a source in phases."""

    flat: Flat
    tile: RegisterTile

    def compute(self, attrs: ConvAttrs, inputs: Tensors, result: Type) -> ConvStages:
        return self.compute_terms(attrs, inputs, result, PRODUCTS)

    def compute_terms(self, attrs: ConvAttrs, inputs: Tensors, result: Type, terms: Terms) -> ConvStages:
        x, weight = inputs
        assert isinstance(result, TensorType)
        flat, width = self.flat, self.tile.columns
        rank = len(flat.window)
        tiles = math.ceil(flat.positions / width)
        source = self._source(x, attrs, tiles * width, terms)
        c = te.reduce_axis((0, weight.shape[1]), name="c")
        taps = [te.reduce_axis((0, w), name=f"r{d}") for d, w in enumerate(flat.window)]

        def element(n: Axis, k: Axis, t: Axis, j: Axis) -> Expr:
            offsets = [as_index(tap) * d for tap, d in zip(taps, attrs.dilation, strict=True)]
            phase = [offsets[d] % attrs.strides[d] if flat.phases[d] > 1 else as_index(0) for d in range(rank)]
            position = (
                t * width + j + ravel_index([o // s for o, s in zip(offsets, attrs.strides, strict=True)], flat.widths)
            )
            place = (n, _channel(flat, weight, as_index(k), c), *phase, *unravel_index(position, flat.widths))
            return te.sum(terms.multiply(source[place], weight[(k, c, *taps)]), axis=[c, *taps])

        core = te.compute((x.shape[0], flat.filters, tiles, width), element, name="conv.sums")
        return ConvStages(_unfold(flat, core, result, terms), x, source, weight, core)

    def _source(self, x: te.Tensor, attrs: ConvAttrs, positions: int, terms: Terms) -> te.Tensor:
        """x with its padding, in phases; with as many rows as the last tile reaches, shifted."""
        flat = self.flat
        rank = len(flat.window)
        row = math.prod(flat.widths[1:])
        rows = max(flat.widths[0], math.ceil((positions + ravel_index(flat.shifts, flat.widths)) / row))

        def element(n: Axis, c: Axis, *rest: Axis) -> Expr:
            phase, index = rest[:rank], rest[rank:]
            place = tuple(
                j * s + p - pad for j, s, p, pad in zip(index, attrs.strides, phase, attrs.padding, strict=False)
            )
            bounded = tuple(max(p, 1) for p in attrs.padding)
            within = inside(place, x.shape[2:], bounded, [True] * rank)
            return terms.prepare(te.if_then_else(within, x[(n, c, *place)], te.const(0, x.dtype)))

        return te.compute((*x.shape[:2], *flat.phases, rows, *flat.widths[1:]), element, name="conv.source")

    def schedule(self, attrs: ConvAttrs, anchor: ConvStages, outputs: Tensors, target: Target) -> Schedule:
        return self.schedule_terms(anchor, outputs, target)

    def schedule_terms(
        self, anchor: ConvStages, outputs: Tensors, target: Target, keep: Sequence[te.Tensor] = ()
    ) -> Schedule:
        """``keep`` are stages that the caller schedules."""
        core, source = anchor.sums, anchor.source
        schedule, main = schedule_around(anchor.result, outputs, [core, source, *keep], target)
        stage = schedule[main]
        n, k, *spatial = stage.loops
        block, _ = stage.split(k, factor=self.tile.rows)
        _, lane = stage.split(spatial[-1], factor=lanes_for(self.flat.outputs[-1], self.tile.lanes))
        stage.vectorize(lane)
        tasks = stage.fuse(n, block)
        stage.parallel(tasks)
        schedule[core].compute_at(stage, tasks)
        last_tap = schedule[core].loops[-1]
        schedule_core(schedule, core, self.tile, [last_tap] if self.flat.window[-1] <= UNROLLED_TAPS else [])
        _schedule_source(schedule, source, self.flat, self.tile.lanes)
        return schedule

    def configure(self, config: Mapping[str, Any]) -> tuple[Compute, ScheduleFunction]:
        """The compute and the schedule with the ``rows`` and ``vectors`` of a tuning record."""
        made = self.with_config(config)
        return made.compute, made.schedule

    def with_config(self, config: Mapping[str, Any]) -> Shifted:
        return replace(self, tile=_within_group(configured_tile(config, self.tile), self.flat))


def _within_group(tile: RegisterTile, flat: Flat) -> RegisterTile:
    """The tile of a config, whose rows must be filters of one group."""
    if flat.group_filters % tile.rows:
        raise SelectionError(f"the config's {tile.rows} rows do not divide the {flat.group_filters} filters of a group")
    return tile


def lanes_for(extent: int, lanes: int) -> int:
    """The widest vectors that an axis half fills."""
    while lanes > 1 and extent <= lanes // 2:
        lanes //= 2
    return lanes


def _schedule_source(schedule: Schedule, source: te.Tensor, flat: Flat, lanes: int) -> None:
    stage = schedule[source]
    loops = stage.loops
    if flat.attrs.strides[-1] == 1:
        _, lane = stage.split(loops[-1], factor=lanes_for(flat.widths[-1], lanes))
        stage.vectorize(lane)
    stage.parallel(stage.fuse(*loops[:2]))


def _unfold(flat: Flat, core: te.Tensor, result: TensorType, terms: Terms) -> te.Tensor:
    """The sums at the outputs' positions."""
    width = core.shape[-1]

    def element(n: Axis, k: Axis, *o: Axis) -> Expr:
        position = ravel_index([as_index(i) for i in o], flat.widths)
        return terms.finish(core[n, k, position // width, position % width], k)

    return te.compute(result.shape, element, name="conv")

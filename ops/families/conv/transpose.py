"""Transposed convolutions, the gradients of convolutions by their input: ``nn.conv2d_transpose`` and those of 1 and 3
spatial axes.

y[n, k, q·stride + r·dilation - pad] += x[n, c, q…] · w[c, k % (K/G), r…]   over c of k's group, q and the window r
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypedDict, Unpack

from .... import te
from ....base.errors import TypeInferenceError
from ....base.target import Target
from ....graph.node import Call, Node, tensor_of
from ....graph.types import TensorType, Type
from ....ir.constants import ZERO, const_int
from ....ir.expr import Axis, Compare, Expr
from ....ir.makers import as_index
from ....ir.row_major import ravel_index, unravel_index
from ....ir.simplify import simplify
from ....lowering.schedule import Schedule
from ....schedules.around import schedule_around
from ....schedules.product import schedule_core
from ....schedules.register_tile import RegisterTile, register_tile
from ....te.tensor import Tensors
from ...definition.accumulate import narrowed, widened
from ...definition.arguments import PerAxis, integer_list, naming, per_axis
from ...definition.attrs import Attrs, all_non_negative, all_positive, attr, positive
from ...definition.cost import moved
from ...definition.nn_module import with_options_of
from ...definition.registry import Op, OpPattern, register_op
from ...definition.relations import same_dtype, same_extent, tensor_argument
from ...definition.strategy import OpStrategy, Stages, register_strategy, schedule_default
from ..window import (
    AutoPad,
    check_auto_pad,
    check_ranks,
    given_padding,
    inside,
    known_window,
    spatial_axes,
    spatial_rank,
)
from .flat import lanes_for


@dataclass(frozen=True)
class ConvTransposeAttrs(Attrs):
    """The attributes of the transposed convolutions of one to three spatial axes."""

    strides: tuple[int, ...] = attr("distance of the windows in the output, per spatial axis", check=all_positive)
    padding: tuple[int, ...] = attr("elements cut off the output: all begins, then all ends")
    dilation: tuple[int, ...] = attr("distance of the window's elements, per spatial axis", check=all_positive)
    output_padding: tuple[int, ...] = attr("elements added at the output's ends", check=all_non_negative)
    groups: int = attr("number of groups that the channels are split in", default=1, check=positive)


def _relation(types: Sequence[Type], attrs: ConvTransposeAttrs) -> Type:
    x, weight = tensor_argument(types[0], "x"), tensor_argument(types[1], "weight")
    same_dtype([x, weight], ["x", "weight"])
    if not x.dtype.is_float:
        raise TypeInferenceError(f"a transposed convolution is of floats, not of {x.dtype}")
    rank = len(attrs.strides)
    if x.ndim != rank + 2 or weight.ndim != rank + 2:
        raise TypeInferenceError(f"x and weight need {rank + 2} axes, found {x} and {weight}")
    check_ranks(
        rank,
        strides=attrs.strides,
        dilation=attrs.dilation,
        output_padding=attrs.output_padding,
        padding=attrs.padding,
    )
    window = known_window(weight.shape[2:])
    channels, per_group = (const_int(e) for e in weight.shape[:2])
    if channels is None or per_group is None:
        raise TypeInferenceError(f"numbers of channels must be known, found {x} and {weight}")
    same_extent(x.shape[1], weight.shape[0], f"x has {x.shape[1]} channels, but the weight is for {channels}")
    if channels % attrs.groups:
        raise TypeInferenceError(f"{channels} channels do not fall into {attrs.groups} groups of one size")
    spatial = [_extent(x.shape[d + 2], window[d], attrs, d) for d in range(rank)]
    return TensorType((x.shape[0], as_index(per_group * attrs.groups), *spatial), x.dtype)


def _extent(extent: Expr, window: int, attrs: ConvTransposeAttrs, d: int) -> Expr:
    reach = (window - 1) * attrs.dilation[d] + 1
    cut = attrs.padding[d] + attrs.padding[d + len(attrs.strides)]
    result = simplify((extent - 1) * attrs.strides[d] + (attrs.output_padding[d] + reach - cut))
    number = const_int(result)
    if number is not None and number < 0:
        raise TypeInferenceError(f"the padding {attrs.padding} cuts off more than there is on axis {d + 2}")
    return result


def _gathering(attrs: ConvTransposeAttrs, inputs: Tensors, result: Type) -> te.Tensor:
    """Each output element collects the terms that reach it: those whose distance is a multiple of the stride."""
    x, weight = inputs
    kind = tensor_argument(result, "result")
    rank = kind.ndim - 2
    rows_per_group = (const_int(x.shape[1]) or 0) // attrs.groups
    per_group = weight.shape[1]
    c = te.reduce_axis((0, rows_per_group), name="c")
    taps = [te.reduce_axis((0, e), name=f"r{d}") for d, e in enumerate(weight.shape[2:])]

    def element(n: Axis, k: Axis, *o: Axis) -> Expr:
        channel = as_index(c) if attrs.groups == 1 else as_index(k) // per_group * rows_per_group + c
        column = as_index(k) if attrs.groups == 1 else as_index(k) % per_group
        tests: list[Expr] = []
        place: list[Expr] = []
        for d in range(rank):
            distance = o[d] + attrs.padding[d] - taps[d] * attrs.dilation[d]
            position = distance // attrs.strides[d]
            tests += [position >= 0, position < x.shape[d + 2]]
            if attrs.strides[d] > 1:
                tests.append(Compare("==", distance % attrs.strides[d], ZERO))
            place.append(position)
        term = widened(x[(n, channel, *place)]) * widened(weight[(channel, column, *taps)])
        return te.sum(term, axis=[c, *taps], where=te.all(*tests))

    sums = te.compute(kind.shape, element, name="conv_transpose")
    return narrowed(sums, kind.dtype, "conv_transpose.narrow")


MOST_PHASES = 16
"""Each phase is a stage with code of its own."""


@dataclass(frozen=True, slots=True)
class PhasedStages(Stages):
    """A copy of x, and the sums of each phase that a tap reaches."""

    source: te.Tensor
    cores: Sequence[te.Tensor]


@dataclass(frozen=True, slots=True)
class Phased:
    """A transposed convolution of known extents, as a convolution of stride 1 for each of the phases that outputs fall
    into.

    Output o is s·m + phase - pad. The taps that reach a phase are those with r·dilation = phase + s·shift, which read
    x at m - shift. All spatial axes are flattened, as in ``flat.py``.
    """

    attrs: ConvTransposeAttrs
    window: tuple[int, ...]
    filters: int
    outputs: tuple[int, ...]
    target: Target
    result: TensorType

    @property
    def firsts(self) -> tuple[int, ...]:
        """The least m, per axis."""
        return tuple(p // s for p, s in zip(self.attrs.padding, self.attrs.strides, strict=False))

    @property
    def shifts(self) -> tuple[int, ...]:
        """The largest shift, per axis."""
        a = self.attrs
        return tuple((w - 1) * d // s for w, d, s in zip(self.window, a.dilation, a.strides, strict=True))

    @property
    def counts(self) -> tuple[int, ...]:
        """How many values m takes, per axis."""
        a = self.attrs
        return tuple(
            (p + o - 1) // s - f + 1
            for p, o, s, f in zip(a.padding, self.outputs, a.strides, self.firsts, strict=False)
        )

    @property
    def widths(self) -> tuple[int, ...]:
        """The extents of the padded source per axis, which an output of a phase and all of its taps are in."""
        return tuple(c + s for c, s in zip(self.counts, self.shifts, strict=True))

    @property
    def positions(self) -> int:
        """How many positions there are from the first output of a phase to its last one, in the flattened source."""
        return 1 + ravel_index([c - 1 for c in self.counts], self.widths)

    @property
    def tile(self) -> RegisterTile:
        """The register tile of the sums of a phase; its rows are filters of one group, which they divide."""
        rows = self.filters // self.attrs.groups
        return register_tile(rows, self.positions, self.target, self.result.dtype, divides=True)

    def compute(self, attrs: ConvTransposeAttrs, inputs: Tensors, result: Type) -> PhasedStages:
        """The result, each element chosen from the sums of its phase, which are convolutions of stride 1 over one
        padded copy of x. Elements of a phase that no tap reaches are 0."""
        x, weight = inputs
        width = self.tile.columns
        tiles = math.ceil(self.positions / width)
        source = self._source(x, tiles * width)
        phases = itertools.product(*(range(s) for s in attrs.strides))
        cores = {phase: self._core(source, weight, phase, tiles, width) for phase in phases}

        def element(n: Axis, k: Axis, *o: Axis) -> Expr:
            padded = [as_index(i) + p for i, p in zip(o, attrs.padding, strict=False)]
            place = [z // s - f for z, s, f in zip(padded, attrs.strides, self.firsts, strict=True)]
            position = ravel_index(place, self.widths)
            value: Expr = te.const(0, x.dtype)
            for phase, core in cores.items():
                if core is not None:
                    here = [
                        Compare("==", z % s, as_index(p)) for z, s, p in zip(padded, attrs.strides, phase, strict=True)
                    ]
                    value = te.if_then_else(te.all(*here), core[n, k, position // width, position % width], value)
            return value

        made = te.compute(self.result.shape, element, name="conv_transpose")
        return PhasedStages(made, source, [core for core in cores.values() if core is not None])

    def _source(self, x: te.Tensor, positions: int) -> te.Tensor:
        """x from m - shift of the first output on; with as many rows as the last tile reaches."""
        rank = len(self.window)
        row = math.prod(self.widths[1:])
        rows = max(self.widths[0], math.ceil((positions + ravel_index(self.shifts, self.widths)) / row))

        def element(n: Axis, c: Axis, *index: Axis) -> Expr:
            place = tuple(i + (f - s) for i, f, s in zip(index, self.firsts, self.shifts, strict=True))
            within = inside(place, x.shape[2:], (1,) * (2 * rank), (True,) * rank)
            return te.if_then_else(within, x[(n, c, *place)], te.const(0, x.dtype))

        return te.compute((*x.shape[:2], rows, *self.widths[1:]), element, name="conv_transpose.source")

    def _core(
        self, source: te.Tensor, weight: te.Tensor, phase: tuple[int, ...], tiles: int, width: int
    ) -> te.Tensor | None:
        """The sums of one phase; None if no tap reaches it."""
        attrs = self.attrs
        groups = attrs.groups
        channels, filters = (const_int(weight.shape[0]) or 0) // groups, self.filters // groups
        reached = [
            [r for r in range(w) if (r * d - p) % s == 0]
            for w, d, s, p in zip(self.window, attrs.dilation, attrs.strides, phase, strict=True)
        ]
        if not all(reached):
            return None
        c = te.reduce_axis((0, channels), name="c")
        taps = [te.reduce_axis((0, len(r)), name=f"r{d}") for d, r in enumerate(reached)]
        # The taps that reach a phase are evenly spaced.
        steps = [r[1] - r[0] if len(r) > 1 else 1 for r in reached]

        def element(n: Axis, k: Axis, t: Axis, j: Axis) -> Expr:
            chosen = [as_index(tap) * step + r[0] for tap, step, r in zip(taps, steps, reached, strict=True)]
            offsets = [
                most - (r * d - p) // s
                for most, r, d, p, s in zip(self.shifts, chosen, attrs.dilation, phase, attrs.strides, strict=True)
            ]
            position = t * width + j + ravel_index(offsets, self.widths)
            row = as_index(c) if groups == 1 else as_index(k) // filters * channels + c
            column = as_index(k) if groups == 1 else as_index(k) % filters
            value = source[(n, row, *unravel_index(position, self.widths))]
            return te.sum(value * weight[(row, column, *chosen)], axis=[c, *taps])

        name = "conv_transpose.sums" + "".join(map(str, phase))
        return te.compute((source.shape[0], self.filters, tiles, width), element, name=name)

    def schedule(self, attrs: ConvTransposeAttrs, anchor: PhasedStages, outputs: Tensors, target: Target) -> Schedule:
        """The schedule of ``compute``: blocks of filters of each sample are parallel tasks, which compute the sums of
        all phases and then write them interleaved."""
        schedule, main = schedule_around(anchor.result, outputs, [*anchor.cores, anchor.source], target)
        stage = schedule[main]
        n, k, *spatial = stage.loops
        tile = self.tile
        block, _ = stage.split(k, factor=tile.rows)
        for axis, stride in zip(spatial, attrs.strides, strict=True):
            if stride > 1:
                _, phase = stage.split(axis, factor=stride)
                stage.unroll(phase)
        tasks = stage.fuse(n, block)
        stage.parallel(tasks)
        for core in anchor.cores:
            schedule[core].compute_at(stage, tasks)
            schedule_core(schedule, core, tile)
        copy = schedule[anchor.source]
        loops = copy.loops
        _, lane = copy.split(loops[-1], factor=lanes_for(self.widths[-1], tile.lanes))
        copy.vectorize(lane)
        copy.parallel(copy.fuse(*loops[:2]))
        return schedule


def _register(rank: int) -> Op:
    axes = spatial_axes(rank)
    return register_op(
        f"nn.conv{rank}d_transpose",
        "Transposed convolution: each element of x adds a copy of the weight's window, times itself, to the output",
        [("x", f"[{', '.join(f'NC{axes}')}]"), ("weight", "[C, K / groups, window…]")],
        _relation,
        OpPattern.OUT_ELEMENTWISE_FUSABLE,
        ConvTransposeAttrs,
        support_level=2,
    )


CONV_TRANSPOSES = {rank: _register(rank) for rank in (1, 2, 3)}
"""By the number of spatial axes."""


def _strategy(attrs: ConvTransposeAttrs, inputs: Sequence[Type], result: Type, target: Target) -> OpStrategy:
    strategy = OpStrategy()
    strategy.add_implementation(_gathering, schedule_default, "conv_transpose.gathering")
    x, weight = tensor_argument(inputs[0], "x"), tensor_argument(inputs[1], "weight")
    kind = tensor_argument(result, "result")
    inner, shape = (TensorType(t.shape[1:], t.dtype).static_shape for t in (x, kind))  # N may be open
    wide = kind.dtype.storage_bits >= 32 and const_int(kind.shape[0]) != 0
    if shape is not None and 0 not in shape and inner and wide and math.prod(attrs.strides) <= MOST_PHASES:
        phased = Phased(attrs, known_window(weight.shape[2:]), shape[0], shape[1:], target, kind)
        strategy.add_implementation(
            phased.compute, phased.schedule, "conv_transpose.phased", cost=moved([*inputs, result])
        )
    return strategy


for _op in CONV_TRANSPOSES.values():
    register_strategy(_op)(_strategy)


class ConvTransposeOptions(TypedDict, total=False):
    """The options of ``conv_transpose``, which those of one rank have too."""

    strides: PerAxis
    padding: PerAxis
    dilation: PerAxis
    output_padding: PerAxis
    groups: int
    auto_pad: AutoPad
    output_shape: Sequence[int] | None


def conv_transpose(
    x: Node,
    weight: Node,
    strides: PerAxis = 1,
    padding: PerAxis = 0,
    dilation: PerAxis = 1,
    output_padding: PerAxis = 0,
    groups: int = 1,
    auto_pad: AutoPad = "NOTSET",
    output_shape: Sequence[int] | None = None,
) -> Call:
    """Transposed convolution of x [N, C, …] with weight [C, K / groups, …].

    ``padding``: one number, one per spatial axis, or all begins and then all ends. ``output_shape`` (spatial extents)
    decides the padding instead, and needs known extents; so does ``auto_pad``, where ``SAME_…`` asks for extents times
    strides.
    """
    with naming("nn.conv_transpose"):
        kind = tensor_of(x)
        rank = spatial_rank(kind)
        spatial_axes(rank)
    op = CONV_TRANSPOSES[rank]
    with naming(op.name):
        steps, spread = per_axis(strides, rank, "strides"), per_axis(dilation, rank, "dilation")
        extra = per_axis(output_padding, rank, "output_padding")
        window = known_window(tensor_of(weight).shape[2:])
        check_auto_pad(auto_pad)
        if output_shape is not None or auto_pad.startswith("SAME"):
            pads = _padding_for(kind, window, steps, spread, extra, auto_pad, output_shape)
        else:
            pads = given_padding(0 if auto_pad == "VALID" else padding, rank)
        attrs = ConvTransposeAttrs(steps, pads, spread, extra, groups)
    return op(x, weight, attrs=attrs)


@with_options_of(conv_transpose)
def conv1d_transpose(x: Node, weight: Node, **options: Unpack[ConvTransposeOptions]) -> Call:
    """``conv_transpose`` of an x that is [N, C, W], and a weight that is [C, K / groups, w].

    The result is [N, K, W']: W' = (W - 1) · strides + dilation · (w - 1) + 1 + output_padding - padding, which
    is that of both ends.
    """
    return _transpose_over(1, x, weight, options)


@with_options_of(conv_transpose)
def conv2d_transpose(x: Node, weight: Node, **options: Unpack[ConvTransposeOptions]) -> Call:
    """``conv_transpose`` of an x that is [N, C, H, W], and a weight that is [C, K / groups, h, w].

    The result is [N, K, H', W']: W' = (W - 1) · strides + dilation · (w - 1) + 1 + output_padding - padding, which
    is that of both ends.
    """
    return _transpose_over(2, x, weight, options)


@with_options_of(conv_transpose)
def conv3d_transpose(x: Node, weight: Node, **options: Unpack[ConvTransposeOptions]) -> Call:
    """``conv_transpose`` of an x that is [N, C, D, H, W], and a weight that is [C, K / groups, d, h, w].

    The result is [N, K, D', H', W']: W' = (W - 1) · strides + dilation · (w - 1) + 1 + output_padding - padding, which
    is that of both ends.
    """
    return _transpose_over(3, x, weight, options)


def _transpose_over(rank: int, x: Node, weight: Node, options: ConvTransposeOptions) -> Call:
    kind = tensor_of(x)
    if kind.ndim != rank + 2:
        raise TypeInferenceError(
            f"nn.conv{rank}d_transpose: x needs the axes {', '.join(f'NC{spatial_axes(rank)}')}, found {kind}"
        )
    return conv_transpose(x, weight, **options)


def _padding_for(
    kind: TensorType,
    window: Sequence[int],
    strides: Sequence[int],
    dilation: Sequence[int],
    output_padding: Sequence[int],
    auto_pad: AutoPad,
    output_shape: Sequence[int] | None,
) -> tuple[int, ...]:
    """The pads that give an output shape. The odd element is cut off the end for SAME_UPPER, else off the beginning.

    An output shape larger than the windows reach gives negative pads: zeros at the end.
    """
    rank = len(window)
    reaches = [(window[d] - 1) * dilation[d] + 1 + output_padding[d] - strides[d] for d in range(rank)]
    if output_shape is None:  # extents times strides, whatever they are
        totals = reaches
    else:
        shape = TensorType(kind.shape[2:], kind.dtype).static_shape
        if shape is None:
            raise TypeInferenceError(f"output_shape needs known spatial extents, found {kind}")
        wanted = integer_list(output_shape, "output_shape")
        if len(wanted) != rank:
            raise TypeInferenceError(f"output_shape needs the {rank} spatial extents, found {wanted}")
        totals = [shape[d] * strides[d] + reaches[d] - wanted[d] for d in range(rank)]
    begins, ends = [], []
    for total in totals:
        small = max(total, 0) // 2
        begins.append(small if auto_pad == "SAME_UPPER" else max(total, 0) - small)
        ends.append(total - begins[-1])
    return (*begins, *ends)

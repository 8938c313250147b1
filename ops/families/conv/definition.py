"""What a convolution is, in any layouts: the sums of products of its weights with what its windows read of x.

It is the compute of ``conv.direct``, and of the implementations that differ from it by their schedules alone. The terms
of a sum follow each other in the order of the axes of x's layout: channels and then the window in N, C, …, the window
and then channels in N, …, C; blocks of channels, the window, and the channels of a block in NCHW16c.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import islice

from .... import te
from ....base.dataclass import dataclass
from ....graph.layout import Layout, source_index
from ....graph.types import Type
from ....ir.constants import const_int
from ....ir.expr import Axis, Expr
from ....ir.makers import as_index
from ....ir.simplify import simplify
from ....lowering.schedule import Schedule, StageView
from ....te.tensor import Tensor, Tensors
from ...definition.accumulate import narrowed, widened
from ...definition.implementation import Stages
from ...definition.relations import tensor_argument
from ..window import inside, padded, spatial_axes
from .attrs import ConvAttrs
from .border import Border


@dataclass(frozen=True, slots=True)
class Terms:
    """Other terms than products of numbers: ``prepare`` is applied to what is read of x, pads included; ``finish`` to
    the sums of a filter."""

    prepare: Callable[[Expr], Expr]
    multiply: Callable[[Expr, Expr], Expr]
    finish: Callable[[Expr, Axis], Expr]


@dataclass(frozen=True, slots=True)
class DefinedStages(Stages):
    """The ``sums`` of products of ``source``, which is x or a copy of it, and ``weight``. The source has the positions
    of x, padded, at multiples of ``steps``, per spatial axis."""

    x: Tensor
    source: Tensor
    weight: Tensor
    sums: Tensor
    steps: tuple[int, ...]

    @property
    def copies(self) -> list[Tensor]:
        """The source, if it is a copy of x."""
        return [] if self.source is self.x else [self.source]


def definition(
    attrs: ConvAttrs, inputs: Tensors, result: Type, terms: Terms | None = None, border: Border | None = None
) -> DefinedStages:
    """The convolution by its definition: y[n, k, o…] = Σ padded x[n, k // (K/G) · C/G + c, o·stride + r·dilation] ·
    weight[k, c, r…].

    Taps beyond a ``border`` are no products with zeros of a padded x then, but left out of the sum.
    """
    x, weight = inputs
    kind = tensor_argument(result, "result")
    axes = spatial_axes(attrs.rank)
    extents = attrs.kernel.extents(weight.shape)
    found = attrs.out.extents(kind.shape)
    if border is None:
        source, steps = _what_is_read(x, attrs, *([const_int(of[a]) for a in axes] for of in (found, extents)))
    else:
        source, steps = padded(x, attrs.data, border.padding, "conv.padded"), (1,) * attrs.rank
    if terms is not None:
        source = _prepared(source, terms)
    filters_per_group = (const_int(extents["O"]) or 0) // attrs.groups
    taps = [te.reduce_axis((0, extents[axis]), name=f"r{d}") for d, axis in enumerate(axes)]
    block = _block_of_channels(attrs.data, extents["I"])
    count = simplify(extents["I"] // block)
    c, *part = [te.reduce_axis((0, count), name="c"), te.reduce_axis((0, block), name="ci")][: 1 + (block > 1)]
    data, kernel = (
        Layout(text if block == 1 else f"{text}{block}{text[1].lower()}") for text in (f"NC{axes}", f"OI{axes}")
    )
    reduced = _in_order_of(attrs.data, {**dict(zip(axes, ([tap] for tap in taps), strict=True)), "C": [c, *part]})

    def element(*index: Axis) -> Expr:
        n, k, *o = source_index([as_index(i) for i in index], Layout(f"NC{axes}"), attrs.out)
        channel = c if attrs.groups == 1 else k // filters_per_group * count + c
        if border is None:
            moves = zip(o, attrs.strides, taps, attrs.dilation, steps, strict=True)
            place = [i * (s // step) + tap * (d // step) for i, s, tap, d, step in moves]
            where = None
        else:
            window = [as_index(tap) for tap in taps]
            place = border.reads(o, window)
            read = [x.shape[attrs.data.position(axis)] for axis in axes]
            where = border.inside(o, window, read, [found[axis] for axis in axes])
        value = source[source_index([as_index(i) for i in (n, channel, *place, *part)], attrs.data, data)]
        factor = weight[source_index([as_index(i) for i in (k, c, *taps, *part)], attrs.kernel, kernel)]
        if terms is not None:
            return te.sum(terms.multiply(value, factor), axis=reduced)
        return te.sum(widened(value, kind.dtype) * widened(factor, kind.dtype), axis=reduced, where=where)

    sums = te.compute(kind.shape, element, name="conv")
    made = narrowed(sums, kind.dtype, "conv.narrow") if terms is None else _finished(sums, terms)
    return DefinedStages(made, x, source, weight, sums, steps)


def _block_of_channels(layout: Layout, extent: Expr) -> int:
    """How many channels are a block of x whose terms stand apart in a sum: 1 unless blocks of a group are whole."""
    block = layout.factor("C")
    return block if len(layout.blocks("C")) == 1 and const_int(simplify(extent % block)) == 0 else 1


def _in_order_of(layout: Layout, reduced: Mapping[str, Sequence[Axis]]) -> list[Axis]:
    """The axes of a sum, which are given for each axis of a layout, in the order in which that has them."""
    digits = {name: iter(axes) for name, axes in reduced.items()}
    return [axis for part in layout.axes if part.name in digits for axis in islice(digits[part.name], 1)]


def schedule_copies(
    schedule: Schedule, anchor: DefinedStages, attrs: ConvAttrs, padded_copy: Callable[[StageView], None]
) -> Tensor:
    """Copy x with its padding, as ``padded_copy`` schedules it; what only leaves out positions of x is read where it
    lies. Gives what is in memory, which is what the sums read."""
    if not any(attrs.padding):
        for copy in anchor.copies:
            schedule[copy].compute_inline()
        return anchor.x
    for copy in anchor.copies:
        padded_copy(schedule[copy])
    return anchor.source


def last_read(outputs: int, stride: int, reach: int, extent: int | None, pads: tuple[int, int]) -> int:
    """The last position of an axis of the padded x in the last stride that windows reach, each ``reach`` far."""
    last = ((outputs - 1) * stride + reach) // stride * stride + stride - 1
    return last if extent is None else min(last, extent + sum(pads) - 1)


def _what_is_read(
    x: Tensor, attrs: ConvAttrs, outputs: Sequence[int | None], window: Sequence[int | None]
) -> tuple[Tensor, tuple[int, ...]]:
    """x with its padding, to the end of the last stride that windows reach, and of it, per axis, the positions at
    multiples of a step, which are all that they read; and the steps. Where not all extents are known, x with all of its
    padding, and steps of 1."""
    rank = attrs.rank
    known = [extent for extent in (*outputs, *window) if extent]
    if len(known) < 2 * rank:
        return padded(x, attrs.data, attrs.padding, "conv.padded"), (1,) * rank
    outs, reach = known[:rank], [(w - 1) * d for w, d in zip(known[rank:], attrs.dilation, strict=True)]
    steps = tuple(math.gcd(s, d) if r else s for s, d, r in zip(attrs.strides, attrs.dilation, reach, strict=True))
    positions = [attrs.data.position(axis) for axis in spatial_axes(rank)]
    ends = [const_int(x.shape[place]) for place in positions]
    pads = zip(attrs.padding[:rank], attrs.padding[rank:], strict=True)
    last = [last_read(*of) for of in zip(outs, attrs.strides, reach, ends, pads, strict=True)]
    shape = list(x.shape)
    for place, end, step in zip(positions, last, steps, strict=True):
        shape[place] = as_index(end // step + 1)
    if not any(attrs.padding) and all(a is b for a, b in zip(shape, x.shape, strict=True)):
        return x, steps
    exceeds = [n is None or e - p >= n for e, p, n in zip(last, attrs.padding, ends, strict=False)]
    begins = (*attrs.padding[:rank], *(0,) * rank)

    def element(*index: Axis) -> Expr:
        where: list[Expr] = [as_index(i) for i in index]
        for d, place in enumerate(positions):
            where[place] = where[place] * steps[d] - attrs.padding[d]
        valid = inside([where[place] for place in positions], [x.shape[place] for place in positions], begins, exceeds)
        return te.if_then_else(valid, x[tuple(where)], te.const(0, x.dtype))

    return te.compute(shape, element, name="conv.padded"), steps


def _prepared(source: Tensor, terms: Terms) -> Tensor:
    return te.compute(source.shape, lambda *index: terms.prepare(source[index]), name="conv.prepared")


def _finished(sums: Tensor, terms: Terms) -> Tensor:
    def element(n: Axis, k: Axis, *o: Axis) -> Expr:
        return terms.finish(sums[(n, k, *o)], k)

    return te.compute(sums.shape, element, name="conv.finished")

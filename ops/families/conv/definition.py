"""What a convolution is, in any layouts: the sums of products of its weights with what its windows read of x.

It is the compute of ``conv.direct``, and of the implementations that differ from it by their schedules alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from .... import te
from ....graph.layout import Layout, source_index
from ....graph.types import Type
from ....ir.constants import const_int
from ....ir.expr import Axis, Expr
from ....ir.makers import as_index
from ....te.tensor import Tensor, Tensors
from ...definition.accumulate import narrowed, widened
from ...definition.relations import tensor_argument
from ..window import inside, padded, spatial_axes
from .attrs import ConvAttrs
from .stages import ConvStages


@dataclass(frozen=True, slots=True)
class Terms:
    """Other terms than products of numbers: ``prepare`` is applied to what is read of x, pads included; ``finish`` to
    the sums of a filter."""

    prepare: Callable[[Expr], Expr]
    multiply: Callable[[Expr, Expr], Expr]
    finish: Callable[[Expr, Axis], Expr]


@dataclass(frozen=True, slots=True)
class DefinedStages(ConvStages):
    """The source has the positions of x, padded, at multiples of ``steps``, per spatial axis."""

    steps: tuple[int, ...]


def definition(attrs: ConvAttrs, inputs: Tensors, result: Type, terms: Terms | None = None) -> DefinedStages:
    """y[n, k, o…] = Σ padded x[n, k // (K/G) · C/G + c, o·stride + r·dilation] · weight[k, c, r…]"""
    x, weight = inputs
    kind = tensor_argument(result, "result")
    axes = spatial_axes(attrs.rank)
    data, kernel = Layout(f"NC{axes}"), Layout(f"OI{axes}")
    extents = attrs.kernel.extents(weight.shape)
    found = attrs.out.extents(kind.shape)
    source, steps = _what_is_read(x, attrs, [const_int(found[a]) for a in axes], [const_int(extents[a]) for a in axes])
    if terms is not None:
        source = _prepared(source, terms)
    filters_per_group = (const_int(extents["O"]) or 0) // attrs.groups
    c = te.reduce_axis((0, extents["I"]), name="c")
    taps = [te.reduce_axis((0, extents[axis]), name=f"r{d}") for d, axis in enumerate(axes)]

    def element(*index: Axis) -> Expr:
        n, k, *o = source_index([as_index(i) for i in index], data, attrs.out)
        channel = c if attrs.groups == 1 else k // filters_per_group * extents["I"] + c
        moves = zip(o, attrs.strides, taps, attrs.dilation, steps, strict=True)
        place = (i * (s // step) + tap * (d // step) for i, s, tap, d, step in moves)
        value = source[source_index((n, as_index(channel), *place), attrs.data, data)]
        factor = weight[source_index([as_index(i) for i in (k, c, *taps)], attrs.kernel, kernel)]
        if terms is not None:
            return te.sum(terms.multiply(value, factor), axis=[c, *taps])
        return te.sum(widened(value, kind.dtype) * widened(factor, kind.dtype), axis=[c, *taps])

    sums = te.compute(kind.shape, element, name="conv")
    made = narrowed(sums, kind.dtype, "conv.narrow") if terms is None else _finished(sums, terms)
    return DefinedStages(made, x, source, weight, sums, steps)


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
    places = [attrs.data.position(axis) for axis in spatial_axes(rank)]
    ends = [const_int(x.shape[place]) for place in places]
    last = [((o - 1) * s + r) // s * s + s - 1 for o, s, r in zip(outs, attrs.strides, reach, strict=True)]
    pads = [begin + end for begin, end in zip(attrs.padding[:rank], attrs.padding[rank:], strict=True)]
    last = [e if n is None else min(e, n + p - 1) for e, n, p in zip(last, ends, pads, strict=True)]
    shape = list(x.shape)
    for place, end, step in zip(places, last, steps, strict=True):
        shape[place] = as_index(end // step + 1)
    if not any(attrs.padding) and all(a is b for a, b in zip(shape, x.shape, strict=True)):
        return x, steps
    exceeds = [n is None or e - p >= n for e, p, n in zip(last, attrs.padding, ends, strict=False)]
    begins = (*attrs.padding[:rank], *(0,) * rank)

    def element(*index: Axis) -> Expr:
        where: list[Expr] = [as_index(i) for i in index]
        for d, place in enumerate(places):
            where[place] = where[place] * steps[d] - attrs.padding[d]
        valid = inside([where[place] for place in places], [x.shape[place] for place in places], begins, exceeds)
        return te.if_then_else(valid, x[tuple(where)], te.const(0, x.dtype))

    return te.compute(shape, element, name="conv.padded"), steps


def _prepared(source: Tensor, terms: Terms) -> Tensor:
    return te.compute(source.shape, lambda *index: terms.prepare(source[index]), name="conv.prepared")


def _finished(sums: Tensor, terms: Terms) -> Tensor:
    def element(n: Axis, k: Axis, *o: Axis) -> Expr:
        return terms.finish(sums[(n, k, *o)], k)

    return te.compute(sums.shape, element, name="conv.finished")

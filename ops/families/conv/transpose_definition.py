"""What a transposed convolution is: each element of its result collects the products that reach it.

y[n, k, q·stride + r·dilation - pad] += x[n, c, q…] · w[c, k % (K/G), r…]   over c of k's group, q and the window r
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from .... import te
from ....base.dataclass import dataclass
from ....graph.types import Type
from ....ir.constants import ZERO, const_int
from ....ir.expr import Axis, Compare, Expr
from ....ir.makers import as_index, minimum
from ....ir.simplify import simplify
from ....te.tensor import Tensor, Tensors
from ...definition.accumulate import narrowed, widened
from ...definition.attrs import Attrs, all_non_negative, all_positive, attr, positive
from ...definition.implementation import Stages
from ...definition.relations import tensor_argument
from ..window import inside


@dataclass(frozen=True)
class ConvTransposeAttrs(Attrs):
    """The attributes of the transposed convolutions of one to three spatial axes."""

    strides: tuple[int, ...] = attr("distance of the windows in the output, per spatial axis", check=all_positive)
    padding: tuple[int, ...] = attr("elements cut off the output: all begins, then all ends")
    dilation: tuple[int, ...] = attr("distance of the window's elements, per spatial axis", check=all_positive)
    output_padding: tuple[int, ...] = attr("elements added at the output's ends", check=all_non_negative)
    groups: int = attr("number of groups that the channels are split in", default=1, check=positive)


@dataclass(frozen=True, slots=True)
class TransposedStages(Stages):
    """The ``sums`` of products of the weight and of ``source``, which is x or a copy of it with a border of zeros."""

    source: Tensor
    sums: Tensor


def definition(attrs: ConvTransposeAttrs, inputs: Tensors, result: Type) -> TransposedStages:
    """The transposed convolution: the terms of an element are those whose distance to it is a multiple of the stride,
    and which x has."""
    return _sums_of(attrs, inputs, result, bordered=False)


def bordered_definition(attrs: ConvTransposeAttrs, inputs: Tensors, result: Type) -> TransposedStages:
    """The same, with products of zeros in place of the terms that x does not have: of a copy of x with a border that
    holds all that the window reaches. What no tap of the window reaches is zero, and reads no sums."""
    stages = _sums_of(attrs, inputs, result, bordered=True)
    remainders = _largest_remainders(attrs, [const_int(e) or 0 for e in inputs[1].shape[2:]])
    if all(most == stride - 1 for most, stride in zip(remainders, attrs.strides, strict=True)):
        return stages
    sums = stages.result

    def element(n: Axis, k: Axis, *o: Axis) -> Expr:
        padded = [(i + p, s, most) for i, p, s, most in zip(o, attrs.padding, attrs.strides, remainders, strict=False)]
        reached = te.all(*(z % s <= most for z, s, most in padded if most < s - 1))
        nearest = [z // s * s + minimum(z % s, as_index(most)) for z, s, most in padded]
        of_sums = (i - p for i, p in zip(nearest, attrs.padding, strict=False))
        return te.if_then_else(reached, sums[(n, k, *of_sums)], te.const(0, sums.dtype))

    return replace(stages, result=te.compute(sums.shape, element, name="conv_transpose.reached"))


def _sums_of(attrs: ConvTransposeAttrs, inputs: Tensors, result: Type, bordered: bool) -> TransposedStages:
    x, weight = inputs
    kind = tensor_argument(result, "result")
    rank = kind.ndim - 2
    window = [const_int(e) or 0 for e in weight.shape[2:]]
    begins = first_reads(attrs, window) if bordered else (0,) * rank
    source = _bordered(x, attrs, begins, kind.shape[2:]) if bordered else x
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
            if not bordered:
                tests += [position >= 0, position < x.shape[d + 2]]
            if attrs.strides[d] > 1:
                tests.append(Compare("==", distance % attrs.strides[d], ZERO))
            place.append(position - begins[d])
        term = widened(source[(n, channel, *place)]) * widened(weight[(channel, column, *taps)])
        return te.sum(term, axis=[c, *taps], where=te.all(*tests) if tests else None)

    sums = te.compute(kind.shape, element, name="conv_transpose")
    return TransposedStages(narrowed(sums, kind.dtype, "conv_transpose.narrow"), source, sums)


def _largest_remainders(attrs: ConvTransposeAttrs, window: Sequence[int]) -> list[int]:
    """What a padded position that some tap reaches leaves at most when the stride divides it, per axis."""
    axes = zip(window, attrs.dilation, attrs.strides, strict=True)
    return [max((r * d % s for r in range(w)), default=0) for w, d, s in axes]


def first_reads(attrs: ConvTransposeAttrs, window: Sequence[int]) -> tuple[int, ...]:
    """The position of x, per axis, before which no element of the result has a term; negative in a border."""
    steps = zip(attrs.padding, window, attrs.dilation, attrs.strides, strict=False)
    return tuple(p // s - (w - 1) * d // s for p, w, d, s in steps)


def _bordered(x: Tensor, attrs: ConvTransposeAttrs, begins: Sequence[int], outputs: Sequence[Expr]) -> Tensor:
    """x from the first position on that any element of the result reads, to the last one."""
    ends = [(o + (p - 1)) // s for o, p, s in zip(outputs, attrs.padding, attrs.strides, strict=False)]
    shape = [simplify(end - (begin - 1)) for end, begin in zip(ends, begins, strict=True)]
    rank = len(begins)

    def element(n: Axis, c: Axis, *index: Axis) -> Expr:
        place = tuple(i + begin for i, begin in zip(index, begins, strict=True))
        within = inside(place, x.shape[2:], (1,) * (2 * rank), (True,) * rank)
        return te.if_then_else(within, x[(n, c, *place)], te.const(0, x.dtype))

    return te.compute((*x.shape[:2], *shape), element, name="conv_transpose.source")

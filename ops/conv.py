"""Convolutions over 1 to 3 (or more) spatial axes, with groups, strides, dilations and pads: ``nn.conv``.

y[n, k, o…] = Σ x[n, k // (K/G) · C/G + c, o·stride + r·dilation - pad] · w[k, c, r…]   over c < C/G and window r
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .. import te
from ..graph.node import Call, Node, tensor_of
from ..graph.types import TensorType, Type
from ..ir.errors import TypeInferenceError
from ..ir.expr import Axis, Expr, as_index, const_int
from ..ir.target import Target
from .accumulate import narrowed, widened
from .attrs import Attrs, all_non_negative, all_positive, attr, positive
from .conv_flat import add_flat
from .registry import OpPattern, register_op
from .relations import same_dtype, tensor_argument
from .strategy import OpStrategy, Tensors, register_strategy, schedule_default
from .window import AutoPad, PerAxis, check_ranks, padded, per_axis, resolve_padding, spatial_rank, window_shape


@dataclass(frozen=True)
class ConvAttrs(Attrs):
    strides: tuple[int, ...] = attr("step of the window, per spatial axis", check=all_positive)
    padding: tuple[int, ...] = attr("zeros around the spatial axes: all begins, then all ends", check=all_non_negative)
    dilations: tuple[int, ...] = attr("distance of the window's elements, per spatial axis", check=all_positive)
    groups: int = attr("number of groups that the channels are split in", default=1, check=positive)


def _relation(types: Sequence[Type], attrs: ConvAttrs) -> Type:
    x, weight = tensor_argument(types[0], "x"), tensor_argument(types[1], "weight")
    same_dtype([x, weight], ["x", "weight"])
    if not x.dtype.is_float and not x.dtype.is_data_int:
        raise TypeInferenceError(f"a convolution is of numbers, not of {x.dtype}")
    rank = spatial_rank(x)
    check_ranks(rank, strides=attrs.strides, dilations=attrs.dilations, padding=attrs.padding)
    window = weight_window(weight, rank)
    channels, per_group, filters = (const_int(e) for e in (x.shape[1], weight.shape[1], weight.shape[0]))
    if channels is None or per_group is None or filters is None:
        raise TypeInferenceError(f"numbers of channels must be known, found {x} and {weight}")
    if channels != per_group * attrs.groups:
        raise TypeInferenceError(
            f"x has {channels} channels, but a weight of {per_group} channels in {attrs.groups} groups needs "
            f"{per_group * attrs.groups}"
        )
    if filters % attrs.groups:
        raise TypeInferenceError(f"{filters} filters do not fall into {attrs.groups} groups of one size")
    spatial = window_shape(x, window, attrs.strides, attrs.dilations, attrs.padding)
    return TensorType((x.shape[0], weight.shape[0], *spatial), x.dtype)


def weight_window(weight: TensorType | te.Tensor, rank: int) -> tuple[int, ...]:
    """The spatial extents of a weight, which must be known."""
    window = tuple(n for e in weight.shape[2:] if (n := const_int(e)) is not None and n > 0)
    if weight.ndim != rank + 2 or len(window) != rank:
        raise TypeInferenceError(f"weight needs {rank + 2} axes, the spatial ones of known extents, found {weight}")
    return window


def _direct(attrs: ConvAttrs, inputs: Tensors, result: Type) -> te.Tensor:
    x, weight = inputs
    kind = tensor_argument(result, "result")
    rank = kind.ndim - 2
    source = padded(x, attrs.padding, te.const(0, x.dtype), "conv.padded")
    c = te.reduce_axis((0, weight.shape[1]), name="c")
    taps = [te.reduce_axis((0, e), name=f"r{d}") for d, e in enumerate(weight.shape[2:])]
    filters_per_group = (const_int(weight.shape[0]) or 0) // attrs.groups

    def element(n: Axis, k: Axis, *o: Axis) -> Expr:
        channel = c if attrs.groups == 1 else as_index(k) // filters_per_group * weight.shape[1] + c
        place = tuple(o[d] * attrs.strides[d] + taps[d] * attrs.dilations[d] for d in range(rank))
        return te.sum(widened(source[(n, channel, *place)]) * widened(weight[(k, c, *taps)]), axis=[c, *taps])

    sums = te.compute(kind.shape, element, name="conv")
    return narrowed(sums, kind.dtype, "conv.narrow")


CONV = register_op(
    "nn.conv",
    "Convolution (cross-correlation) over the spatial axes, summed over the channels of a group",
    [("x", "[N, C, spatial…]"), ("weight", "[K, C / groups, window…]")],
    _relation,
    OpPattern.OUT_ELEMENTWISE_FUSABLE,
    ConvAttrs,
)


@register_strategy(CONV)
def _strategy(attrs: ConvAttrs, inputs: Sequence[Type], result: Type, target: Target) -> OpStrategy:
    strategy = OpStrategy()
    strategy.add_implementation(_direct, schedule_default, "conv.direct")
    add_flat(strategy, attrs, inputs, result, target)
    return strategy


def conv(
    x: Node,
    weight: Node,
    strides: PerAxis = 1,
    padding: PerAxis = 0,
    dilations: PerAxis = 1,
    groups: int = 1,
    auto_pad: AutoPad = "NOTSET",
) -> Call:
    """Convolution of x [N, C, …] with weight [K, C / groups, …] over as many spatial axes as x has.

    ``padding``: one number, one per spatial axis, or all begins and then all ends; ``auto_pad`` may choose it instead.
    """
    kind = tensor_of(x)
    rank = spatial_rank(kind)
    steps, spread = per_axis(strides, rank, "strides"), per_axis(dilations, rank, "dilations")
    window = weight_window(tensor_of(weight), rank)
    pads = resolve_padding(kind, window, steps, spread, padding, auto_pad)
    return CONV(x, weight, attrs=ConvAttrs(steps, pads, spread, groups))


def conv2d(
    x: Node,
    weight: Node,
    strides: PerAxis = 1,
    padding: PerAxis = 0,
    dilations: PerAxis = 1,
    groups: int = 1,
    auto_pad: AutoPad = "NOTSET",
) -> Call:
    """``conv`` of an x with two spatial axes, [N, C, H, W]."""
    if tensor_of(x).ndim != 4:
        raise TypeInferenceError(f"conv2d needs x as [N, C, H, W], found {x.type}")
    return conv(x, weight, strides, padding, dilations, groups, auto_pad)

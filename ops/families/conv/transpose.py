"""Transposed convolutions, the gradients of convolutions by their input: ``nn.conv2d_transpose`` and those of 1 and 3
spatial axes.

``transpose_definition.py`` says what they compute.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypedDict, Unpack

from ....base.errors import TypeInferenceError
from ....base.target import Target
from ....graph.node import Call, Node, tensor_of
from ....graph.types import TensorType, Type
from ....ir.constants import const_int
from ....ir.expr import Expr
from ....ir.makers import as_index
from ....ir.simplify import simplify
from ...definition.arguments import PerAxis, integer_list, naming, per_axis
from ...definition.cost import moved
from ...definition.nn_module import with_options_of
from ...definition.registry import Op, OpPattern, register_op
from ...definition.relations import same_dtype, same_extent, tensor_argument
from ...definition.strategy import OpStrategy, register_strategy, schedule_default
from ..window import (
    AutoPad,
    check_auto_pad,
    check_ranks,
    given_padding,
    known_window,
    spatial_axes,
    spatial_rank,
)
from .transpose_definition import ConvTransposeAttrs, bordered_definition, definition
from .transpose_phases import Phased


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


MOST_PHASES = 16
"""The code of each phase is written by itself."""


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
    strategy.add_implementation(definition, schedule_default, "conv_transpose.gathering")
    x, weight = tensor_argument(inputs[0], "x"), tensor_argument(inputs[1], "weight")
    kind = tensor_argument(result, "result")
    inner, shape = (TensorType(t.shape[1:], t.dtype).static_shape for t in (x, kind))  # N may be open
    wide = kind.dtype.storage_bits >= 32 and const_int(kind.shape[0]) != 0
    if shape is not None and 0 not in shape and inner and wide and math.prod(attrs.strides) <= MOST_PHASES:
        phased = Phased(attrs, known_window(weight.shape[2:]), shape[0], shape[1:], target, kind)
        strategy.add_implementation(
            bordered_definition, phased.schedule, "conv_transpose.phased", cost=moved([*inputs, result])
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

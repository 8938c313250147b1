"""Convolutions over one, two or three spatial axes: ``nn.conv1d``, ``nn.conv2d``, ``nn.conv3d``.

y[n, k, o…] = Σ x[n, k // (K/G) · C/G + c, o·stride + r·dilation - pad] · w[k, c, r…]   over c < C/G and window r

In whatever layouts the tensors are: ``definition``. One strategy serves all ranks. Its implementations, but for the one
with the default schedule, stand in files of their own: ``flat``, ``pointwise`` and ``filter_vectors`` for N, C, …;
``channels_last`` for N, …, C; ``batch_last`` for …, C, N; ``nchwc`` for blocked channels; ``depthwise``; ``int8``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypedDict, Unpack, cast

from ....base.errors import TypeInferenceError
from ....base.target import Target
from ....graph.node import Call, Constant, Node, tensor_of
from ....graph.types import TensorType, Type
from ....ir.constants import const_int
from ....ir.expr import Expr
from ....ir.makers import as_index
from ....ir.simplify import simplify
from ....schedules.machine import CORE
from ...definition.accumulate import accumulator, is_byte, product_dtype
from ...definition.arguments import PerAxis, naming, per_axis
from ...definition.cost import moved, multiplied
from ...definition.layout_rule import LayoutCandidate, ValueLayout
from ...definition.nn_module import with_options_of
from ...definition.registry import Op, OpPattern, register_op
from ...definition.relations import same_extent, tensor_argument
from ...definition.strategy import OpStrategy, register_strategy, schedule_default
from ..window import (
    AutoPad,
    axis_extents,
    check_ranks,
    checked_layout,
    known_window,
    rank_in,
    resolve_padding,
    spatial_axes,
    window_shape,
)
from .attrs import Conv1DAttrs, Conv2DAttrs, Conv3DAttrs, ConvAttrs
from .batch_last import add_batch_last
from .blocked_depthwise import add_blocked_depthwise, blocked_depthwise_candidates
from .byte_operands import in_words
from .channels_last import add_channels_last
from .definition import definition
from .depthwise import add_depthwise, axes_of_rows
from .filled_channels import filled_candidates
from .filter_vectors import add_filter_vectors, filter_vector_candidates
from .flat import add_flat
from .int8 import add_byte_conv
from .nchwc import add_blocked, blocked_candidates
from .open_blocked import add_open_blocked
from .open_pointwise import add_open_pointwise
from .open_rows import add_open_rows
from .pointwise import add_packed_pointwise, pointwise_candidates
from .problem import ConvProblem
from .strassen import strassen_candidates
from .winograd_weights import winograd_candidates

# Type relation


def _relation(types: Sequence[Type], attrs: ConvAttrs) -> Type:
    x, weight = tensor_argument(types[0], "x"), tensor_argument(types[1], "weight")
    kind = product_dtype([x, weight], ["x", "weight"], attrs.out_dtype)
    check_ranks(attrs.rank, strides=attrs.strides, dilation=attrs.dilation, padding=attrs.padding)
    axes = spatial_axes(attrs.rank)
    data = axis_extents(x, attrs.data_layout, f"NC{axes}", "C", ("x", "data_layout"))
    kernel = axis_extents(weight, attrs.kernel_layout, f"OI{axes}", "OI", ("weight", "kernel_layout"))
    out = checked_layout(attrs.out.text, f"NC{axes}", "C", "out_layout")
    window = known_window([kernel[a] for a in axes])
    if attrs.kernel_size not in (None, window):
        raise TypeInferenceError(f"kernel_size is {attrs.kernel_size}, but the window of weight is {window}")
    filters = _checked_filters(data["C"], kernel["I"], kernel["O"], attrs)
    extents = window_shape([data[a] for a in axes], window, attrs.strides, attrs.dilation, attrs.padding)
    return TensorType(out.shape({"N": data["N"], "C": filters, **dict(zip(axes, extents, strict=True))}), kind)


def _checked_filters(c: Expr, i: Expr, o: Expr, attrs: ConvAttrs) -> int:
    """The number of filters, of which the last block may be filled up."""
    per_group, filters = const_int(i), const_int(o)
    open_channels = attrs.groups == 1 and const_int(simplify(c - i)) == 0
    if filters is None or (per_group is None and not open_channels):
        raise TypeInferenceError(f"numbers of channels must be known, found {c} of x, {o} and {i} of weight")
    if per_group is not None:
        needed = per_group * attrs.groups
        same_extent(
            c,
            as_index(needed),
            f"x has {c} channels, but a weight of {per_group} channels in {attrs.groups} groups needs {needed}",
        )
    if filters % attrs.groups:
        raise TypeInferenceError(f"{filters} filters do not fall into {attrs.groups} groups of one size")
    filled = 0 if attrs.channels is None else filters - attrs.channels
    if filled and (attrs.groups > 1 or not 0 < filled < attrs.kernel.factor("O")):
        raise TypeInferenceError(f"channels is {attrs.channels}, but weight has {filters} filters")
    return filters - filled


# Registration


def _layout_rule(call: Call, given: ValueLayout | None, target: Target) -> Iterator[LayoutCandidate]:
    problem = ConvProblem.of_call(call, target)
    if problem.has_open_channels:
        return
    yield from pointwise_candidates(problem, given)
    yield from blocked_candidates(problem, given)
    yield from blocked_depthwise_candidates(problem, given)
    yield from filter_vector_candidates(problem, given)
    yield from winograd_candidates(problem, given)
    yield from strassen_candidates(problem, given)
    yield from filled_candidates(problem, given)


def _register(rank: int, attrs: type[ConvAttrs]) -> Op:
    axes = spatial_axes(rank)
    return register_op(
        f"nn.conv{rank}d",
        f"Convolution (cross-correlation) over {' and '.join(axes)}, summed over the channels of a group",
        [
            ("x", f"[{', '.join(f'NC{axes}')}], or as data_layout says"),
            ("weight", "[K, C / groups, window…], or as kernel_layout says"),
        ],
        _relation,
        OpPattern.OUT_ELEMENTWISE_FUSABLE,
        attrs,
        support_level=2,
        layout_rule=_layout_rule,
        row_rule=axes_of_rows,
    )


CONV1D, CONV2D, CONV3D = _register(1, Conv1DAttrs), _register(2, Conv2DAttrs), _register(3, Conv3DAttrs)
CONVS = {1: (CONV1D, Conv1DAttrs), 2: (CONV2D, Conv2DAttrs), 3: (CONV3D, Conv3DAttrs)}
"""By the number of spatial axes."""


# Strategy


def _strategy(attrs: ConvAttrs, inputs: Sequence[Type], result: Type, target: Target) -> OpStrategy:
    strategy = OpStrategy()
    problem = ConvProblem.of(attrs, inputs, result, target)
    efficiency = CORE.shares.depthwise_definition if problem.is_depthwise else CORE.shares.definition
    cost = multiplied(problem.products, problem.dtype, target, efficiency) + moved(problem.types)
    strategy.add_implementation(definition, schedule_default, "conv.direct", plevel=5, cost=cost)
    if problem.is_filled_up:
        add_filter_vectors(strategy, problem)
        return strategy
    x, sums = problem.x.dtype, problem.dtype
    if problem.has_open_channels:
        if x is sums is accumulator(sums) and not problem.is_empty:
            for add in (add_flat, add_packed_pointwise, add_blocked, add_filter_vectors):
                add(strategy, problem)
        return strategy
    if x is sums is accumulator(sums) and not problem.is_empty:
        for add in (
            add_flat,
            add_packed_pointwise,
            add_blocked,
            add_open_pointwise,
            add_open_blocked,
            add_open_rows,
            add_blocked_depthwise,
            add_filter_vectors,
            add_channels_last,
            add_batch_last,
            add_depthwise,
        ):
            add(strategy, problem)
    if is_byte(x) and not problem.is_empty:
        add_byte_conv(strategy, problem)
    return strategy


for _op in (CONV1D, CONV2D, CONV3D):
    register_strategy(_op)(_strategy)


# Calls


class ConvOptions(TypedDict, total=False):
    """The options of ``conv``, which those of one rank have too."""

    strides: PerAxis
    padding: PerAxis
    dilation: PerAxis
    groups: int
    channels: int | None
    kernel_size: PerAxis | None
    data_layout: str
    kernel_layout: str
    out_layout: str
    out_dtype: str
    auto_pad: AutoPad


def conv(
    x: Node,
    weight: Node,
    strides: PerAxis = 1,
    padding: PerAxis = 0,
    dilation: PerAxis = 1,
    groups: int = 1,
    channels: int | None = None,
    kernel_size: PerAxis | None = None,
    data_layout: str = "",
    kernel_layout: str = "",
    out_layout: str = "",
    out_dtype: str = "",
    auto_pad: AutoPad = "NOTSET",
) -> Call:
    """Convolution over as many spatial axes as x has, by ``nn.conv1d``, ``nn.conv2d`` or ``nn.conv3d``.

    x is [N, C, …] and weight [K, C / groups, …] unless ``data_layout`` and ``kernel_layout`` say otherwise, as in
    "NHWC" and "HWIO"; the result has x's layout unless there is an ``out_layout``. ``padding``: one number, one per
    spatial axis, or all begins and then all ends; ``auto_pad`` may choose it instead. ``channels`` and
    ``kernel_size``, where given, are checked against weight. A constant weight of 8-bit integers is laid out in words
    of four channels here, once and for all, if they divide its channels.
    """
    with naming("nn.conv"):
        kind, filters = tensor_of(x), tensor_of(weight)
        rank = rank_in(kind, data_layout)
        if not isinstance(kernel_layout, str):
            raise TypeInferenceError(f"kernel_layout is text, as 'OIHW', found {kernel_layout!r}")
        axes = spatial_axes(rank)
    op, attributes = CONVS[rank]
    data, kernel = data_layout or f"NC{axes}", kernel_layout or f"OI{axes}"
    if isinstance(weight, Constant) and f"NC{axes}" == data and not kernel_layout and is_byte(kind.dtype):
        weight, kernel = in_words(weight, rank)
        filters = tensor_of(weight)
    with naming(op.name):
        extents = axis_extents(kind, data, f"NC{axes}", "C", ("x", "data_layout"))
        weights = axis_extents(filters, kernel, f"OI{axes}", "OI", ("weight", "kernel_layout"))
        window = known_window([weights[axis] for axis in axes])
        steps, spread = per_axis(strides, rank, "strides"), per_axis(dilation, rank, "dilation")
        pads = resolve_padding([extents[axis] for axis in axes], window, steps, spread, padding, auto_pad)
        attrs = attributes(
            strides=steps,
            padding=pads,
            dilation=spread,
            groups=groups,
            channels=channels,
            kernel_size=None if kernel_size is None else per_axis(kernel_size, rank, "kernel_size"),
            data_layout=data,
            kernel_layout=kernel,
            out_layout=out_layout,
            out_dtype=out_dtype,
        )
    return op(x, weight, attrs=attrs)


@with_options_of(conv)
def conv1d(x: Node, weight: Node, **options: Unpack[ConvOptions]) -> Call:
    """``conv`` over one spatial axis: of an x that is [N, C, W], if ``data_layout`` does not say otherwise.

    With a weight that is [K, C / groups, w] the result is [N, K, W'], where each extent is that of the
    windows that fit: W' = (W + padding - dilation · (w - 1) - 1) // strides + 1, padding being that of both ends.
    """
    return _conv_over(1, x, weight, options)


@with_options_of(conv)
def conv2d(x: Node, weight: Node, **options: Unpack[ConvOptions]) -> Call:
    """``conv`` over two spatial axes: of an x that is [N, C, H, W], if ``data_layout`` does not say otherwise.

    With a weight that is [K, C / groups, h, w] the result is [N, K, H', W'], where each extent is that of the
    windows that fit: W' = (W + padding - dilation · (w - 1) - 1) // strides + 1, padding being that of both ends.
    """
    return _conv_over(2, x, weight, options)


@with_options_of(conv)
def conv3d(x: Node, weight: Node, **options: Unpack[ConvOptions]) -> Call:
    """``conv`` over three spatial axes: of an x that is [N, C, D, H, W], if ``data_layout`` does not say otherwise.

    With a weight that is [K, C / groups, d, h, w] the result is [N, K, D', H', W'], where each extent is that of the
    windows that fit: W' = (W + padding - dilation · (w - 1) - 1) // strides + 1, padding being that of both ends.
    """
    return _conv_over(3, x, weight, options)


def _conv_over(rank: int, x: Node, weight: Node, options: ConvOptions) -> Call:
    axes = f"NC{spatial_axes(rank)}"
    given: object = options.get("data_layout", "")  # callers may give anything
    layout = axes if isinstance(given, str) and not given else cast(str, given)
    with naming(f"nn.conv{rank}d"):
        checked_layout(layout, axes, "C", "data_layout")
    options["data_layout"] = layout
    return conv(x, weight, **options)

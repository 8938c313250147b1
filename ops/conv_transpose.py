"""Transposed convolutions, the gradients of convolutions by their input: ``nn.conv_transpose``.

y[n, k, q·stride + r·dilation - pad] += x[n, c, q…] · w[c, k % (K/G), r…]   over c of k's group, q and the window r
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .. import te
from ..graph.node import Call, Node, tensor_of
from ..graph.types import TensorType, Type
from ..ir.errors import TypeInferenceError
from ..ir.expr import ZERO, Axis, Compare, Expr, as_index, const_int
from ..ir.simplify import simplify
from .accumulate import narrowed, widened
from .attrs import Attrs, all_non_negative, all_positive, attr, positive
from .conv import weight_window
from .registry import OpPattern, register_op
from .relations import same_dtype, tensor_argument
from .strategy import Tensors, register_compute
from .window import AutoPad, PerAxis, check_ranks, per_axis, spatial_rank


@dataclass(frozen=True)
class ConvTransposeAttrs(Attrs):
    strides: tuple[int, ...] = attr("distance of the windows in the output, per spatial axis", check=all_positive)
    padding: tuple[int, ...] = attr("elements cut off the output: all begins, then all ends")
    dilations: tuple[int, ...] = attr("distance of the window's elements, per spatial axis", check=all_positive)
    output_padding: tuple[int, ...] = attr("elements added at the output's ends", check=all_non_negative)
    groups: int = attr("number of groups that the channels are split in", default=1, check=positive)


def _relation(types: Sequence[Type], attrs: ConvTransposeAttrs) -> Type:
    x, weight = tensor_argument(types[0], "x"), tensor_argument(types[1], "weight")
    same_dtype([x, weight], ["x", "weight"])
    if not x.dtype.is_float:
        raise TypeInferenceError(f"a transposed convolution is of floats, not of {x.dtype}")
    rank = spatial_rank(x)
    check_ranks(
        rank,
        strides=attrs.strides,
        dilations=attrs.dilations,
        output_padding=attrs.output_padding,
        padding=attrs.padding,
    )
    window = weight_window(weight, rank)
    channels, rows, per_group = (const_int(e) for e in (x.shape[1], weight.shape[0], weight.shape[1]))
    if channels is None or rows is None or per_group is None:
        raise TypeInferenceError(f"numbers of channels must be known, found {x} and {weight}")
    if channels != rows:
        raise TypeInferenceError(f"x has {channels} channels, but the weight is for {rows}")
    if channels % attrs.groups:
        raise TypeInferenceError(f"{channels} channels do not fall into {attrs.groups} groups of one size")
    spatial = [_extent(x.shape[d + 2], window[d], attrs, d) for d in range(rank)]
    return TensorType((x.shape[0], as_index(per_group * attrs.groups), *spatial), x.dtype)


def _extent(extent: Expr, window: int, attrs: ConvTransposeAttrs, d: int) -> Expr:
    reach = (window - 1) * attrs.dilations[d] + 1
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
            distance = o[d] + attrs.padding[d] - taps[d] * attrs.dilations[d]
            position = distance // attrs.strides[d]
            tests += [position >= 0, position < x.shape[d + 2]]
            if attrs.strides[d] > 1:
                tests.append(Compare("==", distance % attrs.strides[d], ZERO))
            place.append(position)
        term = widened(x[(n, channel, *place)]) * widened(weight[(channel, column, *taps)])
        return te.sum(term, axis=[c, *taps], where=te.all(*tests))

    sums = te.compute(kind.shape, element, name="conv_transpose")
    return narrowed(sums, kind.dtype, "conv_transpose.narrow")


CONV_TRANSPOSE = register_op(
    "nn.conv_transpose",
    "Transposed convolution: each element of x adds a copy of the weight's window, times itself, to the output",
    [("x", "[N, C, spatial…]"), ("weight", "[C, K / groups, window…]")],
    _relation,
    OpPattern.OUT_ELEMENTWISE_FUSABLE,
    ConvTransposeAttrs,
)
register_compute(CONV_TRANSPOSE, _gathering, name="conv_transpose.gathering")


def conv_transpose(
    x: Node,
    weight: Node,
    strides: PerAxis = 1,
    padding: PerAxis = 0,
    dilations: PerAxis = 1,
    output_padding: PerAxis = 0,
    groups: int = 1,
    auto_pad: AutoPad = "NOTSET",
    output_shape: Sequence[int] | None = None,
) -> Call:
    """Transposed convolution of x [N, C, …] with weight [C, K / groups, …].

    ``padding``: one number, one per spatial axis, or all begins and then all ends. ``output_shape`` (spatial extents)
    decides the padding instead; so does ``auto_pad``, where ``SAME_…`` asks for extents times strides. Either needs
    known extents.
    """
    kind = tensor_of(x)
    rank = spatial_rank(kind)
    steps, spread = per_axis(strides, rank, "strides"), per_axis(dilations, rank, "dilations")
    extra = per_axis(output_padding, rank, "output_padding")
    window = weight_window(tensor_of(weight), rank)
    if auto_pad not in ("NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"):
        raise TypeInferenceError(f"auto_pad must be NOTSET, SAME_UPPER, SAME_LOWER or VALID, found {auto_pad!r}")
    if output_shape is not None or auto_pad.startswith("SAME"):
        pads = _padding_for(kind, window, steps, spread, extra, auto_pad, output_shape)
    elif auto_pad == "VALID":
        pads = (0,) * (2 * rank)
    elif not isinstance(padding, int) and len(padding) == 2 * rank:
        pads = tuple(int(p) for p in padding)
    else:
        pads = per_axis(padding, rank, "padding") * 2
    return CONV_TRANSPOSE(x, weight, attrs=ConvTransposeAttrs(steps, pads, spread, extra, groups))


def _padding_for(
    kind: TensorType,
    window: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    output_padding: Sequence[int],
    auto_pad: AutoPad,
    output_shape: Sequence[int] | None,
) -> tuple[int, ...]:
    """The pads that give an output shape. The odd element is cut off the end for SAME_UPPER, else off the beginning.

    An output shape larger than the windows reach gives negative pads: zeros at the end.
    """
    shape = kind.static_shape
    if shape is None:
        raise TypeInferenceError(f"output_shape and auto_pad need known extents, found {kind}")
    rank = len(window)
    wanted = [n * s for n, s in zip(shape[2:], strides, strict=True)] if output_shape is None else list(output_shape)
    if len(wanted) != rank:
        raise TypeInferenceError(f"output_shape needs the {rank} spatial extents, found {tuple(wanted)}")
    begins, ends = [], []
    for d in range(rank):
        reach = (window[d] - 1) * dilations[d] + 1
        total = (shape[d + 2] - 1) * strides[d] + output_padding[d] + reach - wanted[d]
        small = max(total, 0) // 2
        begins.append(small if auto_pad == "SAME_UPPER" else max(total, 0) - small)
        ends.append(total - begins[-1])
    return (*begins, *ends)

"""ONNX's convolutions and pools."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...graph.node import Constant, Node, TupleGet, tensor_of
from ...ir.constants import ONE, const_int
from ...ir.expr import Expr, Var
from ...ir.simplify import simplify
from ...ops.definition.arguments import per_axis
from ...ops.families import global_pool, pool
from ...ops.families.binary import add, divide
from ...ops.families.cast import cast
from ...ops.families.col2im import col2im
from ...ops.families.conv import conv
from ...ops.families.conv import transpose as conv_transpose
from ...ops.families.creation import full
from ...ops.families.gather import take
from ...ops.families.open_extents import positions
from ...ops.families.pad import pad_by_extents
from ...ops.families.repeat import broadcast_to_extents
from ...ops.families.reshape import reshape, reshape_to_open
from ...ops.families.select import where
from ...ops.families.transpose import transpose
from ...ops.families.window import known_window, same_padding
from ..image_columns import as_row, gives_column, over_row, row_as_column
from ..onnx_node import OnnxNode
from ..registry import converter, register
from .elementwise import aligned_at
from .run_time_col2im import col2im_of_run
from .run_time_convolution import convolution_of_run, has_open_weight, transposed_of_run, with_known_channels


def window_of(node: OnnxNode) -> dict[str, Any]:
    """The attributes that all windowed operators have."""
    auto_pad = node.string("auto_pad", "NOTSET")
    return {
        "strides": node.ints("strides") or 1,
        "padding": node.ints("pads") or 0,
        "dilation": node.ints("dilations") or 1,
        "auto_pad": auto_pad or "NOTSET",
    }


def same_padded(
    node: OnnxNode, x: Node, window: Sequence[int], fill: float | Node, last: bool = False
) -> tuple[Node, dict[str, Any]]:
    """x, and the attributes of a node's windows over it. Where ``auto_pad`` adds as much as open extents ask for, which
    no number says, x has it already, as ``fill``, a number that may be computed. The channels are ``last``, or stand
    before the spatial axes."""
    options, kind = window_of(node), tensor_of(x)
    spatial = kind.shape[1:-1] if last else kind.shape[2:]
    widths = _open_padding(options, spatial, window)
    if widths is None:
        return x, options
    begins, ends = ((0, *counts, 0) if last else (0, 0, *counts) for counts in widths)
    sources = node.shapes.inputs
    if not isinstance(fill, Node):
        padded = pad_by_extents(x, begins, ends, sources, value=fill)
    else:
        one = Constant(np.ones((1,) * kind.ndim, np.uint8))
        extents = (1, *spatial, 1) if last else (1, 1, *spatial)
        inside = pad_by_extents(broadcast_to_extents(one, extents, sources), begins, ends, sources)
        padded = where(cast(inside, "bool"), pad_by_extents(x, begins, ends, sources), fill)
    return padded, options | {"padding": 0, "auto_pad": "VALID"}


def _open_padding(
    options: Mapping[str, Any], spatial: Sequence[Expr], window: Sequence[int]
) -> tuple[Sequence[Expr], Sequence[Expr]] | None:
    """How much ``auto_pad`` adds before and after each spatial axis, where open extents ask for what no number says."""
    rank = len(window)
    if not options["auto_pad"].startswith("SAME") or len(spatial) != rank:  # whose operator says what does not fit
        return None
    strides, dilation = (per_axis(options[name], rank, name) for name in ("strides", "dilation"))
    totals = [same_padding(*each) for each in zip(spatial, window, strides, dilation, strict=True)]
    if all(const_int(total) is not None for total in totals):
        return None
    small = [simplify(total // 2) for total in totals]
    large = [simplify(total - half) for total, half in zip(totals, small, strict=True)]
    return (small, large) if options["auto_pad"] == "SAME_UPPER" else (large, small)


def check_kernel_shape(node: OnnxNode, window: Sequence[Expr] | None = None) -> None:
    """Raise ``ModelError`` where the attribute differs from the window of the weights, which follows their channels if
    it is not given."""
    stated = node.ints("kernel_shape")
    found = known_window(node.type(1).shape[2:] if window is None else window)
    if stated is not None and stated != found:
        raise node.unsupported(f"kernel_shape {stated} for a weight {node.type(1)}")


def _with_bias(node: OnnxNode, result: Node) -> Node:
    bias = node.get(2)
    return result if bias is None else add(result, aligned_at(bias, tensor_of(result).ndim, 1))


def _require_windows(node: OnnxNode, x: Node, window: Sequence[Expr], options: Mapping[str, Any]) -> None:
    """Note that an image has a window, which each run checks: so ``(h - 1) / 2 + 1``, as exporters write the rows of a
    result, is what the convolution gives, ``(h + 1) // 2``. Branches and bodies may not be run."""
    if node.shapes.conditions or node.shapes.bounds.loops or options["auto_pad"].startswith("SAME"):
        return
    spatial = tensor_of(x).shape[2:]
    pads = per_axis(options["padding"], 2 * len(window), "padding")
    dilation = per_axis(options["dilation"], len(window), "dilation")
    for axis, (extent, taps) in enumerate(zip(spatial, window, strict=False)):
        covered = simplify((taps - 1) * dilation[axis] + 1 - pads[axis] - pads[axis + len(window)])
        if isinstance(extent, Var) and (const_int(covered) or 0) > 0:
            node.shapes.required.append(extent >= covered)


@converter("Conv", 1, 11, 22)
def convolution(node: OnnxNode) -> Node:
    """A convolution and its bias, if it has one."""
    x, weight = with_known_channels(node, node[0], node[1])
    if has_open_weight(x, weight):
        return _with_bias(node, convolution_of_run(node, x, weight))
    window = tensor_of(weight).shape[2:]
    check_kernel_shape(node, window)
    x, options = same_padded(node, x, known_window(window), 0.0)
    groups = node.integer("group", 1)
    _require_windows(node, x, window, options)
    if gives_column(x, weight, options):
        along = over_row(options, known_window(window)[1])
        return row_as_column(_with_bias(node, conv.conv(as_row(x), as_row(weight), groups=groups, **along)))
    return _with_bias(node, conv.conv(x, weight, groups=groups, **options))


@converter("ConvTranspose", 1, 11, 22)
def _conv_transpose(node: OnnxNode) -> Node:
    x, weight = with_known_channels(node, node[0], node[1], transposed=True)
    if has_open_weight(x, weight):
        return _with_bias(node, transposed_of_run(node, x, weight))
    check_kernel_shape(node, tensor_of(weight).shape[2:])
    wanted = node.ints("output_shape")
    result = conv_transpose.conv_transpose(
        x,
        weight,
        output_padding=node.ints("output_padding") or 0,
        groups=node.integer("group", 1),
        output_shape=wanted[-(node.rank - 2) :] if wanted else None,
        **window_of(node),
    )
    return _with_bias(node, result)


@converter("MaxPool", 1, 8, 10, 11, 12, 22)
def _max_pool(node: OnnxNode) -> Sequence[Node]:
    window, kind = node.required_ints("kernel_shape"), node.type().dtype
    least = -math.inf if kind.is_float else int(np.iinfo(kind.to_numpy()).min)
    x, options = same_padded(node, node[0], window, least)
    options["ceil_mode"] = node.flag("ceil_mode")
    if not node.wants(1):
        return (pool.max_pool(x, window, **options),)
    order = node.integer("storage_order", 0)
    both = pool.max_pool_with_indices(x, window, storage_order=0 if x is not node[0] else order, **options)
    largest, places = TupleGet(both, 0), TupleGet(both, 1)
    return largest, places if x is node[0] else take(_places_around(node, window, order), places)


def _places_around(node: OnnxNode, window: Sequence[int], storage_order: int) -> Node:
    """Which element of a flattened open image each one of the padded image stands for, flattened as well: the nearest,
    which is in the windows that reach beyond it, if these are not dilated."""
    shape, sources = node.type().shape, node.shapes.inputs
    numbers = positions(math.prod(shape, start=ONE), sources)
    if storage_order:
        turned = reshape_to_open(numbers, (*shape[:2], *shape[:1:-1]), sources)
        places: Node = transpose(turned, (0, 1, *range(node.rank - 1, 1, -1)))
    else:
        places = reshape_to_open(numbers, shape, sources)
    widths = _open_padding(window_of(node), shape[2:], window) or ((), ())
    return reshape(pad_by_extents(places, (0, 0, *widths[0]), (0, 0, *widths[1]), sources, "edge"), (-1,))


@converter("AveragePool", 1, 7, 10, 11, 19, 22)
def _average_pool(node: OnnxNode) -> Node:
    return averaged(node, node[0])


def averaged(node: OnnxNode, x: Node, last: bool = False) -> Node:
    """The averages of a node's windows over x, whose channels may be ``last``."""
    window = node.required_ints("kernel_shape")
    include, layout = node.flag("count_include_pad"), layout_of(tensor_of(x).ndim, last)
    padded, options = same_padded(node, x, window, 0.0, last)
    options |= {"ceil_mode": node.flag("ceil_mode"), "layout": layout}
    if padded is x or include:
        return pool.avg_pool(padded, window, count_include_pad=include, **options)
    kind = tensor_of(x)
    one = full((1,) * kind.ndim, 1.0, kind.dtype)
    extents = (1, *kind.shape[1:-1], 1) if last else (1, 1, *kind.shape[2:])
    counted, _ = same_padded(node, broadcast_to_extents(one, extents, node.shapes.inputs), window, 0.0, last)
    sums, counts = (pool.avg_pool(each, window, count_include_pad=True, **options) for each in (padded, counted))
    return divide(sums, counts)


def layout_of(rank: int, channels_last: bool) -> str:
    """The layout of images, of so many axes with those of samples and channels."""
    spatial = "DHW"[-(rank - 2) :]
    return f"N{spatial}C" if channels_last else f"NC{spatial}"


@converter("LpPool", 1)
def _lp_pool_1(node: OnnxNode) -> Node:
    window = node.required_ints("kernel_shape")
    x, options = same_padded(node, node[0], window, 0.0)
    return pool.lp_pool(x, window, p=_whole(node, 2.0), **options)


@converter("LpPool", 2, 11, 18, 22)
def _lp_pool(node: OnnxNode) -> Node:
    window = node.required_ints("kernel_shape")
    x, options = same_padded(node, node[0], window, 0.0)
    return pool.lp_pool(x, window, ceil_mode=node.flag("ceil_mode"), p=node.integer("p", 2), **options)


@converter("GlobalLpPool", 1)
def _global_lp_pool_1(node: OnnxNode) -> Node:
    return global_pool.global_lp_pool(node[0], _whole(node, 2.0))


@converter("GlobalLpPool", 2, 22)
def _global_lp_pool(node: OnnxNode) -> Node:
    return global_pool.global_lp_pool(node[0], node.integer("p", 2))


def _whole(node: OnnxNode, default: float) -> int:
    """Version 1 had a float p."""
    p = node.real("p", default)
    if not p.is_integer():
        raise node.unsupported(f"p = {p}")
    return int(p)


register("GlobalAveragePool", (1, 22), lambda node: global_pool.global_avg_pool(node[0]))
register("GlobalMaxPool", (1, 22), lambda node: global_pool.global_max_pool(node[0]))


@converter("Col2Im", 18)
def _col2im(node: OnnxNode) -> Node:
    """Of an open number of rows a run tells how many channels there are."""
    rows_known = node.rank != 3 or const_int(node.type().shape[1]) is not None
    if not (rows_known and isinstance(node[1], Constant) and isinstance(node[2], Constant)):
        return col2im_of_run(node)
    image, window = node.required_constant(1, "image_shape"), node.required_constant(2, "block_shape")
    return col2im(
        node[0], image, window, node.ints("strides") or 1, node.ints("pads") or 0, node.ints("dilations") or 1
    )

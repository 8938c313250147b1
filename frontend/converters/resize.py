"""ONNX's Resize, and Upsample, which it replaced; and GridSample, which reads images at positions that are given."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from ...base.errors import ModelError
from ...graph.node import Constant, Node, tensor_of
from ...ir.constants import const_int
from ...ir.contents import free_vars
from ...ir.expr import Expr
from ...ir.facts import nonnegative
from ...ir.makers import as_index
from ...ir.simplify import simplify
from ...ops.definition.relations import normalize_axis
from ...ops.families.grid_sample import grid_sample
from ...ops.families.resize import Resized, resize_axes
from ...ops.families.resize_math import Interpolation
from ..assumed_extent import with_extent
from ..onnx_node import OnnxNode
from ..registry import converter
from . import run_time_resize

MOST_PARTS = 64
"""A scale of an open extent is a fraction with at most this denominator."""


@converter("Upsample", 1)
def _upsample_1(node: OnnxNode) -> Node:
    """Convert Upsample of the rows and columns of an NCHW image."""
    return _upsample(node, (1.0, 1.0, node.real("height_scale"), node.real("width_scale")))


@converter("Upsample", 7)
def _upsample_7(node: OnnxNode) -> Node:
    return _upsample(node, node.floats("scales") or ())


@converter("Upsample", 9)
def _upsample_9(node: OnnxNode) -> Node:
    if not isinstance(node[1], Constant):
        scales = with_extent(node[1], 0, node.rank)
        return run_time_resize.resized(node, _as_upsample(node), range(node.rank), scales, None)
    return _upsample(node, _floats(node, 1, "scales") or ())


def _upsample(node: OnnxNode, scales: Sequence[float]) -> Node:
    if _only_a_run_knows(node, _as_upsample(node), range(node.rank), scales, ()):
        return run_time_resize.resized(node, _as_upsample(node), range(node.rank), _constant(scales), None)
    return resize_axes(node[0], _scaled(node, range(node.rank), scales), _as_upsample(node), node.shapes.inputs)


def _as_upsample(node: OnnxNode) -> Interpolation:
    mode: Any = node.string("mode", "nearest")
    return Interpolation("linear" if mode == "bilinear" else mode, "asymmetric", "floor")


@converter("Resize", 10)
def _resize_10(node: OnnxNode) -> Node:
    """Resize as version 10 has it: Upsample that may also shrink, and then takes the element above as the nearest, as
    other implementations do."""
    how = _as_upsample(node)
    axes, scales = range(node.rank), _floats(node, 1, "scales") if isinstance(node[1], Constant) else None
    if scales is None or _only_a_run_knows(node, how, axes, scales, ()):
        return run_time_resize.resized(node, how, axes, node[1], None, ceil_where_it_shrinks=True)
    made = node[0]
    for change in _scaled(node, axes, scales):
        nearest = replace(how, nearest="ceil" if change.scale and change.scale < 1 else "floor")
        made = resize_axes(made, [change], nearest, node.shapes.inputs)
    return made


@converter("Resize", 11, 13, 18, 19)
def _resize(node: OnnxNode) -> Node:
    modes: dict[str, Any] = {
        "mode": node.string("mode", "nearest"),
        "coordinates": node.string("coordinate_transformation_mode", "half_pixel"),
        "nearest": node.string("nearest_mode", "round_prefer_floor"),
    }
    how = Interpolation(
        **modes,
        cubic_a=node.real("cubic_coeff_a", -0.75),
        exclude_outside=node.flag("exclude_outside"),
        antialias=node.flag("antialias"),
        extrapolation_value=node.real("extrapolation_value", 0.0),
    )
    axes = [normalize_axis(a, node.rank) for a in node.ints("axes") or range(node.rank)]
    crop = how.coordinates == "tf_crop_and_resize"
    if not node.is_known(*([1, 2, 3] if crop else [2, 3])):
        return _resized_at_run_time(node, how, axes, crop)
    scales, sizes = _floats(node, 2, "scales"), node.extents(3, "sizes") if node.get(3) is not None else ()
    if not crop and _only_a_run_knows(node, how, axes, scales, sizes):
        return _resized_at_run_time(node, how, axes, crop)
    if bool(scales) == bool(sizes):
        raise ModelError(f"{node}: either scales or sizes must be given")
    changes = _scaled(node, axes, scales, keep=crop) if scales else _sized(node, axes, sizes, keep=crop)
    if not crop:
        return resize_axes(node[0], changes, how, node.shapes.inputs)
    region = _floats(node, 1, "roi") or ()
    if len(region) != 2 * len(axes):
        raise ModelError(f"{node}: roi must have {2 * len(axes)} numbers, found {len(region)}")
    parts = zip(changes, region[: len(axes)], region[len(axes) :], strict=True)
    return resize_axes(node[0], [Resized(c.axis, c.extent, c.scale, (b, e)) for c, b, e in parts], how)


def _resized_at_run_time(node: OnnxNode, how: Interpolation, axes: Sequence[int], crop: bool) -> Node:
    given = [None if (found := node.get(k)) is None or _length(found) == 0 else found for k in (2, 3)]
    if (given[0] is None) == (given[1] is None):
        raise ModelError(f"{node}: either scales or sizes must be given")
    scales, sizes = (
        None if values is None else _numbers(node, values, name, len(axes))
        for name, values in zip(("scales", "sizes"), given, strict=True)
    )
    region = _numbers(node, node[1], "roi", 2 * len(axes)) if crop else None
    return run_time_resize.resized(node, how, axes, scales, sizes, region)


def _numbers(node: OnnxNode, values: Node, name: str, count: int) -> Node:
    """A vector of so many numbers, which each run checks where its length is open."""
    values = with_extent(values, 0, count) if tensor_of(values).ndim == 1 else values
    if _length(values) != count:
        raise ModelError(f"{node}: {name} must have {count} numbers, found {values.type}")
    return values


def _length(values: Node) -> int | None:
    shape = tensor_of(values).static_shape
    return None if shape is None or len(shape) != 1 else shape[0]


def _floats(node: OnnxNode, index: int, meaning: str) -> tuple[float, ...] | None:
    value = node.constant(index, meaning)
    return None if value is None else tuple(float(v) for v in value.ravel())


def _constant(scales: Sequence[float]) -> Constant:
    return Constant(np.array(scales, np.float32))


def _scaled(node: OnnxNode, axes: Sequence[int], scales: Sequence[float], keep: bool = False) -> list[Resized]:
    """``keep``: also the axes whose scale is 1."""
    _check_count(node, "scales", axes, scales)
    shape = node.type().shape
    if any(s <= 0 for s in scales):
        raise ModelError(f"{node}: scales must be above 0, found {tuple(scales)}")
    return [
        Resized(axis, _scaled_extent(shape[axis], scale), scale)
        for axis, scale in zip(axes, scales, strict=True)
        if scale != 1 or keep
    ]


def _only_a_run_knows(
    node: OnnxNode,
    how: Interpolation,
    axes: Sequence[int],
    scales: Sequence[float] | None,
    sizes: Sequence[int | Expr],
) -> bool:
    """Whether an open axis is scaled by what is no simple fraction, so that its extent is a rounded product, or gets
    a size to which a kernel widens."""
    own = node.type().shape
    if scales and len(scales) == len(axes):
        parts = [Fraction(s).denominator for axis, s in zip(axes, scales, strict=True) if const_int(own[axis]) is None]
        return any(count > MOST_PARTS for count in parts)
    return bool(how.antialias and len(sizes) == len(axes)) and any(
        size is not own[axis] and None in (const_int(own[axis]), const_int(as_index(size)))
        for axis, size in zip(axes, sizes, strict=False)
    )


def _scaled_extent(extent: Expr, scale: float) -> int | Expr:
    """The extent times the scale, rounded down, in float32 as ONNX infers it. Of an open one, a scale
    in 64ths at most is exact for every extent."""
    number, ratio = const_int(extent), Fraction(scale)
    if number is not None:
        return int(np.floor(np.float32(scale) * np.float32(number)))
    return simplify(extent * ratio.numerator // ratio.denominator, nonnegative(free_vars(extent)))


def _sized(node: OnnxNode, axes: Sequence[int], wanted: Sequence[int | Expr], keep: bool) -> list[Resized]:
    """Sizes as they stand, or with one scale for all axes that they allow. An open extent may stay what it is.

    ``keep``: also the axes whose extent stays, which must be known then.
    """
    _check_count(node, "sizes", axes, wanted)
    policy = node.string("keep_aspect_ratio_policy", "stretch")
    own = node.type().shape
    pairs = [(axis, as_index(size)) for axis, size in zip(axes, wanted, strict=True)]
    changed = [(axis, size) for axis, size in pairs if keep or policy != "stretch" or size is not own[axis]]
    if policy == "stretch" and not keep and any(None in (const_int(e), const_int(own[a])) for a, e in changed):
        return [Resized(axis, size, None) for axis, size in changed]
    axes, sizes = [axis for axis, _ in changed], node.numbers([size for _, size in changed])
    extents = node.numbers([own[axis] for axis in axes])
    scales = [size / extent if extent else 1.0 for size, extent in zip(sizes, extents, strict=True)]
    if policy != "stretch":
        common = {"not_larger": min, "not_smaller": max}.get(policy)
        if common is None:
            raise node.unsupported(f"keep_aspect_ratio_policy {policy!r}")
        scales = [common(scales)] * len(axes)
        sizes = tuple(int(scale * extent + 0.5) for scale, extent in zip(scales, extents, strict=True))
    return [Resized(*change) for change in zip(axes, sizes, scales, strict=True)]


def _check_count(node: OnnxNode, what: str, axes: Sequence[int], values: Sequence[float | Expr]) -> None:
    if len(values) != len(axes):
        raise ModelError(f"{node}: {what} must have {len(axes)} numbers, found {len(values)}")


GRID_MODES = {"bilinear": "linear", "bicubic": "cubic"}
"""The names that version 16 has for modes."""


@converter("GridSample", 16, 20, 22)
def _grid_sample(node: OnnxNode) -> Node:
    mode = node.string("mode", "linear")
    padding, align = node.string("padding_mode", "zeros"), node.flag("align_corners")
    grid = with_extent(node[1], tensor_of(node[1]).ndim - 1, node.rank - 2) if tensor_of(node[1]).ndim else node[1]
    return grid_sample(node[0], grid, GRID_MODES.get(mode, mode), padding, align)

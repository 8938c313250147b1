"""Resizing of images and other grids: by slices, ``nn.resample`` or gathers, whose indices and weights are constants.

Each axis is resized by itself. Coordinates, rounding and kernels are those of ONNX's Resize. It is no operator of its
own: so its indices and weights are made once, in float64, rather than in each run, and its parts are fused like others.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import reduce
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ...base.dataclass import dataclass
from ...base.errors import TypeInferenceError
from ...graph.node import Constant, Node, tensor_of
from ...graph.types import TensorType
from ...ir.constants import const_int
from ...ir.expr import Expr
from ...ir.makers import as_index
from ...ir.simplify import simplify
from ..definition.arguments import axis_of, integer_list, naming, real
from ..definition.op_group import OpGroup
from ..definition.relations import normalize_axis
from .binary import add, multiply
from .cast import cast
from .creation import full
from .gather import take
from .matmul.matmul import dense
from .repeat import repeat
from .resample import resample
from .reshape import squeeze
from .resize_math import (
    Coordinates,
    Interpolation,
    Mode,
    Nearest,
    OfArrays,
    ResizedAxis,
    nearest_of,
    source_of,
    taps_of,
    weight_of,
)
from .resize_tables import resize_tables
from .select import where
from .slicing import END, strided_slice
from .transpose import transpose

GROUP = OpGroup.IMAGES

Floats: TypeAlias = npt.NDArray[np.floating[Any]]
Integers: TypeAlias = npt.NDArray[np.int64]

ARRAYS = OfArrays()
MAX_TAPS = 4
"""With more source elements than these for an element of the result, an axis is resized by a matrix product."""
MAX_SCALE = 1 << 31
MOST_TIMES = 256
"""Open axes that are resized by a larger factor are so by tables."""
SAMPLES = 4
"""So many elements in a row that are made alike tell that all of a row are."""
WHOLE_ROW = 16
"""Vectors of up to so many elements end where rows of a multiple of it end: loops over rows and columns become one
without divisions, which sums of slices need to be faster than resampling."""


@dataclass(frozen=True, eq=False)
class Resized:
    """What becomes of an axis: its new extent, the scale (which extents round), and the part that is resized."""

    axis: int
    extent: int | Expr
    scale: float | None  # None: the ratio of the extents, of which one is open
    region: tuple[float, float] = (0.0, 1.0)


def resize(
    x: Node,
    sizes: Sequence[int] | None = None,
    scales: float | Sequence[float] | None = None,
    axes: Sequence[int] | None = None,
    mode: Mode = "nearest",
    coordinates: Coordinates = "half_pixel",
    nearest: Nearest = "round_prefer_floor",
    cubic_a: float = -0.75,
    exclude_outside: bool = False,
    antialias: bool = False,
    regions: Sequence[tuple[float, float]] | None = None,
    extrapolation_value: float = 0.0,
) -> Node:
    """x with the extents of ``axes``, all but the first two if left out, made ``sizes``, or multiplied by ``scales``.

    One of the two is given; one scale is for all axes, and what scales give is rounded down. ``coordinates``,
    ``nearest`` (how positions are rounded) and the rest are as in ONNX; ``regions`` are the parts of the axes that
    "tf_crop_and_resize" takes, whose begin is 0 and whose end is 1.
    """
    how = Interpolation(mode, coordinates, nearest, cubic_a, exclude_outside, antialias, extrapolation_value)
    with naming("resize", x):
        return resize_axes(x, _changes(tensor_of(x), sizes, scales, axes, regions), how)


def _changes(
    kind: TensorType,
    sizes: Sequence[int] | None,
    scales: float | Sequence[float] | None,
    axes: Sequence[int] | None,
    regions: Sequence[tuple[float, float]] | None,
) -> list[Resized]:
    wanted = range(2, kind.ndim) if axes is None else integer_list(axes, "axes")
    chosen = [normalize_axis(axis, kind.ndim) for axis in wanted]
    extents = [_known(kind, axis) for axis in chosen]
    if isinstance(scales, (int, float)):
        scales = [scales] * len(chosen)
    if scales is not None:
        scales = _numbers(scales, "scales")
    if sizes is not None:
        sizes = integer_list(sizes, "sizes")
    if regions is not None:
        regions = [_region(region) for region in _listed(regions, "regions")]
    for name, given in (("sizes", sizes), ("scales", scales), ("regions", regions)):
        if given is not None and len(given) != len(chosen):
            raise TypeInferenceError(f"{name} needs a value for each of {len(chosen)} axes, found {tuple(given)}")
    if scales is not None and sizes is None:
        if not all(0 < scale < MAX_SCALE for scale in scales):
            raise TypeInferenceError(f"scales must be above 0, and below 2**31, found {tuple(scales)}")
        sizes = [math.floor(scale * extent) for scale, extent in zip(scales, extents, strict=True)]
    elif sizes is not None and scales is None:
        scales = [size / extent if extent else 1.0 for size, extent in zip(sizes, extents, strict=True)]
    else:
        raise TypeInferenceError("either sizes or scales must be given")
    parts = regions or [(0.0, 1.0)] * len(chosen)
    return [Resized(*change) for change in zip(chosen, sizes, scales, parts, strict=True)]


def _listed(values: object, name: str) -> list[object]:
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise TypeInferenceError(f"{name} must be a list, found {values!r}")
    return list(values)


def _numbers(values: object, name: str) -> list[float]:
    return [real(value, name) for value in _listed(values, name)]


def _region(region: object) -> tuple[float, float]:
    numbers = _numbers(region, "a region")
    if len(numbers) != 2:
        raise TypeInferenceError(f"a region has a begin and an end, found {region!r}")
    return numbers[0], numbers[1]


def _known(kind: TensorType, axis: int) -> int:
    extent = const_int(kind.shape[axis])
    if extent is None:
        raise TypeInferenceError(f"axis {axis} needs a known extent to be resized, found {kind}")
    return extent


def resize_axes(x: Node, axes: Sequence[Resized], how: Interpolation, of: Sequence[Node] = ()) -> Node:
    """x with these axes resized. All but ``nearest`` are computed in floats; integers are truncated in the end.

    Open extents are formulas over dimensions that tensors among ``of`` have by themselves.
    """
    for mode in (how.mode, how.coordinates, how.nearest):
        if not isinstance(mode, str):
            raise TypeInferenceError(f"resize: modes are texts, found {mode!r}")
    kind = tensor_of(x)
    shape = [const_int(extent) for extent in kind.shape]
    for change in axes:
        shape[change.axis] = const_int(as_index(change.extent))
    if 0 in shape and None not in shape:
        return full([extent or 0 for extent in shape], 0, kind.dtype)
    made = x if kind.dtype.is_float or how.mode == "nearest" else cast(x, "float32")
    for change in sorted(axes, key=_turn):
        made = _resize_axis(made, change, how, of)
    return made if tensor_of(made).dtype is kind.dtype else cast(made, kind.dtype)


def _turn(change: Resized) -> tuple[bool, int]:
    """Axes that shrink come first, the inner ones later; then those that grow, the inner ones first.

    So the inner axis, whose elements are gathered one by one, is resized while there are the fewest of the others.
    """
    grows = change.scale is None or change.scale > 1
    return grows, -change.axis if grows else change.axis


def _resize_axis(x: Node, change: Resized, how: Interpolation, of: Sequence[Node]) -> Node:
    kind = tensor_of(x)
    axis = axis_of("resize", x, change.axis)
    extent, resized = const_int(kind.shape[axis]), const_int(as_index(change.extent))
    if extent is None or resized is None or change.scale is None:
        return _resize_open_axis(x, axis, change, how, of)
    if extent == resized and change.scale == 1 and change.region == (0.0, 1.0):
        return x
    if extent == 0:
        raise TypeInferenceError(f"axis {axis} of {kind} is empty: there is nothing to resize")
    source = _positions(how, extent, resized, change.scale, change.region)
    if how.mode == "nearest":
        result = _nearest(x, axis, extent, source, how.nearest)
    else:
        result = _weighted(x, axis, extent, *_kernel(extent, source, change.scale, how))
    if how.coordinates != "tf_crop_and_resize":
        return result
    outside = (source < 0) | (source > extent - 1)
    return _filled(result, axis, outside, how.extrapolation_value) if outside.any() else result


def _positions(
    how: Interpolation, extent: int, resized: int, scale: float, region: tuple[float, float] = (0.0, 1.0)
) -> Floats:
    """Where the elements of the result lie among the source's."""
    kind = np.dtype(how.float_type).type
    axis = ResizedAxis(kind(extent), kind(resized), kind(scale), (kind(region[0]), kind(region[1])))
    source: Floats = source_of(np.arange(resized, dtype=kind), axis, how.coordinates, ARRAYS)
    return source


def _resize_open_axis(x: Node, axis: int, change: Resized, how: Interpolation, of: Sequence[Node]) -> Node:
    """An axis whose extents are not all known: by tables that each run makes."""
    kind = tensor_of(x)
    if how.coordinates == "tf_crop_and_resize":
        raise TypeInferenceError(f"axis {axis} of {kind} needs known extents for the coordinates {how.coordinates}")
    if how.antialias and change.scale is None:
        raise TypeInferenceError(f"axis {axis} of {kind} needs a known scale to be resized with antialias")
    if how.mode == "nearest" and change.scale is not None and _repeats(change.scale, how):
        return repeat(x, int(change.scale), axis)
    alike = _resize_alike(x, axis, change, how)
    if alike is not None:
        return alike
    indices, weights = resize_tables(kind.shape[axis], change.extent, change.scale, how, of)
    if how.mode == "nearest":
        return take(x, squeeze(indices, [0]), axis)
    return resample(x, indices, cast(weights, str(kind.dtype)), axis)


def _resize_alike(x: Node, axis: int, change: Resized, how: Interpolation) -> Node | None:
    """An axis of any extent of which all elements are made alike, each of the same few of so many, as in images of half
    the size; None of others."""
    kind, scale = tensor_of(x), change.scale
    times = 0 if scale is None or how.coordinates not in ("half_pixel", "asymmetric") else round(1 / scale)
    if scale is None or times < 2 or times * scale != 1:
        return None
    if simplify(kind.shape[axis] // times) is not simplify(as_index(change.extent)):
        return None
    extent = SAMPLES * times  # what holds of a whole number of parts holds of what is behind them, which is not read
    source = _positions(how, extent, SAMPLES, scale)
    if how.mode == "nearest":
        rows = np.clip(nearest_of(source, how.nearest, ARRAYS), 0, extent - 1).astype(np.int64)[None]
        factors = np.ones(rows.shape)
    else:
        indices, weights = _kernel(extent, source, scale, how)
        used = np.any(weights != 0, axis=0)
        rows, factors = indices.T[used], weights.T[used]
    if not 0 < len(rows) <= MAX_TAPS or any(_step(row) != times for row in rows) or np.any(factors != factors[:, :1]):
        return None
    starts = [int(row[0]) for row in rows]
    ends = [start + 1 - times if start + 1 < times else END for start in starts]
    parts = [strided_slice(x, [start], [end], [axis], [times]) for start, end in zip(starts, ends, strict=True)]
    return parts[0] if how.mode == "nearest" else _weighted_sum(parts, factors[:, 0].astype(kind.dtype.to_numpy()))


def _repeats(scale: float, how: Interpolation) -> bool:
    """Whether each element of the source is taken so many times in a row, whatever the extent: as those of a few are,
    since positions beyond are those of the first, shifted by whole numbers."""
    if how.coordinates == "align_corners" or not scale.is_integer() or not 1 <= scale <= MOST_TIMES:
        return False
    source = _positions(how, SAMPLES, SAMPLES * int(scale), scale)
    return _times(nearest_of(source, how.nearest, ARRAYS), SAMPLES) == scale


def _nearest(x: Node, axis: int, extent: int, source: Floats, rounding: Nearest) -> Node:
    rounded = nearest_of(source, rounding, ARRAYS)
    indices = np.clip(rounded, 0, extent - 1).astype(np.int64)
    times = _times(indices, extent)
    if times > 0:
        return repeat(x, times, axis)
    step = _step(indices)
    return take(x, Constant(indices), axis) if step is None else _every(x, axis, indices, step)


def _times(indices: npt.NDArray[Any], extent: int) -> int:
    """How often each element of the source is taken, if all are so in a row; else 0."""
    times = len(indices) // extent
    return times if np.array_equal(indices, np.repeat(np.arange(extent), times)) else 0


def _step(indices: Integers) -> int | None:
    """The distance of neighbours, if it is one and the same, above 0."""
    steps = np.unique(np.diff(indices))
    return int(steps[0]) if len(steps) == 1 and steps[0] > 0 else None


def _every(x: Node, axis: int, indices: Integers, step: int) -> Node:
    """The elements of an axis at indices that are ``step`` apart."""
    return strided_slice(x, [int(indices[0])], [int(indices[-1]) + 1], [axis], [step])


def _kernel(extent: int, source: Floats, scale: float, how: Interpolation) -> tuple[Integers, Floats]:
    """The indices that each element of the result is made from, which may lie outside, and their weights."""
    base = np.ceil(source).astype(np.int64) - 1
    ratio = (source - base)[:, None]
    offsets = np.array(taps_of(scale, how))
    weights = weight_of(offsets - ratio, scale, how, ARRAYS)
    if how.antialias:
        weights /= weights.sum(1, keepdims=True)
    indices = base[:, None] + offsets
    if how.exclude_outside:
        weights = np.where((indices < 0) | (indices >= extent), 0, weights)
        total = weights.sum(1, keepdims=True)
        weights /= np.where(total == 0, 1, total)
    return np.clip(indices, 0, extent - 1), weights


def _weighted(x: Node, axis: int, extent: int, indices: Integers, weights: Floats) -> Node:
    kind = tensor_of(x)
    used = [int(tap) for tap in np.flatnonzero(np.any(weights != 0, axis=0))] or [0]  # none: no elements, or all are 0
    if len(used) > MAX_TAPS:
        return _by_matrix(x, axis, extent, indices, weights)
    rows, factors = indices.T[used], weights.T[used].astype(kind.dtype.to_numpy())
    steps = [_step(row) for row in rows]
    row_length = len(indices) if axis == kind.ndim - 1 else const_int(kind.shape[-1])
    even = None not in steps and np.all(factors == factors[:, :1])
    if even and row_length is not None and row_length % WHOLE_ROW == 0:
        return _evenly(x, axis, rows, factors[:, 0])
    return resample(x, Constant(rows), Constant(factors), axis)


def _evenly(x: Node, axis: int, rows: Integers, factors: npt.NDArray[Any]) -> Node:
    """Where all elements are made alike, as in images of half the size: sums of parts of x, which fuse with those of
    other axes and whose lanes are shuffled rather than gathered."""
    return _weighted_sum([_every(x, axis, row, int(row[1] - row[0])) for row in rows], factors)


def _weighted_sum(parts: Sequence[Node], factors: npt.NDArray[Any]) -> Node:
    terms = (multiply(part, Constant(np.asarray(factor))) for part, factor in zip(parts, factors, strict=True))
    return reduce(add, terms)


def _by_matrix(x: Node, axis: int, extent: int, indices: Integers, weights: Floats) -> Node:
    kind = tensor_of(x)
    matrix = np.zeros((len(indices), extent))
    np.add.at(matrix, (np.arange(len(indices))[:, None], indices), weights)
    order = [k for k in range(kind.ndim) if k != axis] + [axis]
    back = np.argsort(order).tolist()
    return transpose(dense(transpose(x, order), _constant(matrix, kind.dtype.to_numpy())), back)


def _filled(x: Node, axis: int, where_: npt.NDArray[np.bool_], value: float) -> Node:
    kind = tensor_of(x)
    mask = where_.reshape([-1 if k == axis else 1 for k in range(kind.ndim)])
    return where(Constant(mask), _constant(np.asarray(value), kind.dtype.to_numpy()), x)


def _constant(value: npt.NDArray[Any], kind: np.dtype[Any]) -> Constant:
    return Constant(value.astype(kind))

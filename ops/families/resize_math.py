"""Where resizing reads, and with which weights, as ONNX's Resize has it: for numpy's arrays, when extents are known,
for expressions of a compute, when they are open, and for nodes of a graph, when a run computes them."""

from __future__ import annotations

from typing import Any, Literal, Protocol, TypeAlias

import numpy as np

from ... import te
from ...base.dataclass import dataclass
from ...base.errors import TypeInferenceError

Mode: TypeAlias = Literal["nearest", "linear", "cubic"]
Coordinates: TypeAlias = Literal[
    "half_pixel",
    "half_pixel_symmetric",
    "pytorch_half_pixel",
    "align_corners",
    "asymmetric",
    "tf_crop_and_resize",
]
Nearest: TypeAlias = Literal["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"]
Number: TypeAlias = Any
"""A float: a Python number, a numpy array, an expression, or a node of a graph."""


@dataclass(frozen=True)
class Interpolation:
    """How elements between those of the grid are found."""

    mode: Mode = "nearest"
    coordinates: Coordinates = "half_pixel"
    nearest: Nearest = "round_prefer_floor"
    cubic_a: float = -0.75
    exclude_outside: bool = False  # elements beyond the edge have no weight, rather than the edge's value
    antialias: bool = False
    extrapolation_value: float = 0.0  # tf_crop_and_resize only: beyond the edge

    @property
    def float_type(self) -> str:
        """The type in which positions are computed. Those of nearest elements are rounded, and whether one falls on a
        half or just beside it is decided in float32, as by onnxruntime and PyTorch."""
        return "float32" if self.mode == "nearest" else "float64"


class Functions(Protocol):
    """The functions that differ between arrays, expressions and nodes of a graph."""

    def floor(self, x: Number) -> Number:
        """The largest whole number that is not above x."""

    def ceil(self, x: Number) -> Number:
        """The smallest whole number that is not below x."""

    def equal(self, a: Number, b: Number) -> Number:
        """Where a and b are the same number."""

    def where(self, condition: Number, a: Number, b: Number) -> Number:
        """The number a where the condition holds, else b."""


class OfArrays:
    """The functions that the formulas need, of numpy's arrays and Python's numbers."""

    def floor(self, x: Number) -> Number:
        """The largest whole numbers not above x, elementwise."""
        return np.floor(x)

    def ceil(self, x: Number) -> Number:
        """The smallest whole numbers not below x, elementwise."""
        return np.ceil(x)

    def equal(self, a: Number, b: Number) -> Number:
        """Where both are the same number, elementwise."""
        return a == b

    def where(self, condition: Number, a: Number, b: Number) -> Number:
        """Elements of a where the condition holds, else of b."""
        return np.where(condition, a, b)


@dataclass(frozen=True)
class OfExpressions:
    """The functions that the formulas need, of expressions of a compute, in a type of floats."""

    float_type: str

    def floor(self, x: Number) -> Number:
        """The largest whole number not above x, as an expression."""
        return te.floor(x)

    def ceil(self, x: Number) -> Number:
        """The smallest whole number not below x, as an expression."""
        return te.ceil(x)

    def equal(self, a: Number, b: Number) -> Number:
        """The comparison of two expressions, or of one and a number."""
        return a == b

    def where(self, condition: Number, a: Number, b: Number) -> Number:
        """The choice between two expressions, both of which are computed; numbers become constants of the type."""
        return te.select(
            condition, *(te.const(v, self.float_type) if isinstance(v, (int, float)) else v for v in (a, b))
        )


@dataclass(frozen=True, slots=True)
class ResizedAxis:
    """What becomes of an axis: its extent, the new one, and the scale, which extents round; ``region`` is the part that
    tf_crop_and_resize takes."""

    extent: Number
    resized: Number
    scale: Number
    region: tuple[Number, Number] = (0.0, 1.0)


def source_of(i: Number, axis: ResizedAxis, mode: Coordinates, f: Functions) -> Number:
    """Where element i of the result lies among those of the source."""
    extent, scale = axis.extent, axis.scale
    scaled = scale * extent
    match mode:
        case "half_pixel":
            return (i + 0.5) / scale - 0.5
        case "half_pixel_symmetric":
            return extent / 2 * (1 - axis.resized / scaled) + (i + 0.5) / scale - 0.5
        case "pytorch_half_pixel":
            return f.where(f.equal(axis.resized, 1), 0.0, (i + 0.5) / scale - 0.5)
        case "align_corners":
            return f.where(f.equal(scaled, 1), 0.0, i * (extent - 1) / f.where(f.equal(scaled, 1), 1.0, scaled - 1))
        case "asymmetric":
            return i / scale
        case "tf_crop_and_resize":
            begin, end = axis.region
            part = (end - begin) * (extent - 1)
            inside = f.where(f.equal(scaled, 1), part / 2, i * part / f.where(f.equal(scaled, 1), 1.0, scaled - 1))
            return inside + begin * (extent - 1)
        case _:
            raise TypeInferenceError(f"resize: there is no coordinate transformation {mode!r}")


def nearest_of(source: Number, rounding: Nearest, f: Functions) -> Number:
    """The element that a place between elements takes, which may lie outside."""
    match rounding:
        case "round_prefer_floor":
            return f.ceil(source - 0.5)
        case "round_prefer_ceil":  # a half added to the largest number below a half would be 1
            whole = f.floor(source)
            return whole + f.where(source - whole < 0.5, 0.0, 1.0)
        case "floor":
            return f.floor(source)
        case "ceil":
            return f.ceil(source)
        case _:
            raise TypeInferenceError(f"resize: there is no rounding {rounding!r}")


def taps_of(scale: float, how: Interpolation) -> range:
    """How far the elements that are summed lie from the last one before a place."""
    first = int(np.floor(-reach_of(how) / _shrink(scale, how))) + 1
    return range(first, 2 - first)


def reach_of(how: Interpolation) -> int:
    """How far from a place elements have a weight, where an axis does not shrink."""
    reach = {"linear": 1, "cubic": 2}.get(how.mode)
    if reach is None:
        raise TypeInferenceError(f"resize: there is no mode {how.mode!r}")
    return reach


def weight_of(distance: Number, scale: float, how: Interpolation, f: Functions) -> Number:
    """The weight of an element so far from a place, before all of them are made to sum to 1."""
    x = distance * _shrink(scale, how)
    x = f.where(x < 0, -x, x)
    if how.mode == "linear":
        return f.where(x < 1, 1 - x, 0.0)
    return _cubic(x, how.cubic_a, f)


def _shrink(scale: float, how: Interpolation) -> float:
    """How much wider the kernel is where an axis shrinks, inverted."""
    return min(scale, 1.0) if how.antialias else 1.0


def _cubic(x: Number, a: float, f: Functions) -> Number:
    """Keys, "Cubic convolution interpolation for digital image processing" (1981)."""
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    far = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
    return f.where(x <= 1, near, f.where(x < 2, far, 0.0))

"""Fourier transforms whose axis or length only a run knows, or whose axis is open: by ``nn.open_fft``, whose tables the
run computes."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import numpy.typing as npt

from ...base.dtype import FLOAT32, FLOAT64, DType
from ...base.errors import ModelError
from ...graph.node import Constant, Node, tensor_of
from ...ir.constants import ONE, ZERO, const_int
from ...ir.expr import Expr
from ...ir.makers import as_index, minimum
from ...ir.simplify import simplify
from ...ops.families.binary import (
    add,
    divide,
    equal,
    greater,
    greater_equal,
    less,
    logical_and,
    maximum,
    mod,
    multiply,
    subtract,
)
from ...ops.families.cast import cast
from ...ops.families.concatenate import concatenate
from ...ops.families.creation import arange
from ...ops.families.fourier.open_fft import OPEN_FFT, OpenFftAttrs
from ...ops.families.gather import take
from ...ops.families.open_extents import open_slice
from ...ops.families.pad import pad_by_extents
from ...ops.families.reduce import min as least_element
from ...ops.families.reduce import prod as product_of
from ...ops.families.reshape import expand_dims, reshape
from ...ops.families.select import where
from ...ops.families.unary import cos, sin
from ..integers import as_int64, as_number, as_vector, from_the_end, integers
from ..onnx_node import OnnxNode
from ..reshaping import reshape_to
from .run_time_operands import extent_as_number, numbers_up_to

COSINES, SINES = [[1, 0, -1, 0, 1], [0, -1, 0, 1, 0]], [[0, -1, 0, 1, 0], [-1, 0, 1, 0, -1]]
"""What the cosine and the sine of an angle to a quarter of a turn, the first to the fifth, add to both parts."""


def with_components(node: OnnxNode, x: Node) -> Node:
    """x with a real and an imaginary part along its last axis, where that axis is open: a run tells whether there is
    an imaginary part, and 0 is it where there is none."""
    kind = tensor_of(x)
    if not kind.dtype.is_float or const_int(kind.shape[-1]) is not None:
        return x
    count = extent_as_number(node, kind.shape[-1])
    known = logical_and(greater_equal(count, integers(1)), less(count, integers(3)))
    checked = reshape(where(known, count, integers(-1)), (1,))
    (components,) = node.extents_of(checked, "the components of a number, -1 where it has neither 1 nor 2,")
    last = extent_as_number(node, simplify(as_index(components) - 1))
    real, other = (expand_dims(take(x, place, -1), (-1,)) for place in (integers(0), last))
    imaginary = where(less(last, integers(1)), Constant(np.zeros((), kind.dtype.to_numpy())), other)
    return node.finish(concatenate([real, imaginary], -1))


def dft_of_run(node: OnnxNode, x: Node, axis: int | None) -> Node:
    """The node's DFT of x where a run says more than the model does. ``axis`` is None where only a run knows it (input
    2), and its length may be such (input 1)."""
    if axis is None:
        return _along_any(node, x)
    shape = tensor_of(x).shape
    before, after = (simplify(math.prod(part, start=ONE)) for part in (shape[:axis], shape[axis + 1 : -1]))
    made = _transformed_axis(node, x, (before, shape[axis], after))
    _, count, _, components = tensor_of(made).shape
    return reshape_to(made, (*shape[:axis], count, *shape[axis + 1 : -1], components), node.shapes.inputs)


def _along_any(node: OnnxNode, x: Node) -> Node:
    """Along an axis that a run chooses: of x as a tensor of the axes before it, it, and those behind."""
    rank = tensor_of(x).ndim
    own, positions = node.shapes.stand_for(tensor_of(x).shape[:-1]), arange(0, rank - 1, 1, "int64")
    axis = from_the_end(as_int64(as_number(node[2])), integers(rank))
    known = logical_and(greater_equal(axis, integers(0)), less(axis, integers(rank - 1)))
    around = (less(positions, axis), equal(positions, axis), greater(positions, axis))
    parts = [product_of(where(part, own, integers(1)), (0,), True) for part in around]
    three = where(known, concatenate(parts, 0), integers(-1))
    before, extent, after = node.extents_of(three, "the extents around the axis of a transform, -1 if there is none,")
    made = _transformed_axis(node, x, (as_index(before), as_index(extent), as_index(after)))
    _, count, _, components = tensor_of(made).shape
    shape = where(equal(positions, axis), extent_as_number(node, count), own)
    found = node.extents_of(shape, "the shape of a transform")
    return reshape_to(made, (*found, components), node.shapes.inputs)


def _transformed_axis(node: OnnxNode, x: Node, around: tuple[Expr, Expr, Expr]) -> Node:
    """The transform of x along the middle one of three axes and that of the components."""
    inverse, onesided = node.flag("inverse"), node.flag("onesided")
    whole = node.finish(reshape_to(x, (*around, tensor_of(x).shape[-1]), node.shapes.inputs))
    length = simplify(2 * (around[1] - 1)) if inverse and onesided else around[1]
    if node.get(1) is not None:
        (given,) = node.extents_of(as_vector(node[1], 1), "the length of a transform")
        length = as_index(given)
    return node.finish(transformed(node, whole, length, inverse, onesided))


def transformed(node: OnnxNode, x: Node, length: Expr, inverse: bool, onesided: bool) -> Node:
    """The transform of a length along axis 1 of [before, extent, after, components]. Raises ``ModelError`` for what has
    no components."""
    kind = tensor_of(x)
    if const_int(kind.shape[-1]) not in (1, 2) or not kind.dtype.is_float:
        raise ModelError(f"{node}: the last axis should have 1 or 2 components, which are floats, found {kind}")
    if kind.dtype.bits < 32:
        wide = node.finish(cast(x, FLOAT32))
        return cast(transformed(node, wide, length, inverse, onesided), kind.dtype)
    if inverse and onesided:
        x = _mirrored(node, _fitted(node, x, simplify(length // 2 + 1)), length)
    rows = node.finish(_fitted(node, x, length))
    made = OPEN_FFT(rows, *_tables(node, length, kind.dtype), attrs=OpenFftAttrs(onesided and not inverse, inverse))
    return take(made, Constant(np.array([0])), 3) if inverse and onesided else made


def _mirrored(node: OnnxNode, half: Node, length: Expr) -> Node:
    """The spectrum of reals, whose first half is given: its conjugates follow, from the end."""
    count, number = extent_as_number(node, length), numbers_up_to(node, length)
    is_own = less(multiply(number, integers(2)), add(count, integers(1)))
    whole = take(half, node.finish(where(is_own, number, subtract(count, number))), 1)
    if const_int(tensor_of(whole).shape[-1]) == 1:
        return whole
    sign = where(expand_dims(is_own, (1, 2)), Constant(np.array([1, 1.0])), Constant(np.array([1, -1.0])))
    return multiply(whole, cast(sign, tensor_of(half).dtype))


def _tables(node: OnnxNode, length: Expr, kind: DType) -> tuple[Node, Node]:
    """The roots of unity and the chirp of ``nn.open_fft``."""
    count = maximum(extent_as_number(node, length), integers(1))
    smooth = _is_smooth(count)
    extents = (where(smooth, count, _longer_length(count)), where(smooth, integers(0), count))
    both = concatenate([reshape(extent, (1,)) for extent in extents], 0)
    longer, chirped = node.extents_of(both, "the lengths of the tables of a transform")
    roots = _roots_of_unity(numbers_up_to(node, longer), extent_as_number(node, as_index(longer)), kind)
    number, twice = numbers_up_to(node, chirped), multiply(count, integers(2))
    chirp = _roots_of_unity(mod(multiply(number, number), twice), twice, kind)
    return node.finish(roots), node.finish(chirp)


def _is_smooth(count: Node) -> Node:
    """Whether a number has no prime factor above 7."""
    return equal(_least_of(_smooth_numbers(), count), count)


def _longer_length(count: Node) -> Node:
    """A length that serves the convolution of ``count`` elements by a chirp: the least 2^k · {5, 6, 7, 8}."""
    lengths = [part << k for k in range(60) for part in (5, 6, 7, 8)]
    return _least_of(np.array(lengths), subtract(multiply(count, integers(2)), integers(1)))


@cache
def _smooth_numbers() -> npt.NDArray[np.int64]:
    """The numbers below 2^31 without prime factors above 7; no transform is longer."""
    found = np.array([1])
    for prime in (2, 3, 5, 7):
        powers = prime ** np.arange(math.floor(31 / math.log2(prime)) + 1)
        found = np.outer(found, powers).ravel()
        found = found[found < 2**31]
    return np.sort(found)


def _least_of(numbers: npt.NDArray[np.int64], bound: Node) -> Node:
    """The least of some numbers that is not below the bound; the largest number of int64 if all are."""
    table = Constant(numbers.astype(np.int64))
    return least_element(where(less(table, bound), integers(2**63 - 1), table), (0,))


def _roots_of_unity(number: Node, length: Node, kind: DType) -> Node:
    """exp(-2πi · number / length) for numbers below the length, as [2, elements]: the real parts, and the imaginary
    ones. The angle is that to the nearest quarter of a turn, as in ``fourier/roots.py``."""
    half = divide(length, integers(2))
    shifted = add(multiply(number, integers(4)), half)
    quarter = divide(shifted, length)
    rest = subtract(subtract(shifted, multiply(quarter, length)), half)
    angle = multiply(divide(cast(rest, FLOAT64), cast(length, FLOAT64)), Constant(np.array(math.pi / 2)))
    turned = [
        multiply(expand_dims(of_rest, (0,)), take(Constant(np.array(of_quarter, np.float64)), quarter, 1))
        for of_rest, of_quarter in ((cos(angle), COSINES), (sin(angle), SINES))
    ]
    return cast(add(*turned), kind)


def _fitted(node: OnnxNode, x: Node, rows: Expr) -> Node:
    """Axis 1 cut, or filled up with zeros, to so many rows."""
    extent = tensor_of(x).shape[1]
    if extent is rows:
        return x
    kept = simplify(minimum(extent, rows))
    part = x if kept is extent else open_slice(x, 1, ZERO, kept, node.shapes.inputs)
    return pad_by_extents(part, [0] * 4, [0, simplify(rows - kept), 0, 0], node.shapes.inputs)


def stft_of_run(node: OnnxNode, signal: Node, onesided: bool) -> Node:
    """An STFT whose step or length of frames a run computes."""
    window, inputs = node.get(2), node.shapes.inputs
    (step,) = node.extents_of(as_vector(node[1], 1), "the step of frames")
    extent = tensor_of(signal).shape[1]
    if node.get(3) is not None:
        (given,) = node.extents_of(as_vector(node[3], 1), "the length of frames")
        length = as_index(given)
    else:
        length = extent if window is None else tensor_of(window).shape[0]
    steps, count = extent_as_number(node, as_index(step)), extent_as_number(node, simplify(extent - length))
    whole = where(greater(steps, integers(0)), add(divide(count, steps), integers(1)), integers(-1))
    whole = where(less(count, integers(0)), integers(-1), whole)
    (frames,) = node.extents_of(reshape(whole, (1,)), "the number of frames, -1 where there can be none,")
    begins = multiply(numbers_up_to(node, frames), steps)
    positions = add(expand_dims(begins, (1,)), expand_dims(numbers_up_to(node, length), (0,)))
    taken: Node = take(signal, node.finish(positions), 1)
    if window is not None:
        taken = multiply(taken, reshape_to(window, (length, ONE), inputs))
    batch, _, components = tensor_of(signal).shape
    rows = reshape_to(taken, (simplify(batch * frames), length, ONE, components), inputs)
    made = node.finish(transformed(node, node.finish(rows), length, inverse=False, onesided=onesided))
    return reshape_to(made, (batch, frames, tensor_of(made).shape[1], 2), inputs)

"""Fourier transforms whose axis or length only a run knows, or whose axis is open: as products by a matrix of roots of
unity, which the run computes."""

from __future__ import annotations

import math

import numpy as np

from ...base.dtype import FLOAT64
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
    logical_or,
    multiply,
    subtract,
)
from ...ops.families.cast import cast
from ...ops.families.concatenate import concatenate
from ...ops.families.creation import arange
from ...ops.families.gather import take
from ...ops.families.matmul.matmul import matmul
from ...ops.families.open_extents import open_slice
from ...ops.families.pad import pad_by_extents
from ...ops.families.reduce import prod as product_of
from ...ops.families.reshape import expand_dims, reshape
from ...ops.families.select import where
from ...ops.families.unary import cos, negative, sin
from ..integers import as_int64, as_number, as_vector, from_the_end, integers
from ..onnx_node import OnnxNode
from ..reshaping import reshape_to
from .run_time_operands import extent_as_number, numbers_up_to


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
    components = const_int(kind.shape[-1])
    if components not in (1, 2) or not kind.dtype.is_float:
        raise ModelError(f"{node}: the last axis should have 1 or 2 components, which are floats, found {kind}")
    half = simplify(length // 2 + 1)
    rows, columns = (half, length) if inverse and onesided else (length, half if onesided else length)
    fitted = _fitted(node, x, rows)
    real, *imaginary = (take(fitted, integers(number), 3) for number in range(components))
    cosines, sines = _roots(node, columns, rows, length, inverse, onesided)
    cosines, sines = (node.finish(cast(table, kind.dtype)) for table in (cosines, sines))
    sines = sines if inverse else node.finish(negative(sines))
    both: list[Node] = [matmul(cosines, real), matmul(sines, real)]
    if imaginary:
        both = [both[0] - matmul(sines, imaginary[0]), both[1] + matmul(cosines, imaginary[0])]
    kept = both[:1] if inverse and onesided else both
    return concatenate([expand_dims(part, (3,)) for part in kept], 3)


def _fitted(node: OnnxNode, x: Node, rows: Expr) -> Node:
    """Axis 1 cut, or filled up with zeros, to so many rows."""
    extent = tensor_of(x).shape[1]
    if extent is rows:
        return x
    kept = simplify(minimum(extent, rows))
    part = x if kept is extent else open_slice(x, 1, ZERO, kept, node.shapes.inputs)
    return pad_by_extents(part, [0] * 4, [0, simplify(rows - kept), 0, 0], node.shapes.inputs)


def _roots(node: OnnxNode, columns: Expr, rows: Expr, length: Expr, inverse: bool, onesided: bool) -> tuple[Node, Node]:
    """The cosines and sines of 2π · row · column / length, as float64 of [columns, rows]; of an inverse divided by the
    length, where rows of half a spectrum stand for their mirror images, too."""
    row = expand_dims(numbers_up_to(node, rows), (0,))
    column = expand_dims(numbers_up_to(node, columns), (1,))
    count = extent_as_number(node, length)
    product = multiply(row, column)
    rest = subtract(product, multiply(divide(product, count), count))  # exact, so that large ones keep their angle
    angle = divide(multiply(cast(rest, FLOAT64), Constant(np.array(2 * math.pi))), cast(count, FLOAT64))
    if not inverse:
        return cos(angle), sin(angle)
    weight: Node = divide(Constant(np.array(1.0)), cast(count, FLOAT64))
    if onesided:
        is_own = logical_or(equal(row, integers(0)), equal(multiply(row, integers(2)), count))
        weight = multiply(weight, where(is_own, Constant(np.array(1.0)), Constant(np.array(2.0))))
    return multiply(cos(angle), weight), multiply(sin(angle), weight)


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

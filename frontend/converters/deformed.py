"""ONNX's operators that read or write at computed positions: AffineGrid, DeformConv, MaxUnpool; and Det."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ...base.dtype import FLOAT64
from ...base.errors import ModelError
from ...graph.node import Constant, Node, tensor_of
from ...ir.constants import ONE, const_int
from ...ir.expr import Expr
from ...ir.makers import as_index
from ...ir.simplify import simplify
from ...ops.families.binary import add, divide, maximum, mod, multiply, subtract
from ...ops.families.cast import cast
from ...ops.families.concatenate import concatenate
from ...ops.families.det import det
from ...ops.families.gather import take
from ...ops.families.grid_sample import grid_sample
from ...ops.families.matmul.matmul import matmul
from ...ops.families.repeat import broadcast_to_extents
from ...ops.families.reshape import expand_dims, reshape
from ...ops.families.scatter import scatter_nd
from ..assumed_extent import with_extent
from ..integers import as_int64, as_vector, integers
from ..onnx_node import OnnxNode
from ..registry import converter
from ..reshaping import reshape_to
from .run_time_operands import extent_as_number, numbers_up_to


def _number(value: float) -> Constant:
    return Constant(np.array(value, np.float64))


@converter("AffineGrid", 20)
def _affine_grid(node: OnnxNode) -> Node:
    """For each position of a picture, or volume, theta times its coordinates from -1 to 1: [N, …, axes]."""
    axes = const_int(node.type().shape[1]) if node.rank == 3 else None
    size = node.extents_of(as_vector(node[1], None if axes is None else axes + 2), "the size")
    theta, kind, rank = node[0], node.type().dtype, len(size) - 2
    for axis in (1, 2) if node.rank == 3 else ():
        theta = with_extent(theta, axis, rank + axis - 1)
    if node.rank != 3 or rank not in (2, 3) or node.numbers(tensor_of(theta).shape[1:]) != (rank, rank + 1):
        raise ModelError(
            f"{node}: theta must be [N, 2, 3] with a size of 4, or [N, 3, 4] with one of 5, found {node.type()}"
        )
    columns = [expand_dims(take(theta, integers(k), 2), [*range(1, rank + 1)]) for k in range(rank + 1)]
    grid = columns[rank]
    for axis, extent in enumerate(size[2:]):
        along = cast(_coordinates(node, as_index(extent), node.flag("align_corners")), kind)
        grid = add(grid, multiply(columns[rank - 1 - axis], expand_dims(along, [*range(1, rank - axis + 1)])))
    return grid


def _coordinates(node: OnnxNode, extent: Expr, align_corners: bool) -> Node:
    """Where elements lie between -1 and 1: the corners there, or the edges of the elements. One alone is at -1, or in
    the middle."""
    count, numbers = (cast(x, FLOAT64) for x in (extent_as_number(node, extent), numbers_up_to(node, simplify(extent))))
    if align_corners:
        steps = maximum(subtract(count, _number(1)), _number(1))
        return subtract(divide(multiply(numbers, _number(2)), steps), _number(1))
    return subtract(divide(add(multiply(numbers, _number(2)), _number(1)), count), _number(1))


@converter("Det", 11, 22)
def _det(node: OnnxNode) -> Node:
    return det(node[0])


@converter("DeformConv", 19, 22)
def _deform_conv(node: OnnxNode) -> Node:
    """A convolution whose windows read between elements, at offsets of their own: what is read as a matrix product."""
    if node.rank != 4:
        raise node.unsupported(f"an input of rank {node.rank}, which is no batch of pictures,")
    weight = tensor_of(node[1])
    window = node.numbers(weight.shape[2:])
    if (node.ints("kernel_shape") or window) != window:
        raise ModelError(f"{node}: kernel_shape {node.ints('kernel_shape')} is not that of the weights, {weight}")
    groups, shared, taps = node.integer("group", 1), node.integer("offset_group", 1), math.prod(window)
    filters, own = node.numbers(weight.shape[:2])
    x = with_extent(node[0], 1, own * groups)
    (channels,) = node.numbers(tensor_of(x).shape[1:2])
    if channels != own * groups or filters % groups or channels % shared:
        raise ModelError(f"{node}: {channels} channels do not fit {groups} groups of {weight}, and {shared} of offsets")
    batch, (rows, columns), of = node.type().shape[0], node.type(2).shape[2:], node.shapes.inputs
    if node.numbers(node.type(2).shape[1:2]) != (shared * taps * 2,):
        raise ModelError(f"{node}: axis 1 of the offsets must be {shared * taps * 2}, found {node.type(2)}")
    grid = reshape_to(_places(node, window, (batch * shared, as_index(taps), rows, columns)),
                      (batch * shared, taps * rows, columns, 2), of)  # fmt: skip
    picture = reshape_to(x, (batch * shared, channels // shared, *node.type().shape[2:]), of)
    read: Node = grid_sample(picture, grid)
    mask = node.get(4)
    if mask is not None:
        read = multiply(read, reshape_to(mask, (batch * shared, 1, taps * rows, columns), of))
    sources = reshape_to(read, (batch, groups, own * taps, rows * columns), of)
    products = matmul(reshape(node[1], (groups, filters // groups, own * taps)), sources)
    made = reshape_to(products, (batch, filters, rows, columns), of)
    bias = node.get(3)
    return made if bias is None else add(made, expand_dims(bias, [1, 2]))


def _places(node: OnnxNode, window: Sequence[int], shape: Sequence[Expr]) -> Node:
    """Where the taps read, [batch · groups of offsets, taps, rows, columns, 2], the columns first, as grid_sample has
    it: from -1 to 1 over the edges of the picture."""
    offsets = cast(reshape_to(node[2], (*shape[:2], 2, *shape[2:]), node.shapes.inputs), FLOAT64)
    strides, dilations = node.ints("strides") or (1, 1), node.ints("dilations") or (1, 1)
    pads = node.ints("pads") or (0,) * 4
    taps = np.indices(window).reshape(2, -1, 1, 1)
    found = []
    for axis, (extent, stride) in enumerate(zip(shape[2:], strides, strict=True)):
        offset = reshape_to(take(offsets, integers(axis), 2), shape, node.shapes.inputs)
        begins = multiply(cast(numbers_up_to(node, extent), FLOAT64), _number(stride))
        begins = expand_dims(begins, 1) if axis == 0 else begins
        first = Constant((taps[axis] * dilations[axis] - pads[axis]).astype(np.float64))
        count = cast(extent_as_number(node, node.type().shape[2 + axis]), FLOAT64)
        position = multiply(add(add(offset, begins), add(first, _number(0.5))), _number(2))
        found.append(expand_dims(subtract(divide(position, count), _number(1)), 4))
    return concatenate(found[::-1], 4)


@converter("MaxUnpool", 9, 11, 22)
def _max_unpool(node: OnnxNode) -> Node:
    """Each element at its index, which counts those of the whole unpooled tensor; 0 elsewhere. A larger shape that is
    asked for begins with that."""
    shape, window = node.type().shape, node.required_ints("kernel_shape")
    rank = len(window)
    strides, pads = node.ints("strides") or (1,) * rank, node.ints("pads") or (0,) * (2 * rank)
    if node.rank != rank + 2 or len(strides) != rank or len(pads) != 2 * rank:
        raise ModelError(f"{node}: kernel_shape, strides and pads do not fit {node.type()}")
    inner = [
        (extent - 1) * stride - (pads[axis] + pads[rank + axis]) + window[axis]
        for axis, (extent, stride) in enumerate(zip(shape[2:], strides, strict=True))
    ]
    unpooled = [simplify(extent) for extent in (*shape[:2], *inner)]
    positions, result = as_int64(reshape(node[1], (-1,))), unpooled
    if node.get(2) is not None:
        result = [*map(as_index, node.extents_of(as_vector(node[2], node.rank), "the shape of the result"))]
        if len(result) != node.rank:
            raise ModelError(f"{node}: the shape of the result must have {node.rank} numbers, found {len(result)}")
        positions = _moved(node, positions, unpooled, result)
    count = simplify(math.prod(result, start=ONE))
    zero = Constant(np.zeros((), node.type().dtype.to_numpy()))
    empty = broadcast_to_extents(zero, [const_int(count) or count], node.shapes.inputs)
    filled = scatter_nd(empty, expand_dims(positions, 1), reshape(node[0], (-1,)))
    return reshape_to(filled, result, node.shapes.inputs)


def _moved(node: OnnxNode, positions: Node, before: Sequence[Expr], after: Sequence[Expr]) -> Node:
    """Positions among the elements of a tensor, in one of another shape that begins with it."""
    moved: Node = integers(0)
    stride: Node = integers(1)
    for old, new in zip(reversed(before), reversed(after), strict=True):
        extent = extent_as_number(node, old)
        moved = add(moved, multiply(mod(positions, extent), stride))
        positions, stride = divide(positions, extent), multiply(stride, extent_as_number(node, new))
    return moved

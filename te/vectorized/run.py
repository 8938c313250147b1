"""The operations that outputs are made of, run in order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...ir.expr import Axis, Var
from ..tensor import ComputeOp, Operation, PlaceholderOp, Tensor
from .grid import Array, Grid
from .reductions import reduced
from .unvectorized import UnvectorizedError
from .values import Values, number_of


class VectorizedProgram:
    """Tensors, and the operations on the way to them. Raises ``UnvectorizedError`` where one of these is a scan, an
    extern, or a reduction whose bounds differ from element to element."""

    def __init__(self, outputs: Sequence[Tensor]) -> None:
        self._outputs = tuple(outputs)
        self._computes = tuple(_in_order(outputs))

    def __call__(self, feeds: Mapping[Tensor, Array], dims: Mapping[Var, int]) -> list[Array]:
        """The outputs for the arrays of placeholders, and the values of symbolic dimensions. An output may share memory
        with an input. Raises ``UnvectorizedError`` where numpy has nothing for an expression."""
        known = dict(feeds)
        with np.errstate(all="ignore"):
            for op in self._computes:
                known.update(zip(op.outputs, _computed(op, known, dims), strict=True))
        return [known[tensor] for tensor in self._outputs]


def _computed(op: ComputeOp, known: Mapping[Tensor, Array], dims: Mapping[Var, Any]) -> list[Array]:
    spatial = _grid(op.axis, dims)
    values: list[Any]
    if (reduction := op.reduction) is not None:
        values = reduced(reduction, spatial, _grid(op.reduce_axis, dims), known, dims)
    else:
        point = Values(spatial, known, dims)
        values = [point.of(body) for body in op.body]
    return [_whole(value, tensor, spatial) for value, tensor in zip(values, op.outputs, strict=True)]


def _whole(value: Any, tensor: Tensor, grid: Grid) -> Array:
    """The array of a tensor, which may be a view of another one."""
    return np.broadcast_to(np.asarray(value).astype(tensor.dtype.to_numpy(), copy=False), grid.shape)


def _grid(axes: Sequence[Axis], dims: Mapping[Var, Any]) -> Grid:
    begins = tuple(number_of(axis.min, dims) for axis in axes)
    ends = tuple(begin + number_of(axis.extent, dims) for begin, axis in zip(begins, axes, strict=True))
    return Grid(tuple(axis.var for axis in axes), begins, ends)


def _in_order(outputs: Sequence[Tensor]) -> list[ComputeOp]:
    """The operations that have loops, each after those that it reads."""
    done: dict[Operation, None] = {}
    stack: list[Operation] = [tensor.op for tensor in reversed(outputs)]
    while stack:
        op = stack[-1]
        if not isinstance(op, (ComputeOp, PlaceholderOp)) or (isinstance(op, ComputeOp) and op.ragged_axes):
            raise UnvectorizedError(f"{op} is not run a whole tensor at a time")
        missing = [tensor.op for tensor in op.inputs if tensor.op not in done]
        if missing:
            stack += missing
            continue
        done[stack.pop()] = None
    return [op for op in done if isinstance(op, ComputeOp)]

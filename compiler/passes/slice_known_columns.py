"""What is taken at known indices that follow each other is a slice, which needs no index at run time. Of the last axis
several runs of them are slices side by side, as models select features. A single index of the outermost axis of several
elements is a slice without that axis, which lies in x: so queries, keys and values are taken apart.

take(x, [2, 3, 4], axis) → strided_slice(x, 2:5)
take(x, 2, 0) → squeeze(strided_slice(x, 2:3))
take(x, [0, 2, 3], -1) → concatenate(strided_slice(x, 0:1), strided_slice(x, 2:4))
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ...graph.node import Call, Constant, Function, Node, tensor_of
from ...graph.visit import inputs, post_order, with_inputs
from ...ir.constants import const_int
from ...ops.definition.registry import get_op
from ...ops.families.concatenate import concatenate
from ...ops.families.reshape import squeeze
from ...ops.families.slicing import strided_slice

TAKE = get_op("take")
MOST_RUNS = 32
"""Each run is code of its own: of so many it still is faster than lanes that gather."""


def slice_known_columns(function: Function) -> Function:
    """The function with slices for what is taken at few runs of known indices."""
    done: dict[Node, Node] = {}
    for node in post_order(function.body):
        rebuilt = with_inputs(node, tuple(done[n] for n in inputs(node)))
        done[node] = _sliced(rebuilt) if isinstance(rebuilt, Call) else rebuilt
    body = done[function.body]
    return function if body is function.body else replace(function, body=body)


def _sliced(call: Call) -> Call:
    """The slices that a call takes; the call if it is no such one."""
    if call.op is not TAKE or not isinstance(indices := call.args[1], Constant) or indices.value.ndim > 1:
        return call
    x, axis = call.args[0], call.attrs.axis
    extents = [const_int(extent) for extent in tensor_of(x).shape[: axis + 1]]
    if (extent := extents.pop()) is None or not indices.value.size:
        return call
    runs = _runs(indices.value.reshape(-1), extent)
    if indices.value.ndim == 0:
        return call if any(outer != 1 for outer in extents) else _single(call, *runs[0])
    if len(runs) > (MOST_RUNS if axis == tensor_of(x).ndim - 1 else 1):
        return call
    parts = [replace(strided_slice(x, [begin], [end], [axis]), origin=call.origin) for begin, end in runs]
    made = parts[0] if len(parts) == 1 else replace(concatenate(parts, axis), origin=call.origin)
    return replace(made, value=call.value)


def _single(call: Call, begin: int, end: int) -> Call:
    axis = call.attrs.axis
    part = replace(strided_slice(call.args[0], [begin], [end], [axis]), origin=call.origin)
    return replace(squeeze(part, [axis]), origin=call.origin, value=call.value)


def _runs(indices: npt.NDArray[Any], extent: int) -> list[tuple[int, int]]:
    """Begin and end of each run of positions that follow each other, of indices as ``take`` reads them."""
    at = np.minimum(indices, extent - 1).astype(np.int64)
    at = np.maximum(np.where(at < 0, at + extent, at), 0)
    begins = np.flatnonzero(np.diff(at, prepend=at[0] - 2) != 1)
    counts = np.diff(begins, append=at.size)
    return [(int(at[k]), int(at[k]) + int(count)) for k, count in zip(begins, counts, strict=True)]

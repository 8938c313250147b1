"""Numpy's functions that take parts of graph nodes, and put nodes together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...base.errors import TypeInferenceError
from ...graph.node import Node, tensor_of
from ...graph.numpy_protocol import implements
from ...ir.constants import const_int
from ..definition.arguments import axis_of, integer
from ..families import pad, repeat, reshape, slicing, trilu
from ..families.concatenate import concatenate
from ..families.gather import gather_elements, take
from .promotion import alike, as_node


@implements(np.concatenate)
def _concatenate(arrays: Sequence[Any], axis: int = 0) -> Node:
    return concatenate(alike(*arrays), axis)


@implements(np.stack)
def _stack(arrays: Sequence[Any], axis: int = 0) -> Node:
    return concatenate([reshape.expand_dims(x, axis) for x in alike(*arrays)], axis)


@implements(np.split)
def _split(ary: Any, indices_or_sections: int | Sequence[int], axis: int = 0) -> list[Node]:
    x = as_node(ary)
    extent = const_int(tensor_of(x).shape[axis_of("split", x, axis)])
    if extent is None:
        raise TypeInferenceError(f"the axis to split must have a known extent: {x.type}")
    if isinstance(indices_or_sections, int):
        if indices_or_sections < 1 or extent % indices_or_sections:
            raise TypeInferenceError(f"an extent of {extent} has no {indices_or_sections} equal parts")
        return list(slicing.split(x, [extent // indices_or_sections] * indices_or_sections, axis))
    ends = [*indices_or_sections, extent]
    return list(slicing.split(x, [end - start for start, end in zip([0, *ends[:-1]], ends, strict=True)], axis))


@implements(np.take)
def _take(a: Any, indices: Any, axis: int | None = None) -> Node:
    x = as_node(a)
    return take(reshape.reshape(x, [-1]), as_node(indices)) if axis is None else take(x, as_node(indices), axis)


@implements(np.take_along_axis)
def _take_along_axis(arr: Any, indices: Any, axis: int = -1) -> Node:
    return gather_elements(as_node(arr), as_node(indices), axis)


@implements(np.flip)
def _flip(m: Any, axis: int | Sequence[int] | None = None) -> Node:
    x = as_node(m)
    axes = range(tensor_of(x).ndim) if axis is None else (axis,) if isinstance(axis, int) else tuple(axis)
    count = len(axes)
    return slicing.strided_slice(x, [slicing.END] * count, [-slicing.END] * count, list(axes), [-1] * count)


@implements(np.pad)
def _pad(array: Any, pad_width: Any, mode: str = "constant", *, constant_values: float = 0) -> Node:
    x = as_node(array)
    try:
        counts = np.broadcast_to(pad_width, (tensor_of(x).ndim, 2)).tolist()
    except ValueError:
        wanted = f"a number, two, or two for each of the {tensor_of(x).ndim} axes"
        raise TypeInferenceError(f"pad_width is {wanted}, found {pad_width!r}") from None
    return pad.pad(x, [before for before, _ in counts], [after for _, after in counts], mode, constant_values)


@implements(np.tile)
def _tile(A: Any, reps: int | Sequence[int]) -> Node:
    x = as_node(A)
    repeats = (reps,) if isinstance(reps, int) else tuple(reps)
    new = len(repeats) - tensor_of(x).ndim
    return repeat.tile(reshape.expand_dims(x, range(new)) if new > 0 else x, repeats)


@implements(np.repeat)
def _repeat(a: Any, repeats: int, axis: int | None = None) -> Node:
    x = as_node(a)
    times = integer(repeats, "repeats")
    return repeat.repeat(reshape.reshape(x, [-1]), times, 0) if axis is None else repeat.repeat(x, times, axis)


@implements(np.tril)
def _tril(m: Any, k: int = 0) -> Node:
    return trilu.trilu(as_node(m), k, upper=False)


@implements(np.triu)
def _triu(m: Any, k: int = 0) -> Node:
    return trilu.trilu(as_node(m), k, upper=True)

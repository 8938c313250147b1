"""Depthwise convolutions of images of one column, as those of one row: their vectors are of neighbours in a row.

Exporters write a filter along time so, ``[n, c, time, 1]`` by windows of k × 1. Nothing moves in memory.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..graph.node import Node, tensor_of
from ..ir.constants import const_int
from ..ops.definition.arguments import per_axis
from ..ops.families.reshape import reshape


def is_depthwise_column(x: Node, weight: Node, padding: int | tuple[int, ...]) -> bool:
    """Whether x has one column, which the window does not go beyond, and each channel has filters of its own."""
    image, filters = tensor_of(x), tensor_of(weight)
    if image.ndim != 4 or filters.ndim != 4:
        return False
    one_column = const_int(image.shape[3]) == const_int(filters.shape[3]) == 1 != const_int(image.shape[2])
    alone = const_int(filters.shape[1]) == 1 != const_int(image.shape[1]) and 0 not in map(const_int, image.shape)
    return one_column and alone and not any(per_axis(padding, 4, "padding")[1::2])


def column_as_row(x: Node) -> Node:
    """A tensor ``[n, c, h, 1]`` as ``[n, c, 1, h]``, in the same memory."""
    return reshape(x, (0, 0, 1, -1))


def row_as_column(x: Node) -> Node:
    """A tensor ``[n, c, 1, w]`` as ``[n, c, w, 1]``, in the same memory."""
    return reshape(x, (0, 0, -1, 1))


def turned(window: Mapping[str, Any]) -> dict[str, Any]:
    """The attributes of windows over an image, for its transpose."""
    top, left, bottom, right = per_axis(window["padding"], 4, "padding")
    each = {name: per_axis(window[name], 2, name)[::-1] for name in ("strides", "dilation")}
    return {**window, **each, "padding": (left, top, right, bottom)}

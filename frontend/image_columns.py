"""Convolutions whose windows are as wide as the image, as those of one row: their vectors are of neighbours in a row.

Exporters write a filter along time so, ``[n, c, time, 1]`` by windows of k × 1, and a filter along a text, ``[n, 1,
words, width]`` by windows of k × width. Their results have one column. As one row, an image has its rows one after the
other, and a window moves by whole rows. Nothing moves in memory.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..graph.node import Node, tensor_of
from ..ir.constants import const_int
from ..ops.definition.arguments import per_axis
from ..ops.families.reshape import reshape


def gives_column(x: Node, weight: Node, window: Mapping[str, Any]) -> bool:
    """Whether the result has one column, since the windows, of more than one element, are as wide as the image."""
    image, filters = tensor_of(x), tensor_of(weight)
    if image.ndim != 4 or filters.ndim != 4:
        return False
    (rows, columns), (taps, width) = (map(const_int, kind.shape[2:]) for kind in (image, filters))
    if columns != width or width is None or 0 in (rows, columns, *map(const_int, image.shape[:2])):
        return False
    plain = not window["auto_pad"].startswith("SAME") and per_axis(window["dilation"], 2, "dilation") == (1, 1)
    of_columns = not any(per_axis(window["padding"], 4, "padding")[1::2])
    return taps not in (1, rows) and of_columns and (plain or width == 1)


def as_row(x: Node) -> Node:
    """A tensor ``[n, c, h, w]`` as ``[n, c, 1, h * w]``, in the same memory."""
    return reshape(x, (0, 0, 1, -1))


def row_as_column(x: Node) -> Node:
    """A tensor ``[n, c, 1, w]`` as ``[n, c, w, 1]``, in the same memory."""
    return reshape(x, (0, 0, -1, 1))


def over_row(window: Mapping[str, Any], width: int) -> dict[str, Any]:
    """The attributes of windows over an image of this ``width``, for its rows as one."""
    top, _, bottom, _ = per_axis(window["padding"], 4, "padding")
    (step, _), (dilation, _) = (per_axis(window[name], 2, name) for name in ("strides", "dilation"))
    padding = (0, top * width, 0, bottom * width)
    return {**window, "padding": padding, "strides": (1, step * width), "dilation": (1, dilation)}

"""Layouts with channels and filters in blocks, which implementations of convolutions need."""

from __future__ import annotations

from ....base.errors import TypeInferenceError
from ....graph.layout import Layout
from ..window import spatial_axes


def data_layout(rank: int, block: int = 1) -> Layout:
    """N, C, and so many spatial axes, with the channels in blocks."""
    plain = f"NC{spatial_axes(rank)}"
    return Layout(plain if block == 1 else f"{plain}{block}c")


def kernel_layout(rank: int, data: int, block: int) -> Layout:
    """The layout of weights for channels in blocks of ``data``, and filters in blocks of ``block``."""
    plain = f"OI{spatial_axes(rank)}"
    return Layout(f"{plain}{block}o" if data == 1 else f"{plain}{data}i{block}o")


def nchw(block: int) -> Layout:
    """NCHW with its channels in blocks of so many, as NCHW16c; plain for 1."""
    return data_layout(2, block)


def channel_block(channels: int, lanes: int) -> int | None:
    """How many channels make a block: a vector, or half of one; None if they make none."""
    return next((b for b in (lanes, lanes // 2) if b > 1 and channels % b == 0), None)


def check_blocked(layout: Layout, name: str) -> None:
    """Raises ``TypeInferenceError``, with the attribute's name, unless it is NCHW with the channels in blocks."""
    block = layout.factor("C")
    if block == 1 or layout is not nchw(block):
        raise TypeInferenceError(f"{name} must be NCHW with channels in blocks, such as NCHW16c, found {layout}")

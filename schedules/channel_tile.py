"""Sizes of register tiles whose vectors are of channels: positions of an image times blocks of filters."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ..base.dataclass import dataclass
from ..lowering.schedule import Schedule
from .machine import CORE


@dataclass(frozen=True, slots=True)
class ChannelTile:
    """Sums that are kept in registers: ``rows`` times ``columns`` positions of the output, ``blocks`` of filters
    each."""

    rows: int
    columns: int
    blocks: int


def channel_tile(
    rows: int,
    columns: int,
    blocks: int,
    registers: int,
    panel: int | None = None,
    share: Callable[[ChannelTile], float] | None = None,
) -> ChannelTile:
    """The tile that covers rows × columns positions of so many blocks in the least time, by a model of one step.

    Rows are only taken together where all columns are, unless ``share`` says which part of the steps such a tile takes.
    A tile's blocks have to divide ``blocks``, and are ``panel`` if that is given; positions that are left over at the
    end get smaller tiles. Of blocks that are too wide for the registers a tile is a position or two.
    """
    registers = max(registers, 2 * (panel or 1) + 2)
    best: tuple[float, int, ChannelTile] | None = None
    sides = [b for b in range(1, registers // 2) if blocks % b == 0] if panel is None else [panel]
    for side in sides:
        most = (registers - 1) // side - 1
        for tile in _tiles(rows, columns, side, most, share is not None):
            cost = blocks // side * tile_cycles(rows, columns, tile) * (1.0 if share is None else share(tile))
            if best is None or (cost, side) < best[:2]:
                best = cost, side, tile
    assert best is not None
    return best[2]


def _tiles(rows: int, columns: int, side: int, most: int, partial: bool) -> Iterator[ChannelTile]:
    """Tiles of at most so many positions; ``partial`` ones have some columns of several rows."""
    for width in range(1, min(columns, most) + 1):
        yield ChannelTile(1, width, side)
    for width in range(1 if partial else columns, min(columns, most // 2) + 1):
        for height in range(2, min(rows, most // width) + 1):
            yield ChannelTile(height, width, side)


def tile_cycles(
    rows: int,
    columns: int,
    tile: ChannelTile,
    rate: int = CORE.full_rate,
    weight_cycles: float = CORE.second_cache_cycles,
) -> float:
    """Cycles for one term of all sums of a stripe of filters.

    Products are added ``rate`` vectors a cycle; a position's factor and a block's weights are a load each, two a cycle;
    weights come from the second cache, one vector in a cycle and a half, if ``weight_cycles`` does not say what they
    take; a sum waits four cycles for its last addition.
    Of a load, a broadcast as well, a tenth of a cycle is not hidden behind these, and a quarter for each vector that is
    fetched ahead. The loop itself takes one.
    """
    total = 0.0
    for height, down in _pieces(rows, tile.rows):
        for width, across in _pieces(columns, tile.columns):
            positions = height * width
            loads = (positions + tile.blocks) / CORE.loads
            step = max(positions * tile.blocks / rate, loads, weight_cycles * tile.blocks, CORE.sum_cycles)
            total += down * across * (step + (positions + tile.blocks) / 10 + tile.blocks / 4 + 1)
    return total


def _pieces(extent: int, size: int) -> Iterator[tuple[int, int]]:
    """What an extent falls into: pieces of a size, and how many of them."""
    yield size, extent // size
    yield extent % size, int(extent % size > 0)


def decide_channel_tile(
    schedule: Schedule, tile: ChannelTile, rows: int, columns: int, blocks: int, registers: int
) -> ChannelTile:
    """A tile for rows × columns positions as three decisions of a schedule: ``tile`` by default, else one whose sums
    fit so many registers, beside the weights of a step and a factor. Its blocks divide ``blocks``."""
    sides = {side for side in range(1, registers // 2) if blocks % side == 0}
    side = schedule.decide("blocks", sorted({*sides, tile.blocks}), tile.blocks)
    most = max((registers - 1) // side - 1, 1)
    if side <= tile.blocks:
        most = max(most, tile.rows * tile.columns)
    width = schedule.decide("columns", range(1, min(columns, most) + 1), min(tile.columns, most))
    highest = min(rows, max(most // width, 1))
    return ChannelTile(schedule.decide("rows", range(1, highest + 1), min(tile.rows, highest)), width, side)


def keep_channel_tile(schedule: Schedule, tile: ChannelTile) -> ChannelTile:
    """The same decisions where there is no choice: the tile."""
    for name, value in (("blocks", tile.blocks), ("columns", tile.columns), ("rows", tile.rows)):
        schedule.decide(name, [value], value)
    return tile

"""Tiles of what is read along one axis and written along another, in vector registers.

A square tile has as many rows and columns as a vector has lanes. Bit by bit, the number of an element in it is its row
and its column; to transpose is to rotate these bits by half their number. Each of some copies rotates them by one: it
takes apart the even and the odd elements, one shuffle of two vectors. Copies that a schedule makes of what is read are
``turn_tiles``, and ``turn_squares`` where several axes count as one; a compute of several steps, as attention is, may
have them as stages, which ``transposed`` makes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from .. import te
from ..ir.constants import const_int
from ..ir.expr import Expr
from ..ir.makers import as_index
from ..ir.row_major import ravel_index
from ..lowering.schedule import LoopView, Schedule, StageView


def transposed(rows: te.Tensor, lanes: int, name: str) -> list[te.Tensor]:
    """The stages from tiles to transposed tiles: the last first, ``rows`` themselves at the end."""
    stages = [rows]
    for bit in range(lanes.bit_length() - 1):
        stages.insert(0, _rotated(stages[0], lanes * lanes, f"{name}.bit{bit}"))
    return stages


def _rotated(tile: te.Tensor, size: int, name: str) -> te.Tensor:
    """The even elements of each tile, then the odd ones."""
    half = size // 2

    def element(*index: te.Axis) -> Expr:
        *place, at = map(as_index, index)
        return tile[(*place, at % half * 2 + at // half)]

    return te.compute(tile.shape, element, name=name)


def schedule_transposed(
    schedule: Schedule, stages: Sequence[te.Tensor], reader: StageView, at: LoopView, lanes: int
) -> None:
    """Compute the stages of one tile, as ``transposed`` gives them, for each turn of a reader's loop, in registers."""
    for tensor in stages:
        stage = schedule[tensor]
        stage.compute_at(reader, at)
        vector, lane = stage.split(stage.loops[-1], factor=lanes)
        stage.vectorize(lane)
        stage.unroll(vector)


def turn_tiles(
    schedule: Schedule, source: te.Tensor, anchor: te.Tensor, reader: StageView, at: LoopView, row: int, lanes: int
) -> None:
    """Copy the tile that each turn of a reader's loop needs of a source to registers, and turn it there.

    ``anchor`` is the stage that reads ``source``: ``reader``, or one that is inlined into it. A tile is ``lanes`` wide
    along the last axis of the source, which it is read along, and along axis ``row``, the innermost of the reader.

    Before → after, for ``lanes`` of 2 and the reader's loop j_outer::

        for i_inner in unrolled(2):                for r in unrolled(2):
            for j_inner in vectorized(2):             for c in vectorized(2):
                Y[i, j] = X[j, i]            →            tile[r * 2 + c] = X[j_outer * 2 + r, i_outer * 2 + c]
                                                   for c in unrolled(2):
                                                       for r in vectorized(2):
                                                           turned[c * 2 + r] = tile[r * 2 + c]
                                                   for i_inner in unrolled(2):
                                                       for j_inner in vectorized(2):
                                                           Y[i, j] = turned[i_inner * 2 + j_inner]

    With more lanes there is such a copy for each bit of a place in a row. What a tile has beyond the ends is 0.
    """
    copies = [schedule.cache_read(source, "local", [anchor], pad=0)]
    for _ in range(lanes.bit_length() - 1):
        copies.append(schedule.cache_read(copies[-1], "local", [anchor]))
    first, *rotated = (schedule[copy] for copy in copies)
    orders = [_order_of_writing(stage, bits, row, lanes) for bits, stage in enumerate((first, *rotated))]
    for stage in reversed((first, *rotated)):
        stage.compute_at(reader, at)
    last = rotated[-1] if rotated else first
    orders[-1] = [last.round_up(loop, factor=lanes) for loop in orders[-1]]  # others are computed as far as it reads
    for stage, (*vectors, lane) in zip((first, *rotated), orders, strict=True):
        for vector in vectors:
            stage.unroll(vector)
        stage.vectorize(lane)
    for bits, stage in enumerate(rotated, 1):  # last of all, since each further step would prove them anew
        stage.transform_layout(_rotated_by(bits, source.ndim, row, lanes))


def _rotated_by(bits: int, rank: int, row: int, lanes: int) -> str:
    """The index map under which the number of an element in its tile is rotated by so many bits."""
    names = [f"i{d}" for d in range(rank)]
    number = f"({names[row]} * {lanes} + {names[-1]})"
    others = [name for d, name in enumerate(names[:-1]) if d != row]
    rotated = f"{number} % {1 << bits} * {lanes * lanes >> bits} + {number} // {1 << bits}"
    return f"lambda {', '.join(names)}: ({', '.join([*others, rotated])},)"


def _order_of_writing(stage: StageView, bits: int, row: int, lanes: int) -> list[LoopView]:
    """The loops over the elements of a tile whose numbers are rotated, in the order in which they lie; the last is over
    those of a vector."""
    *others, column = stage.loops
    high = others.pop(row)
    if bits == 0:
        return [high, column]
    if 1 << bits == lanes:
        stage.reorder(*others, column, high)
        return [column, high]
    vector, high = stage.split(high, factor=1 << bits)
    column, low = stage.split(column, factor=1 << bits)
    stage.reorder(*others, low, vector, high, column)
    return [low, vector, stage.fuse(high, column)]


def turn_squares(schedule: Schedule, source: te.Tensor, anchor: te.Tensor, plane: int, lanes: int) -> list[te.Tensor]:
    """Copy squares of a source, of ``lanes`` positions times the ``lanes`` of its last axis, and turn them; gives the
    copies, the last one first, for ``schedule_transposed``.

    ``anchor`` is the stage that reads the source. Positions are those of the ``plane`` axes before the last, of known
    extents, as one; beyond the last of them a square has 0. Each copy after the first rotates the number of an element.

    Before → after, for ``lanes`` of 2, where the anchor has positions innermost::

        for p in range(6):                         for p in range(6):
            Y[k, p] = X[k // 2, p, k % 2]    →         for k in range(2):
                                                           X.local[b, p // 2, p % 2, k] = X[b, p, k]
                                                   for square in range(3):
                                                       for at in range(4):
                                                           turned[b, square, at] = X.local[b, square, at % 2, at // 2]
                                                   for p in range(6):
                                                       Y[k, p] = turned[k // 2, p // 2, k % 2 * 2 + p % 2]
    """
    extents = [const_int(extent) or 1 for extent in source.shape[-1 - plane : -1]]

    def squares(*index: Expr) -> tuple[Expr, ...]:
        position = ravel_index(index[-1 - plane : -1], extents)
        return *index[: -1 - plane], position // lanes, position % lanes, index[-1]

    def rotated(number: Expr) -> Expr:
        return number % 2 * (lanes * lanes // 2) + number // 2

    pad = 0 if math.prod(extents) % lanes else None
    copies = [schedule.cache_read(source, "local", [anchor], pad=pad, axes=squares)]
    schedule[copies[0]].fuse(*schedule[copies[0]].loops[-2:])
    for bit in range(lanes.bit_length() - 1):
        if bit == 0:
            copy = schedule.cache_read(
                copies[0], "local", [anchor], axes=lambda *i: (*i[:-2], rotated(i[-2] * lanes + i[-1]))
            )
        else:
            copy = schedule.cache_read(copies[0], "local", [anchor], axes=lambda *i: (*i[:-1], rotated(i[-1])))
        copies.insert(0, copy)
    return copies


def interleave_rows(
    schedule: Schedule, source: te.Tensor, anchor: te.Tensor, reader: StageView, at: LoopView, row: int, lanes: int
) -> None:
    """Copy a vector of each of the few rows whose elements a turn of a reader's loop writes in turn.

    ``anchor`` reads the source, as for ``turn_tiles``; the rows are along axis ``row`` of the source.

    Before → after, for ``lanes`` of 8, three rows, and the reader's loop block::

        for k in vectorized(24):                   for row in unrolled(3):
            at = block * 24 + k                        for at in vectorized(8):
            Y[at] = X[at % 3, at // 3]       →             tile[row, at] = X[row, block * 8 + at]
                                                   for k in vectorized(24):
                                                       Y[block * 24 + k] = tile[k % 3, k // 3]
    """
    copy = schedule[schedule.cache_read(source, "local", [anchor], pad=0)]
    copy.compute_at(reader, at)
    *others, column = copy.loops
    rows = others.pop(row)
    column = copy.round_up(column, factor=lanes)
    copy.reorder(*others, rows, column)
    vector, lane = copy.split(column, factor=lanes)
    copy.unroll(rows)
    copy.unroll(vector)
    copy.vectorize(lane)

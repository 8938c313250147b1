"""How many cache lines an array's accesses touch while some loops run: the footprint of data reuse analysis.

An access is ``sum(stride * loop) + offset``; loops whose strides are within what is touched already make that longer,
others repeat it (Wolf and Lam, *A data locality optimizing algorithm*, 1991; Li et al., *Analytical characterization
and design space exploration for optimization of CNNs*, 2021).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from ....base.dataclass import dataclass
from ....ir.constants import const_int
from ....ir.contents import free_vars
from ....ir.expr import Expr, Ramp, Var
from ....ir.linear import linear_of

LINE = 64
SETS = 64
"""The lines of a page, which caches tell by their address: first caches have as many sets, and of larger ones each page
meets a part only."""
PLACES = 1024


@dataclass(frozen=True, slots=True)
class Footprint:
    """The cache ``lines`` that accesses touch, in ``runs`` of lines that follow each other. ``room`` is how many lines
    a cache has that keeps all of them: more, where many lie at the same place of a page, since these share few sets."""

    lines: float
    runs: float
    room: float


@dataclass(frozen=True, slots=True, eq=False)
class LinearAccess:
    """Where an array is accessed: ``strides`` in bytes by the loops' variables, None where a variable has none, as in
    what memory says; from byte ``offset`` on, ``length`` bytes long."""

    strides: Mapping[Var, int | None]
    offset: int
    length: int


def access_of(index: Expr, lanes: int, element: int) -> LinearAccess:
    """The access of elements of so many bytes at an index."""
    spread: int | None = element * lanes
    if isinstance(index, Ramp):
        step = const_int(index.stride)
        spread = None if step is None else abs(step) * element * (lanes - 1) + element
        index = index.base
    form = linear_of(index)
    strides: dict[Var, int | None] = {}
    for term in form.terms.values():
        known = len(term.factors) == 1 and isinstance(term.factors[0], Var)
        for var in {v for factor in term.factors for v in free_vars(factor)}:
            strides[var] = term.coefficient * element if known and var not in strides else None
    return LinearAccess(strides, form.constant * element, element * lanes if spread is None else spread)


def accesses_of_lanes(index: Expr, lanes: int, element: int) -> Sequence[LinearAccess]:
    """The accesses of elements of so many bytes at an index: one, or one a lane where whole lines lie between lanes."""
    step = const_int(index.stride) if isinstance(index, Ramp) else None
    if not isinstance(index, Ramp) or step is None or abs(step) * element <= LINE:
        return [access_of(index, lanes, element)]
    first = access_of(index.base, 1, element)
    return [replace(first, offset=first.offset + lane * step * element) for lane in range(lanes)]


def footprint(accesses: Sequence[LinearAccess], trips: Mapping[Var, float], most: float) -> Footprint:
    """What the accesses of one array touch while the loops in ``trips`` run, each so often: at most ``most`` bytes."""
    shapes: dict[tuple[tuple[Var, int | None], ...], list[tuple[int, int]]] = {}
    for access in accesses:
        moving = tuple((v, s) for v, s in access.strides.items() if v in trips and trips[v] > 1 and s != 0)
        shapes.setdefault(tuple(sorted(moving, key=lambda item: id(item[0]))), []).append(
            (access.offset, access.length)
        )
    found = [_touched(dict(shape), spans, trips) for shape, spans in shapes.items()]
    lines = min(sum(f.lines for f in found), most / LINE + 1)
    return Footprint(lines, min(sum(f.runs for f in found), lines), max(lines, sum(f.room for f in found)))


@dataclass(slots=True)
class _Piece:
    """Bytes that follow each other from ``begin`` on, found ``count`` times, and ``repeats`` of these at a
    distance of ``step`` bytes; ``inside`` are the steps and repeats of what is there again each time. Mutable."""

    begin: float
    length: float
    count: float = 1.0
    step: int = 0
    repeats: float = 1.0
    inside: tuple[tuple[int, float], ...] = ()

    def places(self) -> npt.NDArray[np.float64]:
        """Where it begins each time: at most so many of the places as tell how these lie in pages."""
        found = np.array([self.begin])
        for step, repeats in (*self.inside, (self.step, self.repeats)):
            found = (found[:, None] + step * np.arange(min(int(repeats), SETS))).ravel()[:PLACES]
        return found


def _touched(
    strides: Mapping[Var, int | None], spans: Sequence[tuple[int, int]], trips: Mapping[Var, float]
) -> Footprint:
    pieces = _joined([_Piece(float(begin), float(length)) for begin, length in set(spans)])
    unknown = math.prod(trips[var] for var, stride in strides.items() if stride is None)
    for stride, count in sorted((abs(s), trips[v]) for v, s in strides.items() if s is not None):
        pieces = _along(pieces, stride, count)
    lines = sum(piece.count * (piece.length / LINE + (0.5 if piece.length >= LINE else 1.0)) for piece in pieces)
    return Footprint(lines * unknown, sum(piece.count for piece in pieces) * unknown, _room(pieces))


def _room(pieces: Sequence[_Piece]) -> float:
    """The lines of a cache that keeps these: as many for each set as the sets have that the average line lies in."""
    held = np.zeros(SETS)
    for piece in pieces:
        lines = math.ceil(piece.length / LINE)
        begins = piece.places() // LINE
        each = piece.count / len(begins)
        held += each * (lines // SETS) * len(begins)
        sets = (begins[:, None] + np.arange(lines % SETS)).astype(np.int64) % SETS
        held += each * np.bincount(sets.ravel(), minlength=SETS)
    return float(SETS * (held @ held) / max(held.sum(), 1.0))


def _joined(pieces: list[_Piece]) -> list[_Piece]:
    """Pieces that overlap, or have no line between them, as one."""
    found: list[_Piece] = []
    for piece in sorted(pieces, key=lambda each: each.begin):
        last = found[-1] if found else None
        if last is not None and piece.begin <= last.begin + last.length + LINE and last.count == piece.count:
            last.length = max(last.length, piece.begin + piece.length - last.begin)
        else:
            found.append(piece)
    return found


def _along(pieces: Sequence[_Piece], stride: int, count: float) -> list[_Piece]:
    """Pieces again and again, ``stride`` bytes further on each time: those that meet others of them count once."""
    if all(stride <= piece.length + LINE for piece in pieces):
        return _joined([replace(piece, length=piece.length + stride * (count - 1)) for piece in pieces])
    classes: dict[tuple[int, float], list[_Piece]] = {}
    for piece in pieces:
        classes.setdefault((int(piece.begin % stride) // LINE, piece.count), []).append(piece)
    found = []
    for same in classes.values():
        positions = sorted({piece.begin // stride for piece in same})
        steps = count + sum(min(b - a, count) for a, b in pairwise(positions))
        first, length = same[0], max(piece.length for piece in same)
        if first.step and stride % first.step == 0 and stride < first.step * first.repeats:
            more = stride / first.step * (steps - 1)  # the lattice that is there goes on
            total = first.count * (1 + more / first.repeats)
            found.append(_Piece(first.begin, length, total, first.step, first.repeats + more, first.inside))
        else:
            inside = (*first.inside, (first.step, first.repeats)) if first.step else ()
            found.append(_Piece(first.begin, length, first.count * steps, stride, steps, inside))
    return _joined(found)

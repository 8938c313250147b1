"""What functions of tiles do, as loops: for targets, and for languages, that have no tiles."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

from .build import index_var
from .constants import ZERO, const
from .expr import Expr, ExprLike, Load, Var
from .extern import Region
from .intrinsics import call
from .makers import as_index, cast
from .stmt import CallExtern, For, Stmt, Store
from .tiles import WORD_BYTES


def as_loops(stmt: CallExtern) -> Stmt:
    """The statement in place of a call of a function of ``tiles.py``, on blocks that are in memory."""
    code, regions = stmt.function.tiles, stmt.regions
    assert code is not None
    i, j, k = (index_var(name) for name in "ijk")
    target = regions[0]
    place = _at(target, i, j)
    body: Stmt
    match code.action:
        case "zero":
            body = Store(target.buffer, place, const(0, "int32"))
        case "store":
            body = Store(target.buffer, place, Load(regions[1].buffer, _at(regions[1], i, j)))
        case "dot4":
            left, right = _word(regions[1], i, k), Load(regions[2].buffer, _at(regions[2], k, j))
            terms = (right, left) if code.signed_left else (left, right)
            added = Load(target.buffer, place) + call("dot4", *terms)
            body = _loop(k, code.block.words, Store(target.buffer, place, added))
    return _loop(i, code.block.rows, _loop(j, code.block.columns, body))


def _loop(var: Var, extent: int, body: Stmt) -> Stmt:
    return For(var, ZERO, as_index(extent), "serial", body)


def _at(region: Region, *indices: ExprLike) -> tuple[Expr, ...]:
    """The subscript in its buffer of an element of a region."""
    steps = [as_index(index) for index in indices]
    if region.strides is None:
        return tuple(begin + step for begin, step in zip(region.begin, steps, strict=True))
    moves = (step * stride for step, stride in zip(steps, region.strides, strict=True))
    return (reduce(lambda total, move: total + move, moves, region.begin[0]),)


def _word(region: Region, i: Var, k: Var) -> Expr:
    """A word of the left factor, which is joined of four bytes where that has bytes."""
    if region.buffer.dtype.storage_bytes == WORD_BYTES:
        return Load(region.buffer, _at(region, i, k))
    return joined(lambda byte: Load(region.buffer, _at(region, i, k, byte)))


def joined(byte: Callable[[int], Expr]) -> Expr:
    """The word of four neighbouring bytes, of which ``byte`` gives each by its number."""
    word: Expr = const(0, "int32")
    for number in range(WORD_BYTES):
        word = word | cast("int32", cast("uint8", byte(number))) << const(8 * number, "int32")
    return word

"""Which small arrays become SSA values, and which of these values a loop hands from one iteration to the next.

An array on the stack whose every access has a constant place is no memory at the level of loops: its slots are values,
which loops carry as ``iter_args`` and conditions give as results.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias, assert_never

from ...base.dataclass import dataclass
from ...base.dtype import DType
from ...ir.buffer import Buffer
from ...ir.constants import const_int
from ...ir.expr import Expr, Load, Var
from ...ir.extern import Region
from ...ir.stmt import (
    Allocate,
    Assert,
    CallExtern,
    Evaluate,
    For,
    If,
    Launch,
    LetStmt,
    PrefetchStmt,
    Seq,
    Stmt,
    Store,
    While,
)
from ...ir.visit import walk
from ..allocation import MAX_SLOTS, element_count, place, slot_lanes
from ..facts import as_ramp, flat_index

Slot: TypeAlias = tuple[int, int]
"""The number of an array, by order of appearance, and that of the slot in it."""

Slots: TypeAlias = frozenset[Slot]
_NONE: Slots = frozenset()


@dataclass(frozen=True, slots=True)
class RegisterArray:
    """An array that is kept in values: each slot has one of dtype ``kind``."""

    number: int
    name: str
    kind: DType


@dataclass(frozen=True, slots=True)
class Effects:
    """What a statement does to slots: those it may look at before it has stored into them, those it certainly stores
    into, and those it may store into."""

    read: Slots = _NONE
    killed: Slots = _NONE
    stored: Slots = _NONE

    def then(self, after: Effects) -> Effects:
        """The effects of two statements, one after the other: what the first certainly stores into, the second does not
        look at from before."""
        read = self.read | (after.read - self.killed)
        return Effects(read, self.killed | after.killed, self.stored | after.stored)


class Registers:
    """The arrays of one function that are kept in values, and the effects of its statements on them. Mutable: keeps
    what has been found out."""

    def __init__(self, body: Stmt) -> None:
        self.arrays: dict[Var, RegisterArray] = {}
        self._effects: dict[Stmt, Effects] = {}
        for node in walk(body):
            if isinstance(node, Allocate) and (kind := _slot_kind(node)) is not None:
                self.arrays[node.buffer.data] = RegisterArray(len(self.arrays), node.buffer.name, kind)

    def slot(self, buffer: Buffer, indices: tuple[Expr, ...]) -> Slot:
        """The slot that an access goes to."""
        array = self.arrays[buffer.data]
        index = flat_index(buffer, indices)
        ramp = as_ramp(index)
        start = None if ramp is None else const_int(ramp[0])
        assert start is not None  # slot_lanes has looked at every access
        return array.number, start if index.dtype.lanes == 1 else start // array.kind.lanes

    def array(self, slot: Slot) -> RegisterArray:
        """The array that a slot belongs to."""
        return list(self.arrays.values())[slot[0]]

    def effects(self, stmt: Stmt) -> Effects:
        """What a statement with all that is inside it does to slots; it is found out once."""
        if stmt not in self._effects:
            self._effects[stmt] = self._of(stmt)
        return self._effects[stmt]

    def _of(self, stmt: Stmt) -> Effects:
        match stmt:
            case Seq(stmts):
                total = Effects()
                for part in stmts:
                    total = total.then(self.effects(part))
                return total
            case Store():
                return self._store(stmt)
            case For(_, low, extent, _, body):
                inner = self.effects(body)
                runs = (const_int(extent) or 0) > 0
                whole = Effects(inner.read, inner.killed if runs else _NONE, inner.stored)
                return Effects(self._reads((low, extent))).then(whole)
            case While(condition, body):
                inner = self.effects(body)
                return Effects(self._reads((condition,)) | inner.read, _NONE, inner.stored)
            case If(condition, then, orelse):
                a, b = self.effects(then), Effects() if orelse is None else self.effects(orelse)
                either = Effects(a.read | b.read, a.killed & b.killed, a.stored | b.stored)
                return Effects(self._reads((condition,))).then(either)
            case LetStmt(_, value, body):
                return Effects(self._reads((value,))).then(self.effects(body))
            case Allocate(_, body):
                return self.effects(body)
            case Assert(condition, _):
                return Effects(self._reads((condition,)))
            case Evaluate(value):
                return Effects(self._reads((value,)))
            case PrefetchStmt(_, indices):
                return Effects(self._reads(indices))
            case CallExtern(_, args):
                scalars = (part for a in args for part in (a.parts if isinstance(a, Region) else (a,)))
                return Effects(self._reads(scalars))
            case Launch(_, extent):
                return Effects(self._reads((extent,)))
            case _:
                assert_never(stmt)

    def _store(self, stmt: Store) -> Effects:
        read = self._reads((stmt.value, *stmt.indices))
        if stmt.buffer.data not in self.arrays:
            return Effects(read if stmt.mask is None else read | self._reads((stmt.mask,)))
        own = frozenset((self.slot(stmt.buffer, stmt.indices),))
        if stmt.mask is None:
            return Effects(read, own, own)
        return Effects(read | self._reads((stmt.mask,)) | own, _NONE, own)  # lanes that are off keep what was there

    def _reads(self, values: Iterable[Expr]) -> Slots:
        loads = (node for value in values for node in walk(value) if isinstance(node, Load))
        return frozenset(self.slot(node.buffer, node.indices) for node in loads if node.buffer.data in self.arrays)


def _slot_kind(stmt: Allocate) -> DType | None:
    """The dtype of the slots, if the buffer can be kept in values; parallel loops share memory only."""
    buffer = stmt.buffer
    if place(buffer) != "stack" or _used_in_parallel(stmt):
        return None
    lanes, count = slot_lanes(buffer, stmt.body), element_count(buffer) or 0
    if lanes is None or count % lanes or count // lanes > MAX_SLOTS:
        return None
    return buffer.dtype if lanes == 1 else buffer.dtype.with_lanes(lanes)


def _used_in_parallel(stmt: Allocate) -> bool:
    loops = (node for node in walk(stmt.body) if isinstance(node, For) and node.kind == "parallel")
    accesses = (node for loop in loops for node in walk(loop.body) if isinstance(node, (Load, Store)))
    return any(node.buffer.data is stmt.buffer.data for node in accesses)

"""Loads and stores: addresses, alignment, contiguous, strided, gathered and masked accesses."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import reduce

from llvmlite import ir as llvm_ir

from ..base.dataclass import dataclass
from ..base.dtype import INDEX, DType
from ..base.target import Target
from ..ir.buffer import Buffer
from ..ir.constants import const_int
from ..ir.expr import Const, Expr, Var
from .byte_lookup import is_byte_table, look_up
from .facts import IndexFacts, add, as_ramp, flat_index, lane_offsets, multiply
from .joined_bytes import MOST_BYTES, JoinedBytes
from .lane_compare import LaneMasks
from .masked_access import masked_load, masked_store, zeros
from .masked_pieces import pieces_of
from .near_lanes import MAX_SHUFFLED_STRIDE, first_whole_vector, lanes_behind_mask, lies_inside, shuffled_lanes
from .types import (
    I1,
    I8,
    I32,
    I64,
    PTR,
    call_intrinsic,
    concatenated,
    lanes_of,
    memory_element,
    memory_type,
    same_lanes,
    shuffle,
    splat,
    vector_of,
    with_element,
)


@dataclass(frozen=True, slots=True, eq=False)
class Slots:
    """A buffer kept in single stack slots, which LLVM turns into registers: slot ``i`` holds ``lanes`` elements."""

    lanes: int
    alignment: int
    pointers: dict[int, llvm_ir.Value]


class MemoryEmitter:
    """Emits loads, stores and prefetches. ``value_of`` emits an index expression; ``pointers`` maps ``buffer.data`` to
    its address."""

    def __init__(
        self, builder: llvm_ir.IRBuilder, target: Target, facts: IndexFacts, value_of: Callable[[Expr], llvm_ir.Value]
    ) -> None:
        self.builder = builder
        self._target = target
        self.facts = facts
        self.pointers: dict[Var, llvm_ir.Value | Slots] = {}
        self._value_of = value_of
        self.masks = LaneMasks(builder, target, value_of)

    def load(
        self, buffer: Buffer, indices: tuple[Expr, ...], mask: llvm_ir.Value | None, condition: Expr | None
    ) -> llvm_ir.Value:
        """The value of ``buffer[indices]``, bools as i1; lanes that the mask, the value of the condition, switches off
        are zero."""
        kind = buffer.dtype
        index = flat_index(buffer, indices)
        where = self.pointers[buffer.data]
        if isinstance(where, Slots):
            stored = self._load_slot(where, kind, index, mask)
        elif kind.lanes > 1 or index.dtype.lanes == 1:
            stored = self._load_single(buffer, index, mask)
        else:
            stored = self._load_lanes(buffer, index, mask, condition)
        return self.builder.icmp_unsigned("!=", stored, same_lanes(stored, 0)) if kind.is_bool else stored

    def store(
        self, buffer: Buffer, indices: tuple[Expr, ...], value: llvm_ir.Value, mask: llvm_ir.Value | None
    ) -> None:
        """``buffer[indices] = value`` in the lanes that the mask leaves on."""
        if buffer.dtype.is_bool:
            value = self.builder.zext(value, with_element(value, I8))
        index = flat_index(buffer, indices)
        where = self.pointers[buffer.data]
        if isinstance(where, Slots):
            self._store_slot(where, index, value, mask)
        elif buffer.dtype.lanes > 1 or index.dtype.lanes == 1:
            self._store_single(buffer, index, value, mask)
        else:
            self._store_vector(buffer, index, value, mask)

    def prefetch(self, buffer: Buffer, indices: tuple[Expr, ...], to_write: bool) -> None:
        """Have the cache line of an element fetched into all levels of cache; the address may be any."""
        if isinstance(self.pointers[buffer.data], Slots):
            return
        pointer, _ = self._address(buffer, flat_index(buffer, indices), inbounds=False)
        purpose, keep_in_all, data = (llvm_ir.Constant(I32, number) for number in (int(to_write), 3, 1))
        args = [pointer, purpose, keep_in_all, data]
        call_intrinsic(self.builder, "prefetch", [PTR], llvm_ir.VoidType(), args)

    def address(self, buffer: Buffer, indices: tuple[Expr, ...]) -> llvm_ir.Value:
        """The address of an element, which nothing is known of: an empty region may begin anywhere."""
        return self._address(buffer, flat_index(buffer, indices), inbounds=False)[0]

    # Slots are ours alone and whole, so a mask is a choice between values there.

    def _load_slot(self, slots: Slots, kind: DType, index: Expr, mask: llvm_ir.Value | None) -> llvm_ir.Value:
        lanes = max(kind.lanes, slots.lanes)
        pointer = self._slot(slots, index)
        stored = self.builder.load(pointer, align=slots.alignment, typ=memory_type(kind.with_lanes(lanes)))
        return stored if mask is None else self.builder.select(mask, stored, same_lanes(stored, 0))

    def _store_slot(self, slots: Slots, index: Expr, value: llvm_ir.Value, mask: llvm_ir.Value | None) -> None:
        pointer = self._slot(slots, index)
        if mask is not None:
            old = self.builder.load(pointer, align=slots.alignment, typ=value.type)
            value = self.builder.select(mask, value, old)
        self.builder.store(value, pointer, align=slots.alignment)

    def _slot(self, slots: Slots, index: Expr) -> llvm_ir.Value:
        ramp = as_ramp(index)
        start = const_int(ramp[0]) if ramp is not None else None
        assert start is not None  # stack_slots has looked at every access
        return slots.pointers[start if index.dtype.lanes == 1 else start // slots.lanes]

    def _address(self, buffer: Buffer, index: Expr, *, inbounds: bool) -> tuple[llvm_ir.Value, int]:
        """The address of a scalar element index, and the alignment it is known to have."""
        kind = buffer.dtype
        position = self._value_of(multiply(index, _index_constant(kind.lanes)))
        base = self.pointers[buffer.data]
        pointer = self.builder.gep(base, [position], inbounds=inbounds, source_etype=memory_element(kind))
        return pointer, math.gcd(buffer.alignment, self.facts.multiple(index) * kind.storage_bytes)

    # One element, which may itself be a vector.

    def _load_single(self, buffer: Buffer, index: Expr, mask: llvm_ir.Value | None) -> llvm_ir.Value:
        kind = memory_type(buffer.dtype)
        pointer, align = self._address(buffer, index, inbounds=mask is None)
        if mask is None:
            return self.builder.load(pointer, align=align, typ=kind)
        return masked_load(self.builder, pointer, kind, align, mask)

    def _store_single(self, buffer: Buffer, index: Expr, value: llvm_ir.Value, mask: llvm_ir.Value | None) -> None:
        pointer, align = self._address(buffer, index, inbounds=mask is None)
        if mask is None:
            self.builder.store(value, pointer, align=align)
        else:
            masked_store(self.builder, self._target, pointer, value, align, mask)

    # Vectors of elements.

    def has_address(self, buffer: Buffer) -> bool:
        """Whether a buffer is in memory, not in slots that become registers."""
        return not isinstance(self.pointers[buffer.data], Slots)

    def load_words(self, words: JoinedBytes, mask: llvm_ir.Value | None) -> llvm_ir.Value:
        """A vector of words of 32 bits."""
        kind, start = llvm_ir.VectorType(I32, words.lanes), words.offsets[0]
        parts = None if words.are_words_of_memory else words.pieces(self._target)
        if parts is not None:
            bytes_of = [self._load_bytes(words, part) for part in parts]
            return self.builder.bitcast(concatenated(self.builder, bytes_of), kind)
        assert start is not None  # they are words of memory
        pointer, align = self._address(words.buffer, add(words.base, _index_constant(start)), inbounds=mask is None)
        if mask is not None:
            return masked_load(self.builder, pointer, kind, align, mask)
        return self.builder.load(pointer, align=align, typ=kind)

    def _load_bytes(self, words: JoinedBytes, offsets: Sequence[int | None]) -> llvm_ir.Value:
        """Some bytes of words: a load, or two that overlap, of what they span, and shuffles."""
        known = [at for at in offsets if at is not None]
        nothing = zeros(llvm_ir.VectorType(I8, len(offsets)))
        if not known:
            return nothing
        begin, span = min(known), max(known) - min(known) + 1
        size = min(1 << (span.bit_length() - 1), MOST_BYTES)
        starts = [begin] if span == size else [begin, begin + span - size]
        loads = []
        for start in starts:
            pointer, align = self._address(words.buffer, add(words.base, _index_constant(start)), inbounds=True)
            loads.append(self.builder.load(pointer, align=align, typ=llvm_ir.VectorType(I8, size)))
        positions = [0 if at is None else at - begin if at - begin < size else at - starts[-1] + size for at in offsets]
        found = shuffle(self.builder, loads[0], loads[-1], positions)
        if len(known) == len(offsets):
            return found
        order = [len(offsets) + k if at is None else k for k, at in enumerate(offsets)]
        return shuffle(self.builder, found, nothing, order)

    def _load_lanes(
        self, buffer: Buffer, index: Expr, mask: llvm_ir.Value | None, condition: Expr | None
    ) -> llvm_ir.Value:
        """A vector of elements; no masked access where all of them, or others for those that are off, may be read."""
        if mask is None or condition is None:
            return self._load_vector(buffer, index, mask, condition)
        near = lanes_behind_mask(buffer, index, condition)
        if near is not None:
            stored = self._load_near(buffer, *near)
        elif self._is_scratch(buffer) and lies_inside(buffer, index):
            stored = self._load_vector(buffer, index, None, None)
        else:
            return self._load_vector(buffer, index, mask, condition)
        return self.builder.select(mask, stored, same_lanes(stored, 0))

    def _load_vector(
        self, buffer: Buffer, index: Expr, mask: llvm_ir.Value | None, condition: Expr | None
    ) -> llvm_ir.Value:
        lanes = index.dtype.lanes
        ramp = as_ramp(index)
        stride = const_int(ramp[1]) if ramp is not None else None
        near = shuffled_lanes(index, mask is not None)
        if near is not None and mask is not None:
            return self._load_masked_near(buffer, *near, mask, condition)
        if near is None and mask is None and stride:
            near = self._across_vectors(buffer, index, stride)
        if near is not None:
            return self._load_near(buffer, *near)
        if ramp is None or stride is None or (mask is not None and abs(stride) != 1):
            return self._gather(buffer, index, mask)
        base = ramp[0]
        if stride == 0:
            return splat(self.builder, self._load_single(buffer, base, None), lanes)
        if stride < 0:
            base = add(base, _index_constant(stride * (lanes - 1)))
            mask = None if mask is None else self._reverse(mask)
        if abs(stride) > MAX_SHUFFLED_STRIDE:
            return self._gather(buffer, index, mask)
        forward = self._load_forward(buffer, base, abs(stride), lanes, mask)
        return self._reverse(forward) if stride < 0 else forward

    def _load_near(self, buffer: Buffer, base: Expr, offsets: Sequence[int]) -> llvm_ir.Value:
        """Lanes at known distances that a few vectors span, such as each element twice: their loads, and shuffles."""
        lanes = len(offsets)
        begin = first_whole_vector(buffer, base, offsets)
        if begin is None:
            begin, size = min(offsets), max(offsets) - min(offsets) + 1
        else:
            size = lanes
        pointer, align = self._address(buffer, add(base, _index_constant(begin)), inbounds=True)
        kind = llvm_ir.VectorType(memory_element(buffer.dtype), size)
        loaded = self.builder.load(pointer, align=align, typ=kind)
        wanted = [offset - begin for offset in offsets]
        result = shuffle(self.builder, loaded, loaded, [at if at < size else 0 for at in wanted])
        for start in range(size, max(wanted) + 1, size):
            where = self.builder.gep(pointer, [llvm_ir.Constant(I64, start)], inbounds=True, source_etype=kind.element)
            piece = self.builder.load(where, align=math.gcd(align, size * buffer.dtype.storage_bytes), typ=kind)
            order = [lanes + at - start if start <= at < start + lanes else lane for lane, at in enumerate(wanted)]
            result = shuffle(self.builder, result, piece, order)
        return result

    def _across_vectors(self, buffer: Buffer, index: Expr, stride: int) -> tuple[Expr, tuple[int, ...]] | None:
        """Lanes as ``lane_offsets`` gives them, where whole vectors of the buffer have them all: as few as other loads
        would be, or of memory that is small and was written vector by vector, which need not leave the registers."""
        near = lane_offsets(index) if abs(stride) <= MAX_SHUFFLED_STRIDE else None
        begin = None if near is None else first_whole_vector(buffer, *near)
        if near is None or begin is None:
            return None
        lanes, offsets = len(near[1]), near[1]
        if abs(stride) > 1 and max(offsets) - begin < abs(stride) * lanes:
            return near
        small = (const_int(buffer.shape[0]) or 0) <= 2 * self._target.vector_registers * lanes
        return near if begin < min(offsets) and small and self._is_scratch(buffer) else None

    def _is_scratch(self, buffer: Buffer) -> bool:
        """Whether the function itself has allocated the memory: what it reads there it has just written."""
        return not isinstance(self.pointers[buffer.data], llvm_ir.Argument)

    def _load_masked_near(
        self, buffer: Buffer, base: Expr, offsets: Sequence[int], mask: llvm_ir.Value, condition: Expr | None
    ) -> llvm_ir.Value:
        """What ``_load_near`` gives, where nothing is touched but what lanes want that the mask leaves on."""
        count, result = len(offsets), None
        for piece in pieces_of(offsets):
            pointer, align = self._address(buffer, add(base, _index_constant(piece.start)), inbounds=False)
            kind = llvm_ir.VectorType(memory_element(buffer.dtype), piece.size)
            read = [self.masks.of_lanes(condition, mask, lanes) for lanes in piece.turns]
            loaded = masked_load(self.builder, pointer, kind, align, reduce(self.builder.or_, read))
            positions = [offset - piece.start for offset in offsets]
            if result is None:
                result = shuffle(self.builder, loaded, loaded, [at if at < piece.size else 0 for at in positions])
            else:
                order = [count + at if 0 <= at < piece.size else lane for lane, at in enumerate(positions)]
                result = shuffle(self.builder, result, loaded, order)
        shared = len(set(offsets)) < count  # an element that is read for one lane may be that of another
        return self.builder.select(mask, result, same_lanes(result, 0)) if shared else result

    def _load_forward(
        self, buffer: Buffer, base: Expr, stride: int, lanes: int, mask: llvm_ir.Value | None
    ) -> llvm_ir.Value:
        """Lanes at distance ``stride`` ≥ 1. For more than 1, ``stride`` contiguous loads that end exactly at the last
        lane's element (nothing beyond it is touched), and shuffles."""
        kind = vector_of(memory_element(buffer.dtype), lanes)
        pointer, align = self._address(buffer, base, inbounds=mask is None)
        if mask is not None:
            return masked_load(self.builder, pointer, kind, align, mask)
        result = self.builder.load(pointer, align=align, typ=kind)
        if stride == 1:
            return result
        natural = buffer.dtype.storage_bytes
        wanted = [lane * stride for lane in range(lanes)]
        order = [at if at < lanes else 0 for at in wanted]
        result = shuffle(self.builder, result, result, order)
        for part in range(1, stride):
            start = min(part * lanes, wanted[-1] + 1 - lanes)
            offset = llvm_ir.Constant(I64, start)
            where = self.builder.gep(pointer, [offset], inbounds=True, source_etype=kind.element)
            piece = self.builder.load(where, align=natural, typ=kind)
            order = [lanes + at - start if at // lanes == part else lane for lane, at in enumerate(wanted)]
            result = shuffle(self.builder, result, piece, order)
        return result

    def _store_vector(self, buffer: Buffer, index: Expr, value: llvm_ir.Value, mask: llvm_ir.Value | None) -> None:
        lanes = index.dtype.lanes
        ramp = as_ramp(index)
        stride = const_int(ramp[1]) if ramp is not None else None
        if ramp is None or stride not in (1, -1):
            self._scatter(buffer, index, value, mask)
            return
        base = ramp[0]
        if stride == -1:
            base = add(base, _index_constant(1 - lanes))
            value, mask = self._reverse(value), None if mask is None else self._reverse(mask)
        registers = self._target.lanes(buffer.dtype)
        if mask is not None or lanes <= registers or lanes % registers:
            self._store_single(buffer, base, value, mask)
            return
        # Of what is stored as one, LLVM would take a register's part out as bits of an integer.
        for begin in range(0, lanes, registers):
            part = shuffle(self.builder, value, value, list(range(begin, begin + registers)))
            self._store_single(buffer, add(base, _index_constant(begin)), part, None)

    def _reverse(self, value: llvm_ir.Value) -> llvm_ir.Value:
        return shuffle(self.builder, value, value, list(reversed(range(lanes_of(value)))))

    def _lane_pointers(self, buffer: Buffer, index: Expr, *, inbounds: bool) -> llvm_ir.Value:
        positions = self._value_of(index)
        base = self.pointers[buffer.data]
        pointers = self.builder.gep(base, [positions], inbounds=inbounds, source_etype=memory_element(buffer.dtype))
        pointers.type = llvm_ir.VectorType(PTR, index.dtype.lanes)  # llvmlite does not derive it from a vector index
        return pointers

    def _gather(self, buffer: Buffer, index: Expr, mask: llvm_ir.Value | None) -> llvm_ir.Value:
        kind = vector_of(memory_element(buffer.dtype), index.dtype.lanes)
        if is_byte_table(buffer, self._target):
            found = look_up(
                self.builder, *self._address(buffer, _index_constant(0), inbounds=True), self._value_of(index)
            )
            return found if mask is None else self.builder.select(mask, found, same_lanes(found, 0))
        pointers = self._lane_pointers(buffer, index, inbounds=mask is None)
        everywhere = splat(self.builder, llvm_ir.Constant(I1, 1), kind.count)
        align = llvm_ir.Constant(I32, buffer.dtype.storage_bytes)
        args = [pointers, align, everywhere if mask is None else mask, zeros(kind)]
        return call_intrinsic(self.builder, "masked.gather", [kind, pointers.type], kind, args)

    def _scatter(self, buffer: Buffer, index: Expr, value: llvm_ir.Value, mask: llvm_ir.Value | None) -> None:
        pointers = self._lane_pointers(buffer, index, inbounds=mask is None)
        everywhere = splat(self.builder, llvm_ir.Constant(I1, 1), lanes_of(value))
        align = llvm_ir.Constant(I32, buffer.dtype.storage_bytes)
        args = [value, pointers, align, everywhere if mask is None else mask]
        call_intrinsic(self.builder, "masked.scatter", [value.type, pointers.type], llvm_ir.VoidType(), args)


def _index_constant(number: int) -> Expr:
    return Const(number, INDEX)

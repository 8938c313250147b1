"""Accesses of memory as operations of memref and vector: contiguous, strided, gathered, masked.

A buffer is a memref of its own shape. Accesses by other views of the same memory, which is most of them once buffers
are flat, go to a memref of one dimension over all of it.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import field

from ...base.dataclass import dataclass
from ...base.dtype import BOOL, INDEX, DType
from ...ir.buffer import Buffer
from ...ir.build import buffer_strides
from ...ir.constants import const_int
from ...ir.expr import Const, Expr, Var
from ...ir.simplify import simplify
from ..allocation import span
from ..facts import add, as_ramp, flat_index, multiply
from .text import Place, Value, Writer, memory_type, shaped


@dataclass(slots=True)
class MlirMemory:
    """The memory behind an address: the memref that it was declared as, and where a flat one can be made of it.

    Mutable: the flat memref is made when first asked for.
    """

    buffer: Buffer
    declared: Value
    place: Place
    flat: Value | None = field(default=None)


class MlirMemoryEmitter:
    """Writes accesses; ``value_of`` writes an index. Mutable: ``declare`` says what memory there is."""

    def __init__(self, writer: Writer, value_of: Callable[[Expr], Value]) -> None:
        self.writer = writer
        self._value_of = value_of
        self._memories: dict[Var, MlirMemory] = {}

    def declare(self, buffer: Buffer, declared: Value, *, flat: bool) -> None:
        """Let ``declared`` be the memory of the buffer from here on: a memref of its shape, or a ``flat`` one."""
        memory = MlirMemory(buffer, declared, self.writer.place())
        memory.flat = declared if flat else None
        self._memories[buffer.data] = memory

    def flat(self, buffer: Buffer) -> Value:
        """The memref of one dimension over all of a buffer's memory."""
        memory = self._memories[buffer.data]
        if memory.flat is None:
            with self.writer.at(memory.place):
                memory.flat = self._flattened(memory)
        return memory.flat

    def view(self, buffer: Buffer) -> Value:
        """The memory as a memref of just this buffer's shape."""
        w, kind, flat = self.writer, memref_type(buffer), self.flat(buffer)
        if kind in (flat.type, self._memories[buffer.data].declared.type):
            return flat if kind == flat.type else self._memories[buffer.data].declared
        sizes, strides = (
            ", ".join(str(e) if const_int(e) is not None else self._value_of(e).name for e in part)
            for part in (buffer.shape, buffer_strides(buffer))
        )
        form = f"to offset: [0], sizes: [{sizes}], strides: [{strides}]"
        return w.op(f"memref.reinterpret_cast {flat.name} {form} : {flat.type} to {kind}", kind, buffer.name)

    def _flattened(self, memory: MlirMemory) -> Value:
        w, declared, buffer = self.writer, memory.declared, memory.buffer
        to, hint = flat_type(buffer), f"{buffer.name}_flat"
        if buffer.ndim > 1:
            groups = f"[[{', '.join(map(str, range(buffer.ndim)))}]]"
            return w.op(f"memref.collapse_shape {declared.name} {groups} : {declared.type} into {to}", to, hint)
        form = "to offset: [0], sizes: [1], strides: [1]"
        return w.op(f"memref.reinterpret_cast {declared.name} {form} : {declared.type} to {to}", to, hint)

    def load(self, buffer: Buffer, indices: tuple[Expr, ...], mask: Value | None) -> Value:
        """The value of ``buffer[indices]``; lanes that the mask switches off are zero."""
        index = flat_index(buffer, indices)
        if index.dtype.lanes > 1:
            stored = self._load_lanes(buffer, index, mask)
        else:
            stored = self._load_one(buffer, indices, mask)
        if not buffer.dtype.is_bool:
            return stored
        kind = BOOL.with_lanes(max(index.dtype.lanes, buffer.dtype.lanes))
        return self.writer.compare("arith.cmpi ne", stored, self._zero(kind), kind)

    def store(self, buffer: Buffer, indices: tuple[Expr, ...], value: Value, mask: Value | None) -> None:
        """``buffer[indices] = value`` in the lanes that the mask leaves on."""
        index = flat_index(buffer, indices)
        if buffer.dtype.is_bool:
            kind = buffer.dtype.with_lanes(max(index.dtype.lanes, buffer.dtype.lanes))
            value = self.writer.convert("arith.extui", value, memory_type(kind))
        if index.dtype.lanes > 1:
            self._store_lanes(buffer, index, value, mask)
        else:
            self._store_one(buffer, indices, value, mask)

    def prefetch(self, buffer: Buffer, indices: tuple[Expr, ...], *, to_write: bool) -> None:
        """Write a prefetch in the generic form: xDSL 0.74 does not know its syntax."""
        where = self._value_of(flat_index(buffer, indices))
        options = f"isWrite = {str(to_write).lower()}, localityHint = 3 : i32, isDataCache = true"
        self.writer.generic("memref.prefetch", [self.flat(buffer), where], attributes=f" {{{options}}}")

    def address(self, buffer: Buffer, indices: tuple[Expr, ...]) -> Value:
        """The address of an element, as an index."""
        w = self.writer
        start = w.generic("memref.extract_aligned_pointer_as_index", [self.flat(buffer)], "index")
        position = flat_index(buffer, indices)
        if const_int(position) == 0:
            return start
        step = Const(buffer.dtype.storage_bytes, INDEX)
        return w.binary("arith.addi", start, self._value_of(multiply(position, step)))

    # One element, which may itself be a vector.

    def _target(self, buffer: Buffer, indices: tuple[Expr, ...]) -> tuple[str, str]:
        """The memref with its subscripts, and its type: as declared where the access is by the declared buffer."""
        memory = self._memories[buffer.data]
        if memory.buffer is buffer and memory.declared.type == memref_type(buffer):
            names = ", ".join(self._value_of(i).name for i in indices)
            return f"{memory.declared.name}[{names}]", memory.declared.type
        flat = self.flat(buffer)
        return f"{flat.name}[{self._value_of(flat_index(buffer, indices)).name}]", flat.type

    def _load_one(self, buffer: Buffer, indices: tuple[Expr, ...], mask: Value | None) -> Value:
        w, result = self.writer, memory_type(buffer.dtype)
        where, kind = self._target(buffer, indices)
        text = f"memref.load {where} : {kind}"
        if mask is None:
            return w.op(text, result, buffer.name)
        zero, name = self._zero(buffer.dtype), w.name(buffer.name)
        with w.region(f"{name} = scf.if {mask.name} -> ({result}) {{", "} else {"):
            w.line(f"scf.yield {w.op(text, result).name} : {result}")
        with w.region(""):
            w.line(f"scf.yield {zero.name} : {result}")
        return Value(name, result)

    def _store_one(self, buffer: Buffer, indices: tuple[Expr, ...], value: Value, mask: Value | None) -> None:
        w = self.writer
        where, kind = self._target(buffer, indices)
        with nullcontext() if mask is None else w.region(f"scf.if {mask.name} {{"):
            w.line(f"memref.store {value.name}, {where} : {kind}")

    def _zero(self, kind: DType) -> Value:
        return self.writer.constant(DType("uint", 8, kind.lanes) if kind.is_bool else kind, 0)

    # Vectors of elements.

    def _load_lanes(self, buffer: Buffer, index: Expr, mask: Value | None) -> Value:
        kind = buffer.dtype.with_lanes(index.dtype.lanes)
        ramp = as_ramp(index)
        stride = None if ramp is None else const_int(ramp[1])
        if ramp is not None and stride == 0 and mask is None:
            flat, where = self.flat(buffer), self._value_of(ramp[0])
            one = self.writer.op(f"memref.load {flat.name}[{where.name}] : {flat.type}", memory_type(buffer.dtype))
            return self.writer.convert("vector.broadcast", one, memory_type(kind))
        if ramp is None or stride not in (1, -1):
            return self._gather(buffer, index, mask, kind)
        if stride == 1:
            return self._load_forward(buffer, ramp[0], mask, kind)
        last = add(ramp[0], Const(1 - kind.lanes, INDEX))
        turned = None if mask is None else self._reversed(mask, kind)
        return self._reversed(self._load_forward(buffer, last, turned, kind), kind)

    def _load_forward(self, buffer: Buffer, start: Expr, mask: Value | None, kind: DType) -> Value:
        w, flat, result = self.writer, self.flat(buffer), memory_type(kind)
        where = f"{flat.name}[{self._value_of(start).name}]"
        if mask is None:
            return w.op(f"vector.load {where} : {flat.type}, {result}", result, buffer.name)
        types = f"{flat.type}, {mask.type}, {result} into {result}"
        zero = self._zero(kind)
        return w.op(f"vector.maskedload {where}, {mask.name}, {zero.name} : {types}", result, buffer.name)

    def _store_lanes(self, buffer: Buffer, index: Expr, value: Value, mask: Value | None) -> None:
        w, flat = self.writer, self.flat(buffer)
        kind = buffer.dtype.with_lanes(index.dtype.lanes)
        ramp = as_ramp(index)
        stride = None if ramp is None else const_int(ramp[1])
        if ramp is None or stride not in (1, -1):
            operands = [flat, w.index(0), self._value_of(index), self._all_or(mask, kind), value]
            w.generic("vector.scatter", operands)
            return
        start = ramp[0]
        if stride == -1:
            start = add(start, Const(1 - kind.lanes, INDEX))
            value, mask = self._reversed(value, kind), None if mask is None else self._reversed(mask, kind)
        where = f"{flat.name}[{self._value_of(start).name}]"
        if mask is None:
            w.line(f"vector.store {value.name}, {where} : {flat.type}, {value.type}")
        else:
            w.line(f"vector.maskedstore {where}, {mask.name}, {value.name} : {flat.type}, {mask.type}, {value.type}")

    def _gather(self, buffer: Buffer, index: Expr, mask: Value | None, kind: DType) -> Value:
        """Write a gather in the generic form, as scatters are written: xDSL 0.74 does not know their syntax."""
        w = self.writer
        operands = [self.flat(buffer), w.index(0), self._value_of(index), self._all_or(mask, kind), self._zero(kind)]
        return w.generic("vector.gather", operands, memory_type(kind))

    def _all_or(self, mask: Value | None, kind: DType) -> Value:
        return self.writer.constant(BOOL.with_lanes(kind.lanes), 1) if mask is None else mask

    def _reversed(self, value: Value, kind: DType) -> Value:
        order = ", ".join(map(str, reversed(range(kind.lanes))))
        types = f"{value.type}, {value.type}"
        return self.writer.op(f"vector.shuffle {value.name}, {value.name} [{order}] : {types}", value.type)


def is_compact(buffer: Buffer) -> bool:
    """Whether its elements lie side by side from its address on, so that a memref of its shape describes it."""
    return buffer.strides is None and const_int(buffer.elem_offset) == 0


def memref_type(buffer: Buffer) -> str:
    """The memref of a compact buffer."""
    return shaped("memref", [const_int(e) for e in buffer.shape], memory_type(buffer.dtype))


def flat_type(buffer: Buffer) -> str:
    """The memref of one dimension over a buffer."""
    extents = [const_int(e) for e in buffer.shape]
    count: int | None = 1
    for extent in extents:
        count = None if extent is None or count is None else count * extent
    return shaped("memref", [count], memory_type(buffer.dtype))


def allocated_type(buffer: Buffer) -> str:
    """A memref of the buffer's shape; a flat one where that does not tell where elements lie."""
    if not is_compact(buffer):
        return shaped("memref", [const_int(simplify(span(buffer)))], memory_type(buffer.dtype))
    return memref_type(buffer)

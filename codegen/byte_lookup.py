"""Gathers from a table of 256 bytes, by permutations of whole vectors where the target has them.

A gather takes a load for each lane. AVX512-VBMI permutes 128 bytes by the low seven bits of an index, so that two
permutations, and a choice between them by the highest bit, look up 64 bytes.
"""

from __future__ import annotations

from llvmlite import ir as llvm_ir

from ..base.target import Target
from ..ir.buffer import Buffer
from ..ir.constants import const_int
from .lanes import external
from .types import I8, I64, lanes_of, same_lanes, shuffle, vector_of

ENTRIES = 256
LANES = 64
"""How many bytes a vector has."""


def is_byte_table(buffer: Buffer, target: Target) -> bool:
    """Whether elements of a buffer can be looked up by permutations."""
    bytes_alone = buffer.dtype.is_data_int and buffer.dtype.storage_bits == 8 and buffer.dtype.lanes == 1
    whole = len(buffer.shape) == 1 and const_int(buffer.shape[0]) == ENTRIES and buffer.strides is None
    return bytes_alone and whole and const_int(buffer.elem_offset) == 0 and target.has("avx512vbmi")


def look_up(builder: llvm_ir.IRBuilder, table: llvm_ir.Value, align: int, index: llvm_ir.Value) -> llvm_ir.Value:
    """The bytes of a table, which stands at an address, at indices from 0 to 255."""
    lanes = lanes_of(index)
    if lanes > LANES:
        half = 1 << (lanes - 1).bit_length() - 1
        orders = ([start + lane if start + lane < lanes else 0 for lane in range(half)] for start in (0, half))
        first, second = (look_up(builder, table, align, shuffle(builder, index, index, order)) for order in orders)
        return shuffle(builder, first, second, range(lanes))
    low = builder.trunc(index, vector_of(I8, lanes))
    order = [lane if lane < lanes else 0 for lane in range(LANES)]
    wide = low if lanes == LANES else shuffle(builder, low, low, order)
    parts = [_part(builder, table, align, LANES * k) for k in range(ENTRIES // LANES)]
    lower, upper = (_permuted(builder, parts[k], parts[k + 1], wide) for k in (0, 2))
    found = builder.select(builder.icmp_signed("<", wide, same_lanes(wide, 0)), upper, lower)
    return found if lanes == LANES else shuffle(builder, found, found, range(lanes))


def _part(builder: llvm_ir.IRBuilder, table: llvm_ir.Value, align: int, start: int) -> llvm_ir.Value:
    where = builder.gep(table, [llvm_ir.Constant(I64, start)], inbounds=True, source_etype=I8)
    return builder.load(where, align=min(align, LANES), typ=llvm_ir.VectorType(I8, LANES))


def _permuted(builder: llvm_ir.IRBuilder, a: llvm_ir.Value, b: llvm_ir.Value, index: llvm_ir.Value) -> llvm_ir.Value:
    """Take for each index the one of 128 bytes that its low seven bits are the number of."""
    name = "llvm.x86.avx512.vpermi2var.qi.512"
    return builder.call(external(builder.module, name, a.type, [a.type] * 3), [a, index, b])

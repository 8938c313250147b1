"""Access to the segments of a run from a function of control flow (``artifact/segment_table.py``)."""

from __future__ import annotations

from llvmlite import ir as llvm_ir

from ...artifact.segment_table import GROW_WORDS, NEEDED, SEGMENT_WORDS
from ...artifact.stage_refusals import MAX_EXTENT
from ..abi import OUT_OF_MEMORY, SEGMENTS
from ..entry import element
from ..types import I32, I64, PTR


class SegmentTable:
    """The table that a context has, read at the builder's position."""

    def __init__(self, builder: llvm_ir.IRBuilder, context: llvm_ir.Value) -> None:
        self._builder = builder
        self._table = builder.load(element(builder, context, SEGMENTS), typ=PTR)

    def begin(self, number: llvm_ir.Value) -> llvm_ir.Value:
        """Where a segment lies, null if it has no memory yet."""
        return self._builder.load(self._words(number), typ=PTR)

    def reserve(self, number: llvm_ir.Value, size: llvm_ir.Value, kept: llvm_ir.Value, wrong: llvm_ir.Value) -> None:
        """Have a segment of at least ``size`` bytes, the first ``kept`` of which stay. Where memory is refused, or the
        size is beyond all memory, as where ``wrong`` says that it is no number, the function returns the code for
        that."""
        builder = self._builder
        too_many = builder.icmp_unsigned(">", size, llvm_ir.Constant(I64, MAX_EXTENT))
        self._refuse_if(builder.or_(too_many, wrong))
        words = self._words(number)
        needed = builder.load(element(builder, words, NEEDED), typ=I64)
        most = builder.select(builder.icmp_signed(">", size, needed), size, needed)
        builder.store(most, element(builder, words, NEEDED))
        have = builder.load(element(builder, words, 1), typ=I64)
        with builder.if_then(builder.icmp_signed(">", size, have), likely=False):
            kind = llvm_ir.FunctionType(PTR, [PTR, I64, I64, I64])
            grow = builder.load(self._table, typ=kind.as_pointer())
            owner = builder.load(element(builder, self._table, 1), typ=PTR)
            grown = builder.call(grow, [owner, number, size, kept])
            self._refuse_if(builder.icmp_unsigned("==", grown, llvm_ir.Constant(PTR, None)))

    def _words(self, number: llvm_ir.Value) -> llvm_ir.Value:
        builder = self._builder
        first = builder.mul(number, llvm_ir.Constant(I64, SEGMENT_WORDS))
        word = builder.add(first, llvm_ir.Constant(I64, GROW_WORDS))
        return builder.gep(self._table, [word], inbounds=True, source_etype=I64)

    def _refuse_if(self, condition: llvm_ir.Value) -> None:
        with self._builder.if_then(condition, likely=False):
            self._builder.ret(llvm_ir.Constant(I32, OUT_OF_MEMORY))

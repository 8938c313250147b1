"""The functions of segments, which are memory that grows: a handle of one, what appends to it, and what reads it
(``ops/families/segments.py``)."""

from __future__ import annotations

from llvmlite import ir as llvm_ir

from ..entry import element
from ..lanes import external
from ..types import I1, I8, I32, I64, PTR
from .code import AppendCode, ReadCode, SegmentCode
from .frame import Frame
from .segment_table import SegmentTable


def emit_segment(frame: Frame, code: SegmentCode) -> None:
    """Emit the function that writes the handle of a segment nothing of which is used."""
    _write_handle(frame, code.result, llvm_ir.Constant(I64, code.number), llvm_ir.Constant(I64, 0))


def emit_append(frame: Frame, code: AppendCode) -> None:
    """Emit the function that copies values behind what is used of a segment."""
    builder = frame.builder
    number, used = _handle(frame, code.handle)
    size = frame.value(code.size)
    end = builder.add(used, size)
    table = SegmentTable(builder, frame.context)
    table.reserve(number, end, used, frame.formulas.wrong)
    behind = builder.gep(table.begin(number), [used], source_etype=I8)
    _copy(frame, behind, frame.pointers[code.values], size)
    _write_handle(frame, code.result, number, end)


def emit_read(frame: Frame, code: ReadCode) -> None:
    """Emit the function that copies what a segment begins with."""
    number, _ = _handle(frame, code.handle)
    begin = SegmentTable(frame.builder, frame.context).begin(number)
    _copy(frame, frame.pointers[code.result], begin, frame.value(code.size))
    frame.builder.ret(llvm_ir.Constant(I32, 0))


def _handle(frame: Frame, argument: int) -> tuple[llvm_ir.Value, llvm_ir.Value]:
    """The number of the segment, and how many bytes of it are used."""
    words = frame.pointers[argument]
    number, used = (frame.builder.load(element(frame.builder, words, k), typ=I64) for k in (0, 1))
    return number, used


def _write_handle(frame: Frame, argument: int, number: llvm_ir.Value, used: llvm_ir.Value) -> None:
    for k, value in enumerate((number, used)):
        frame.builder.store(value, element(frame.builder, frame.pointers[argument], k))
    frame.builder.ret(llvm_ir.Constant(I32, 0))


def _copy(frame: Frame, to: llvm_ir.Value, of: llvm_ir.Value, size: llvm_ir.Value) -> None:
    copy = external(frame.module, "llvm.memcpy.p0.p0.i64", llvm_ir.VoidType(), [PTR, PTR, I64, I1])
    with frame.builder.if_then(frame.builder.icmp_signed(">", size, llvm_ir.Constant(I64, 0))):
        frame.builder.call(copy, [to, of, size, llvm_ir.Constant(I1, 0)])

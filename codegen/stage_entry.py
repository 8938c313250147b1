"""The beginning of a stage in a model's entry: numbers of the run become dimensions, what follows from them is checked,
and memory is had for all that the stage writes (``artifact/memory_table.py``).
"""

from __future__ import annotations

from typing import assert_never

from llvmlite import ir as llvm_ir

from ..artifact.block import Birth, BornDimension, BornOutput, FrameLayout, RunStage
from ..artifact.extents import Extent
from ..artifact.memory_table import IDLE, NEEDED, OutputMode, output_word, stage_word
from ..artifact.stage_refusals import (
    MAX_EXTENT,
    NegativeExtent,
    NoExtent,
    NoOutputMemory,
    NoStageMemory,
    TooManyBytes,
    TooSmallExtent,
    refusals_of,
)
from ..base.idle_memory import AMPLE, IDLE_RUNS
from .formulas import FormulaEmitter
from .stage_memory import plan_stage
from .types import I1, I8, I32, I64, PTR


class StageEmitter:
    """Emits at the builder's position, stage after stage, on the frame of the run. Mutable: knows the dimensions so
    far."""

    def __init__(self, builder: llvm_ir.IRBuilder, frame: llvm_ir.Value, layout: FrameLayout, stages: int) -> None:
        self._builder, self._frame, self._layout, self._stages = builder, frame, layout, stages
        self._outputs = 0
        self._table = self._load(frame, layout.memory, PTR)
        self._grow = self._load(self._table, 0, llvm_ir.FunctionType(PTR, [PTR, I64, I64]).as_pointer())
        self._owner = self._load(self._table, 1, PTR)
        dims = {name: self._load(frame, layout.first_dim + k) for k, name in enumerate(layout.dims)}
        self._formulas = FormulaEmitter(builder, dims)

    def begin(self, stage: RunStage, number: int, refused: int) -> None:
        """Check what a stage asks for, and fill its slots; ``refused`` is the code of the stage, to which that of what
        it refuses is added."""
        for code, refusal in enumerate(refusals_of(stage), refused + 1):
            match refusal:
                case NoExtent(birth, dim):
                    self._bear(birth, dim, code)
                case TooSmallExtent(least):
                    compared = "!=" if least.exactly else "<"
                    found = self._formulas.value(least.dim)
                    self._leave_if(self._builder.icmp_signed(compared, found, _number(least.number)), code)
                case NegativeExtent(extent):
                    self._leave_if(self._builder.icmp_signed("<", self._formulas.value(extent), _number(0)), code)
                case TooManyBytes():
                    self._check_sizes(stage, code)
                case NoStageMemory():
                    self._place(stage, number, code)
                case NoOutputMemory(output):
                    self._place_output(output, code)
                case _:
                    assert_never(refusal)

    def _bear(self, birth: Birth, dim: BornDimension, code: int) -> None:
        """A number becomes a dimension. It is in its slot before it is checked, so that errors can tell of it."""
        number = self._load(self._load(self._frame, birth.values, PTR), birth.dims.index(dim))
        self._store(self._frame, dim.slot, number)
        self._leave_if(self._builder.icmp_unsigned(">", number, _number(MAX_EXTENT)), code)
        self._formulas.name(dim.name, number)

    def _check_sizes(self, stage: RunStage, code: int) -> None:
        """Fill in what is derived from dimensions, and see to it that no number is out of bounds."""
        for each in stage.derived:
            self._store(self._frame, each.slot, self._formulas.value(each.value))
        for size in (plan_stage(stage).size, *(output.size for output in stage.outputs)):
            too_many = self._builder.icmp_signed(">", self._formulas.value(size), _number(MAX_EXTENT))
            self._leave_if(too_many, code)
        for part in stage.slices:
            self._formulas.value(part.begin)
        self._leave_if(self._formulas.wrong, code)

    def _place(self, stage: RunStage, number: int, code: int) -> None:
        """Have memory for a stage, and note where in it its values are."""
        memory, word = plan_stage(stage), stage_word(number)
        size = self._formulas.value(memory.size)
        self._reserve(number, word, size, self._count_idle(word, size), code)
        begin = self._load(self._table, word, PTR)
        for value in stage.intermediates:
            self._store(self._frame, value.slot, self._at(begin, memory.offsets[value.slot]))
        for part in stage.slices:
            base = self._load(self._frame, part.base, PTR)
            self._store(self._frame, part.slot, self._at(base, part.begin))

    def _place_output(self, output: BornOutput, code: int) -> None:
        """Have memory for an output."""
        builder, word = self._builder, output_word(self._stages, self._outputs)
        size = self._formulas.value(output.size)
        short = builder.icmp_signed(">", size, self._load(self._table, word + 1))
        given = builder.icmp_signed("==", self._load(self._table, word + 2), _number(OutputMode.GIVEN))
        self._leave_if(builder.and_(short, given), code)
        self._reserve(self._stages + self._outputs, word, size, llvm_ir.Constant(I1, 0), code)
        self._store(self._frame, self._layout.output(output.number), self._load(self._table, word, PTR))
        self._outputs += 1

    def _count_idle(self, word: int, size: llvm_ir.Value) -> llvm_ir.Value:
        """Note in the table what a run needs of a stage's memory: whether it has been much less for many runs."""
        builder = self._builder
        ample = builder.icmp_signed(">", self._load(self._table, word + 1), builder.mul(size, _number(AMPLE)))
        counted = builder.add(self._load(self._table, word + IDLE), _number(1))
        idle = builder.select(ample, counted, _number(0))
        self._store(self._table, word + NEEDED, size)
        self._store(self._table, word + IDLE, idle)
        return builder.icmp_signed(">=", idle, _number(IDLE_RUNS))

    def _reserve(self, number: int, word: int, size: llvm_ir.Value, idle: llvm_ir.Value, code: int) -> None:
        """See to it that memory is as large as ``size``, which the table says of it from ``word`` on, and, if ``idle``,
        no larger."""
        builder = self._builder
        short = builder.icmp_signed(">", size, self._load(self._table, word + 1))
        with builder.if_then(builder.or_(short, idle), likely=False):
            grown = builder.call(self._grow, [self._owner, _number(number), size])
            self._leave_if(_is_null(builder, grown), code)

    def _at(self, base: llvm_ir.Value, offset: Extent) -> llvm_ir.Value:
        made = self._builder.gep(base, [self._formulas.value(offset)], source_etype=I8)
        made.type = PTR
        return made

    def _load(self, words: llvm_ir.Value, number: int, kind: llvm_ir.Type = I64) -> llvm_ir.Value:
        return self._builder.load(_word(self._builder, words, number), typ=kind)

    def _store(self, words: llvm_ir.Value, number: int, value: llvm_ir.Value) -> None:
        self._builder.store(value, _word(self._builder, words, number))

    def _leave_if(self, condition: llvm_ir.Value, code: int) -> None:
        with self._builder.if_then(condition, likely=False):
            self._builder.ret(llvm_ir.Constant(I32, code))


def _word(builder: llvm_ir.IRBuilder, words: llvm_ir.Value, number: int) -> llvm_ir.Value:
    address = builder.gep(words, [_number(number)], inbounds=True, source_etype=I64)
    address.type = PTR
    return address


def _number(value: int) -> llvm_ir.Constant:
    return llvm_ir.Constant(I64, value)


def _is_null(builder: llvm_ir.IRBuilder, pointer: llvm_ir.Value) -> llvm_ir.Value:
    return builder.icmp_unsigned("==", pointer, llvm_ir.Constant(PTR, None))

"""A loop: the kernels of a body again and again, of what the iteration before has written.

A carried value has two buffers, of which one iteration reads what the other has written; one of them is the result, and
the first iteration reads the operand where it lies. So nothing is copied, but where a condition ends the loop after an
iteration that has written the other buffer, or where there is no iteration at all.
"""

from __future__ import annotations

from collections.abc import Sequence

from llvmlite import ir as llvm_ir

from ..lanes import external
from ..types import I1, I32, I64, PTR
from .code import CONDITION_OFFSET, NUMBER_OFFSET, CarriedCode, LoopCode, RowsCode
from .frame import Body, Frame

_NO_LIMIT = (1 << 63) - 1


def emit_loop(frame: Frame, code: LoopCode) -> None:
    """Emit the function of a Loop: first what goes before all iterations, then the loop itself, then what goes after
    it."""
    emitter = _LoopEmitter(frame, code)
    emitter.begin()
    emitter.iterate()
    emitter.end()


class _Carried:
    """A carried value: where this iteration reads it, where it writes it, and its buffer that is free then."""

    def __init__(self, frame: Frame, code: CarriedCode, trips: llvm_ir.Value | None) -> None:
        builder = frame.builder
        self.code = code
        self.size = frame.value(code.size)
        self.address = builder.alloca(I64)
        result, second = frame.numbers[code.last], frame.in_workspace(code.second)
        self._begin = frame.numbers[code.first], result, second
        if trips is not None:  # the last iteration is to write the result
            odd = builder.trunc(trips, I1)
            writes = builder.select(odd, result, second), builder.select(odd, second, result)
            self._begin = frame.numbers[code.first], *writes

    def enter(self, builder: llvm_ir.IRBuilder, before: llvm_ir.Block) -> None:
        """Read the values at the head of the loop, behind the block ``before`` it."""
        self.reads, self.writes, self.free = (_phi(builder, value, before) for value in self._begin)

    def go_on(self, last: llvm_ir.Block) -> None:
        """Hand on at the end of an iteration: the next one reads what this one wrote."""
        self.reads.add_incoming(self.writes, last)
        self.writes.add_incoming(self.free, last)
        self.free.add_incoming(self.writes, last)

    def settle(self, frame: Frame) -> None:
        """Copy the value to the result behind the loop, if it lies elsewhere."""
        builder = frame.builder
        with builder.if_then(builder.icmp_unsigned("!=", self.reads, frame.numbers[self.code.last])):
            builder.store(self.reads, self.address)
            found = builder.load(self.address, typ=PTR)
            copy = external(frame.module, "llvm.memcpy.p0.p0.i64", llvm_ir.VoidType(), [PTR, PTR, I64, I1])
            builder.call(copy, [frame.pointers[self.code.last], found, self.size, llvm_ir.Constant(I1, 0)])


class _Rows:
    """A value whose rows are read or written one by one."""

    def __init__(self, frame: Frame, code: RowsCode, trips: llvm_ir.Value) -> None:
        builder = frame.builder
        self._frame = frame
        self._size = frame.value(code.size)
        self._first = frame.numbers[code.argument]
        if code.reverse:
            last = builder.mul(builder.sub(trips, llvm_ir.Constant(I64, 1)), self._size)
            self._first = builder.add(self._first, last)
            self._size = builder.neg(self._size)

    def address(self, number: llvm_ir.Value) -> llvm_ir.Value:
        """Where the row of an iteration lies."""
        return self._frame.builder.add(self._first, self._frame.builder.mul(number, self._size))


class _LoopEmitter:
    """Emits one loop. Mutable: its parts are made in the order of the code."""

    def __init__(self, frame: Frame, code: LoopCode) -> None:
        self._frame, self._builder, self._code = frame, frame.builder, code
        self._body = Body(frame, code.body)
        exact = None if code.trips is None else frame.value(code.trips)
        self._trips = _least(frame, code.limit, exact)
        known = None if code.condition is not None else self._trips
        self._carried = [_Carried(frame, each, known) for each in code.carried]
        self._sliced = [_Rows(frame, each, self._trips) for each in code.sliced]
        self._stacked = [_Rows(frame, each, self._trips) for each in code.stacked]
        self._number = frame.workspace_pointer(NUMBER_OFFSET)

    def begin(self) -> None:
        """What holds for all iterations, and the head, which asks whether there is another one."""
        frame, builder, code = self._frame, self._builder, self._code
        params, results = code.body.params, code.body.results
        self._body.bind(params[:1], [frame.in_workspace(NUMBER_OFFSET)])
        self._body.bind(params[len(params) - len(code.captured) :], [frame.numbers[k] for k in code.captured])
        holds = llvm_ir.Constant(I1, 1)
        if code.condition is not None:
            self._body.bind(results[:1], [frame.in_workspace(CONDITION_OFFSET)])
            holds = frame.is_true(frame.pointers[code.condition])
        before = builder.block
        self._head, self._after = (frame.function.append_basic_block(name) for name in ("head", "after"))
        builder.branch(self._head)
        builder.position_at_end(self._head)
        self._counter = _phi(builder, llvm_ir.Constant(I64, 0), before)
        self._holds = _phi(builder, holds, before)
        for each in self._carried:
            each.enter(builder, before)

    def iterate(self) -> None:
        """One iteration."""
        frame, builder, code = self._frame, self._builder, self._code
        iteration = frame.function.append_basic_block("iteration")
        more = builder.icmp_signed("<", self._counter, self._trips)
        builder.cbranch(builder.and_(more, self._holds), iteration, self._after)
        builder.position_at_end(iteration)
        builder.store(self._counter, self._number)
        reads = [*(c.reads for c in self._carried), *self._addresses(self._sliced)]
        writes = [*(c.writes for c in self._carried), *self._addresses(self._stacked)]
        self._body.bind(code.body.params[1 : 1 + len(reads)], reads)
        self._body.bind(code.body.results[len(code.body.results) - len(writes) :], writes)
        self._body.run()
        conditional = code.condition is not None
        holds = frame.is_true(frame.workspace_pointer(CONDITION_OFFSET)) if conditional else llvm_ir.Constant(I1, 1)
        last = builder.block
        self._counter.add_incoming(builder.add(self._counter, llvm_ir.Constant(I64, 1)), last)
        self._holds.add_incoming(holds, last)
        for each in self._carried:
            each.go_on(last)
        builder.branch(self._head)

    def end(self) -> None:
        """What is left when there are no more iterations."""
        self._builder.position_at_end(self._after)
        for each in self._carried:
            each.settle(self._frame)
        self._builder.store(self._counter, self._frame.pointers[self._code.count])
        self._builder.ret(llvm_ir.Constant(I32, 0))

    def _addresses(self, rows: Sequence[_Rows]) -> list[llvm_ir.Value]:
        return [each.address(self._counter) for each in rows]


def _least(frame: Frame, limit: int | None, trips: llvm_ir.Value | None) -> llvm_ir.Value:
    """The most iterations: the limit, an argument of one int64, or the trips, whichever is less."""
    if limit is None:
        return llvm_ir.Constant(I64, _NO_LIMIT) if trips is None else trips
    number = frame.builder.load(frame.pointers[limit], typ=I64)
    if trips is None:
        return number
    return frame.builder.select(frame.builder.icmp_signed("<", number, trips), number, trips)


def _phi(builder: llvm_ir.IRBuilder, value: llvm_ir.Value, block: llvm_ir.Block) -> llvm_ir.PhiInstr:
    made = builder.phi(value.type)
    made.add_incoming(value, block)
    return made

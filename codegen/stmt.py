"""Statements of the loop IR as LLVM basic blocks; one ``StmtEmitter`` emits the body of one function."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import assert_never

from llvmlite import ir as llvm_ir

from ..artifact.options import CodegenOptions
from ..base.target import Target
from ..ir.buffer import Buffer
from ..ir.constants import const_int, is_const
from ..ir.expr import Var
from ..ir.stmt import (
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
from ..ir.tile_loops import as_loops
from .abi import OUT_OF_MEMORY
from .allocate import Allocator
from .allocation import heap_bytes, place, used_bytes
from .checks import Checks
from .debug_info import LineTable
from .expr import ExprEmitter
from .extern_call import emit_extern_call
from .facts import VarFacts
from .memory import Slots
from .tiles import TileEmitter, check_access
from .types import I32, PTR, same_lanes

LaunchEmitter = Callable[["StmtEmitter", Launch], llvm_ir.Value]


class StmtEmitter:
    """Emits statements at the builder's position.

    ``context`` is the caller's ctx pointer; ``message_number`` gives the code of an assertion's text; ``emit_launch``
    emits a parallel launch and gives its result code; ``line_table`` marks instructions with the lines they come from.
    """

    def __init__(
        self,
        builder: llvm_ir.IRBuilder,
        target: Target,
        options: CodegenOptions,
        message_number: Callable[[str], int],
        emit_launch: LaunchEmitter,
        line_table: LineTable | None = None,
    ) -> None:
        self.builder = builder
        self.exprs = ExprEmitter(builder, target, options)
        self.allocator = Allocator(builder, in_registers=not options.debug)
        self.tiles = TileEmitter(builder, target, self.exprs.value, self.exprs.memory.address)
        if options.debug:
            self.exprs.checks = Checks(builder, self.exprs.value, message_number, self._leave_if)
        self._message_number = message_number
        self._emit_launch = emit_launch
        self._line_table = line_table
        self._heap: list[llvm_ir.Value] = []

    def emit_function(self, body: Stmt) -> None:
        """Emit the body of a function, at whose end the builder stands."""
        self.tiles.enter(body)
        self.emit(body)
        self.tiles.leave()

    def emit(self, stmt: Stmt) -> None:
        """Emit a statement; the builder stands where control flow goes on."""
        outside = self.builder.debug_metadata
        if self._line_table is not None:
            self._line_table.at(self.builder, stmt)
        self._emit(stmt)
        self.builder.debug_metadata = outside

    def _emit(self, stmt: Stmt) -> None:
        self.exprs.forget_reads()
        if self.exprs.checks is not None:
            self.exprs.checks.statement = stmt
        match stmt:
            case Seq(stmts):
                for part in stmts:
                    self.emit(part)
            case For():
                self._for(stmt)
            case While():
                self._while(stmt)
            case If():
                self._if(stmt)
            case Store():
                self._store(stmt)
            case Allocate():
                self._allocate(stmt)
            case LetStmt(var, value, body):
                with self.exprs.scope():
                    self.exprs.bind(var, value)
                    self.emit(body)
            case Assert(condition, message):
                number = llvm_ir.Constant(I32, self._message_number(message))
                if not is_const(condition, 1):
                    self._leave_if(self.builder.not_(self.exprs.value(condition)), number)
            case Evaluate(value):
                self.exprs.value(value)
            case PrefetchStmt(buffer, indices, to_write):
                self.exprs.memory.prefetch(buffer, indices, to_write)
            case CallExtern() if stmt.function.tiles is not None and not self.tiles.there_are:
                self.emit(as_loops(stmt))
            case CallExtern():
                emit_extern_call(self.exprs, self.allocator, self.tiles, stmt)
            case Launch():
                result = self._emit_launch(self, stmt)
                self._leave_if(self.builder.icmp_signed("!=", result, llvm_ir.Constant(I32, 0)), result)
            case _:
                assert_never(stmt)
        self.exprs.forget_reads()

    def _store(self, stmt: Store) -> None:
        if stmt.mask is not None and is_const(stmt.mask, 0):
            return
        value = self.exprs.value(stmt.value)
        mask = None if stmt.mask is None or is_const(stmt.mask, 1) else self.exprs.value(stmt.mask)
        if self.exprs.checks is not None:
            self.exprs.checks.access(stmt, mask)
        self.exprs.memory.store(stmt.buffer, stmt.indices, value, mask)

    def _for(self, stmt: For) -> None:
        """A loop with its test at the end, behind a test for no iterations where that is possible."""
        extent = const_int(stmt.extent)
        if extent is not None and extent <= 0:
            return
        name = stmt.var.name
        first = self.exprs.value(stmt.min)
        end = self._loop_end(stmt, first)
        body, after = (self.builder.append_basic_block(f"{name}.{part}") for part in ("loop", "exit"))
        if extent is None:
            some = self.builder.icmp_signed("<", first, end)
            self.builder.cbranch(some, body, after)
        else:
            self.builder.branch(body)
        before = self.builder.basic_block
        self.builder.position_at_end(body)
        counter = self.builder.phi(first.type, name=name)
        counter.add_incoming(first, before)
        self.exprs.facts.learn(stmt.var, VarFacts(non_negative=self.exprs.facts.non_negative(stmt.min)))
        with self.exprs.scope(), self._inside(stmt.var):
            self.exprs.variables[stmt.var] = counter
            self.emit(stmt.body)
        step = self.builder.add(counter, same_lanes(counter, 1), flags=("nsw",), name=f"{name}.next")
        counter.add_incoming(step, self.builder.basic_block)
        self.builder.cbranch(self.builder.icmp_signed("<", step, end), body, after)
        self.builder.position_at_end(after)

    def _inside(self, loop: Var) -> AbstractContextManager[None]:
        return nullcontext() if self.exprs.checks is None else self.exprs.checks.inside(loop)

    def _loop_end(self, stmt: For, first: llvm_ir.Value) -> llvm_ir.Value:
        start, extent = const_int(stmt.min), const_int(stmt.extent)
        if start is not None and extent is not None:
            return same_lanes(first, start + extent)
        count = self.exprs.value(stmt.extent)
        return count if start == 0 else self.builder.add(first, count, flags=("nsw",), name=f"{stmt.var.name}.end")

    def _while(self, stmt: While) -> None:
        head, body, after = (self.builder.append_basic_block(f"while.{part}") for part in ("test", "body", "exit"))
        self.builder.branch(head)
        self.builder.position_at_end(head)
        with self.exprs.scope():
            self.builder.cbranch(self.exprs.value(stmt.condition), body, after)
            self.builder.position_at_end(body)
            self.emit(stmt.body)
        self.builder.branch(head)
        self.builder.position_at_end(after)

    def _if(self, stmt: If) -> None:
        condition = self.exprs.value(stmt.condition)
        then, other, after = (self.builder.append_basic_block(f"if.{part}") for part in ("then", "else", "end"))
        self.builder.cbranch(condition, then, other)
        for block, side in ((then, stmt.then), (other, stmt.orelse)):
            self.builder.position_at_end(block)
            if side is not None:
                with self.exprs.scope():
                    self.emit(side)
            self.builder.branch(after)
        self.builder.position_at_end(after)

    def _allocate(self, stmt: Allocate) -> None:
        buffer = stmt.buffer
        if buffer.scope == "tile" and self.tiles.there_are:
            check_access(buffer, stmt.body)
            self.emit(stmt.body)
            return
        if place(buffer) == "stack":
            with self.exprs.scope():
                memory = self.exprs.memory.pointers[buffer.data] = self.allocator.stack_memory(buffer, stmt.body)
                self._poison(memory, buffer)
                self.emit(stmt.body)
            return
        pointer = self.allocator.heap_memory(buffer, self.exprs.value(heap_bytes(buffer)))
        missing = self.builder.icmp_unsigned("==", pointer, llvm_ir.Constant(PTR, None))
        self._leave_if(missing, llvm_ir.Constant(I32, OUT_OF_MEMORY))
        self._heap.append(pointer)
        self._poison(pointer, buffer)
        with self.exprs.scope():
            self.exprs.memory.pointers[buffer.data] = pointer
            self.emit(stmt.body)
        self._heap.pop()
        self.allocator.free(pointer)

    def _poison(self, memory: llvm_ir.Value | Slots, buffer: Buffer) -> None:
        """Fill new memory with ones in debug builds: who reads what was never written gets NaN, or -1."""
        if self.exprs.checks is not None and not isinstance(memory, Slots):
            self.allocator.fill(memory, 0xFF, self.exprs.value(used_bytes(buffer)))

    def _leave_if(self, failed: llvm_ir.Value, code: llvm_ir.Value, record: Callable[[], None] | None = None) -> None:
        """Return ``code`` from the function if a condition holds, which is rare; heap memory in use is freed.

        ``record`` emits what is to be done before that."""
        leave, stay = (self.builder.append_basic_block(part) for part in ("fail", "ok"))
        self.builder.cbranch(failed, leave, stay).set_weights([1, 1 << 20])
        self.builder.position_at_end(leave)
        if record is not None:
            record()
        for pointer in reversed(self._heap):
            self.allocator.free(pointer)
        self.tiles.leave()
        self.builder.ret(code)
        self.builder.position_at_end(stay)

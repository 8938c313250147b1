"""Visits of statements: loops and conditions become facts for what they hold, and go where they decide nothing."""

from __future__ import annotations

import dataclasses
from collections.abc import Generator
from typing import Any, assert_never

from ..buffer import Buffer
from ..constants import ONE
from ..contents import reads_memory
from ..expr import Const, Expr, Var
from ..extern import Region
from ..facts import Facts, negate
from ..linear import linear_of
from ..stmt import (
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
    seq,
)
from .expressions import is_always, let_facts
from .visitor import Request, Visit, VisitorState

NOTHING = Seq(())


class StatementVisitor(VisitorState):
    """Visits of all kinds of statements. ``NOTHING`` comes back for one that does nothing."""

    def visit_stmt(self, stmt: Stmt, facts: Facts) -> Visit:
        """The visit of a statement by its kind. It yields the parts with their facts, and returns what becomes of the
        whole."""
        match stmt:
            case For():
                return self._for(stmt, facts)
            case While():
                return self._while(stmt, facts)
            case If():
                return self._if(stmt, facts)
            case Store():
                return self._store(stmt, facts)
            case Allocate():
                return self._allocate(stmt, facts)
            case LetStmt():
                return self._let_stmt(stmt, facts)
            case Seq():
                return self._seq(stmt, facts)
            case Assert():
                return self._assert(stmt, facts)
            case Evaluate():
                return self._evaluate(stmt, facts)
            case PrefetchStmt():
                return self._prefetch(stmt, facts)
            case Launch():
                return self._launch(stmt, facts)
            case CallExtern():
                return self._call_extern(stmt, facts)
            case _:
                assert_never(stmt)

    def _for(self, loop: For, facts: Facts) -> Visit:
        low = yield loop.min, facts
        extent = yield loop.extent, facts
        if facts.nonnegative(linear_of(extent).times(-1)):
            return NOTHING
        if extent is ONE:
            self.values[loop.var] = low
            return (yield loop.body, facts.with_value(loop.var, low))
        body = yield loop.body, facts.with_loop(loop.var, low, extent)
        if is_nothing(body):
            return NOTHING
        if low is loop.min and extent is loop.extent and body is loop.body:
            return loop
        return dataclasses.replace(loop, min=low, extent=extent, body=body)

    def _while(self, loop: While, facts: Facts) -> Visit:
        condition = yield loop.condition, facts
        if is_always(condition, False):
            return NOTHING
        body = yield loop.body, facts
        return loop if condition is loop.condition and body is loop.body else While(condition, body)

    def _if(self, stmt: If, facts: Facts) -> Visit:
        condition = yield stmt.condition, facts
        if is_always(condition, True):
            return (yield stmt.then, facts)
        if is_always(condition, False):
            return (yield stmt.orelse, facts) if stmt.orelse is not None else NOTHING
        then = yield stmt.then, self._lasting(facts, condition, True)
        orelse = stmt.orelse
        if orelse is not None:
            orelse = yield orelse, self._lasting(facts, condition, False)
            if is_nothing(orelse):
                orelse = None
        if is_nothing(then):
            if orelse is None:
                return NOTHING
            return (yield If(negate(condition), orelse), facts)
        if condition is stmt.condition and then is stmt.then and orelse is stmt.orelse:
            return stmt
        return dataclasses.replace(stmt, condition=condition, then=then, orelse=orelse)

    def _lasting(self, facts: Facts, condition: Expr, truth: bool) -> Facts:
        """The facts with a condition, unless a store could make it untrue."""
        return facts if reads_memory(condition) else self.given(facts, condition, truth)

    def _store(self, store: Store, facts: Facts) -> Visit:
        indices = yield from self.visit_all(store.indices, facts)
        value = yield store.value, facts
        mask = None if store.mask is None else (yield store.mask, facts)
        if mask is not None and is_always(mask, False):
            return NOTHING
        if mask is not None and is_always(mask, True):
            mask = None
        buffer = self.buffer(store.buffer)
        unchanged = buffer is store.buffer and value is store.value and mask is store.mask
        if unchanged and all(a is b for a, b in zip(indices, store.indices, strict=True)):
            return store
        return Store(buffer, indices, value, mask, store.origin)

    def _allocate(self, stmt: Allocate, facts: Facts) -> Visit:
        buffer = yield from self._simpler_buffer(stmt.buffer, facts)
        self.replace_buffer(stmt.buffer, buffer)
        body = yield stmt.body, facts
        if is_nothing(body):
            return NOTHING
        return stmt if buffer is stmt.buffer and body is stmt.body else Allocate(buffer, body)

    def _simpler_buffer(self, buffer: Buffer, facts: Facts) -> Generator[Request, Any, Buffer]:
        """A shape may mention a loop variable that goes, so it is simplified with the rest."""
        before = (buffer.elem_offset, *buffer.shape, *(buffer.strides or ()))
        after = yield from self.visit_all(before, facts)
        if all(a is b for a, b in zip(before, after, strict=True)):
            return buffer
        offset, shape, strides = after[0], after[1 : buffer.ndim + 1], after[buffer.ndim + 1 :]
        new_strides = None if buffer.strides is None else strides
        return dataclasses.replace(buffer, shape=shape, strides=new_strides, elem_offset=offset)

    def _let_stmt(self, stmt: LetStmt, facts: Facts) -> Visit:
        value = yield stmt.value, facts
        if isinstance(value, (Const, Var)) and not isinstance(stmt.body, Launch):
            self.values[stmt.var] = value
            return (yield stmt.body, facts.with_value(stmt.var, value))
        body = yield stmt.body, let_facts(facts, stmt.var, value)
        if is_nothing(body):
            return NOTHING
        return stmt if value is stmt.value and body is stmt.body else LetStmt(stmt.var, value, body)

    def _seq(self, stmt: Seq, facts: Facts) -> Visit:
        """An assertion is a fact for all that follows it, also out of a sequence within this one."""
        done: list[Stmt] = []
        for part in stmt.stmts:
            result = yield part, facts
            if not is_nothing(result):
                done.append(result)
            for asserted in result.stmts if isinstance(result, Seq) else (result,):
                if isinstance(asserted, Assert):
                    facts = self._lasting(facts, asserted.condition, True)
        same = len(done) == len(stmt.stmts) > 1 and all(a is b for a, b in zip(done, stmt.stmts, strict=True))
        if same and not any(isinstance(s, Seq) for s in done):
            return stmt
        return seq(*done) if done else NOTHING

    def _assert(self, stmt: Assert, facts: Facts) -> Visit:
        condition = yield stmt.condition, facts
        if is_always(condition, True):
            return NOTHING
        return stmt if condition is stmt.condition else Assert(condition, stmt.message)

    def _evaluate(self, stmt: Evaluate, facts: Facts) -> Visit:
        value = yield stmt.value, facts
        if isinstance(value, Const):
            return NOTHING
        return stmt if value is stmt.value else Evaluate(value)

    def _prefetch(self, stmt: PrefetchStmt, facts: Facts) -> Visit:
        indices = yield from self.visit_all(stmt.indices, facts)
        buffer = self.buffer(stmt.buffer)
        same = buffer is stmt.buffer and all(a is b for a, b in zip(indices, stmt.indices, strict=True))
        return stmt if same else PrefetchStmt(buffer, indices, stmt.to_write)

    def _launch(self, stmt: Launch, facts: Facts) -> Visit:
        extent = yield stmt.extent, facts
        launch: Stmt = stmt
        args = tuple(self._argument(a) for a in stmt.args)
        if extent is not stmt.extent or any(a is not b for a, b in zip(args, stmt.args, strict=True)):
            launch = Launch(stmt.function, extent, args)
        for arg in args:
            if isinstance(arg, Var) and arg in self.values:
                launch = LetStmt(arg, self.values[arg], launch)
        return launch

    def _call_extern(self, stmt: CallExtern, facts: Facts) -> Visit:
        args: list[Region | Expr] = []
        for arg in stmt.args:
            if isinstance(arg, Region):
                parts = yield from self.visit_all(arg.parts, facts)
                args.append(arg.with_parts(self.buffer(arg.buffer), parts))
            else:
                args.append((yield arg, facts))
        same = all(a is b for a, b in zip(args, stmt.args, strict=True))
        return stmt if same else CallExtern(stmt.function, tuple(args))

    def _argument(self, arg: Buffer | Var) -> Buffer | Var:
        """Arguments of a launch stay variables: one that became a value is bound again around the launch."""
        if isinstance(arg, Buffer):
            return self.buffer(arg)
        value = self.values.get(arg)
        return value if isinstance(value, Var) else arg


def is_nothing(stmt: Stmt) -> bool:
    """Whether a statement is the empty sequence, which does nothing."""
    return isinstance(stmt, Seq) and not stmt.stmts

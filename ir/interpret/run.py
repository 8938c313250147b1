"""Statements and functions as Python closures: the control flow of the interpreter."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias, assert_never

import numpy as np

from ..buffer import Buffer
from ..build import buffer_strides
from ..contents import free_vars
from ..expr import Expr, Var
from ..stmt import (
    Allocate,
    Assert,
    CallExtern,
    Evaluate,
    For,
    If,
    IRModule,
    Launch,
    LetStmt,
    PrefetchStmt,
    PrimFunc,
    Seq,
    Stmt,
    Store,
    While,
)
from .access import Frame
from .compile import ExprCompiler, access_parts, run
from .extern_call import extern_call
from .memory import Memory, RaceTracker

Action: TypeAlias = Callable[[Frame], None]


class TranslatedModule:
    """The functions of a module, translated."""

    def __init__(self, module: IRModule) -> None:
        self._sources = {func.name: func for func in module.functions}
        self._done: dict[str, TranslatedFunction] = {}

    def function(self, name: str) -> TranslatedFunction | None:
        """The function of this name, translated when it is first asked for; None if the module has none."""
        if name not in self._done and name in self._sources:
            self._done[name] = TranslatedFunction(self, self._sources[name])
        return self._done.get(name)


class TranslatedFunction:
    """A function ready to run: ``call`` takes the values of its parameters (a Memory for each buffer) and variables."""

    def __init__(self, program: TranslatedModule, func: PrimFunc) -> None:
        self.func = func
        self._compiler = _StmtCompiler(program, func)
        self._body = self._compiler.stmt(func.body)

    def call(self, trackers: list[RaceTracker], bound: Iterable[tuple[int, Any]]) -> None:
        """Run with slots ``bound`` to values: see ``param_slots`` and ``var_slots``."""
        frame = self._compiler.template.copy()
        frame[0] = trackers
        for slot, value in bound:
            frame[slot] = value
        self._body(frame)

    @property
    def param_slots(self) -> list[int]:
        """The slot of the frame that each parameter's value goes into, in order of the parameters."""
        return self._compiler.param_slots

    def slot(self, var: Var) -> int:
        """The slot of the frame that a variable's value goes into."""
        return self._compiler.bind(var)


class _StmtCompiler(ExprCompiler):
    def __init__(self, program: TranslatedModule, func: PrimFunc) -> None:
        super().__init__(func)
        self._program = program
        self.param_slots = [
            self.bind_memory(param) if isinstance(param, Buffer) else self.bind(param) for param in func.params
        ]
        for var in shape_vars(func):
            self.bind(var)

    def stmt(self, stmt: Stmt) -> Action:
        self.start(stmt)
        match stmt:
            case Store():
                return self._store(stmt)
            case Seq(stmts):
                return _sequence([self.stmt(s) for s in stmts])
            case For():
                return self._serial(stmt) if stmt.kind in ("serial", "unrolled") else self._tracked(stmt)
            case While():
                return self._while(stmt)
            case If():
                return self._if(stmt)
            case LetStmt():
                return self._let_stmt(stmt)
            case Allocate():
                return self._allocate(stmt)
            case Assert():
                return self._assert(stmt)
            case Evaluate(value):
                return self._evaluate(value)
            case PrefetchStmt():
                return _sequence([])
            case Launch():
                return self._launch(stmt)
            case CallExtern():
                return extern_call(self, stmt)
            case _:
                assert_never(stmt)

    def _evaluate(self, value: Expr) -> Action:
        code, _ = self.program([value])
        return lambda frame: run(code, frame)

    def _store(self, stmt: Store) -> Action:
        code, _ = self.program([*access_parts(stmt), stmt.value])
        access, value = self.access(stmt), self.slot_of(stmt.value)

        def store(frame: Frame) -> None:
            run(code, frame)
            access.store(frame, frame[value])

        return store

    def _loop_body(self, stmt: For) -> tuple[int, Action]:
        slot = self.bind(stmt.var)
        outside = self.loops
        self.loops = (*outside, (stmt.var.name, slot))
        body = self.stmt(stmt.body)
        self.loops = outside
        return slot, body

    def _serial(self, stmt: For) -> Action:
        low, extent = self.evaluator(stmt.min), self.evaluator(stmt.extent)
        slot, body = self._loop_body(stmt)

        def loop(frame: Frame) -> None:
            start = low(frame)
            for i in range(start, start + extent(frame)):
                frame[slot] = i
                body(frame)

        return loop

    def _tracked(self, stmt: For) -> Action:
        """A loop whose iterations are independent by contract: run backwards, and watched."""
        low, extent = self.evaluator(stmt.min), self.evaluator(stmt.extent)
        label = f"iteration {stmt.var.name} ="
        slot, body = self._loop_body(stmt)

        def loop(frame: Frame) -> None:
            tracker = RaceTracker(label)
            trackers: list[RaceTracker] = frame[0]
            start = low(frame)
            trackers.append(tracker)
            for i in reversed(range(start, start + extent(frame))):
                frame[slot] = tracker.iteration = i
                body(frame)
            trackers.pop()

        return loop

    def _while(self, stmt: While) -> Action:
        condition, body = self.evaluator(stmt.condition), self.stmt(stmt.body)

        def loop(frame: Frame) -> None:
            while condition(frame):
                body(frame)

        return loop

    def _if(self, stmt: If) -> Action:
        condition, then = self.evaluator(stmt.condition), self.stmt(stmt.then)
        orelse = None if stmt.orelse is None else self.stmt(stmt.orelse)

        def choose(frame: Frame) -> None:
            if condition(frame):
                then(frame)
            elif orelse is not None:
                orelse(frame)

        return choose

    def _let_stmt(self, stmt: LetStmt) -> Action:
        value = self.evaluator(stmt.value)
        slot = self.bind(stmt.var)
        body = self.stmt(stmt.body)

        def let(frame: Frame) -> None:
            frame[slot] = value(frame)
            body(frame)

        return let

    def _allocate(self, stmt: Allocate) -> Action:
        buffer, site = stmt.buffer, self.site()
        layout = self._layout(buffer)
        slot = self.bind_memory(buffer)
        body = self.stmt(stmt.body)
        kind, lanes = buffer.dtype.to_numpy(), buffer.dtype.lanes

        def allocate(frame: Frame) -> None:
            shape, strides, offset = layout(frame)
            if any(extent < 0 for extent in shape):
                raise site.error(frame, f"{buffer.name} is allocated with the negative shape {shape}")
            size = memory_size(shape, strides, offset)
            array = np.zeros(size if lanes == 1 else (size, lanes), kind)
            frame[slot] = Memory(array, bytearray(size), len(frame[0]))
            body(frame)
            frame[slot] = None

        return allocate

    def _layout(self, buffer: Buffer) -> Callable[[Frame], tuple[list[int], list[int], int]]:
        """A function that evaluates the shape, strides and offset of a buffer."""
        strides = buffer_strides(buffer)
        code, slots = self.program([*buffer.shape, *strides, buffer.elem_offset])
        rank = buffer.ndim

        def layout(frame: Frame) -> tuple[list[int], list[int], int]:
            run(code, frame)
            numbers = [frame[slot] for slot in slots]
            return numbers[:rank], numbers[rank:-1], numbers[-1]

        return layout

    def _assert(self, stmt: Assert) -> Action:
        condition, site = self.evaluator(stmt.condition), self.site()

        def check(frame: Frame) -> None:
            if not condition(frame):
                raise site.error(frame, f"assertion failed: {stmt.message}")

        return check

    def _launch(self, stmt: Launch) -> Action:
        callee = self._program.function(stmt.function)
        if callee is None:
            raise self.bad(f"launch of {stmt.function}, which is no function of the module")
        if len(callee.param_slots) != len(stmt.args) + 2:
            raise self.bad(f"launch of {stmt.function} with {len(stmt.args)} arguments for {callee.func.params}")
        extent = self.evaluator(stmt.extent)
        args = [self.memory_slot(a) if isinstance(a, Buffer) else self.slot_of(a) for a in stmt.args]
        label = f"chunk of {stmt.function} from"

        def launch(frame: Frame) -> None:
            tracker = RaceTracker(label)
            trackers: list[RaceTracker] = frame[0]
            total = extent(frame)
            passed = [frame[slot] for slot in args]
            trackers.append(tracker)
            for begin, end in _chunks(total):
                tracker.iteration = begin
                callee.call(trackers, zip(callee.param_slots, [begin, end, *passed], strict=True))
            trackers.pop()

        return launch


def _sequence(actions: list[Action]) -> Action:
    def sequence(frame: Frame) -> None:
        for action in actions:
            action(frame)

    return sequence


def _chunks(total: int) -> list[tuple[int, int]]:
    """Chunks of one and two iterations by turns, the last one first: no order and no grain may be relied on."""
    chunks: list[tuple[int, int]] = []
    begin = 0
    while begin < total:
        end = min(total, begin + 1 + len(chunks) % 2)
        chunks.append((begin, end))
        begin = end
    return chunks[::-1]


def memory_size(shape: list[int], strides: list[int], offset: int) -> int:
    """Elements from the start of the memory to the last one that a buffer reaches."""
    if math.prod(shape) == 0:
        return 0
    return offset + sum((extent - 1) * stride for extent, stride in zip(shape, strides, strict=True)) + 1


def shape_vars(func: PrimFunc) -> list[Var]:
    """The variables in the shapes, strides and offsets of the parameters, in order of first appearance."""
    found: dict[Var, None] = {}
    for buffer in func.buffers:
        for part in buffer.layout:
            found.update((var, None) for var in free_vars(part))
    return list(found)

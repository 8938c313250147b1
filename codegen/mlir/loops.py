"""Lowered functions as MLIR of the dialects func, memref, scf, arith, math and vector: how something is computed.

    func.func @matmul(%A: memref<64x64xf32>, …)     a memref a parameter, then dimensions that no shape gives
    "scf.parallel" / scf.for / scf.while            the loops, by the names that the schedule gave them
    iter_args                                       the registers that a loop keeps; see ``registers.py``

LLVM 18 is the oldest release whose tools read it. What has no form there raises ``MlirError``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import assert_never

from ...base.errors import MlirError
from ...ir.buffer import Buffer
from ...ir.constants import const_int, is_const
from ...ir.expr import Expr, Load, TensorRead, Var
from ...ir.extern import ExternParam, Region
from ...ir.simplify import simplify
from ...ir.stmt import (
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
from ...ir.tile_loops import as_loops
from ..abi import symbolic_dims
from ..allocation import heap_alignment, place, span
from ..extern_functions import extern_functions
from ..facts import VarFacts
from .expr import MlirExprEmitter
from .memory import MlirMemoryEmitter, allocated_type, flat_type, is_compact, memref_type
from .registers import Registers, Slot, Slots
from .text import Helpers, Place, Value, Writer, memory_type, module_text, quoted, type_of


def loops_text(program: PrimFunc | IRModule, *, contract: bool) -> str:
    """The MLIR module of a lowered function, or of one whose parallel loops are functions already.

    ``contract`` lets sums take in products as fma. Raises ``MlirError`` for what MLIR has no form for, and
    ``ExpressionError`` where one function of C is declared in two ways.
    """
    module = program if isinstance(program, IRModule) else IRModule((program,))
    helpers = Helpers([*(f.name for f in module.functions), *(e.symbol for e in extern_functions(module))])
    texts = []
    for func in module.functions:
        try:
            texts.append(_FunctionEmitter(func, module, helpers, contract=contract).emit())
        except MlirError as error:
            raise MlirError(f"{func.name}: {error}") from None
    return module_text(texts, helpers)


class _FunctionEmitter:
    """Writes one function. Mutable: the slots' values at hand, and where arrays on the stack are made."""

    def __init__(self, func: PrimFunc, module: IRModule, helpers: Helpers, *, contract: bool) -> None:
        self.func = func
        self.module = module
        self.w = Writer(helpers)
        self.exprs = MlirExprEmitter(self.w, self._read, contract=contract)
        self.memory = MlirMemoryEmitter(self.w, self.exprs.value)
        self.registers = Registers(func.body)
        self.slots: dict[Slot, Value] = {}
        self._stack: Place
        self._in_parallel = False  # arrays are on the heap there: an iteration's stack may never be freed

    def emit(self) -> str:
        params = ", ".join(f"{v.name}: {v.type}" for v in self._parameters())
        self._stmt(self.func.body, frozenset())
        self.w.line("return")
        visibility = "" if self.func is self.module.entry else "private "
        return self.w.function(f"func.func {visibility}@{self.func.name}({params})")

    def _parameters(self) -> list[Value]:
        """The parameters; what they are made of is declared at the function's beginning."""
        given: list[Value] = []
        for param in self.func.params:
            if isinstance(param, Var):
                value = self.exprs.variables[param] = Value(self.w.name(param.name), type_of(param.dtype))
            else:
                value = Value(self.w.name(param.name), _parameter_type(param))
            given.append(value)
        pairs = list(zip(self.func.params, given, strict=True))
        self._stack = self.w.place()
        for param, value in pairs:
            if isinstance(param, Buffer):
                self.memory.declare(param, value, flat=param.ndim == 1)
        return [*given, *self._dimensions(pairs)]

    def _dimensions(self, params: Sequence[tuple[Buffer | Var, Value]]) -> list[Value]:
        """Gives the symbolic dimensions their values: from the memrefs' shapes, or as parameters, which it returns."""
        more: list[Value] = []
        for dim in symbolic_dims(self.func):
            if dim in self.exprs.variables:
                continue
            self.exprs.facts.learn(dim, VarFacts(non_negative=True))
            found = [(v, k) for b, v in params if isinstance(b, Buffer) for k, e in enumerate(b.shape) if e is dim]
            if found:
                memref, axis = found[0]
                text = f"memref.dim {memref.name}, {self.w.index(axis).name} : {memref.type}"
                self.exprs.variables[dim] = self.w.op(text, "index", dim.name)
            else:
                more.append(Value(self.w.name(dim.name), "index"))
                self.exprs.variables[dim] = more[-1]
        return more

    def _read(self, node: Load | TensorRead) -> Value:
        if isinstance(node, TensorRead):
            raise MlirError(f"a lowered function reads buffers, not tensors: {node}")
        mask = None if node.mask is None or is_const(node.mask, 1) else self.exprs.value(node.mask)
        if node.buffer.data not in self.registers.arrays:
            return self.memory.load(node.buffer, node.indices, mask)
        slot = self.registers.slot(node.buffer, node.indices)
        stored = self._slot_value(slot)
        return stored if mask is None else self.w.select(mask, stored, self._zero(slot))

    def _slot_value(self, slot: Slot) -> Value:
        """What a slot holds; zero, if it was never stored into."""
        return self.slots.get(slot) or self._zero(slot)

    def _zero(self, slot: Slot) -> Value:
        return self.w.constant(self.registers.array(slot).kind, 0)

    # Statements. ``live`` are the slots that are read after the statement.

    def _stmt(self, stmt: Stmt, live: Slots) -> None:
        match stmt:
            case Seq(stmts):
                for part, after in zip(stmts, self._live_after(stmts, live), strict=True):
                    self._stmt(part, after)
            case Store():
                self._store(stmt)
                self.exprs.forget(stmt.buffer.data)
            case Allocate():
                self._allocate(stmt, live)
            case LetStmt(var, value, body):
                self.exprs.bind(var, value)
                with self.exprs.scope():
                    self._stmt(body, live)
            case Assert(condition, message):
                if not is_const(condition, 1):
                    self.w.line(f"cf.assert {self.exprs.value(condition).name}, {quoted(message)}")
            case Evaluate(value):
                self.exprs.value(value)
            case PrefetchStmt(buffer, indices, to_write):
                if buffer.data not in self.registers.arrays:
                    self.memory.prefetch(buffer, indices, to_write=to_write)
            case For() | While() | If() | CallExtern() | Launch():
                self.exprs.forget()
                self._structured(stmt, live)
                self.exprs.forget()
            case _:
                assert_never(stmt)

    def _structured(self, stmt: For | While | If | CallExtern | Launch, live: Slots) -> None:
        """Statements that write who knows what."""
        match stmt:
            case For():
                self._for(stmt, live)
            case While():
                self._while(stmt, live)
            case If():
                self._if(stmt, live)
            case CallExtern() if stmt.function.tiles is not None:
                self._stmt(as_loops(stmt), live)
            case CallExtern():
                self._call(stmt)
            case Launch():
                self._launch(stmt)

    def _live_after(self, stmts: Sequence[Stmt], live: Slots) -> list[Slots]:
        """The slots that are read after each of the statements."""
        after: list[Slots] = []
        for stmt in reversed(stmts):
            after.append(live)
            effects = self.registers.effects(stmt)
            live = (live - effects.killed) | effects.read
        return after[::-1]

    def _store(self, stmt: Store) -> None:
        if stmt.mask is not None and is_const(stmt.mask, 0):
            return
        value = self.exprs.value(stmt.value)
        mask = None if stmt.mask is None or is_const(stmt.mask, 1) else self.exprs.value(stmt.mask)
        if stmt.buffer.data not in self.registers.arrays:
            self.memory.store(stmt.buffer, stmt.indices, value, mask)
            return
        slot = self.registers.slot(stmt.buffer, stmt.indices)
        self.slots[slot] = value if mask is None else self.w.select(mask, value, self._slot_value(slot))

    def _for(self, stmt: For, live: Slots) -> None:
        extent = const_int(stmt.extent)
        if extent is not None and extent <= 0:
            return
        first, end = self._bounds(stmt)
        if stmt.kind == "parallel":
            self._parallel(stmt, first, end)
            return
        inner = self.registers.effects(stmt.body)
        carried = sorted(inner.stored & (live | inner.read))
        name = self.w.name(stmt.var.name)
        args, results, prefix = self._carried(carried)
        given = ", ".join(f"{arg.name} = {self._slot_value(s).name}" for arg, s in zip(args, carried, strict=True))
        types = f" -> ({_types(args)})" if carried else ""
        bounds = f"{name} = {first.name} to {end.name} step {self.w.index(1).name}"
        with self.w.region(f"{prefix}scf.for {bounds}{f' iter_args({given})' if carried else ''}{types} {{"):
            self.slots.update(zip(carried, args, strict=True))
            self._iteration(stmt, name, live | inner.read)
            self._end(carried)
        self._after(inner.stored, carried, results)

    def _bounds(self, stmt: For) -> tuple[Value, Value]:
        if not stmt.var.dtype.is_index:
            raise MlirError(f"the loop {stmt.var.name} runs over {stmt.var.dtype}: loops of MLIR run over index")
        start, extent = const_int(stmt.min), const_int(stmt.extent)
        if start is not None and extent is not None:
            return self.w.index(start), self.w.index(start + extent)
        first, count = self.exprs.value(stmt.min), self.exprs.value(stmt.extent)
        return first, count if start == 0 else self.w.binary("arith.addi", first, count)

    def _iteration(self, stmt: For, name: str, live: Slots) -> None:
        self.exprs.facts.learn(stmt.var, VarFacts(non_negative=self.exprs.facts.non_negative(stmt.min)))
        with self.exprs.scope():
            self.exprs.variables[stmt.var] = Value(name, "index")
            self._stmt(stmt.body, live)

    def _parallel(self, stmt: For, first: Value, end: Value) -> None:
        slots, outside = dict(self.slots), self._in_parallel
        counter = Value(self.w.name(stmt.var.name), "index")
        with self._parallel_region(first, end, counter):
            self._in_parallel = True
            self._iteration(stmt, counter.name, frozenset())
        self.slots, self._in_parallel = slots, outside

    @contextmanager
    def _parallel_region(self, first: Value, end: Value, counter: Value) -> Iterator[None]:
        """Write a parallel region in the generic form: xDSL 0.74 reads no other."""
        sizes = "<{operandSegmentSizes = array<i32: 1, 1, 1, 0>}>"
        head = f'"scf.parallel"({first.name}, {end.name}, {self.w.index(1).name}) {sizes} ({{'
        with self.w.region(head, "}) : (index, index, index) -> ()"):
            self.w.label("bb0", [counter])
            yield
            self.w.line("scf.reduce")

    def _while(self, stmt: While, live: Slots) -> None:
        inner = self.registers.effects(stmt)
        carried = sorted(inner.stored & (live | inner.read))
        args, results, prefix = self._carried(carried)
        given = ", ".join(f"{arg.name} = {self._slot_value(s).name}" for arg, s in zip(args, carried, strict=True))
        types = _types(args)
        with self.w.region(f"{prefix}scf.while ({given}) : ({types}) -> ({types}) {{", "} do {"), self.exprs.scope():
            self.slots.update(zip(carried, args, strict=True))
            passed = f" {', '.join(arg.name for arg in args)} : {types}" if carried else ""
            self.w.line(f"scf.condition({self.exprs.value(stmt.condition).name}){passed}")
        with self.w.region(""), self.exprs.scope():
            inside = self._carried(carried)[0]
            if carried:
                self.w.label("bb0", inside)
            self.slots.update(zip(carried, inside, strict=True))
            self._stmt(stmt.body, live | inner.read)
            self.w.line(self._yield(carried))
        self._after(inner.stored, carried, results)

    def _if(self, stmt: If, live: Slots) -> None:
        stored = self.registers.effects(stmt).stored
        given = sorted(stored & live)
        condition, before = self.exprs.value(stmt.condition), dict(self.slots)
        _, results, prefix = self._carried(given)
        types = f" -> ({_types(results)})" if given else ""
        two_sided = stmt.orelse is not None or bool(given)
        with self.w.region(f"{prefix}scf.if {condition.name}{types} {{", "} else {" if two_sided else "}"):
            self._side(stmt.then, live, given)
        if two_sided:
            self.slots = dict(before)
            with self.w.region(""):
                self._side(stmt.orelse, live, given)
        self.slots = before
        self._after(stored, given, results)

    def _side(self, stmt: Stmt | None, live: Slots, given: Sequence[Slot]) -> None:
        with self.exprs.scope():
            if stmt is not None:
                self._stmt(stmt, live)
            self._end(given)

    def _carried(self, slots: Sequence[Slot]) -> tuple[list[Value], list[Value], str]:
        """What a region needs to hand these slots on: its arguments, its results, and the text before its operation."""
        arrays = [self.registers.array(slot) for slot in slots]
        types = [type_of(array.kind) for array in arrays]
        if not slots:
            return [], [], ""
        name = self.w.name(arrays[0].name)
        args = [Value(self.w.name(array.name), kind) for array, kind in zip(arrays, types, strict=True)]
        if len(slots) == 1:
            return args, [Value(name, types[0])], f"{name} = "
        return args, [Value(f"{name}#{k}", kind) for k, kind in enumerate(types)], f"{name}:{len(slots)} = "

    def _end(self, slots: Sequence[Slot]) -> None:
        """The end of a region, which may be left out where it hands nothing on; but not, says xDSL, behind an operation
        that it does not know."""
        if slots or self.w.ends_generic():
            self.w.line(self._yield(slots))

    def _yield(self, slots: Sequence[Slot]) -> str:
        values = [self._slot_value(slot) for slot in slots]
        names = ", ".join(v.name for v in values)
        return f"scf.yield {names} : {_types(values)}" if values else "scf.yield"

    def _after(self, stored: Slots, carried: Sequence[Slot], results: Sequence[Value]) -> None:
        """Take note that a region has ended: what it stored without handing it on cannot be seen behind it."""
        for slot in stored:
            self.slots.pop(slot, None)
        self.slots.update(zip(carried, results, strict=True))

    def _allocate(self, stmt: Allocate, live: Slots) -> None:
        buffer = stmt.buffer
        if buffer.data in self.registers.arrays:
            self._stmt(stmt.body, live)
            return
        kind, form = allocated_type(buffer), f"{{alignment = {heap_alignment(buffer)} : i64}}"
        flat = kind == flat_type(buffer) or not is_compact(buffer)
        if place(buffer) == "stack" and not self._in_parallel:
            with self.w.at(self._stack):
                memory = self.w.op(f"memref.alloca() {form} : {kind}", kind, buffer.name)
                self.memory.declare(buffer, memory, flat=flat)
            self._stmt(stmt.body, live)
            return
        extents = (simplify(span(buffer)),) if flat else buffer.shape
        open_extents = [self.exprs.value(e) for e in extents if const_int(e) is None]
        names = ", ".join(v.name for v in open_extents)
        memory = self.w.op(f"memref.alloc({names}) {form} : {kind}", kind, buffer.name)
        self.memory.declare(buffer, memory, flat=flat)
        with self.exprs.scope():
            self._stmt(stmt.body, live)
        self.w.line(f"memref.dealloc {memory.name} : {kind}")

    def _call(self, stmt: CallExtern) -> None:
        """A function of C: the address of a region is passed as a number, which is the same to C."""
        copies: list[Value] = []
        values = [self._argument(a, p, copies) for a, p in zip(stmt.args, stmt.function.params, strict=True)]
        self.w.helpers.declare(stmt.function.symbol, [v.type for v in values])
        names = ", ".join(v.name for v in values)
        self.w.line(f"func.call @{stmt.function.symbol}({names}) : ({_types(values)}) -> ()")
        for copy in copies:
            self.w.line(f"memref.dealloc {copy.name} : {copy.type}")

    def _argument(self, arg: Region | Expr, param: ExternParam, copies: list[Value]) -> Value:
        """The argument as C wants it; ``copies`` gets the memory of one that is passed by reference."""
        if isinstance(arg, Region):
            return self.memory.address(arg.buffer, arg.begin)
        value = self.exprs.value(arg)
        if param.passing == "value":
            return value
        w, kind = self.w, f"memref<1x{memory_type(param.dtype)}>"
        copies.append(w.op(f"memref.alloc() : {kind}", kind, "reference"))
        if param.dtype.is_bool:
            value = w.convert("arith.extui", value, memory_type(param.dtype))
        w.line(f"memref.store {value.name}, {copies[-1].name}[{w.index(0).name}] : {kind}")
        return w.generic("memref.extract_aligned_pointer_as_index", copies[-1:], "index")

    def _launch(self, stmt: Launch) -> None:
        """A loop over chunks of one iteration."""
        w, one = self.w, self.w.index(1)
        begin, extent = Value(w.name("begin"), "index"), self.exprs.value(stmt.extent)
        passed = [self.memory.view(a) if isinstance(a, Buffer) else self.exprs.value(a) for a in stmt.args]
        with self._parallel_region(w.index(0), extent, begin):
            values = [begin, w.binary("arith.addi", begin, one), *passed]
            w.line(f"func.call @{stmt.function}({', '.join(v.name for v in values)}) : ({_types(values)}) -> ()")


def _types(values: Iterable[Value]) -> str:
    return ", ".join(v.type for v in values)


def _parameter_type(buffer: Buffer) -> str:
    if not is_compact(buffer):
        raise MlirError(f"the parameter {buffer!r} has strides or an offset: a memref of its shape is compact")
    return memref_type(buffer)

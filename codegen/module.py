"""An IRModule as the text of an LLVM module: entry function, bodies, and the task functions of parallel launches.

Every function of the IR becomes an internal body function whose pointers are ``noalias`` parameters, one for each
``buffer.data``. The entry unpacks the caller's argument slots and calls the first body; a launch packs a closure on the
stack, and its task function unpacks that and calls the launched body.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from llvmlite import ir as llvm_ir

from ..artifact.nest_source import SUFFIX
from ..artifact.options import CodegenOptions
from ..base.dataclass import dataclass
from ..base.target import Target
from ..base.timing import CURRENT
from ..ir.buffer import Buffer
from ..ir.build import buffer_strides
from ..ir.constants import const_int
from ..ir.contents import statements_of
from ..ir.expr import Var
from ..ir.extern import ExternFunction
from ..ir.stmt import For, IRModule, Launch, PrimFunc, Stmt
from .abi import EXTERNAL_SYMBOLS, PARALLEL_FOR, symbolic_dims
from .debug_info import LineTable
from .extern_functions import extern_functions
from .facts import VarFacts, merge_facts
from .lanes import external
from .machine import data_layout
from .stmt import StmtEmitter
from .types import I32, I64, PTR, value_type


@dataclass(frozen=True, slots=True)
class EmittedModule:
    """LLVM IR text, the name of its entry function, the texts of its assertions, the first with code 1, and the
    prototypes of the functions of C that it calls for the program."""

    text: str
    entry: str
    messages: tuple[str, ...]
    externs: tuple[str, ...]


def emit_module(
    module: IRModule, target: Target, options: CodegenOptions, lines: Mapping[Stmt, int] | None = None
) -> EmittedModule:
    """Translate a module to LLVM IR, not yet optimised; the first function becomes the entry.

    ``lines``, if given, are those of a source text that debug information says each instruction comes from.
    """
    return _ModuleEmitter(module, target, options, lines).emit()


@dataclass(frozen=True, slots=True, eq=False)
class _Signature:
    """The parameters of a body function after ``ctx``: scalars, and addresses with their buffers."""

    params: tuple[tuple[Var, Buffer | None], ...]

    @property
    def types(self) -> list[llvm_ir.Type]:
        return [value_type(var.dtype) for var, _ in self.params]


def _signature(func: PrimFunc, *, entry: bool) -> _Signature:
    """Addresses and scalars in the order of the parameters, each address once; of an entry, the symbolic dimensions."""
    found: dict[Var, Buffer | None] = {}
    for param in func.params:
        if isinstance(param, Buffer):
            found.setdefault(param.data, param)
        elif not entry:
            found[param] = None
    if entry:
        found.update((dim, None) for dim in symbolic_dims(func))
    return _Signature(tuple(found.items()))


def symbol_name(name: str, externs: Sequence[ExternFunction] = ()) -> str:
    """The name as an identifier of C that is none of the functions we call."""
    cleaned = re.sub(r"\W", "_", name, flags=re.ASCII)
    if not cleaned or cleaned[0].isdigit():
        return f"_{cleaned}"
    taken = {*EXTERNAL_SYMBOLS, *(e.symbol for e in externs)}
    while cleaned in taken:
        cleaned += "_"
    return cleaned


class _ModuleEmitter:
    def __init__(
        self, module: IRModule, target: Target, options: CodegenOptions, lines: Mapping[Stmt, int] | None
    ) -> None:
        self.source = module
        self.target = target
        self.options = options
        self.externs = extern_functions(module)
        self.entry = self._symbol(module.entry.name)
        self.llvm = llvm_ir.Module(self.entry, context=llvm_ir.Context())
        self.llvm.triple = target.triple
        self.llvm.data_layout = data_layout(target)
        self.line_table = None if lines is None else LineTable(self.llvm, self.entry + SUFFIX, lines)
        self.messages: dict[str, int] = {}
        self.signatures = {f.name: _signature(f, entry=f is module.entry) for f in module.functions}
        self.bodies: dict[str, llvm_ir.Function] = {}
        self.tasks: dict[str, llvm_ir.Function] = {}
        self.arguments: dict[Var, list[VarFacts]] = {}

    def emit(self) -> EmittedModule:
        for func in self.source.functions:
            self.bodies[func.name] = self._declare_body(func)
        self._emit_entry()
        for func in self.source.functions:
            self._emit_body(func)
        _count_instructions(self.llvm)
        prototypes = tuple(e.prototype for e in self.externs)
        return EmittedModule(str(self.llvm), self.entry, tuple(self.messages), prototypes)

    def _symbol(self, name: str) -> str:
        return symbol_name(name, self.externs)

    def _message_number(self, message: str) -> int:
        return self.messages.setdefault(message, len(self.messages) + 1)

    # Functions.

    def _declare_body(self, func: PrimFunc) -> llvm_ir.Function:
        signature = self.signatures[func.name]
        kind = llvm_ir.FunctionType(I32, [PTR, *signature.types])
        name = self._symbol(func.name) + (".body" if func is self.source.entry else "")
        body = llvm_ir.Function(self.llvm, kind, name)
        body.linkage = "internal"
        body.attributes.add("nounwind")
        body.attributes.add("noinline")  # as parameters, the noalias facts reach every pass
        body.args[0].name = "ctx"
        for arg, (var, buffer) in zip(body.args[1:], signature.params, strict=True):
            arg.name = var.name
            if buffer is not None:
                _state_facts(arg, buffer)
        return body

    def _emit_body(self, func: PrimFunc) -> None:
        body = self.bodies[func.name]
        builder = llvm_ir.IRBuilder(body.append_basic_block("entry"))
        if self.line_table is not None:
            self.line_table.enter(builder, func)
        emitter = StmtEmitter(
            builder, self.target, self.options, self._message_number, self._emit_launch, self.line_table
        )
        for arg, (var, buffer) in zip(body.args[1:], self.signatures[func.name].params, strict=True):
            if buffer is not None:
                emitter.exprs.memory.pointers[var] = arg
            else:
                emitter.exprs.variables[var] = arg
        if emitter.exprs.checks is not None:
            emitter.exprs.checks.loops += self._loops_around(func)
        for dim in _extents(func):
            emitter.exprs.facts.learn(dim, VarFacts(non_negative=True))
        for param in func.params:
            if isinstance(param, Var) and param in self.arguments:
                emitter.exprs.facts.learn(param, merge_facts(self.arguments[param]))
        emitter.emit_function(func.body)
        builder.ret(llvm_ir.Constant(I32, 0))

    def _loops_around(self, func: PrimFunc) -> list[Var]:
        """The parameters that are variables of the loops around its launch."""
        loops = {stmt.var for f in self.source.functions for stmt in statements_of(f.body) if isinstance(stmt, For)}
        return [p for p in func.params if isinstance(p, Var) and p in loops]

    def _emit_entry(self) -> None:
        func = self.source.entry
        entry = llvm_ir.Function(self.llvm, llvm_ir.FunctionType(I32, [PTR, PTR]), self.entry)
        entry.attributes.add("nounwind")
        entry.args[0].name, entry.args[1].name = "ctx", "args"
        builder = llvm_ir.IRBuilder(entry.append_basic_block("entry"))
        if self.line_table is not None:
            self.line_table.enter(builder, func)
        order = [b.data for b in func.buffers] + list(symbolic_dims(func))
        slots = {var: number for number, var in reversed(list(enumerate(order)))}
        values = [
            _load_slot(builder, entry.args[1], slots[var], value_type(var.dtype))
            for var, _ in self.signatures[func.name].params
        ]
        builder.ret(builder.call(self.bodies[func.name], [entry.args[0], *values]))

    # Parallel launches.

    def _emit_launch(self, emitter: StmtEmitter, launch: Launch) -> llvm_ir.Value:
        """Store the arguments in a closure on the stack and call the thread pool; gives its result code."""
        builder = emitter.builder
        extent = emitter.exprs.value(launch.extent)
        values = self._closure_values(emitter, launch)
        layout = llvm_ir.LiteralStructType([v.type for v in values])
        closure = emitter.allocator.on_stack(layout, 8, "closure")
        for number, value in enumerate(values):
            builder.store(value, _field(builder, closure, layout, number))
        run = external(self.llvm, PARALLEL_FOR, I32, [PTR, PTR, PTR, I64])
        context = builder.function.args[0]
        return builder.call(run, [context, self._task(launch.function), closure, extent])

    def _closure_values(self, emitter: StmtEmitter, launch: Launch) -> list[llvm_ir.Value]:
        """The values of the launched function's parameters behind begin and end, in its order."""
        func = next(f for f in self.source.functions if f.name == launch.function)
        for bound in func.params[:2]:
            if isinstance(bound, Var):
                self.arguments.setdefault(bound, []).append(VarFacts(non_negative=True))
        given: dict[Var, llvm_ir.Value] = {}
        for param, arg in zip(func.params[2:], launch.args, strict=True):
            if isinstance(param, Buffer) and isinstance(arg, Buffer):
                given[param.data] = emitter.exprs.memory.pointers[arg.data]
            elif isinstance(param, Var) and isinstance(arg, Var):
                given[param] = emitter.exprs.value(arg)
                self.arguments.setdefault(param, []).append(emitter.exprs.facts.of(arg))
        return [given[var] for var, _ in self.signatures[func.name].params[2:]]

    def _task(self, name: str) -> llvm_ir.Function:
        """``i32 (ctx, closure, begin, end)``: unpacks the closure and calls the body of function ``name``."""
        if name in self.tasks:
            return self.tasks[name]
        task = llvm_ir.Function(
            self.llvm, llvm_ir.FunctionType(I32, [PTR, PTR, I64, I64]), f"{self._symbol(name)}.task"
        )
        task.linkage = "internal"
        task.attributes.add("nounwind")
        self.tasks[name] = task
        context, closure, begin, end = task.args
        for arg, text in zip(task.args, ("ctx", "closure", "begin", "end"), strict=True):
            arg.name = text
        builder = llvm_ir.IRBuilder(task.append_basic_block("entry"))
        types = self.signatures[name].types[2:]
        layout = llvm_ir.LiteralStructType(types)
        values = [builder.load(_field(builder, closure, layout, number), typ=kind) for number, kind in enumerate(types)]
        builder.ret(builder.call(self.bodies[name], [context, begin, end, *values]))
        return task


def _count_instructions(module: llvm_ir.Module) -> None:
    stage = CURRENT.get()
    if stage is not None:
        stage.instructions += sum(len(block.instructions) for f in module.functions for block in f.blocks)


def _field(builder: llvm_ir.IRBuilder, pointer: llvm_ir.Value, layout: llvm_ir.Type, number: int) -> llvm_ir.Value:
    indices = [llvm_ir.Constant(I32, 0), llvm_ir.Constant(I32, number)]
    return builder.gep(pointer, indices, inbounds=True, source_etype=layout)


def _load_slot(builder: llvm_ir.IRBuilder, args: llvm_ir.Value, slot: int, kind: llvm_ir.Type) -> llvm_ir.Value:
    where = builder.gep(args, [llvm_ir.Constant(I64, slot)], inbounds=True, source_etype=I64)
    return builder.load(where, typ=kind)


def _extents(func: PrimFunc) -> list[Var]:
    """Variables that are the extent of some dimension, hence not negative."""
    return list(dict.fromkeys(e for b in func.buffers for e in b.shape if isinstance(e, Var)))


def _state_facts(arg: llvm_ir.Argument, buffer: Buffer) -> None:
    """What holds of a buffer's address: nothing else reaches the memory; alignment; the bytes that can be read."""
    arg.add_attribute("noalias")
    arg.attributes.align = buffer.alignment
    span = _constant_span(buffer)
    if span:
        arg.add_attribute("nonnull")
        arg.attributes.dereferenceable = span * buffer.dtype.storage_bytes


def _constant_span(buffer: Buffer) -> int:
    """The number of elements from the address up to the last element, if constant; 0 if unknown or empty."""
    offset = const_int(buffer.elem_offset)
    extents = [const_int(extent) for extent in buffer.shape]
    strides = [const_int(stride) for stride in buffer_strides(buffer)]
    if offset is None or offset < 0:
        return 0
    last = offset
    for extent, stride in zip(extents, strides, strict=True):
        if extent is None or stride is None or extent <= 0 or stride < 0:
            return 0
        last += (extent - 1) * stride
    return last + 1

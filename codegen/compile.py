"""Compiles an IRModule to machine code: emission, LLVM's passes, an object file's bytes; the cache stands before
LLVM."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import llvmlite.binding as llvm

from ..artifact.cache import DiskCache, disk_cache
from ..artifact.cache_entry import About
from ..artifact.cache_key import cache_key, compiler_version
from ..artifact.nest_source import NestSource, kept_source
from ..artifact.options import CodegenOptions
from ..base.brief import one_line
from ..base.dataclass import dataclass
from ..base.errors import InternalError, ModelError
from ..base.target import Target
from ..base.timing import TimedStage, timed
from ..ir.printer import module_lines
from ..ir.stmt import IRModule
from .llvm_memory import require_for_compiling
from .machine import optimize, target_machine
from .module import EmittedModule, emit_module
from .object_check import check_object

_SOURCES = ("codegen",)


@dataclass(frozen=True, slots=True, repr=False)
class CompiledCode:
    """Machine code of one module. ``object`` is an object file; ``entry`` the name of its entry function; ``messages``
    the texts of its assertions, of which the entry returns the number, counted from 1; ``llvm_ir`` the IR as emitted;
    ``externs`` the prototypes of the functions of C that the program calls, whose symbols are undefined in the object;
    ``source`` is what its line tables speak of, None if it has none.
    """

    object: bytes
    entry: str
    messages: tuple[str, ...]
    llvm_ir: str
    target: Target
    options: CodegenOptions
    externs: tuple[str, ...] = ()
    source: NestSource | None = None

    def __repr__(self) -> str:
        return f"<CompiledCode of {one_line(self.entry, 80)} for {self.target.cpu}, {len(self.object)} bytes>"

    @property
    def llvm_ir_optimized(self) -> str:
        """The LLVM IR behind the pass pipeline; made anew at each call."""
        with _optimized(self.llvm_ir, self.target, self.options) as (module, _):
            return str(module)

    @property
    def assembly(self) -> str:
        """The target's assembly; made anew at each call."""
        with _optimized(self.llvm_ir, self.target, self.options) as (module, machine):
            return str(machine.emit_assembly(module))


@dataclass(frozen=True, slots=True)
class EmittedCode:
    """A module as LLVM IR, before LLVM; ``source`` is what its line tables speak of, None if it has none."""

    module: EmittedModule
    target: Target
    options: CodegenOptions
    source: NestSource | None

    def compile(self) -> CompiledCode:
        """The object code, made by LLVM, which needs neither Python nor its lock, or taken from the cache."""
        made = self.module
        return compile_text(made.text, made.entry, made.messages, self.target, self.options, made.externs, self.source)


def emit_code(module: IRModule, target: Target, options: CodegenOptions) -> EmittedCode:
    """Emit a module, whose parallel loops have been outlined."""
    lines = module_lines(module) if options.line_tables else None
    emitted = timed(emit_module, module, target, options, lines)
    source = kept_source(emitted.entry, f"{module}\n") if options.line_tables else None
    return EmittedCode(emitted, target, options, source)


def compile_module(module: IRModule, target: Target, options: CodegenOptions | None = None) -> CompiledCode:
    """Compile a module, whose parallel loops have been outlined, or take its object code from the cache."""
    return emit_code(module, target, options or CodegenOptions()).compile()


def compile_text(
    text: str,
    entry: str,
    messages: tuple[str, ...],
    target: Target,
    options: CodegenOptions,
    externs: tuple[str, ...] = (),
    source: NestSource | None = None,
) -> CompiledCode:
    """Compile LLVM IR of ours, or take its object code from the cache."""
    located = text if source is None else source.named_in(text)
    cache = disk_cache() if options.cache else None
    key = cache_key("object", located, target, options, _SOURCES)
    code = None if cache is None else _cached(cache, key, target, entry)
    if code is None:
        with (
            TimedStage("llvm"),
            _optimized(located, target, options) as (optimized, machine),
            TimedStage("emit_object"),
        ):
            code = bytes(machine.emit_object(optimized))
        if cache is not None:
            cache.put(key, About("object", entry, str(target), compiler_version()), code)
    return CompiledCode(code, entry, messages, text, target, options, externs, source)


def _cached(cache: DiskCache, key: str, target: Target, entry: str) -> bytes | None:
    """Object code from the cache; None if there is none that can be loaded."""
    code = cache.get(key)
    if code is not None:
        try:
            check_object(code, target, entry)
        except ModelError as error:
            cache.drop(key, str(error))
            return None
    return code


class MarkedTexts(NamedTuple):
    """A module with line tables: LLVM IR as emitted and behind the passes, with debug metadata; assembly with ``.loc``.
    The lines are those of the module's text."""

    llvm_ir: str
    llvm_ir_optimized: str
    assembly: str


def texts_with_lines(module: IRModule, target: Target, options: CodegenOptions) -> MarkedTexts:
    """What a module becomes when it has line tables."""
    emitted = emit_module(module, target, options, module_lines(module))
    with _optimized(emitted.text, target, options) as (optimized, machine):
        return MarkedTexts(emitted.text, str(optimized), str(machine.emit_assembly(optimized)))


@contextmanager
def _optimized(
    text: str, target: Target, options: CodegenOptions
) -> Iterator[tuple[llvm.ModuleRef, llvm.TargetMachine]]:
    """The module behind the passes, and the machine that they had in view.

    It is freed with the block, and its context after it: were both left to the collector of cycles, as happens where
    somebody keeps a frame or a traceback, that may free the context first, and the process would crash.
    """
    require_for_compiling(text)
    machine = target_machine(target, options.opt_level)
    with llvm.create_context() as context:
        try:
            module = timed(llvm.parse_assembly, text, context)
        except RuntimeError as error:
            raise _rejected(error) from error
        with module:
            try:
                timed(module.verify)
            except RuntimeError as error:
                raise _rejected(error) from error
            timed(optimize, module, machine, options.opt_level)
            yield module, machine


def _rejected(error: RuntimeError) -> InternalError:
    return InternalError(f"LLVM rejects the code generated:\n{error}")

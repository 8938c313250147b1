"""Kernels: compiled functions that are called with arrays, and their outputs written in place."""

from __future__ import annotations

import ctypes
import os
import re
import struct
from collections.abc import Callable, Sequence
from typing import Any, Literal, NoReturn, TypeAlias

from ..base.brief import listed, one_line
from ..base.errors import (
    BoundsError,
    InternalError,
    KernelError,
    LoopwrightError,
    OutOfMemoryError,
    RuntimeArgumentError,
    TargetError,
)
from ..base.freed_memory import keep_freed
from ..base.target import Target
from ..codegen.abi import CONTEXT_SLOTS, OUT_OF_MEMORY, PARALLEL_FOR, RECORD
from ..codegen.compile import CompiledCode
from ..codegen.heap_use import heap_use
from ..codegen.jit import load
from ..codegen.mlir.loops import loops_text
from ..codegen.report.report import VectorReport
from ..ir.constants import const_int
from ..ir.interpret import interpret
from ..ir.stmt import PrimFunc
from .arguments import Arguments
from .arrays import Array, array_text
from .exports.export import Exported, Kind, export_kernel
from .foreign import why_not_here
from .functions.symbols import extern_addresses
from .measure.timing import Timing, measure
from .threads.default_threads import check_threads, default_threads
from .threads.thread_pool import thread_pool_symbols

_ENTRY = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p)
"""Calls of such a function release Python's lock."""

_CONTEXT = struct.Struct("q")

Entry: TypeAlias = Callable[[Any, Any], int]
"""``entry(ctx, args)``: native code, or what stands for it."""

Fail: TypeAlias = Callable[[int], NoReturn]
"""Raises the error that a code of an entry means."""


class Kernel:
    """A compiled function. Call it with one array per parameter, numpy or DLPack, outputs included: nothing is copied.

    Raises ``RuntimeArgumentError`` for arrays that do not fit, ``KernelError`` if a check in the function fails (of a
    debug build, ``BoundsError``), ``OutOfMemoryError``, and ``TargetError`` if it was compiled for another machine.
    Several threads may call one kernel at the same time. ``LOOPWRIGHT_INTERPRET=1``, when the kernel is made, has the
    interpreter run it.
    """

    def __init__(self, func: PrimFunc, code: CompiledCode, report: Callable[[], VectorReport] | None = None) -> None:
        _check_parts(func, code)
        self.func = func
        self.code = code
        self._report = report
        self._arguments = Arguments(func)
        self._pack = struct.Struct(f"{len(func.buffers) + len(self._arguments.dims)}q").pack
        self._threads = code.target.threads or default_threads()
        self._context = _CONTEXT.pack(self._threads)
        self._interpreted = interpret(func) if os.environ.get("LOOPWRIGHT_INTERPRET", "0") not in ("", "0") else None
        self._foreign = None if self._interpreted else why_not_here(code.target)
        if not self._interpreted and not self._foreign:
            symbols = thread_pool_symbols() if PARALLEL_FOR in code.llvm_ir else {}
            symbols.update(extern_addresses(code.externs, func.name))
            self._loaded = load(code, symbols)  # keeps the machine code in memory
            heap = heap_use(func)
            keep_freed((const_int(heap.once) or 0) + self._threads * (const_int(heap.each) or 0))
            self._address = self._loaded.address()
            native: Entry = _ENTRY(self._address)
            self._entry = self._checked_entry(native) if code.options.debug else native

    def __reduce__(self) -> tuple[Any, ...]:
        return Kernel, (self.func, self.code, self._report)

    def __copy__(self) -> Kernel:
        return self

    def __deepcopy__(self, memo: object) -> Kernel:
        return self

    def __call__(self, *arrays: object, threads: int | None = None) -> None:
        """Run the kernel on the arrays, with at most ``threads`` threads (default: the target's, or the system's)."""
        given = self._arguments.arrays(arrays)
        slots = self._arguments.slots(given)
        context = self._context if threads is None else _CONTEXT.pack(check_threads(threads))
        if self._interpreted is not None:
            self._interpreted(*given)
            return
        if self._foreign is not None:
            raise TargetError(self._foreign)
        error = self._entry(context, self._pack(*slots))
        if error:
            self._fail(error)

    def bind(self, *arrays: object, threads: int | None = None) -> BoundKernel:
        """The kernel with its arrays checked once, and kept: calling the result runs it on them again and again."""
        given = self._arguments.arrays(arrays)
        slots = self._arguments.slots(given)
        if self._foreign is not None:
            raise TargetError(self._foreign)
        entry = self._entry if self._interpreted is None else _interpreted_entry(self._interpreted, given)
        return BoundKernel(
            entry, self._fail, given, slots, self._threads if threads is None else check_threads(threads)
        )

    @property
    def why_untimed(self) -> str:
        """Why ``time`` refuses to time the kernel; empty where it does not."""
        if self._interpreted is not None:
            return f"{self.name} runs in the interpreter (LOOPWRIGHT_INTERPRET), whose time says nothing"
        return f"{self.name} is a debug build, whose time says nothing" if self.code.options.debug else ""

    def time(
        self,
        *arrays: object,
        repeats: int = 10,
        number: int | Literal["auto"] = "auto",
        threads: int | None = None,
    ) -> Timing:
        """Time the kernel on the arrays: ``repeats`` samples, each the mean over ``number`` calls in a row.

        The outputs are written; inputs stay in the caches as far as they fit. Raises like a call.
        """
        if self.why_untimed:
            raise LoopwrightError(self.why_untimed)
        bound = self.bind(*arrays, threads=threads)  # kept while it is timed: it holds what the code is called with
        return measure(self._address, *bound.arguments, repeats, number, self._fail)

    def _checked_entry(self, native: Entry) -> Entry:
        """The entry of a debug build: each call has a context of its own, in which the check that fails leaves a
        record. See ``codegen.abi``."""

        def entry(context: Any, args: Any) -> int:
            slots = (ctypes.c_int64 * CONTEXT_SLOTS)()
            ctypes.memmove(slots, context, _CONTEXT.size)
            error = native(slots, args)
            if slots[RECORD]:
                message = self.code.messages[slots[RECORD] - 1]
                raise BoundsError(f"{self.name}: {_filled(message, slots[RECORD + 1 :])}")
            return error

        return entry

    def _fail(self, error: int) -> NoReturn:
        if error == OUT_OF_MEMORY:
            raise OutOfMemoryError(f"{self.name}: there is no memory for its intermediate buffers")
        if 1 <= error <= len(self.code.messages):
            raise KernelError(f"{self.name}: {self.code.messages[error - 1]}")
        raise InternalError(f"{self.name} returned the unknown error code {error}")

    @property
    def name(self) -> str:
        """The name that the kernel was built with."""
        return self.func.name

    @property
    def target(self) -> Target:
        """What the kernel was compiled for."""
        return self.code.target

    @property
    def signature(self) -> str:
        """Name and parameters, as in ``row_sum(A: float32[n, 16], C: float32[n] (written))``."""
        return f"{self.name}({self._arguments})"

    @property
    def loop_ir(self) -> str:
        """The lowered loop nest."""
        return str(self.func)

    @property
    def mlir(self) -> str:
        """The lowered loop nest as a module of MLIR: func, memref, scf, arith, math and vector, for LLVM 18 or later.

        Raises ``MlirError`` where it holds something that MLIR has no form for.
        """
        return loops_text(self.func, contract=self.code.options.precision != "strict" and self.target.has_fma)

    @property
    def llvm_ir(self) -> str:
        """LLVM IR as loopwright emits it."""
        return self.code.llvm_ir

    @property
    def llvm_ir_optimized(self) -> str:
        """LLVM IR behind LLVM's passes."""
        return self.code.llvm_ir_optimized

    @property
    def assembly(self) -> str:
        """The target's assembly."""
        return self.code.assembly

    def export(self, folder: str | os.PathLike[str], kind: Kind = "object", name: str | None = None) -> Exported:
        """Write the kernel for programs without Python: code, and a header with one function of C.

        ``kind`` is ``"object"`` (an object file), ``"shared"`` (a shared library, where there is a linker), or
        ``"llvm"`` (LLVM IR as text). Files and the function are named ``name`` (default: the kernel's), made an
        identifier of C. Raises ``TargetError`` where there is no linker, ``ModelError`` where files cannot be written.
        """
        return export_kernel(self.func, self.code, folder, kind, name)

    def vector_report(self) -> VectorReport:
        """What became of each loop of the schedule: vector width, fma, spills, tails, and why code is scalar.

        It is read from the lowered function and from assembly, for which the schedule is compiled once more. Raises
        ``LoopwrightError`` for a kernel that was not built from a schedule.
        """
        if self._report is None:
            raise LoopwrightError(f"{self.name} was not built from a schedule: nothing is known of its loops")
        return self._report()

    def __repr__(self) -> str:
        how = "interpreted" if self._interpreted else f"for {self.target.cpu}, {self._threads} threads"
        return f"<Kernel {one_line(self.signature, 120)} {how}>"

    def _repr_html_(self) -> str:
        from .kernel_html import kernel_html  # it knows kernels

        return kernel_html(self)


class BoundKernel:
    """A kernel and its arrays: ``bound()`` runs it. The arrays are kept alive, and must not be resized in place."""

    __slots__ = ("_args", "_context", "_entry", "_fail", "_memory", "arrays")

    def __init__(self, entry: Entry, fail: Fail, arrays: Sequence[Array], slots: Sequence[int], threads: int) -> None:
        self.arrays = tuple(arrays)
        self._entry = entry
        self._fail = fail
        self._memory = (ctypes.c_int64 * (1 + len(slots)))(threads, *slots)
        start = ctypes.addressof(self._memory)
        # Pointers made once: the quickest form of argument that ctypes knows.
        self._context, self._args = ctypes.c_void_p(start), ctypes.c_void_p(start + ctypes.sizeof(ctypes.c_int64))

    def __call__(self) -> None:
        error = self._entry(self._context, self._args)
        if error:
            self._fail(error)

    def __repr__(self) -> str:
        return f"<BoundKernel on {listed(map(array_text, self.arrays))}>"

    def __reduce__(self) -> NoReturn:
        raise RuntimeArgumentError(
            "a bound kernel holds addresses of this process: pickle or copy the kernel, and bind it to the other arrays"
        )

    @property
    def arguments(self) -> tuple[ctypes.c_void_p, ctypes.c_void_p]:
        """What native code is called with: the context, and the slots. They live as long as this."""
        return self._context, self._args


def _check_parts(func: object, code: object) -> None:
    if not isinstance(func, PrimFunc) or not isinstance(code, CompiledCode):
        raise RuntimeArgumentError("kernels are made by lw.build, of a function and its compiled code")


def _filled(message: str, numbers: Sequence[int]) -> str:
    """The message of a check with the recorded numbers in place of ``{0}``, ``{1}`` …."""
    return re.sub(r"\{(\d+)\}", lambda place: str(numbers[int(place[1])]), message)


def _interpreted_entry(run: Callable[..., None], arrays: Sequence[Array]) -> Entry:
    def entry(context: object, args: object) -> int:
        run(*arrays)
        return 0

    return entry

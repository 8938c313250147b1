"""Loading object code into this process: one LLJIT for each module, released with the last reference to it."""

from __future__ import annotations

import ctypes
import ctypes.util
import itertools
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import zip_longest
from typing import TYPE_CHECKING

import llvmlite.binding as llvm

from ..artifact.nest_source import NestSource
from ..base.errors import InternalError
from ..base.target import Target
from .abi import LIBC_SYMBOLS, LIBM_SYMBOLS
from .llvm_memory import require_for_linking
from .machine import linking_machine
from .profiling.perf import LoadedFunctions, perf_wanted

if TYPE_CHECKING:
    from .compile import CompiledCode  # code is loaded without what makes it

_numbers = itertools.count()


class LoadedCode:
    """Machine code in memory. It stays there while this object lives: hold it as long as any address is in use."""

    def __init__(
        self,
        entry: str,
        objects: Sequence[bytes],
        target: Target,
        symbols: Mapping[str, int],
        exports: Sequence[str] = (),
        sources: Sequence[NestSource | None] = (),
    ) -> None:
        """``sources`` are those of the objects' line tables, None of one without; they are written where these say."""
        require_for_linking(objects)
        how = perf_wanted()
        told = [LoadedFunctions(image) for image in objects] if how else []
        builder = llvm.JITLibraryBuilder()
        for image in objects:
            builder.add_object_img(image)
        for name, address in {**_process_symbols(), **symbols}.items():
            builder.import_symbol(name, address)
        for name in dict.fromkeys((entry, *exports, *(functions.anchor for functions in told))):
            builder.export_symbol(name)
        # The older of LLVM's linkers is the one that tells debuggers of what it loads.
        self._jit = llvm.create_lljit_compiler(linking_machine(target.triple), use_jit_link=not any(sources))
        try:
            self._library = builder.link(self._jit, f"loopwright_{next(_numbers)}")
        except RuntimeError as error:
            raise InternalError(f"the machine code of {entry} cannot be linked: {error}") from error
        self.entry = entry
        for functions, source in zip_longest(told, sources):
            if source is not None:
                source.write()
            if how is not None and functions is not None:
                functions.tell(how, self.address(functions.anchor), None if source is None else source.path)

    def address(self, name: str | None = None) -> int:
        """The address of an exported function, the entry by default."""
        return int(self._library[name or self.entry])


def load(code: CompiledCode, symbols: Mapping[str, int] | None = None) -> LoadedCode:
    """Load machine code made for this machine; ``symbols`` gives the addresses of external functions, such as the
    thread pool's ``lw_parallel_for``."""
    sources = [] if code.source is None else [code.source]
    return LoadedCode(code.entry, [code.object], code.target, symbols or {}, sources=sources)


@cache
def _process_symbols() -> dict[str, int]:
    """Addresses of the few C functions that generated code may call."""
    libc = ctypes.CDLL(None)
    libm = ctypes.CDLL(ctypes.util.find_library("m"))
    found: dict[str, int] = {}
    for library, names in ((libc, LIBC_SYMBOLS), (libm, LIBM_SYMBOLS)):
        for name in names:
            address = ctypes.cast(getattr(library, name), ctypes.c_void_p).value
            if address is not None:
                found[name] = address
    return found

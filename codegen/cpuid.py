"""What an x86 processor says of itself that LLVM does not hand on: the instruction CPUID, run by a function of ours.

AMD64 Architecture Programmer's Manual, volume 3, appendix E: function 8000_001Ah, "performance optimization
identifiers".
"""

from __future__ import annotations

import ctypes
from functools import cache

import llvmlite.binding as llvm

_EXTENDED, _IDENTIFIERS = 0x8000_0000, 0x8000_001A
_PATH_BITS = ((3, 512), (2, 256), (0, 128))
"""Bits of EAX, and how wide the path for vectors is that each of them stands for."""

_SOURCE = """
define i32 @cpuid(i32 %function) {
  %said = call {i32, i32, i32, i32} asm "cpuid", "={ax},={bx},={cx},={dx},{ax},{cx}"(i32 %function, i32 0)
  %eax = extractvalue {i32, i32, i32, i32} %said, 0
  ret i32 %eax
}
"""


@cache
def vector_path_bits() -> int | None:
    """How many bits of a vector the units of the x86 processor at hand work on at once: wider vectors take them twice
    as long. None where it does not say, as those of Intel."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    llvm.initialize_native_asmparser()
    machine = llvm.Target.from_default_triple().create_target_machine()
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(_SOURCE, llvm.create_context()), machine)
    engine.finalize_object()
    eax = ctypes.CFUNCTYPE(ctypes.c_uint32, ctypes.c_uint32)(engine.get_function_address("cpuid"))
    if eax(_EXTENDED) < _IDENTIFIERS:
        return None
    said = eax(_IDENTIFIERS)
    return next((bits for bit, bits in _PATH_BITS if said >> bit & 1), None)

"""The native calling convention of kernels: what stands in the argument slots of an entry function, and its results.

``i32 name(ptr ctx, ptr args)``: ``args`` has 8-byte slots, the address of element 0 of each parameter buffer in order,
then the symbolic dimensions as i64. The result is 0, the number (from 1) of a failed assertion, ``OUT_OF_MEMORY``, or
``RECORDED``.

``ctx`` has 8-byte slots: the most threads to use, and behind that, for debug builds, what their checks record: at
``RECORD`` 0, or the number of the message of the check that failed first, then the numbers that the message names as
``{0}``, ``{1}`` …. That of a model with segments has the address of their table at ``SEGMENTS``
(``artifact/segment_table.py``); models have no debug builds.
"""

from __future__ import annotations

from ..ir.contents import free_vars
from ..ir.expr import Var
from ..ir.stmt import PrimFunc

OUT_OF_MEMORY = -1
RECORDED = -2
"""A check of a debug build has failed, and the record in the context tells which."""
CODE_BITS = 16
"""A model's entry returns the code of the step that failed in these low bits, and above them the step's number, from
1."""

RECORD = 1
MAX_RECORDED = 64
CONTEXT_SLOTS = RECORD + 1 + MAX_RECORDED
SEGMENTS = 7
"""The last word of a context's first cache line, which exports share with what else they keep there."""
ARCH_PRCTL, REQUEST_PERMISSION, TILE_DATA = 158, 0x1023, 18
"""What Linux is asked on x86-64 before tiles are used: the number of the system call, ARCH_REQ_XCOMP_PERM, and
XFEATURE_XTILEDATA."""
PARALLEL_FOR = "lw_parallel_for"
LIBC_SYMBOLS = ("aligned_alloc", "free", "memcpy", "memmove", "memset", "syscall")
LIBM_SYMBOLS = ("fma",)  # of float64, on targets without the instruction
EXTERNAL_SYMBOLS = (PARALLEL_FOR, *LIBC_SYMBOLS, *LIBM_SYMBOLS)
"""All that an object file may leave undefined."""


def symbolic_dims(func: PrimFunc) -> tuple[Var, ...]:
    """The scalars that an entry function takes, in the order of their slots: variables of the shapes, strides and
    offsets of its parameters by first appearance, then other parameters that are variables."""
    found: dict[Var, None] = {}
    for buffer in func.buffers:
        for part in (*buffer.shape, *(buffer.strides or ()), buffer.elem_offset):
            found.update(dict.fromkeys(free_vars(part)))
    found.update((p, None) for p in func.params if isinstance(p, Var))
    return tuple(found)

"""Names and types of C for what is exported."""

from __future__ import annotations

import re
from collections.abc import Iterable

from ...ir.dtype import DType
from ..module import symbol_name

_KEYWORDS = (
    "alignas alignof and and_eq asm auto bitand bitor bool break case catch char class compl concept const "
    "consteval constexpr constinit const_cast continue co_await co_return co_yield decltype default delete do "
    "double dynamic_cast else enum explicit export extern false float for friend goto if inline int long mutable "
    "namespace new noexcept not not_eq nullptr operator or or_eq private protected public register reinterpret_cast "
    "requires restrict return short signed sizeof static static_assert static_cast struct switch template this "
    "thread_local throw true try typedef typeid typename typeof union unsigned using virtual void volatile wchar_t "
    "while xor xor_eq NULL size_t errno linux unix int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t "
    "uint64_t"
)
"""Of C and of C++: a header serves both. And what headers of the system define."""

_TAKEN = (
    "main abort exit malloc calloc realloc printf puts open close lseek mmap munmap memcmp getpid clock_gettime "
    "sigfillset sigdelset read write exp log pow sin cos tan tanh sqrt floor ceil round fabs fmin fmax"
)
"""Functions that a program has already: its own entry, what exports call, and what compilers know by name."""

_RESERVED = frozenset(f"{_KEYWORDS} {_TAKEN}".split())


def c_name(name: str) -> str:
    """An identifier of C and C++ that reads like ``name``, and is the name of nothing else.

    >>> c_name("input.1"), c_name("1x"), c_name("double"), c_name("main")
    ('input_1', 'x_1x', 'double_', 'main_')
    """
    found = symbol_name(name).strip("_") or "x"  # leading underscores belong to the system
    if found[0].isdigit():
        found = f"x_{found}"
    found = re.sub("__+", "_", found)
    if found in _RESERVED or symbol_name(found) != found or found.startswith("pthread_"):
        found += "_"
    return found


def c_names(names: Iterable[str], taken: Iterable[str] = ()) -> list[str]:
    """Identifiers of C, each another one, whatever the case of letters: macros are in capitals."""
    used = {name.upper() for name in taken}
    found = []
    for name in names:
        plain = chosen = c_name(name)
        number = 2
        while chosen.upper() in used:
            chosen = f"{plain}_{number}"
            number += 1
        used.add(chosen.upper())
        found.append(chosen)
    return found


def c_type(kind: DType) -> str:
    """The type of an element: floats of 16 bits are their bits, a bool is a byte."""
    if kind.is_float and kind.bits != 16:
        return "float" if kind.bits == 32 else "double"
    signed = kind.is_data_int and kind.is_signed
    return f"{'' if signed else 'u'}int{kind.storage_bits}_t"


def c_comment(text: str) -> str:
    """Text that may stand in a comment of C, or of LLVM: a tensor's name can be anything."""
    plain = "".join(c if c.isprintable() else " " for c in text)
    return plain.replace("*/", "* /").replace("/*", "/ *").replace("??", "? ?")

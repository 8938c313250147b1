"""Names and types of C for what is exported."""

from __future__ import annotations

import re
from collections.abc import Iterable

from ...base.dtype import DType
from ...base.errors import RuntimeArgumentError
from ..module import symbol_name
from .c_words import FAMILIES, FUNCTIONS, WORDS


def c_name(name: str) -> str:
    """An identifier of C and C++ that reads like ``name``, and is no word of theirs.

    >>> c_name("input.1"), c_name("1x"), c_name("double"), c_name("memcpy")
    ('input_1', 'x_1x', 'double_', 'memcpy')
    """
    found = re.sub(r"\W", "_", name, flags=re.ASCII).strip("_") or "x"  # leading underscores belong to the system
    if found[0].isdigit():
        found = f"x_{found}"
    found = re.sub("__+", "_", found)
    return f"{found}_" if found in WORDS else found


def c_function_name(name: object) -> str:
    """The same for a function, which must not stand in the place of one that all programs have; nor must those that an
    export has beside it, such as ``NAME_destroy``.

    >>> c_function_name("memcpy"), c_function_name("main"), c_function_name("pthread_model"), c_function_name("sem")
    ('memcpy_', 'main_', 'pthread_model_', 'sem_')
    """
    if not isinstance(name, str):
        raise RuntimeArgumentError(f"the name of an exported function is text, found {name!r}")
    found = c_name(name)
    taken = found in FUNCTIONS | FAMILIES or found.startswith("pthread_") or symbol_name(found) != found
    return f"{found}_" if taken else found


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
    """The type of an element: floats of 16 bits and the narrow types are their bits, a bool is a byte."""
    if kind.is_float and kind.bits != 16:
        return "float" if kind.bits == 32 else "double"
    signed = kind.is_data_int and kind.is_signed
    return f"{'' if signed else 'u'}int{kind.storage_bits}_t"


def c_comment(text: str) -> str:
    """Text that may stand in a comment of C, or of LLVM: a tensor's name can be anything."""
    plain = "".join(c if c.isprintable() else " " for c in text)
    return plain.replace("*/", "* /").replace("/*", "/ *").replace("??", "? ?")

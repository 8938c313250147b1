"""scipy's BLAS: the addresses of its functions, which Cython's interface to them publishes, for compiled code to call.

Calls are made from our own threads, so its BLAS is set to one thread of its own when the first function is looked up.
"""

from __future__ import annotations

import ctypes
import importlib
import re
from functools import cache
from types import ModuleType

from ...base.errors import TargetError
from ...codegen.libraries import HOW_TO_GET_BLAS

BLAS_SYMBOLS = ("dgemm_", "sgemm_")
"""Fortran's names: what a program that is linked by hand finds in any BLAS with 32-bit integers."""

_SET_THREADS = ("scipy_openblas_set_num_threads", "openblas_set_num_threads", "MKL_Set_Num_Threads")
_C_TYPES = {"char": "int8_t", "int": "int32_t", "s": "float", "d": "double", "float": "float", "double": "double"}


def blas_address(symbol: str, prototype: str, program: str) -> int:
    """Where a function of BLAS is. Raises ``TargetError`` without scipy, and if its function has other parameters."""
    module = _cython_blas()
    if module is None:
        raise TargetError(
            f"{program} calls {symbol} of BLAS, which comes with scipy, but that is missing: {HOW_TO_GET_BLAS}"
        )
    capsule = module.__pyx_capi__[symbol.removesuffix("_")]
    name = ctypes.pythonapi.PyCapsule_GetName
    name.restype, name.argtypes = ctypes.c_char_p, [ctypes.py_object]
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    signature: bytes = name(capsule)
    found = c_prototype(symbol, signature.decode())
    if found != prototype:
        raise TargetError(f"{program} calls `{prototype}`, but this scipy has `{found}`: install another version of it")
    _one_thread(module)
    return int(pointer(capsule, signature))


def c_prototype(symbol: str, signature: str) -> str:
    """Cython's text of a function's type, ``void (char *, int *, __pyx_t_…_s *)``, as our prototypes are written."""
    inside = signature.partition("(")[2].removesuffix(")")
    kinds = [re.sub(r"^__pyx_t_\w*_(?=[sd]$)", "", part.strip(" *")) for part in inside.split(",")]
    params = ", ".join(f"{_C_TYPES.get(kind, kind)} *" for kind in kinds)
    return f"void {symbol}({params})"


@cache
def _cython_blas() -> ModuleType | None:
    try:
        return importlib.import_module("scipy.linalg.cython_blas")
    except ImportError:
        return None


@cache
def _one_thread(module: ModuleType) -> None:
    """Leave the threads to our pool: two pools would wait for each other's cores. Affects all of scipy's BLAS.

    The library stands among those that the module is linked to, where its symbols can be asked for. A BLAS that is
    none of the known ones keeps its threads, as its environment variables say.
    """
    library = ctypes.CDLL(module.__file__)
    for name in _SET_THREADS:
        if hasattr(library, name):
            getattr(library, name)(1)
            return

"""The libraries that a target may name by ``-libs=``, for implementations of operators that call them."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec

from ..base.errors import TargetError

HOW_TO_GET_BLAS = "pip install 'loopwright[blas]'"
LIBRARIES = {"cblas": ("scipy", HOW_TO_GET_BLAS)}
"""The Python package that brings a library, and how to get that."""


def check_libraries(target: str, names: Sequence[str]) -> None:
    """Raises ``TargetError`` for a library that is unknown, or that is missing in this installation."""
    for name in names:
        if name not in LIBRARIES:
            raise TargetError(f"target {target!r}: there is no library {name!r}; -libs= takes {', '.join(LIBRARIES)}")
    for name in names:
        package, how_to_get = LIBRARIES[name]
        if not _is_installed(package):
            raise TargetError(f"target {target!r}: {name} comes with {package}, which is missing: {how_to_get}")


def _is_installed(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except ImportError:
        return False

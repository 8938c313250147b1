"""The reference interpreter: runs the loop IR on numpy arrays and checks each access. The oracle for code generation.

Nothing here is fast or clever on purpose: values follow the semantics in ``expr.py`` and ``stmt.py``, one element at a
time, and every access is checked for bounds, for memory never written, and for races between the iterations of
parallel and vectorized loops, which run backwards so that a hidden order shows.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...base.errors import InterpretError, RuntimeArgumentError
from ..stmt import IRModule, PrimFunc
from .arguments import bind_arguments
from .run import TranslatedModule

__all__ = ["interpret"]


def interpret(func: PrimFunc | IRModule) -> Callable[..., None]:
    """A function of numpy arrays, one per parameter buffer, that runs the program and writes its outputs in place.

    Calling it raises ``RuntimeArgumentError`` for arrays that do not fit the parameters, and ``InterpretError`` for an
    access out of bounds, a read of memory never written, a race, a failed assertion, a division of an index by 0.
    """
    if not isinstance(func, (PrimFunc, IRModule)):
        raise RuntimeArgumentError(f"interpret takes what lower gives, found {func!r}")
    module = func if isinstance(func, IRModule) else IRModule((func,))
    entry = module.entry
    compiled = TranslatedModule(module).function(entry.name)
    assert compiled is not None

    def run(*arrays: object) -> None:
        memories, dims = bind_arguments(entry, arrays)
        bound: list[tuple[int, object]] = [(compiled.slot(var), value) for var, value in dims.items()]
        buffer_slots = [compiled.slot(buffer.data) for buffer in entry.buffers]
        bound.extend(zip(buffer_slots, memories, strict=True))
        with np.errstate(all="ignore"):
            try:
                compiled.call([], bound)
            except OverflowError as error:
                raise InterpretError(f"{entry.name}: an index value does not fit 64 bits") from error

    run.__name__ = run.__qualname__ = f"interpret_{entry.name}"
    return run

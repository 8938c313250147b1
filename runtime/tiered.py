"""Libraries that are still being compiled, and what serves their calls until then: plain code, which is replaced as a
whole between two calls.
"""

from __future__ import annotations

import logging
import threading
import weakref
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Protocol

from threadpoolctl import ThreadpoolController

from ..artifact.model import CompiledModel
from ..base.timing import CompileTiming
from .arrays import Array
from .dimensions import make_plan
from .executor_set import ExecutorSet
from .library import Library
from .outputs import RunOutputs
from .signature import Signature, Values

_log = logging.getLogger("loopwright.engine")


class PlainCode(Protocol):
    """What runs a model without being compiled. ``shown`` has its inputs and outputs, and no code."""

    @property
    def shown(self) -> CompiledModel:
        """The model as callers see it."""

    def __call__(self, arrays: Sequence[Array]) -> list[Array]:
        """New arrays for the outputs. Raises an error where it cannot run on these inputs."""


class TieredLibrary(Library):
    """A library whose model is being compiled. ``plain`` serves the calls of engines meanwhile; None: they wait.

    ``compilation`` is the future of the library that will serve them. Whatever asks for its code, such as ``save``,
    waits for that, and raises what made it fail. Mutable: the future; the plain code goes when it is done."""

    def __init__(self, plain: PlainCode | None, compilation: Future[Library], source: Path | None) -> None:
        self.plain = plain
        self.source = source
        self.shares = {}
        self._compilation = compilation
        compilation.add_done_callback(_plain_no_longer(weakref.ref(self)))

    @property
    def is_compiled(self) -> bool:
        """Whether the code is there."""
        return self._compilation.done() and self._compilation.exception() is None

    @property
    def compilation(self) -> Future[Library]:
        """The compilation; ``result()`` waits for it, and raises what made it fail."""
        return self._compilation

    @property
    def model(self) -> CompiledModel:
        """What the model was compiled to, when that is done."""
        return self._compilation.result().model

    @property
    def timings(self) -> CompileTiming | None:
        """Nothing: another process compiles, and its result is loaded."""
        return None

    @property
    def shown(self) -> CompiledModel:
        """The model, or while it is being compiled, one without code that has the same inputs and outputs."""
        plain = self.plain
        return self.model if plain is None or self.is_compiled else plain.shown

    def __repr__(self) -> str:
        if self.is_compiled:
            return super().__repr__()
        state = "which failed" if self._compilation.done() else "which goes on"
        served = "its calls wait" if self.plain is None else "plain code serves it"
        return f"<Library under compilation, {state}; {served}>"

    def _repr_html_(self) -> str | None:  # type: ignore[override]  # None: what shows it takes its `repr`
        return super()._repr_html_() if self.is_compiled else None

    def __reduce__(self) -> tuple[type[Library], tuple[CompiledModel, Path | None]]:
        return Library, (self.model, self.source)  # when it is compiled


def _plain_no_longer(library: weakref.ref[TieredLibrary]) -> Callable[[Future[Library]], None]:
    """What gives back the memory of the plain code of a library that is compiled."""

    def drop(done: Future[Library]) -> None:
        if (found := library()) is not None and done.exception() is None:
            found.plain = None

    return drop


class PlainExecutors:
    """Runs plain code in the place of executors, one call at a time. It leaves all processors but one to the
    compilation: where others are busy, a product of matrices that waits for its part on each of them takes many times
    as long. What plain code cannot run is left to the executors of the compiled code, which ``compiled`` waits for.
    Mutable: the thread that runs what is submitted."""

    def __init__(self, code: PlainCode, signature: Signature, compiled: Callable[[], ExecutorSet]) -> None:
        self._code, self._signature, self._compiled = code, signature, compiled
        self._lock, self._turn = threading.Lock(), threading.Lock()
        self._blas = ThreadpoolController().select(user_api="blas")
        self._worker: ThreadPoolExecutor | None = None

    def run(self, inputs: Sequence[Array], out: Values | None, context: bytes | None) -> RunOutputs:
        """The outputs for checked inputs."""
        plan = make_plan(self._code.shown, [array.shape for array in inputs])
        buffers = None if out is None else self._signature.output_arrays(out, plan.outputs, inputs)
        try:
            with self._turn, self._blas.limit(limits=1):  # of the whole process, so that one call may set it at a time
                outputs = self._code(inputs)
        except Exception as error:  # whatever it is, compiled code serves the call, and raises what is to be raised
            _log.info(
                "%s: a call waits for the compiled code: %s: %s", self._signature.name, type(error).__name__, error
            )
            return self._compiled().run(inputs, out, context)
        if buffers is not None:
            for buffer, output in zip(buffers, outputs, strict=True):
                buffer[...] = output
        return RunOutputs(outputs if buffers is None else buffers, self._signature.output_positions)

    def submit(self, inputs: Sequence[Array], out: Values | None, context: bytes | None) -> Future[RunOutputs]:
        """A run on another thread."""
        with self._lock:
            if self._worker is None:
                self._worker = ThreadPoolExecutor(1, "loopwright-plain")
            return self._worker.submit(self.run, inputs, out, context)

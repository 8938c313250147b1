"""``lw.compile(…, tiered=True)``: plain code serves a model at once, while another process compiles it.

The process is a fresh interpreter, which leaves this one's lock to whoever calls the model. It is given the request on
a pipe, answers where it has put the library, and ends with its parent. Where operators or strategies were registered in
this process, which no other has, a thread of it compiles.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO

from ..base.child_python import pipes_of, python_command
from ..base.errors import InternalError, LoopwrightError, OutOfMemoryError
from ..base.memory import ended_without_memory
from ..compiler.model.plain_model import plain_model
from ..compiler.settings import CompileSettings
from ..graph.node import Function
from ..ops.definition.foreign_code import is_any_foreign
from ..runtime.library import Library, load
from ..runtime.tiered import TieredLibrary

_PROGRAM = """import sys
from {module} import serve
serve(sys.stdin.buffer, sys.stdout.buffer)
"""


def tiered_library(
    import_graph: Callable[[], Function],
    settings: CompileSettings,
    source: Path | None,
    whole: Callable[[], Library],
) -> TieredLibrary:
    """The library that plain code serves of a model that ``whole`` compiles, a call of ``lw.compile`` that can be
    pickled. The model is imported here as well, which raises ``ModelError`` where that fails."""
    compilation: Future[Library] = Future()
    compilation.set_running_or_notify_cancel()
    process = None if is_any_foreign() else _start()
    try:
        plain = plain_model(import_graph(), settings)
    except BaseException:
        if process is not None:
            _end(process)
        raise
    library = TieredLibrary(plain, compilation, source)
    if process is None:
        work = whole
    else:
        work = partial(_compiled_by, process, whole)
        weakref.finalize(library, _end, process)
    threading.Thread(target=_fulfil, args=(compilation, work), name="loopwright-compile", daemon=True).start()
    return library


def _fulfil(compilation: Future[Library], work: Callable[[], Library]) -> None:
    try:
        made = work()
    except BaseException as error:  # whatever it is, those that wait must hear of it
        compilation.set_exception(error)
    else:
        compilation.set_result(made)


def _start() -> subprocess.Popen[bytes]:
    # In a group of its own, Ctrl-C in a terminal does not reach it: the caller may go on, or ends it.
    command = python_command(_PROGRAM.format(module=__name__))
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, process_group=0)


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a process whose result nobody wants any more."""
    process.kill()
    with process, suppress(BrokenPipeError):  # the process closes the pipes
        pipes_of(process)[0].close()


def _compiled_by(process: subprocess.Popen[bytes], whole: Callable[[], Library]) -> Library:
    """What the process makes of the request. Raises what it raised, ``OutOfMemoryError`` or ``InternalError`` where it
    ended without a word."""
    requests, answers = pipes_of(process)
    with TemporaryDirectory(prefix="loopwright-", ignore_cleanup_errors=True) as folder, process:
        path = Path(folder, "model.lwlib")
        try:
            pickle.dump((str(path), pickle.dumps(whole)), requests)
            requests.flush()
            error = pickle.load(answers)
        except (EOFError, BrokenPipeError, pickle.UnpicklingError):
            error = _why_it_died(process.wait())
        with suppress(BrokenPipeError):
            requests.close()
        process.wait()
        if error is not None:
            raise error
        return load(path)


def _why_it_died(status: int) -> LoopwrightError:
    if ended_without_memory(status):
        return OutOfMemoryError(
            f"the process that compiled the model ended (status {status}), as where memory is short"
        )
    return InternalError(f"the process that compiled the model died ({status})")


def serve(requests: IO[bytes], answers: IO[bytes]) -> None:
    """Compile what is requested, and answer with None, or the error that prevents it. The process ends when the pipe of
    requests does."""
    output = os.dup(answers.fileno())
    os.dup2(sys.stderr.fileno(), answers.fileno())  # what is printed is no answer
    path, request = pickle.load(requests)
    threading.Thread(target=_end_with, args=(requests.fileno(),), daemon=True).start()
    with os.fdopen(output, "wb") as pipe:
        pickle.dump(_answer(path, request), pipe)


def _end_with(requests: int) -> None:
    """End this process when the other one closes its end of the pipe, which it does when it ends, too. The pipe is read
    without a buffer, whose lock would be held while the interpreter ends."""
    while os.read(requests, 1):
        pass
    os._exit(0)


def _answer(path: str, request: bytes) -> Exception | None:
    try:
        pickle.loads(request)().save(path)
    except LoopwrightError as error:
        return error
    except Exception as error:
        return InternalError(f"compiling the model failed: {type(error).__name__}: {error}")
    return None

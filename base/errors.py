"""The error hierarchy. Every mistake a user can make surfaces as one of these; ``InternalError`` is ours to fix."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from .model_problem import ModelProblem


class LoopwrightError(Exception):
    """The base class of all errors that loopwright raises on purpose."""


class ExpressionError(LoopwrightError, TypeError):
    """An expression or a compute is malformed: mixed dtypes, wrong rank, an index out of bounds, ``bool(expr)``."""


class IndexRangeError(ExpressionError):
    """A number is too large for an index."""


class ScheduleError(LoopwrightError):
    """A scheduling primitive would change the meaning of the program, or names a loop that is not there (any more)."""


class TraceError(ScheduleError):
    """A trace cannot be read, or replayed on a schedule. ``step`` is the number of the step at fault, from 1, or None
    where it is the trace as a whole."""

    def __init__(self, message: str, step: int | None = None) -> None:
        super().__init__(message)
        self.step = step


class TypeInferenceError(LoopwrightError, TypeError):
    """The types of an operator's inputs do not fit together, or a graph node is asked for what it does not have."""


class ModelError(LoopwrightError):
    """A model or library file is damaged, foreign or not supported. ``problems`` is all that stops a model which is not
    supported, each by itself; it is empty for other errors."""

    def __init__(self, message: str, problems: Iterable[ModelProblem] = ()) -> None:
        super().__init__(message)
        self.problems = tuple(problems)


class TargetError(LoopwrightError):
    """A target is unknown, or lacks what the program needs."""


class SelectionError(LoopwrightError):
    """No implementation of an operator fits the call, or what makes one fails."""


class RecordError(LoopwrightError):
    """A tuning record is malformed, or the file of records cannot be read or written."""


class RuntimeArgumentError(LoopwrightError, ValueError):
    """A kernel or engine was called with arrays that do not fit its signature."""


class KernelError(LoopwrightError, RuntimeError):
    """A check in running native code failed: the message is that of the failed assertion."""


class BoundsError(KernelError):
    """A debug build met an access out of bounds, or an index divided by 0."""


class OutOfMemoryError(LoopwrightError, MemoryError):
    """There is not enough memory to compile, load or run something, or it would take more than its limit."""


class CacheError(LoopwrightError):
    """The on-disk cache cannot be read or written."""


class MlirError(LoopwrightError):
    """A program holds something that MLIR, at the level asked for, has no form for."""


class InterpretError(LoopwrightError):
    """The interpreter met an access out of bounds, a read of memory never written, or a race."""


class InternalError(LoopwrightError):
    """A bug in loopwright itself. ``problem`` is the message without the request to report it."""

    request: ClassVar[str] = (
        "This is a bug in loopwright. Please report it with the program and the text of this error; "
        "LOOPWRIGHT_DUMP_IR=<folder> writes the intermediate programs that help to find it."
    )

    def __init__(self, message: str) -> None:
        self.problem = message
        super().__init__(f"{message}\n{self.request}")

    def __reduce__(self) -> tuple[type[InternalError], tuple[str]]:
        """Pickled, as between processes that compile, without the request, which is added where it is read again."""
        return type(self), (self.problem,)


class VerificationError(InternalError):
    """A pass produced (or a user built by hand) a program that breaks the rules of the loop IR."""

    request = (
        "If you built this program by hand, change what the message names. If loopwright made it, that is a bug in "
        "loopwright: please report it with the program and the text of this error; LOOPWRIGHT_DUMP_IR=<folder> writes "
        "the intermediate programs that help to find it."
    )

"""``lw.kernel``: a function of tensors that is called with arrays, and compiled for their shapes and dtypes."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Hashable, Sequence
from functools import update_wrapper
from typing import Any, overload

from ..artifact.options import CodegenOptions, Precision
from ..base.errors import RuntimeArgumentError
from ..base.quantities import count_text
from ..base.target import Target
from ..codegen.host import resolve_target
from .arguments import Argument, ArrayArgument, Parameters, has_tensors
from .cache import SpecializationCache
from .specialization import Specialization
from .trace import KernelOptions, ScheduleFunction, specialize

CAPACITY = 128
"""Most specialisations that a kernel function keeps."""


class KernelFunction:
    """A function of tensors, called with arrays: ``lw.kernel`` makes it, and tells how it is called.

    ``specialize`` gives what it became for certain arguments. Several threads may call it at the same time.
    """

    def __init__(self, function: Callable[..., Any], options: KernelOptions) -> None:
        self._name = getattr(function, "__name__", type(function).__name__).strip("<>")
        self._function = function
        self._parameters = Parameters(self._name, function)
        self._options = options
        self._cache = SpecializationCache(self._name, CAPACITY)
        update_wrapper(self, function, updated=())  # the function may be one of these, with fields of its own

    def __call__(self, *args: Any, out: Any = None, **kwargs: Any) -> Any:
        """Compute arrays from arrays; ``out`` are the arrays to write them into, one or a tuple.

        Given tensors in place of arrays, as by another kernel, it gives tensors.
        """
        bound = self._parameters.bind(args, kwargs)
        if has_tensors(bound):
            if out is not None:
                raise RuntimeArgumentError(f"kernel {self._name}: there is no out for tensors, which have no memory")
            return self._function(*bound.args, **bound.kwargs)
        arguments = self._parameters.arguments(bound)
        made = self._specialized(bound, arguments)
        return made.run([argument for argument in arguments if isinstance(argument, ArrayArgument)], out)

    def specialize(self, *args: Any, **kwargs: Any) -> Specialization:
        """What a call with arguments like these runs: its kernel and its schedule. Nothing is computed."""
        bound = self._parameters.bind(args, kwargs)
        return self._specialized(bound, self._parameters.arguments(bound))

    @property
    def specializations(self) -> tuple[Specialization, ...]:
        """What was made so far and is kept, that which was asked for last at the end."""
        return self._cache.values()

    def _specialized(self, bound: inspect.BoundArguments, arguments: Sequence[Argument]) -> Specialization:
        key: Hashable = tuple((argument.name, argument.key) for argument in arguments)
        return self._cache.get(
            key,
            lambda: specialize(self._name, self._function, self._parameters, bound, arguments, self._options),
        )

    def __copy__(self) -> KernelFunction:
        return self

    def __deepcopy__(self, memo: object) -> KernelFunction:
        return self

    def __reduce__(self) -> str:
        return str(self.__dict__["__qualname__"])  # as functions are pickled: by name

    def __repr__(self) -> str:
        return f"<KernelFunction {self._name}, {count_text(len(self.specializations), 'specialization')}>"


@overload
def kernel(function: Callable[..., Any]) -> KernelFunction: ...
@overload
def kernel(
    *,
    schedule: ScheduleFunction | None = ...,
    target: str | Target | None = ...,
    precision: Precision = ...,
) -> Callable[[Callable[..., Any]], KernelFunction]: ...
def kernel(
    function: Callable[..., Any] | None = None,
    *,
    schedule: ScheduleFunction | None = None,
    target: str | Target | None = "native",
    precision: Precision = "standard",
) -> KernelFunction | Callable[[Callable[..., Any]], KernelFunction]:
    """Decorator: a function of tensors becomes one of arrays, compiled at the first call for each set of shapes, dtypes
    and constants.

    The function gets a tensor for each array, and returns a tensor or a tuple of them: of ``te.compute``, of operators
    and functions of numpy on whole tensors, of ``lw.nn``. Calls take arrays of numpy, or such as support DLPack, and
    give new arrays of numpy, or write those given as ``out``. Inputs that are not contiguous are copied. Scalars of
    numpy are arrays without axes; numbers of Python, strings, None and tuples of these are constants of the program:
    each new value compiles anew.

    ``schedule`` is a function that schedules: it gets the naive schedule, whose stages it knows by their names, and
    changes it, or returns another; by default ``lw.default_schedule`` makes one. ``target`` and ``precision`` are those
    of ``lw.build``. The last 128 specialisations are kept.

    Raises ``RuntimeArgumentError`` for arguments that are neither arrays nor constants, and for an ``out`` that does
    not fit; ``ExpressionError``, ``TypeInferenceError`` and ``ScheduleError``, which name kernel and arguments, where
    there is a mistake in what the function computes; and what ``lw.build`` and calls of its kernels raise.

    >>> import numpy as np
    >>> import loopwright as lw
    >>> @lw.kernel
    ... def scaled(x, y):
    ...     return np.exp(x) * y + 1
    >>> scaled(np.zeros((2, 3), np.float32), np.arange(3, dtype=np.float32))
    array([[1., 2., 3.],
           [1., 2., 3.]], dtype=float32)
    """
    if schedule is not None and not callable(schedule):
        raise RuntimeArgumentError(f"kernel: schedule is a function that schedules, found {schedule!r}")
    options = KernelOptions(schedule, resolve_target(target), CodegenOptions(precision=precision))

    def make(function: Callable[..., Any]) -> KernelFunction:
        if not callable(function):
            raise RuntimeArgumentError(f"kernel takes a function of Python, found {function!r}")
        return KernelFunction(function, options)

    return make if function is None else make(function)

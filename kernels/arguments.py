"""The arguments of a call of a kernel function: arrays, of which shapes and dtypes count, and constants.

argument ::= ArrayArgument(name, array)            numpy or DLPack; a scalar of numpy is an array without axes
           | ConstantArgument(name, value)         a number, string, None, dtype, function or type of Python, or a
                                                   tuple of these
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, TypeAlias

import numpy as np

from ..base.dataclass import dataclass
from ..base.dtype import DType, dtype
from ..base.errors import ExpressionError, RuntimeArgumentError
from ..runtime.arrays import Array, array_text, as_array
from ..te.tensor import Tensor

_CONSTANTS = (bool, int, float, complex, str, bytes, type(None), np.dtype, DType, type)


@dataclass(frozen=True, slots=True, eq=False)
class ArrayArgument:
    """An array, contiguous and in the byte order of the machine; ``kind`` is its dtype as tensors have it."""

    name: str
    array: Array
    kind: DType

    @property
    def key(self) -> Hashable:
        """What a kernel depends on."""
        return self.array.shape, self.kind.name

    def __str__(self) -> str:
        return f"{self.name}: {array_text(self.array)}"


@dataclass(frozen=True, slots=True, eq=False)
class ConstantArgument:
    """An argument that is part of what is compiled: another value of it makes another kernel."""

    name: str
    value: object

    @property
    def key(self) -> Hashable:
        """The value; floats by their text, since 0.0 is not -0.0, and with its type, since 1 is not True."""
        return _key(self.value)

    def __str__(self) -> str:
        return f"{self.name}={self.value!r}"


Argument: TypeAlias = ArrayArgument | ConstantArgument


class Parameters:
    """The parameters of a function: from what a call gives to its arguments, and on to what the function is given.

    ``kernel`` names the function in errors.
    """

    def __init__(self, kernel: str, function: Callable[..., Any]) -> None:
        self._kernel = kernel
        try:
            self._signature = inspect.signature(function)
        except (TypeError, ValueError):
            raise RuntimeArgumentError(f"kernel takes a function of Python, found {function!r}") from None
        if "out" in self._signature.parameters:
            raise RuntimeArgumentError(
                f"kernel {kernel}: a parameter is called out, by which calls name the arrays to write: rename it"
            )

    def bind(self, args: Sequence[object], kwargs: Mapping[str, object]) -> inspect.BoundArguments:
        """What is given, by parameter, defaults included. Raises ``RuntimeArgumentError`` where it does not fit."""
        try:
            bound = self._signature.bind(*args, **kwargs)
        except TypeError as error:
            raise RuntimeArgumentError(f"kernel {self._kernel}{self._signature}: {error}") from None
        bound.apply_defaults()
        return bound

    def arguments(self, bound: inspect.BoundArguments) -> list[Argument]:
        """The arguments in order. Raises ``RuntimeArgumentError`` for what is neither an array nor a constant."""
        return [self._argument(name, value) for name, value in self._values(bound)]

    def given(self, bound: inspect.BoundArguments, values: Iterator[object]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """What the function is called with: ``values``, in the order of ``arguments``."""
        args: list[Any] = []
        kwargs: dict[str, Any] = {}
        for name, parameter in self._signature.parameters.items():
            match parameter.kind:
                case parameter.VAR_POSITIONAL:
                    args += [next(values) for _ in bound.arguments[name]]
                case parameter.VAR_KEYWORD:
                    kwargs.update({key: next(values) for key in bound.arguments[name]})
                case parameter.KEYWORD_ONLY:
                    kwargs[name] = next(values)
                case _:
                    args.append(next(values))
        return tuple(args), kwargs

    def _values(self, bound: inspect.BoundArguments) -> Iterator[tuple[str, object]]:
        for name, parameter in self._signature.parameters.items():
            value = bound.arguments[name]
            match parameter.kind:
                case parameter.VAR_POSITIONAL:
                    yield from ((f"{name}{number}", each) for number, each in enumerate(value))
                case parameter.VAR_KEYWORD:
                    yield from value.items()
                case _:
                    yield name, value

    def _argument(self, name: str, value: object) -> Argument:
        where = f"argument {name} of kernel {self._kernel}"
        if isinstance(value, np.generic):
            value = np.asarray(value)
        if isinstance(value, np.ndarray) or hasattr(value, "__dlpack__"):
            return _array_argument(name, as_array(value, where), where)
        if _is_constant(value):
            return ConstantArgument(name, value)
        advice = "numpy.asarray makes an array" if isinstance(value, (list, tuple)) else "pass an array or a number"
        raise RuntimeArgumentError(f"{where} is of type {type(value).__name__}, no array and no constant: {advice}")


def has_tensors(bound: inspect.BoundArguments) -> bool:
    """Whether tensors of ``te`` are given, as where one kernel calls another."""
    flat = (v for value in bound.arguments.values() for v in (value if isinstance(value, tuple) else (value,)))
    return any(isinstance(value, Tensor) for value in flat)


def _array_argument(name: str, array: Array, where: str) -> ArrayArgument:
    try:
        kind = _kind(array.dtype)
    except ExpressionError:
        raise RuntimeArgumentError(f"{where} has dtype {array.dtype}, which tensors cannot have: convert it") from None
    flags = array.flags
    if not (flags.c_contiguous and flags.aligned and array.dtype.isnative):
        array = np.require(array, kind.to_numpy(), ("C", "A"))
    return ArrayArgument(name, array, kind)


@cache
def _kind(of_numpy: np.dtype[Any]) -> DType:
    return dtype(of_numpy)


def _is_constant(value: object) -> bool:
    if isinstance(value, tuple):
        return all(map(_is_constant, value))
    return isinstance(value, _CONSTANTS) or inspect.isroutine(value) or isinstance(value, np.ufunc)


def _key(value: object) -> Hashable:
    if isinstance(value, tuple):
        return tuple(map(_key, value))
    return type(value), repr(value) if isinstance(value, (float, complex)) else value

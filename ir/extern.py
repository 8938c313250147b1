"""Functions of C or Fortran that a program calls by their symbol, and the pieces of memory that it hands to them.

    ExternFunction(symbol, params)        what it is called, and how each argument is passed
    Region(buffer, begin, extents)        a box of a buffer; the function gets the address of its first element

What a call reads and writes is what its regions say, see ``ExternParam``; its other effects, if it has any, are its
own. It keeps no address that it was given. ``reference`` is its meaning in numpy, which the interpreter runs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, cast, get_args

from ..base.brief import one_line
from ..base.dataclass import dataclass
from ..base.dtype import NARROW_KINDS, DType, dtype
from ..base.errors import ExpressionError
from .buffer import Buffer
from .expr import Expr
from .makers import maximum, minimum
from .tiles import TileCode

Passing = Literal["value", "reference", "read", "write", "update"]
"""``value`` and ``reference`` are scalars, the latter by the address of a copy, as Fortran wants it. The others are
regions: of one to ``read`` nothing is changed; one to ``write`` is written whole, and what it held is not looked at;
one to ``update`` may be read and written. What is written overlaps with no other region of the call."""

_C_TYPES = {"bool": "uint8_t", "float32": "float", "float64": "double", "float16": "uint16_t", "bfloat16": "uint16_t"}
_C_TYPES |= dict.fromkeys(NARROW_KINDS, "uint8_t")
_BY_VALUE = ("int32", "int64", "uint32", "uint64", "float32", "float64")
"""Narrower scalars are passed by value in ways that differ from machine to machine."""


@dataclass(frozen=True, slots=True)
class ExternParam:
    """One parameter of a function of C: how an argument is passed for it, and the dtype of the scalar or of the
    region's elements."""

    passing: Passing
    dtype: DType

    @property
    def is_region(self) -> bool:
        """Whether an argument is a region of memory, not a scalar."""
        return self.passing in ("read", "write", "update")

    @property
    def c_type(self) -> str:
        """The parameter's type in a declaration in C. Halves and narrower floats are declared as unsigned integers of
        their size, since C has no type for them."""
        name = _C_TYPES.get(str(self.dtype), f"{self.dtype}_t")
        return name if self.passing == "value" else f"{name} *"

    def __str__(self) -> str:
        return str(self.dtype) if self.passing == "value" else f"{self.passing} {self.dtype}"


@dataclass(frozen=True, slots=True, eq=False)
class ExternFunction:
    """A function that returns nothing, or what nobody asks for; make one by ``extern_function``.

    ``reference`` takes the arguments of a call in order: a scalar as a number, a region as an array of the shape of its
    box, into which it writes what the function writes. In the place of a call of one with ``tiles``, the compiler puts
    instructions, see ``tiles.py``.
    """

    symbol: str
    params: tuple[ExternParam, ...]
    reference: Callable[..., Any] | None = None
    tiles: TileCode | None = None

    @property
    def prototype(self) -> str:
        """The declaration in C."""
        return f"void {self.symbol}({', '.join(p.c_type for p in self.params) or 'void'})"

    def __str__(self) -> str:
        return f"{self.symbol}({', '.join(map(str, self.params))})"

    def __repr__(self) -> str:
        return one_line(str(self))


def extern_function(symbol: str, params: Sequence[str], reference: Callable[..., Any] | None = None) -> ExternFunction:
    """A function of C by its symbol. Each of ``params`` is a dtype, with a word before it that says how it is passed:

    ``"int32"`` a scalar by value, ``"reference int32"`` by address, as Fortran wants it; ``"read float32"``,
    ``"write float32"``, ``"update float32"`` the address of a region, and what the function does with it. ``reference``
    is the same function in Python, for the interpreter: it gets numbers, and for each region an array.

    Raises ``ExpressionError`` for what is no symbol of C, and for parameters that cannot be passed.

    >>> from loopwright import te
    >>> te.extern_function("saxpy_", ["reference int32", "reference float32", "read float32", "update float32"])
    saxpy_(reference int32, reference float32, read float32, update float32)
    """
    if not _is_symbol(symbol):
        raise ExpressionError(f"the symbol of an extern function is an identifier of C, found {symbol!r}")
    if isinstance(params, str) or not isinstance(params, Sequence):
        raise ExpressionError(f"the parameters of {symbol} are a list of texts, found {params!r}")
    if reference is not None and not callable(reference):
        raise ExpressionError(f"the reference of {symbol} is a function in Python, found {reference!r}")
    return ExternFunction(symbol, tuple(_param(symbol, text) for text in params), reference)


def _is_symbol(name: object) -> bool:
    return isinstance(name, str) and name.isidentifier() and name.isascii()


def _param(symbol: str, text: str) -> ExternParam:
    words = str(text).split()
    passing = words[0] if len(words) == 2 else "value"
    if len(words) not in (1, 2) or passing not in get_args(Passing):
        raise ExpressionError(
            f"{symbol}: a parameter is a dtype, with {', '.join(get_args(Passing))} before it, found {text!r}"
        )
    kind = dtype(words[-1])
    if kind.lanes != 1 or kind.is_index:
        raise ExpressionError(f"{symbol}: C knows no {kind}; a size is int32 or int64 there")
    if passing == "value" and str(kind) not in _BY_VALUE:
        raise ExpressionError(f"{symbol}: a {kind} is not passed by value, but as one of {', '.join(_BY_VALUE)}")
    return ExternParam(cast(Passing, passing), kind)


@dataclass(frozen=True, slots=True, eq=False)
class Region:
    """The elements ``buffer[begin + k]`` for each ``k`` from 0 up to, not including, ``extents``.

    With ``strides``, they are the elements ``k · strides`` behind ``buffer[begin]``, of a buffer of one dimension: so a
    box is described whose buffer has been flattened. An extent of 0 or below makes the region empty, and its begin may
    be anywhere.
    """

    buffer: Buffer
    begin: tuple[Expr, ...]
    extents: tuple[Expr, ...]
    strides: tuple[Expr, ...] | None = None

    def __post_init__(self) -> None:
        rank = self.buffer.ndim
        boxed = (
            len(self.extents) == rank if self.strides is None else rank == 1 and len(self.extents) == len(self.strides)
        )
        if len(self.begin) != rank or not boxed:
            raise ExpressionError(
                f"a region of {self.buffer.name}, which has {self.buffer.ndim} dimensions, begins at "
                f"{len(self.begin)} indices and has {len(self.extents)} extents"
            )
        for part in self.parts:
            if not part.dtype.is_index or part.dtype.lanes != 1:
                raise ExpressionError(f"a region of {self.buffer.name} is bounded by a {part.dtype}: {part}")

    @property
    def parts(self) -> tuple[Expr, ...]:
        """The expressions that say which elements it has."""
        return (*self.begin, *self.extents, *(self.strides or ()))

    @property
    def bounds(self) -> tuple[tuple[Expr, Expr], ...]:
        """The first index of the region in each dimension of the buffer, and the one behind the last."""
        if self.strides is None:
            return tuple((low, low + count) for low, count in zip(self.begin, self.extents, strict=True))
        low = high = self.begin[0]
        for count, stride in zip(self.extents, self.strides, strict=True):
            low, high = low + minimum((count - 1) * stride, 0), high + maximum((count - 1) * stride, 0)
        return ((low, high + 1),)

    def with_parts(self, buffer: Buffer, parts: Sequence[Expr]) -> Region:
        """The same with other expressions, in the order of ``parts``; the same object if all are the same."""
        if buffer is self.buffer and all(a is b for a, b in zip(parts, self.parts, strict=True)):
            return self
        first, second = len(self.begin), len(self.begin) + len(self.extents)
        strides = None if self.strides is None else tuple(parts[second:])
        return Region(buffer, tuple(parts[:first]), tuple(parts[first:second]), strides)

"""Data types of expressions and buffers: a kind, a width in bits, and a number of vector lanes.

``index`` is the type of loop variables, extents and buffer indices. It never overflows, by contract (extents and
buffer sizes are bounded when a kernel is entered), so its algebra is that of the integers; machine code uses 64 bits.
The data integers ``int8`` … ``uint64`` wrap around. ``handle`` is the type of buffer addresses. ``string`` is what
inputs and outputs of imported models are said to be of; no expression, buffer or tensor of a graph has it.

The *narrow* types, floats of 8 and 4 bits and integers of 4 and 2, are stored, moved and converted, and nothing else is
computed in them. Each takes a byte in memory, as in numpy's arrays of ml_dtypes: those of fewer bits its lower bits.
"""

from __future__ import annotations

import re
from dataclasses import field
from functools import cache
from typing import Any, Literal, cast, get_args

import ml_dtypes
import numpy as np

from .dataclass import dataclass
from .errors import ExpressionError
from .intern import Interned

NarrowKind = Literal[
    "float8_e4m3fn",
    "float8_e4m3fnuz",
    "float8_e5m2",
    "float8_e5m2fnuz",
    "float8_e8m0fnu",
    "float4_e2m1fn",
    "int4",
    "uint4",
    "int2",
    "uint2",
]
Kind = Literal["bool", "int", "uint", "float", "bfloat", "index", "handle", "string", NarrowKind]
NARROW_KINDS: tuple[NarrowKind, ...] = get_args(NarrowKind)
"""The kinds of the narrow types, which are their names, and those that ml_dtypes has for them."""

_WIDTHS: dict[Kind, tuple[int, ...]] = {
    "bool": (1,),
    "int": (8, 16, 32, 64),
    "uint": (8, 16, 32, 64),
    "float": (16, 32, 64),
    "bfloat": (16,),
    "index": (64,),
    "handle": (64,),
    "string": (64,),
    **{kind: (int(re.findall(r"\d", kind)[0]),) for kind in NARROW_KINDS},
}
_UNSIZED: tuple[Kind, ...] = ("bool", "index", "handle", "string", *NARROW_KINDS)


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class DType(metaclass=Interned):
    """An element type with ``lanes`` copies side by side. Interned: equal ones are one object.

    It equals its name as well, and has its hash: ``x.dtype == "int8"``, ``x.dtype in ("int8", "uint8")``, and tables
    whose keys are either. Comparing it with a text that is no dtype's name, or with a type, is an ``ExpressionError``:
    it would be false for ever.

    numpy takes it for its own dtype: ``np.zeros(64, x.dtype)``, ``array.astype(x.dtype)``, ``array.dtype == x.dtype``.
    Its hash is not that of numpy's dtype, so the two are different keys of tables.
    """

    kind: Kind
    bits: int
    lanes: int = 1
    name: str = field(init=False)
    is_float: bool = field(init=False, compare=False)
    """Whether it is a float of IEEE 754, or bfloat16."""
    is_data_int: bool = field(init=False, compare=False)
    """Whether it is a wrapping integer; ``index`` is none."""
    is_index: bool = field(init=False, compare=False)
    """Whether it is ``index``, the integer of loops and subscripts, which never overflows."""
    is_bool: bool = field(init=False, compare=False)
    """Whether it is bool."""
    is_narrow: bool = field(init=False, compare=False)
    """Whether it is one of the narrow types, which are only stored and converted; these are no ``is_float`` and no
    ``is_data_int``."""
    holds_floats: bool = field(init=False, compare=False)
    """Whether its values are floats, narrow ones among them."""

    def __post_init__(self) -> None:
        if self.bits not in _WIDTHS.get(self.kind, ()) or self.lanes < 1:
            raise ExpressionError(f"no such dtype: {self.kind}{self.bits} with {self.lanes} lanes")
        name = self.kind if self.kind in _UNSIZED else f"{self.kind}{self.bits}"
        facts = {
            "name": name if self.lanes == 1 else f"{name}x{self.lanes}",
            "is_float": self.kind in ("float", "bfloat"),
            "is_data_int": self.kind in ("int", "uint"),
            "is_index": self.kind == "index",
            "is_bool": self.kind == "bool",
            "is_narrow": self.kind in NARROW_KINDS,
            "holds_floats": "float" in self.kind,
        }
        for fact, value in facts.items():
            object.__setattr__(self, fact, value)

    def __hash__(self) -> int:
        return hash(self.name)

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if isinstance(other, str):
            return self is _named(other)
        if isinstance(other, np.dtype):
            return self.lanes == 1 and self.to_numpy() == other
        if isinstance(other, type):
            raise ExpressionError(
                f"the dtype {self} is compared with {other!r}: compare it with a name, as {str(self)!r}"
            )
        return NotImplemented

    def __reduce__(self) -> tuple[Any, ...]:
        return DType, (self.kind, self.bits, self.lanes)

    def __str__(self) -> str:
        return self.name

    __repr__ = __str__

    @property
    def dtype(self) -> np.dtype[Any]:
        """What numpy takes the dtype for: ``to_numpy()``. Vectors have none, so that numpy refuses them."""
        if self.lanes != 1:
            raise AttributeError(f"{self} is a vector: numpy has no such dtype")
        return self.to_numpy()

    @property
    def is_signed(self) -> bool:
        """Whether it has negative values."""
        return self.kind not in ("bool", "uint", "uint4", "uint2", "handle", "string", "float8_e8m0fnu")

    @property
    def storage_bits(self) -> int:
        """Bits that one lane takes in memory: a byte at least."""
        return max(8, self.bits)

    @property
    def storage_bytes(self) -> int:
        """Bytes that one value takes in memory, all its lanes together."""
        return self.storage_bits // 8 * self.lanes

    def with_lanes(self, lanes: int) -> DType:
        """The dtype of a vector of so many lanes; 1 makes it a scalar."""
        return self if lanes == self.lanes else DType(self.kind, self.bits, lanes)

    @property
    def element(self) -> DType:
        """The dtype of one lane."""
        return self if self.lanes == 1 else DType(self.kind, self.bits, 1)

    def int_range(self) -> tuple[int, int] | None:
        """Smallest and largest value of an integer or bool; None for index and floats."""
        match self.kind.rstrip("24"):
            case "bool":
                return 0, 1
            case "int":
                return -(1 << (self.bits - 1)), (1 << (self.bits - 1)) - 1
            case "uint":
                return 0, (1 << self.bits) - 1
            case _:
                return None

    def to_numpy(self) -> np.dtype[Any]:
        """The numpy dtype of one lane (``bfloat16`` and the narrow types come from ml_dtypes; ``index`` is int64)."""
        if self.is_narrow:
            narrow: np.dtype[Any] = np.dtype(getattr(ml_dtypes, self.kind))
            return narrow
        match self.kind:
            case "bfloat":
                return _BFLOAT16
            case "index":
                return np.dtype(np.int64)
            case "handle":
                return np.dtype(np.uintp)
            case "string":
                return np.dtype(object)
            case "bool":
                return np.dtype(np.bool_)
            case _:
                sized: np.dtype[Any] = np.dtype(f"{self.kind}{self.bits}")
                return sized


_BFLOAT16: np.dtype[Any] = np.dtype(ml_dtypes.bfloat16)
_PATTERN = re.compile(rf"({'|'.join(_UNSIZED)}|bfloat16|(?:u?int|float)\d+)(?:x(\d+))?\Z")


def dtype(spec: str | DType | np.dtype[Any] | type) -> DType:
    """Parse ``"float32"``, ``"int8x16"``, ``"bool"``, ``"index"``, a numpy dtype or scalar type.

    Raises ``ExpressionError`` for anything else.
    """
    if isinstance(spec, DType):
        return spec
    if spec is None:
        raise ExpressionError("None is no dtype")  # numpy takes it for float64
    if isinstance(spec, str):
        found = _parse(spec)
        if found.kind == "string":
            raise ExpressionError("string is a dtype of inputs and outputs of imported models, which nothing else has")
        return found
    try:
        return _parse(np.dtype(spec).name)
    except (TypeError, ValueError):
        raise ExpressionError(f"{spec!r} is no dtype: write its name, as 'float32'") from None


@cache
def _parse(text: str) -> DType:
    match = _PATTERN.match(text)
    if match is None:
        raise ExpressionError(
            f"unknown dtype {text!r}: expected bool, int8–64, uint8–64, float16/32/64, bfloat16, index, or one of "
            f"{', '.join(NARROW_KINDS)}; optionally with lanes as in float32x8"
        )
    name, lanes = match.group(1), int(match.group(2) or 1)
    if name in _UNSIZED:
        kind = cast(Kind, name)
        return DType(kind, _WIDTHS[kind][0], lanes)
    kind_text = name.rstrip("0123456789")
    return DType(cast(Kind, kind_text), int(name[len(kind_text) :]), lanes)


def _named(text: str) -> DType:
    """The dtype that a text names as it is printed."""
    found = _parse(text)
    if found.name != text:
        raise ExpressionError(f"a dtype is compared with {text!r}: write {found.name!r}")
    return found


BOOL = DType("bool", 1)
INDEX = DType("index", 64)
HANDLE = DType("handle", 64)
STRING = DType("string", 64)
INT8, INT16, INT32, INT64 = (DType("int", b) for b in (8, 16, 32, 64))
UINT8, UINT16, UINT32, UINT64 = (DType("uint", b) for b in (8, 16, 32, 64))
FLOAT16, FLOAT32, FLOAT64 = (DType("float", b) for b in (16, 32, 64))
BFLOAT16 = DType("bfloat", 16)

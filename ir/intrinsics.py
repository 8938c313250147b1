"""The intrinsics that ``Call`` nodes may name: pure, elementwise functions, each with its meaning in numpy.

The numpy reference is the definition: the interpreter runs it, native code approximates it to the accuracy stated in
docs/accuracy.md. References of float functions are evaluated in float64 for the narrower floats, then rounded once.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from ..base.dataclass import dataclass
from ..base.dtype import BFLOAT16, BOOL, FLOAT32, INT32, NARROW_KINDS, UINT32, DType, dtype
from ..base.errors import ExpressionError
from .expr import Call, Expr, ExprLike
from .makers import as_expr, broadcast_to
from .rounding import round_fraction, round_to_float

Array: TypeAlias = npt.NDArray[Any]
Domain = Literal["float", "number", "int", "int32", "bfloat16", "bits"]


@dataclass(frozen=True, slots=True)
class Intrinsic:
    """``domain`` says which dtypes the arguments may have (all the same): ``bits`` those as wide in memory as the
    result. The result is of theirs, or ``result``."""

    name: str
    arity: int
    domain: Domain
    reference: Callable[..., Array]
    result: DType | None = None
    doc: str = ""


def _sigmoid(x: Array) -> Array:
    return 1.0 / (1.0 + np.exp(-x))


def _popcount(x: Array) -> Array:
    # numpy counts the bits of the absolute value: look at the bits as they are
    counts: Array = np.bitwise_count(x.view(f"u{x.itemsize}"))
    return counts.astype(x.dtype)


def _dot4(a: Array, b: Array) -> Array:
    wide = (np.ascontiguousarray(x).reshape(-1).view(kind).astype(np.int32) for x, kind in ((a, "u1"), (b, "i1")))
    sums: Array = np.multiply(*wide).reshape(-1, 4).sum(axis=1, dtype=np.int32).reshape(a.shape)
    return sums


def _bits(x: Array) -> Array:
    """The bits of bfloat16 numbers."""
    bits: Array = x.astype(np.float32).view(np.uint32)
    return bits >> 16


def _pair(low: Array, high: Array) -> Array:
    words: Array = _bits(low) | _bits(high) << 16
    return words.view(np.int32)


def _dot2(a: Array, b: Array) -> Array:
    words = [np.ascontiguousarray(x).view(np.uint32) for x in (a, b)]
    high = np.multiply(*((w & 0xFFFF0000).view(np.float32) for w in words))
    low = np.multiply(*((w << 16).view(np.float32) for w in words))
    return np.asarray(high + low).reshape(a.shape)


_erf = np.vectorize(math.erf, otypes=[np.float64])

ARITHMETIC_FENCE = "arithmetic_fence"
"""The intrinsic whose argument code generation computes by itself: it is not contracted with what reads it."""

_TABLE = (
    Intrinsic("abs", 1, "number", np.abs, doc="absolute value; of the smallest integer it wraps"),
    Intrinsic("sqrt", 1, "float", np.sqrt),
    Intrinsic("rsqrt", 1, "float", lambda x: 1.0 / np.sqrt(x), doc="1 / sqrt(x)"),
    Intrinsic("exp", 1, "float", np.exp),
    Intrinsic("exp2", 1, "float", np.exp2),
    Intrinsic("expm1", 1, "float", np.expm1),
    Intrinsic("log", 1, "float", np.log),
    Intrinsic("log2", 1, "float", np.log2),
    Intrinsic("log10", 1, "float", np.log10),
    Intrinsic("log1p", 1, "float", np.log1p),
    Intrinsic("sin", 1, "float", np.sin),
    Intrinsic("cos", 1, "float", np.cos),
    Intrinsic("tan", 1, "float", np.tan),
    Intrinsic("asin", 1, "float", np.arcsin),
    Intrinsic("acos", 1, "float", np.arccos),
    Intrinsic("atan", 1, "float", np.arctan),
    Intrinsic("sinh", 1, "float", np.sinh),
    Intrinsic("cosh", 1, "float", np.cosh),
    Intrinsic("tanh", 1, "float", np.tanh),
    Intrinsic("sigmoid", 1, "float", _sigmoid, doc="1 / (1 + exp(-x))"),
    Intrinsic("erf", 1, "float", _erf, doc="2/sqrt(pi) times the integral of exp(-t²) from 0 to x"),
    Intrinsic("pow", 2, "float", np.power, doc="x to the power of y, as in C99"),
    Intrinsic("floor", 1, "float", np.floor),
    Intrinsic("ceil", 1, "float", np.ceil),
    Intrinsic("trunc", 1, "float", np.trunc),
    Intrinsic("round", 1, "float", np.rint, doc="to the nearest integer, ties to even"),
    Intrinsic("isnan", 1, "float", np.isnan, BOOL),
    Intrinsic("isinf", 1, "float", np.isinf, BOOL),
    Intrinsic("isfinite", 1, "float", np.isfinite, BOOL),
    Intrinsic("fma", 3, "float", lambda a, b, c: a * b + c, doc="a * b + c, rounded once"),
    Intrinsic(
        ARITHMETIC_FENCE, 1, "float", lambda x: x, doc="x, rounded to its dtype: no sum takes in the product that x is"
    ),
    Intrinsic("copysign", 2, "float", np.copysign),
    Intrinsic("popcount", 1, "int", _popcount, doc="number of bits that are 1"),
    Intrinsic("dot4", 2, "int32", _dot4, doc="sum of the products of a's 4 bytes, unsigned, with b's 4 bytes, signed"),
    Intrinsic("pair", 2, "bfloat16", _pair, INT32, doc="the bits of two numbers in a word, those of a in the low half"),
    Intrinsic(
        "dot2", 2, "int32", _dot2, FLOAT32, doc="sum of the products of a's 2 numbers, as pair has them, with b's"
    ),
)


def _reinterpreted(to: DType) -> Intrinsic:
    kind = to.to_numpy()
    return Intrinsic(f"as_{to}", 1, "bits", lambda x: x.view(kind), to, doc=f"the bits of a number, taken for {to}")


_FLOATS = (BFLOAT16, *(DType("float", bits) for bits in (16, 32, 64)))
_INTEGERS = [DType(kind, bits) for kind in (INT32.kind, UINT32.kind) for bits in (8, 16, 32, 64)]
_NARROW = map(dtype, NARROW_KINDS)
_REINTERPRETATIONS = tuple(map(_reinterpreted, (*_FLOATS, *_INTEGERS, *_NARROW)))
INTRINSICS: dict[str, Intrinsic] = {i.name: i for i in (*_TABLE, *_REINTERPRETATIONS)}


def _in_domain(kind: DType, intrinsic: Intrinsic) -> bool:
    match intrinsic.domain:
        case "bits":
            assert intrinsic.result is not None
            sized = kind.is_float or kind.is_data_int or kind.is_narrow
            return sized and kind.storage_bits == intrinsic.result.storage_bits
        case "float":
            return kind.is_float
        case "int":
            return kind.is_data_int
        case "int32":
            return kind.element is INT32
        case "bfloat16":
            return kind.element is BFLOAT16
        case "number":
            return kind.is_float or kind.is_data_int or kind.is_index


def evaluate(name: str, kind: DType, *args: npt.ArrayLike) -> Array:
    """The intrinsic by its reference, on numbers or arrays of element dtype ``kind``."""
    if name == "fma":
        return _fma(kind, *args)
    intrinsic = INTRINSICS[name]
    if not kind.is_float or intrinsic.domain == "bits":
        return np.asarray(
            intrinsic.reference(*(np.asarray(a, object if kind.is_index else kind.to_numpy()) for a in args))
        )
    result = np.asarray(intrinsic.reference(*(np.asarray(a).astype(np.float64) for a in args)))
    return round_to_float(kind)(result) if intrinsic.result is None else result


def _fma(kind: DType, *args: npt.ArrayLike) -> Array:
    """Exact in rationals, then rounded once, where all is finite; a result of 0 takes its sign from float64."""
    wide = np.broadcast_arrays(*(np.asarray(a).astype(np.float64) for a in args))
    result = np.empty(wide[0].shape, kind.to_numpy())
    for position in np.ndindex(wide[0].shape):
        a, b, c = (float(array[position]) for array in wide)
        rough = a * b + c
        finite = math.isfinite(a) and math.isfinite(b) and math.isfinite(c)
        exact = Fraction(a) * Fraction(b) + Fraction(c) if finite else Fraction(0)
        result[position] = round_fraction(kind, exact) if exact else rough
    return result


def call(name: str, *args: ExprLike) -> Expr:
    """A call of an intrinsic; scalars are broadcast against vectors, Python numbers take the first argument's dtype.

    Raises ``ExpressionError`` for an unknown name, a wrong number of arguments, or dtypes that differ or do not fit.
    """
    intrinsic = INTRINSICS.get(name)
    if intrinsic is None:
        raise ExpressionError(f"there is no intrinsic {name!r}; there are {', '.join(sorted(INTRINSICS))}")
    if len(args) != intrinsic.arity:
        raise ExpressionError(f"{name} takes {intrinsic.arity} arguments, not {len(args)}")
    first = as_expr(args[0])
    made = [first, *(as_expr(a, first.dtype) for a in args[1:])]
    kind = first.dtype
    for value in made:
        if value.dtype.element is not kind.element or not _in_domain(kind, intrinsic):
            raise ExpressionError(f"{name} takes {intrinsic.domain} values of one dtype, found {value.dtype}: {value}")
    lanes = max(value.dtype.lanes for value in made)
    result = intrinsic.result or kind.element
    return Call(name, tuple(broadcast_to(v, lanes) for v in made), result.with_lanes(lanes))

"""The intrinsics of ``ir/intrinsics.py`` in the dialects math and arith.

Operations that xDSL 0.74 or LLVM 18 lacks are made of older ones. float16 and bfloat16 are computed in float32.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ...base.dtype import BOOL, FLOAT32, FLOAT64, DType
from ...base.errors import MlirError
from ...ir.intrinsics import INTRINSICS
from .casts import is_small_float, narrow_double, narrowed, widened
from .integers import dot2, dot4, pair
from .text import Value, Writer, type_of

_MATH = {
    **{name: f"math.{name}" for name in ("sqrt", "rsqrt", "exp", "exp2", "log", "log2", "log10", "log1p")},
    **{name: f"math.{name}" for name in ("sin", "cos", "tan", "atan", "tanh", "erf", "floor", "ceil", "trunc")},
    "abs": "math.absf",
    "round": "math.roundeven",
}
_WORDS = {"dot4": dot4, "dot2": dot2, "pair": pair}


def emit_intrinsic(w: Writer, name: str, args: Sequence[Value], kind: DType, result: DType) -> Value:
    """The intrinsic of values of dtype ``kind``. Raises ``MlirError`` for one that has no form here."""
    if INTRINSICS[name].domain == "bits":
        to = type_of(result)
        return args[0] if args[0].type == to else w.convert("arith.bitcast", args[0], to)
    if name in _WORDS:
        words = result if name == "pair" else kind
        return w.call(name, args, type_of(result), lambda h, params: _WORDS[name](h, words, params))
    if not kind.is_float:
        return _integer(w, name, args[0], kind)
    if name == "fma":
        return _any_fma(w, args, kind)
    wide = FLOAT32.with_lanes(kind.lanes) if is_small_float(kind) else kind
    made = _float(w, name, [widened(w, a, kind) for a in args], wide)
    return made if result.is_bool else narrowed(w, made, kind)


def fma(w: Writer, a: Value, b: Value, c: Value) -> Value:
    """The value of ``a * b + c``, rounded once."""
    return w.op(f"math.fma {a.name}, {b.name}, {c.name} : {a.type}", a.type)


def _any_fma(w: Writer, args: Sequence[Value], kind: DType) -> Value:
    if not is_small_float(kind):
        return fma(w, *args)
    double = type_of(FLOAT64.with_lanes(kind.lanes))
    return narrow_double(w, fma(w, *(w.convert("arith.extf", arg, double) for arg in args)), kind)


def _integer(w: Writer, name: str, x: Value, kind: DType) -> Value:
    match name:
        case "abs" if kind.is_index:
            return w.binary("arith.maxsi", x, w.binary("arith.subi", w.constant(kind, 0), x))
        case "abs":
            return w.unary("math.absi", x) if kind.is_signed else x
        case "popcount":
            return w.unary("math.ctpop", x)
        case _:
            raise MlirError(f"MLIR has no form for the intrinsic {name} of {kind}")


def _float(w: Writer, name: str, args: Sequence[Value], kind: DType) -> Value:
    if name in _MATH:
        return w.unary(_MATH[name], args[0])
    x, mask = args[0], BOOL.with_lanes(kind.lanes)
    match name:
        case "pow":
            return w.binary("math.powf", x, args[1])
        case "copysign":
            return w.binary("math.copysign", x, args[1])
        case "isnan":
            return w.compare("arith.cmpf uno", x, x, mask)
        case "isinf" | "isfinite":
            op = "oeq" if name == "isinf" else "olt"
            return w.compare(f"arith.cmpf {op}", w.unary("math.absf", x), w.constant(kind, math.inf), mask)
        case "sigmoid":
            one = w.constant(kind, 1.0)
            rest = w.unary("math.exp", w.unary("arith.negf", x))
            return w.binary("arith.divf", one, w.binary("arith.addf", one, rest))
        case "asin" | "acos" | "sinh" | "cosh" | "expm1":
            build = {"asin": _asin, "acos": _acos, "sinh": _sinh, "cosh": _cosh, "expm1": _expm1}[name]
            return w.call(name, [x], x.type, lambda h, params: build(h, params[0], kind))
        case _:
            raise MlirError(f"MLIR has no form for the intrinsic {name} of {kind}")


def _cathetus(w: Writer, x: Value, kind: DType) -> Value:
    """√(1 − x²), without cancellation near 1."""
    one = w.constant(kind, 1.0)
    square = w.binary("arith.mulf", w.binary("arith.subf", one, x), w.binary("arith.addf", one, x))
    return w.unary("math.sqrt", square)


def _asin(w: Writer, x: Value, kind: DType) -> Value:
    return w.binary("math.atan2", x, _cathetus(w, x, kind))


def _acos(w: Writer, x: Value, kind: DType) -> Value:
    return w.binary("math.atan2", _cathetus(w, x, kind), x)


def _expm1(w: Writer, x: Value, kind: DType) -> Value:
    """exp(x) − 1 as tanh(x/2)·(exp(x) + 1): LLVM 19 makes a difference of ``math.expm1``, which is 0 near 0."""
    tanh = w.unary("math.tanh", w.binary("arith.mulf", w.constant(kind, 0.5), x))
    return w.binary("arith.mulf", tanh, w.binary("arith.addf", w.unary("math.exp", x), w.constant(kind, 1.0)))


def _sinh(w: Writer, x: Value, kind: DType) -> Value:
    """sinh, by expm1 where x is small, since exp(x) − exp(−x) cancels there; else exp(|x|)/2, late to overflow."""
    magnitude = w.unary("math.absf", x)
    less = _expm1(w, magnitude, kind)
    shrunk = w.binary("arith.divf", less, w.binary("arith.addf", less, w.constant(kind, 1.0)))
    near = w.binary("arith.mulf", w.constant(kind, 0.5), w.binary("arith.addf", less, shrunk))
    is_near = w.compare("arith.cmpf olt", magnitude, w.constant(kind, 20.0), BOOL.with_lanes(kind.lanes))
    return w.binary("math.copysign", w.select(is_near, near, _half_exp(w, magnitude, kind)), x)


def _cosh(w: Writer, x: Value, kind: DType) -> Value:
    magnitude = w.unary("math.absf", x)
    far = w.binary("arith.divf", w.constant(kind, 0.5), w.unary("math.exp", magnitude))
    return w.binary("arith.addf", _half_exp(w, magnitude, kind), far)


def _half_exp(w: Writer, x: Value, kind: DType) -> Value:
    """exp(x)/2, which overflows later than exp(x)."""
    half = w.constant(kind, 0.5)
    root = w.unary("math.exp", w.binary("arith.mulf", half, x))
    return w.binary("arith.mulf", w.binary("arith.mulf", half, root), root)

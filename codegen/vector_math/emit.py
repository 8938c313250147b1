"""``emit_intrinsic``: from the name of an intrinsic and its LLVM arguments to the LLVM value of the result."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from llvmlite import ir as llvm_ir

from ...base.dtype import DType
from ...base.errors import InternalError
from ...base.target import Target
from ..lanes import Float, Int, Lanes, Mask
from ..small_floats import narrow, widen
from ..types import is_small_float
from . import classify, erf, exp, fma, hyperbolic, inverse_trig, log, power, rounding, trig

_UNARY: dict[str, Callable[[Float], Float]] = {
    "abs": Float.abs,
    "arithmetic_fence": lambda x: x,
    "sqrt": power.sqrt,
    "rsqrt": power.rsqrt,
    "exp": exp.exp,
    "exp2": exp.exp2,
    "expm1": exp.expm1,
    "log": log.log,
    "log2": log.log2,
    "log10": log.log10,
    "log1p": log.log1p,
    "sin": trig.sin,
    "cos": trig.cos,
    "tan": trig.tan,
    "asin": inverse_trig.asin,
    "acos": inverse_trig.acos,
    "atan": inverse_trig.atan,
    "sinh": hyperbolic.sinh,
    "cosh": hyperbolic.cosh,
    "tanh": hyperbolic.tanh,
    "sigmoid": hyperbolic.sigmoid,
    "erf": erf.erf,
    "floor": rounding.floor,
    "ceil": rounding.ceil,
    "trunc": rounding.trunc,
    "round": rounding.round_even,
}
_BINARY: dict[str, Callable[[Float, Float], Float]] = {"pow": power.power, "copysign": Float.copysign}
_PREDICATES: dict[str, Callable[[Float], Mask]] = {
    "isnan": classify.isnan,
    "isinf": classify.isinf,
    "isfinite": classify.isfinite,
}


def emit_intrinsic(
    builder: llvm_ir.IRBuilder, name: str, args: Sequence[llvm_ir.Value], kind: DType, target: Target
) -> llvm_ir.Value:
    """Emit the intrinsic ``name`` of ``ir/intrinsics.py`` at the builder's position.

    Straight-line code, but for the branch of sin, cos and tan for large angles: the builder may end up in a new block.

    ``args`` are values of dtype ``kind``, lanes included, as ``codegen/types.py`` represents them; so is the result, or
    it has type i1 per lane where the intrinsic returns bool. float16 and bfloat16 are computed in float32 and rounded
    once. Accuracy: docs/accuracy.md.
    """
    lanes = Lanes(builder, target, kind.lanes)
    if not kind.is_float:
        return _emit_integer(name, Int(lanes, args[0], kind.bits), kind).value
    if is_small_float(kind):
        return _emit_small(name, [Float(lanes, widen(builder, kind, a, target), 32) for a in args], kind)
    return _emit_float(name, [Float(lanes, a, kind.bits) for a in args]).value


def _emit_float(name: str, args: list[Float]) -> Float | Mask:
    match args:
        case [x] if name in _UNARY:
            return _UNARY[name](x)
        case [x] if name in _PREDICATES:
            return _PREDICATES[name](x)
        case [x, y] if name in _BINARY:
            return _BINARY[name](x, y)
        case [a, b, c] if name == "fma":
            return fma.fma(a, b, c)
        case _:
            raise InternalError(f"vector_math has no expansion of {name} with {len(args)} float arguments")


def _emit_small(name: str, args: list[Float], kind: DType) -> llvm_ir.Value:
    """float16 and bfloat16, their arguments widened to float32."""
    result = fma.fma_for_half(*args) if name == "fma" else _emit_float(name, args)
    if isinstance(result, Mask):
        return result.value
    return narrow(result.lanes.builder, kind, result.value, result.lanes.target)


def _emit_integer(name: str, x: Int, kind: DType) -> Int:
    match name:
        case "abs":
            return (x < 0).select_int(x.same(0) - x, x) if kind.is_signed else x
        case "popcount":
            return Int(x.lanes, x.lanes.call("ctpop", llvm_ir.IntType(x.bits), [x.value]), x.bits)
        case _:
            raise InternalError(f"vector_math has no expansion of {name} on {kind}")

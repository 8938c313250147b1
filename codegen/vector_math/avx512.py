"""Instructions of AVX-512 that take floats apart and put them together, on any number of lanes.

Each does in one or two steps what takes ten by integer arithmetic, special values included. ``available`` says whether
the target has them; narrower vectors use a part of the register.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from llvmlite import ir as llvm_ir

from ..lanes import Float, Int, external, float_type
from .pieces import joined, pieces

_I32 = llvm_ir.IntType(32)
_CURRENT_ROUNDING = _I32(4)
_MANTISSA_FROM_3_4 = _I32(0b1011)
"""Mantissas in [¾, 1½); NaN for negative numbers."""
# What a logarithm is for each class of arguments, four bits a class from the lowest on: quiet NaN (2: itself),
# signalling NaN, 0 (4: -infinity), 1 (0: what was computed), -infinity (3: NaN), infinity (5: itself), negative and
# positive numbers.
_LOGARITHM_AT_ENDS = 0x03530422


def available(x: Float) -> bool:
    """Whether the target has AVX-512, of which these instructions are."""
    return x.lanes.target.has("avx512f")


def has_tables(x: Float) -> bool:
    """Whether a table of 32 such numbers fits into two registers, as ``look_up`` takes them."""
    return x.bits == 32 and available(x)


def scale(y: Float, n: Float) -> Float:
    """``y * 2^n`` rounded once, for whole n."""
    return _masked("scalef", [y, n], _CURRENT_ROUNDING)


def split_exponent(x: Float) -> tuple[Float, Float]:
    """``k, m`` with x = 2^k m and m in [¾, 1½), for positive finite x, denormal or not."""
    m = mantissa(x)
    return exponent(x) - exponent(m), m


def mantissa(x: Float) -> Float:
    """The m of ``split_exponent``."""
    return _masked("getmant", [x], _CURRENT_ROUNDING, before=[_MANTISSA_FROM_3_4])


def exponent(x: Float) -> Float:
    """The k with |x| in [2^k, 2^(k + 1)); -infinity of 0."""
    return _masked("getexp", [x], _CURRENT_ROUNDING)


def reciprocal(x: Float) -> Float:
    """1 / x, with a relative error of at most 2^-14."""
    return _estimate("rcp14", x)


def reciprocal_root(x: Float) -> Float:
    """1 / √x, with a relative error of at most 2^-14; exact of 0 and infinity, NaN of negative numbers."""
    return _estimate("rsqrt14", x)


def look_up(index: Int, entries: Sequence[float]) -> Float:
    """The entry of 32 whose number is in the lowest five bits of each index; of 32-bit integers."""
    kind = llvm_ir.VectorType(float_type(32), 16)
    first, second = (llvm_ir.Constant(kind, list(half)) for half in (entries[:16], entries[16:]))
    x = index.as_float()

    def call(parts: Sequence[llvm_ir.Value]) -> llvm_ir.Value:
        indices = x.lanes.builder.bitcast(parts[0], llvm_ir.VectorType(_I32, 16))
        return _call(x, "llvm.x86.avx512.vpermi2var.ps.512", [first, indices, second])

    return _in_registers([x], call)


def logarithm_at_ends(x: Float, result: Float) -> Float:
    """The logarithm of 0, infinity, negative numbers and NaN; ``result`` for all others."""
    table = x.same(0.0).as_int().same(_LOGARITHM_AT_ENDS).as_float()

    def call(parts: Sequence[llvm_ir.Value]) -> llvm_ir.Value:
        value, source, bits = parts
        integers = llvm_ir.VectorType(llvm_ir.IntType(x.bits), 512 // x.bits)
        classes = x.lanes.builder.bitcast(bits, integers)
        name = f"llvm.x86.avx512.mask.fixupimm.{_suffix(x)}.512"
        return _call(x, name, [value, source, classes, _I32(0), _all_lanes(x), _CURRENT_ROUNDING])

    return _in_registers([result, x, table], call)


def _suffix(x: Float) -> str:
    return "ps" if x.bits == 32 else "pd"


def _all_lanes(x: Float) -> llvm_ir.Constant:
    return llvm_ir.Constant(llvm_ir.IntType(512 // x.bits), -1)


def _call(x: Float, name: str, args: Sequence[llvm_ir.Value]) -> llvm_ir.Value:
    kind = llvm_ir.VectorType(float_type(x.bits), 512 // x.bits)
    builder = x.lanes.builder
    return builder.call(external(builder.module, name, kind, [a.type for a in args]), args)


def _estimate(name: str, x: Float) -> Float:
    def call(parts: Sequence[llvm_ir.Value]) -> llvm_ir.Value:
        return _call(x, f"llvm.x86.avx512.{name}.{_suffix(x)}.512", [parts[0], parts[0], _all_lanes(x)])

    return _in_registers([x], call)


def _masked(name: str, args: Sequence[Float], rounding: llvm_ir.Value, before: Sequence[llvm_ir.Value] = ()) -> Float:
    """An instruction whose intrinsic takes what masked-out lanes become, a mask, and the rounding."""
    x = args[0]

    def call(parts: Sequence[llvm_ir.Value]) -> llvm_ir.Value:
        full = f"llvm.x86.avx512.mask.{name}.{_suffix(x)}.512"
        return _call(x, full, [*parts, *before, parts[0], _all_lanes(x), rounding])

    return _in_registers(args, call)


def _in_registers(args: Sequence[Float], call: Callable[[Sequence[llvm_ir.Value]], llvm_ir.Value]) -> Float:
    """Apply ``call`` to each 512 bits of the arguments; what does not fill a register is padded."""
    lanes, bits = args[0].lanes, args[0].bits
    width = 512 // bits
    columns = zip(*(pieces(a, width) for a in args), strict=True)
    return Float(lanes, joined(lanes, [call(parts) for parts in columns], width), bits)

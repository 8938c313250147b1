"""How dtypes are represented in LLVM: the types of values and of memory, and the conversions of the half formats.

float16 and bfloat16 are held as ``i16`` bit patterns, in values as in memory, on every target. Arithmetic on them
happens in float32: ``to_float32``, operate, ``from_float32`` (which rounds once, to nearest even). So no target needs
half registers, and the conversions never become calls of ``__truncsfhf2`` and its like.
"""

from __future__ import annotations

from llvmlite import ir as llvm_ir

from ..ir.dtype import DType
from ..ir.target import Target
from .lanes import Float, Int, Lanes


def element_type(kind: DType) -> llvm_ir.Type:
    """The LLVM type of one lane of a value."""
    match kind.kind:
        case "bool":
            return llvm_ir.IntType(1)
        case "handle":
            return llvm_ir.PointerType()
        case "float" if kind.bits == 32:
            return llvm_ir.FloatType()
        case "float" if kind.bits == 64:
            return llvm_ir.DoubleType()
        case _:
            return llvm_ir.IntType(kind.bits)


def value_type(kind: DType) -> llvm_ir.Type:
    """The LLVM type of a value, all its lanes."""
    element = element_type(kind)
    return element if kind.lanes == 1 else llvm_ir.VectorType(element, kind.lanes)


def memory_type(kind: DType) -> llvm_ir.Type:
    """The LLVM type of an element in memory: as the value, but a bool is a byte holding 0 or 1."""
    return llvm_ir.IntType(8) if kind.is_bool else element_type(kind)


def is_half(kind: DType) -> bool:
    """Whether values are held as 16-bit patterns, and computed with in float32."""
    return kind.is_float and kind.bits == 16


def to_float32(builder: llvm_ir.IRBuilder, value: llvm_ir.Value, kind: DType, target: Target) -> llvm_ir.Value:
    """Widen float16 or bfloat16 (``kind``, with lanes) to float32. Exact."""
    lanes = Lanes(builder, target, kind.lanes)
    return widen_half(Int(lanes, value, 16), kind).value


def from_float32(builder: llvm_ir.IRBuilder, value: llvm_ir.Value, kind: DType, target: Target) -> llvm_ir.Value:
    """Round float32 to float16 or bfloat16 (``kind``, with lanes), to nearest even. NaN becomes a quiet NaN."""
    lanes = Lanes(builder, target, kind.lanes)
    return narrow_half(Float(lanes, value, 32), kind).value


def from_float64(builder: llvm_ir.IRBuilder, value: llvm_ir.Value, kind: DType, target: Target) -> llvm_ir.Value:
    """Round float64 to float16 or bfloat16 (``kind``, with lanes), to nearest even, rounding once."""
    lanes = Lanes(builder, target, kind.lanes)
    return narrow_half(round_to_odd(Float(lanes, value, 64)), kind).value


def widen_half(x: Int, kind: DType) -> Float:
    """The float32 equal to a 16-bit pattern."""
    if kind.kind == "bfloat":
        return (x.resize(32) << 16).as_float()
    return x.as_float().convert(32) if _converts_half(x.lanes.target) else _widen_float16(x)


def narrow_half(x: Float, kind: DType) -> Int:
    """The 16-bit pattern nearest to a float32, ties to even."""
    if kind.kind == "bfloat":
        return _narrow_bfloat16(x)
    return x.convert(16).as_int() if _converts_half(x.lanes.target) else _narrow_float16(x)


def _converts_half(target: Target) -> bool:
    """Whether an instruction converts between float16 and float32."""
    return target.has("f16c") if target.arch in ("x86_64", "i686") else target.arch == "aarch64"


def _narrow_bfloat16(x: Float) -> Int:
    # Not vcvtneps2bf16: that instruction takes denormals for zeros.
    bits = x.as_int()
    rounded = (bits + (((bits >> 16) & 1) + 0x7FFF)) >> 16
    return x.is_nan().select_int((bits >> 16) | 0x40, rounded).resize(16)


def _widen_float16(x: Int) -> Float:
    wide = x.resize(32)
    magnitude = (wide & 0x7FFF) << 13
    # The fields line up with those of a float32 whose exponent is 112 too small; the product makes denormals right too.
    scaled = (magnitude.as_float() * 2.0**112).as_int()
    finite_or_not = (magnitude < 0x7C00 << 13).select_int(scaled, magnitude | 0x7F800000)
    return (finite_or_not | ((wide & 0x8000) << 16)).as_float()


def _narrow_float16(x: Float) -> Int:
    bits = x.as_int()
    magnitude = bits & 0x7FFFFFFF
    # Normal results: rebias the exponent, round on the 13 bits that go away. A carry may reach infinity, rightly.
    normal = (magnitude - (112 << 23) + (((magnitude >> 13) & 1) + 0xFFF)) >> 13
    # Denormal results: floats in [0.5, 1) are 2^-24 apart, as float16's denormals are; so the sum rounds for us.
    denormal = (magnitude.as_float() + 0.5).as_int() - 0x3F000000
    finite = (magnitude < 113 << 23).select_int(denormal, normal)
    special = x.is_nan().select_int(x.lanes.int(32, 0x7E00), 0x7C00)
    result = (magnitude < 143 << 23).select_int(finite, special)
    return (result | ((bits >> 16) & 0x8000)).resize(16)


def round_to_odd(x: Float) -> Float:
    """float64 → float32, inexact values to the neighbour whose last bit is 1.

    A further rounding to at most 22 bits is then the same as one rounding of ``x``: S. Boldo, G. Melquiond, "Emulation
    of a FMA and correctly rounded sums: proved algorithms using rounding to odd", IEEE Trans. Computers 57 (2008).
    """
    near = x.convert(32)
    back = near.convert(64)
    step = (near.abs().convert(64) < x.abs()).select_int(*_plus_minus_one(near))
    bits = near.as_int()
    # An overflow rounds to infinity, an even pattern; infinity and NaN of x itself compare equal or unordered.
    wrong = back.differs(x) & (bits & 1).equals(0)
    return wrong.select_int(bits + step, bits).as_float()


def _plus_minus_one(x: Float) -> tuple[Int, Int]:
    return x.lanes.int(x.bits, 1), x.lanes.int(x.bits, -1)

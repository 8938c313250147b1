"""Typed values over the LLVM builder, so that numerical code in codegen reads as mathematics.

``Float``, ``Int`` and ``Mask`` are scalars or vectors of ``Lanes.count`` elements; ``a * b + 1.0`` emits instructions.
No fast-math flags are ever set: the error-free transformations built on these values would not survive them.
"""

from __future__ import annotations

from collections.abc import Sequence

from llvmlite import ir as llvm_ir

from ..base.dataclass import dataclass
from ..base.target import Target


class Splat(llvm_ir.Constant):  # type: ignore[misc]
    """A vector constant of equal elements, printed as LLVM's ``splat (…)`` to keep the text short."""

    def __init__(self, element: llvm_ir.Constant, count: int) -> None:
        super().__init__(llvm_ir.VectorType(element.type, count), [element] * count)

    def _get_reference(self) -> str:
        return f"splat ({self.constant[0]})"


def constant(element: llvm_ir.Type, value: float, count: int) -> llvm_ir.Constant:
    """``value`` as a scalar (``count`` 1) or as a vector of ``count`` equal lanes."""
    scalar = llvm_ir.Constant(element, value)
    return scalar if count == 1 else Splat(scalar, count)


def float_type(bits: int) -> llvm_ir.Type:
    """LLVM's type of a float of 32 or 64 bits."""
    return {32: llvm_ir.FloatType(), 64: llvm_ir.DoubleType()}[bits]


@dataclass(frozen=True, slots=True)
class Lanes:
    """Where code is emitted, for which target, and how many lanes every value has (1 means scalars)."""

    builder: llvm_ir.IRBuilder
    target: Target
    count: int

    def type_of(self, element: llvm_ir.Type) -> llvm_ir.Type:
        """The type of a value whose lanes are of the type ``element``; a scalar for one lane."""
        return element if self.count == 1 else llvm_ir.VectorType(element, self.count)

    def float(self, bits: int, value: float) -> Float:
        """A float constant of ``bits`` bits, the same in all lanes."""
        return Float(self, constant(float_type(bits), value, self.count), bits)

    def int(self, bits: int, value: int) -> Int:
        """An integer constant of ``bits`` bits, the same in all lanes."""
        return Int(self, constant(llvm_ir.IntType(bits), value, self.count), bits)

    def call(self, name: str, element: llvm_ir.Type, args: Sequence[llvm_ir.Value]) -> llvm_ir.Value:
        """Call ``llvm.<name>`` overloaded on ``element`` times our lanes, the type of all its arguments."""
        suffix = {"float": "f32", "double": "f64"}.get(str(element), str(element))
        overload = suffix if self.count == 1 else f"v{self.count}{suffix}"
        kind = self.type_of(element)
        function = external(self.builder.module, f"llvm.{name}.{overload}", kind, [kind] * len(args))
        return self.builder.call(function, args)


def external(module: llvm_ir.Module, name: str, result: llvm_ir.Type, args: Sequence[llvm_ir.Type]) -> llvm_ir.Function:
    """The declaration of an external function, made on first use."""
    known = module.globals.get(name)
    return known or llvm_ir.Function(module, llvm_ir.FunctionType(result, args), name)


@dataclass(frozen=True, slots=True)
class Mask:
    """One truth value a lane."""

    lanes: Lanes
    value: llvm_ir.Value

    def __and__(self, other: Mask) -> Mask:
        return Mask(self.lanes, self.lanes.builder.and_(self.value, other.value))

    def __or__(self, other: Mask) -> Mask:
        return Mask(self.lanes, self.lanes.builder.or_(self.value, other.value))

    def __invert__(self) -> Mask:
        return Mask(self.lanes, self.lanes.builder.not_(self.value))

    def any(self) -> llvm_ir.Value:
        """Whether the mask is true in some lane, as a single i1."""
        if self.lanes.count == 1:
            return self.value
        bits = llvm_ir.IntType(self.lanes.count)
        return self.lanes.builder.icmp_unsigned("!=", self.lanes.builder.bitcast(self.value, bits), bits(0))

    def select(self, yes: Float, no: Float | float) -> Float:
        """``yes`` in the lanes that are true, ``no`` in the others; both are computed."""
        value = self.lanes.builder.select(self.value, yes.value, yes.same(no).value)
        return Float(self.lanes, value, yes.bits)

    def select_int(self, yes: Int, no: Int | int) -> Int:
        """``select`` of integers: ``yes`` in the lanes that are true, ``no`` in the others."""
        return Int(self.lanes, self.lanes.builder.select(self.value, yes.value, yes.same(no).value), yes.bits)


@dataclass(frozen=True, slots=True, eq=False)
class Int:
    """Integers of ``bits`` bits, one a lane, which wrap around."""

    lanes: Lanes
    value: llvm_ir.Value
    bits: int

    def same(self, other: Int | int) -> Int:
        """``other`` as a value of this width: a number becomes a constant in all lanes."""
        return other if isinstance(other, Int) else self.lanes.int(self.bits, other)

    def _make(self, value: llvm_ir.Value) -> Int:
        return Int(self.lanes, value, self.bits)

    def __add__(self, other: Int | int) -> Int:
        return self._make(self.lanes.builder.add(self.value, self.same(other).value))

    def __sub__(self, other: Int | int) -> Int:
        return self._make(self.lanes.builder.sub(self.value, self.same(other).value))

    def __mul__(self, other: Int | int) -> Int:
        return self._make(self.lanes.builder.mul(self.value, self.same(other).value))

    def __and__(self, other: Int | int) -> Int:
        return self._make(self.lanes.builder.and_(self.value, self.same(other).value))

    def __xor__(self, other: Int | int) -> Int:
        return self._make(self.lanes.builder.xor(self.value, self.same(other).value))

    def __lshift__(self, count: Int | int) -> Int:
        return self._make(self.lanes.builder.shl(self.value, self.same(count).value))

    def __rshift__(self, count: Int | int) -> Int:
        """A logical shift: zeros come in from the left."""
        return self._make(self.lanes.builder.lshr(self.value, self.same(count).value))

    def _compare(self, op: str, other: Int | int) -> Mask:
        """A comparison of signed integers, lane by lane."""
        return Mask(self.lanes, self.lanes.builder.icmp_signed(op, self.value, self.same(other).value))

    def __lt__(self, other: Int | int) -> Mask:
        return self._compare("<", other)

    def __gt__(self, other: Int | int) -> Mask:
        return self._compare(">", other)

    def equals(self, other: Int | int) -> Mask:
        """The lanes in which both are equal; ``==`` itself compares objects."""
        return self._compare("==", other)

    def as_float(self) -> Float:
        """The float with these bits."""
        kind = self.lanes.type_of(float_type(self.bits))
        return Float(self.lanes, self.lanes.builder.bitcast(self.value, kind), self.bits)


@dataclass(frozen=True, slots=True, eq=False)
class Float:
    """IEEE binary floats of ``bits`` bits, one a lane. Comparisons are ordered: false where an operand is NaN."""

    lanes: Lanes
    value: llvm_ir.Value
    bits: int

    def same(self, other: Float | float) -> Float:
        """``other`` as a value of this width: a number becomes a constant in all lanes."""
        return other if isinstance(other, Float) else self.lanes.float(self.bits, other)

    def _make(self, value: llvm_ir.Value) -> Float:
        return Float(self.lanes, value, self.bits)

    def __add__(self, other: Float | float) -> Float:
        return self._make(self.lanes.builder.fadd(self.value, self.same(other).value))

    def __sub__(self, other: Float | float) -> Float:
        return self._make(self.lanes.builder.fsub(self.value, self.same(other).value))

    def __rsub__(self, other: float) -> Float:
        return self.same(other) - self

    def __mul__(self, other: Float | float) -> Float:
        return self._make(self.lanes.builder.fmul(self.value, self.same(other).value))

    def __rmul__(self, other: float) -> Float:
        return self.same(other) * self

    def __truediv__(self, other: Float | float) -> Float:
        return self._make(self.lanes.builder.fdiv(self.value, self.same(other).value))

    def __rtruediv__(self, other: float) -> Float:
        return self.same(other) / self

    def __neg__(self) -> Float:
        return self._make(self.lanes.builder.fneg(self.value))

    def _compare(self, op: str, other: Float | float) -> Mask:
        return Mask(self.lanes, self.lanes.builder.fcmp_ordered(op, self.value, self.same(other).value))

    def __lt__(self, other: Float | float) -> Mask:
        return self._compare("<", other)

    def __gt__(self, other: Float | float) -> Mask:
        return self._compare(">", other)

    def __ge__(self, other: Float | float) -> Mask:
        return self._compare(">=", other)

    def equals(self, other: Float | float) -> Mask:
        """The lanes in which both are equal, which no NaN is; ``==`` itself compares objects."""
        return self._compare("==", other)

    def differs(self, other: Float | float) -> Mask:
        """The lanes in which both are numbers, and not equal."""
        return self._compare("!=", other)

    def is_nan(self) -> Mask:
        """The lanes that hold NaN, the only ones that do not compare with themselves."""
        return Mask(self.lanes, self.lanes.builder.fcmp_unordered("uno", self.value, self.value))

    def fma(self, b: Float | float, c: Float | float) -> Float:
        """The value of ``self * b + c``, rounded once. Only where the target has the instruction (see
        ``Target.has_fma``)."""
        args = [self.value, self.same(b).value, self.same(c).value]
        return self._make(self.lanes.call("fma", float_type(self.bits), args))

    def mul_add(self, b: Float | float, c: Float | float) -> Float:
        """The value of ``self * b + c``, rounded once or twice, whichever is faster here."""
        return self.fma(b, c) if self.lanes.target.has_fma else self * b + c

    def _unary(self, intrinsic: str) -> Float:
        return self._make(self.lanes.call(intrinsic, float_type(self.bits), [self.value]))

    def abs(self) -> Float:
        """The absolute value: only the sign bit is cleared, of NaN, too."""
        return self._unary("fabs")

    def sqrt(self) -> Float:
        """The square root, correctly rounded; NaN of negative numbers, but -0 of -0."""
        return self._unary("sqrt")

    def rounding(self, intrinsic: str) -> Float:
        """The value rounded by an instruction: ``floor``, ``ceil``, ``trunc`` or ``rint``. Only where the target has
        it."""
        return self._unary(intrinsic)

    def copysign(self, sign: Float) -> Float:
        """The magnitude of this value with the sign of another, bit by bit, also where one is NaN or 0."""
        args = [self.value, sign.value]
        return self._make(self.lanes.call("copysign", float_type(self.bits), args))

    def at_least(self, low: float) -> Float:
        """The larger of this and ``low``; NaN stays NaN."""
        return (self < low).select(self.same(low), self)

    def at_most(self, high: float) -> Float:
        """The smaller of this and ``high``; NaN stays NaN."""
        return (self > high).select(self.same(high), self)

    def clamp(self, low: float, high: float) -> Float:
        """The value, kept within [low, high]; NaN stays NaN."""
        return self.at_least(low).at_most(high)

    def as_int(self) -> Int:
        """The bits, as an integer."""
        kind = self.lanes.type_of(llvm_ir.IntType(self.bits))
        return Int(self.lanes, self.lanes.builder.bitcast(self.value, kind), self.bits)

    def convert(self, bits: int) -> Float:
        """The number as float32 or float64, rounded to nearest."""
        if bits == self.bits:
            return self
        kind = self.lanes.type_of(float_type(bits))
        builder = self.lanes.builder
        change = builder.fptrunc if bits < self.bits else builder.fpext
        return Float(self.lanes, change(self.value, kind), bits)


def polynomial(x: Float, coefficients: Sequence[float]) -> Float:
    """c0 + c1 x + c2 x² + … by Horner's rule for x², in pairs of terms: so fewer products wait for each other."""
    pairs = [_pair(x, coefficients[k : k + 2]) for k in range(0, len(coefficients), 2)]
    square = x * x
    total = pairs[-1]
    for pair in reversed(pairs[:-1]):
        total = total.mul_add(square, pair)
    return total


def _pair(x: Float, coefficients: Sequence[float]) -> Float:
    """c0 + c1 x, or c0 alone."""
    constant, *slope = coefficients
    return x.mul_add(slope[0], constant) if slope else x.same(constant)

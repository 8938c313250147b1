"""Numbers as strings and strings as numbers, in decimal: ``number_strings`` and ``string_numbers``.

Floats are scaled by powers of ten, of which each product is kept as the sum of two float64 (Dekker, "A floating-point
technique for extending the available precision", 1971), which is exact far beyond what is rounded.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from .... import te
from ....base.dtype import FLOAT64, INT64, UINT8
from ....base.errors import TypeInferenceError
from ....graph.node import Call, Constant, Node, TupleGet
from ....graph.types import TensorType, TupleType, Type
from ....ir.buffer import Buffer
from ....ir.builder import BufferPtr, IRBuilder
from ....ir.expr import Expr
from ....ir.makers import as_index
from ....ir.row_major import unravel_index
from ....ir.simplify import simplify
from ....ir.stmt import Assert, Stmt
from ....schedules.rows import extent_of
from ....te.tensor import Tensors
from ...definition.attrs import Attrs, attr
from ...definition.registry import OpPattern, register_op
from ...definition.relations import tensor_argument
from ...definition.strategy import register_compute
from .text import Piece, Text, string_types

DIGITS = 8
"""How many digits of a float are written, as onnxruntime does."""
FLOAT_BYTES, INTEGER_BYTES = 16, 20
"""The most bytes of a number: ``-1.2345678e-308`` and ``-9223372036854775808``."""
_FAR = 300
"""The greatest power of ten of the table: twice that is beyond float64."""
_MOST = 400
"""Numbers of a larger exponent are infinite, of a smaller one 0."""


@cache
def powers_of_ten() -> npt.NDArray[Any]:
    """10**k for k from -300 to 300, each as the sum of two float64."""
    exact = [Fraction(10) ** k for k in range(-_FAR, _FAR + 1)]
    return np.array([(float(x), float(x - Fraction(float(x)))) for x in exact])


@dataclass(frozen=True, slots=True, eq=False)
class _Pair:
    """A number as the sum of two float64, the second far smaller."""

    high: Expr
    low: Expr


@dataclass(frozen=True, slots=True, eq=False)
class _Scale:
    """Multiplies by powers of ten."""

    builder: IRBuilder
    powers: BufferPtr

    def scaled(self, x: _Pair, exponent: Expr) -> _Pair:
        """x · 10**exponent, in two steps, since not all powers are float64."""
        near = self._let("near", te.maximum(te.minimum(exponent, _FAR), -_FAR))
        return self._times(self._times(x, near), self._let("far", te.maximum(te.minimum(exponent - near, _FAR), -_FAR)))

    def _times(self, x: _Pair, exponent: Expr) -> _Pair:
        high, low = (self._let("power", self.powers[exponent + _FAR, k]) for k in range(2))
        product = self._let("product", te.arithmetic_fence(x.high * high))
        error = self._let("error", te.fma(x.high, high, -product))
        beyond = self._let("beyond", ~te.isfinite(product))
        small = te.arithmetic_fence(error + (x.high * low + x.low * high))
        rest = self._let("rest", te.select(beyond, te.const(0.0, FLOAT64), small))
        total = self._let("total", te.arithmetic_fence(product + rest))
        left = te.arithmetic_fence(rest - te.arithmetic_fence(total - product))
        return _Pair(total, self._let("low", te.select(beyond, te.const(0.0, FLOAT64), left)))

    def _let(self, name: str, value: Expr) -> Expr:
        return self.builder.let(name, value).as_expr()


# string_numbers


@dataclass(frozen=True)
class StringNumbersAttrs(Attrs):
    """The attributes of ``string_numbers``."""

    whole: bool = attr("whether the result is of int64, not of float64", False)


def _numbers_relation(types: Sequence[Type], attrs: StringNumbersAttrs) -> Type:
    spans = string_types(types)
    return TensorType(spans.shape, INT64 if attrs.whole else FLOAT64)


class _Reader:
    """Reads a number, byte by byte. Mutable: the position, in memory of the builder."""

    def __init__(self, text: Text, piece: Piece) -> None:
        self.ib, self._text, self._end = text.builder, text, piece.end
        self._at, self.byte = self.ib.allocate("index", (), "at"), self.ib.allocate("int32", (), "char")
        self._at[()] = piece.begin
        self._look()

    def _look(self) -> None:
        """The byte at the position, 0 behind the last one."""
        with self.ib.if_scope(self._at[()] < self._end):
            self.byte[()] = te.cast(self._text.utf8[self._at[()]], "int32")
        with self.ib.else_scope():
            self.byte[()] = te.const(0, "int32")

    def step(self) -> None:
        """Go to the next byte."""
        self._at[()] = self._at[()] + 1
        self._look()

    def sees(self, char: str) -> Expr:
        """Whether a letter is here, in any case; or another character."""
        return (self.byte[()] | (0x20 if char.isalpha() else 0)) == ord(char)

    @property
    def sees_digit(self) -> Expr:
        """Whether a digit is here."""
        return (self.byte[()] >= ord("0")) & (self.byte[()] <= ord("9"))

    def skip_blanks(self) -> None:
        """Go to what is no white space."""
        is_blank = (self.byte[()] == 32) | (self.byte[()] >= 9) & (self.byte[()] <= 13)
        with self.ib.while_loop(is_blank):
            self.step()

    def sign(self, name: str) -> BufferPtr:
        """Whether there is a minus, behind which, or a plus, the position is then."""
        minus = self.ib.allocate("bool", (), name)
        minus[()] = self.sees("-")
        with self.ib.if_scope(self.sees("-") | self.sees("+")):
            self.step()
        return minus

    def word(self, letters: str) -> Expr:
        """Whether these letters come next, behind as many of which the position is then."""
        matched = self.ib.allocate("index", (), letters)
        matched[()] = as_index(0)
        for number, letter in enumerate(letters):
            with self.ib.if_scope((matched[()] == number) & self.sees(letter)):
                matched[()] = matched[()] + 1
                self.step()
        return matched[()] == len(letters)


@dataclass(frozen=True, slots=True, eq=False)
class _Decimal:
    """Digits as a number, their exponent, and how many there are; those beyond 19 count in the exponent only."""

    digits: BufferPtr
    exponent: BufferPtr
    count: BufferPtr

    def read(self, reader: _Reader, behind_point: bool) -> None:
        """Add digits."""
        ib = reader.ib
        with ib.while_loop(reader.sees_digit):
            with ib.if_scope(self.digits[()] < te.const(10**18, "uint64")):
                digit = te.cast(reader.byte[()] - ord("0"), "uint64")
                self.digits[()] = self.digits[()] * te.const(10, "uint64") + digit
                if behind_point:
                    self.exponent[()] = self.exponent[()] - 1
            if not behind_point:
                with ib.else_scope():
                    self.exponent[()] = self.exponent[()] + 1
            self.count[()] = self.count[()] + 1
            reader.step()


def _decimal(ib: IRBuilder) -> _Decimal:
    made = _Decimal(ib.allocate("uint64", (), "digits"), ib.allocate("index", (), "ten"), ib.allocate("index", (), "n"))
    made.digits[()], made.exponent[()], made.count[()] = te.const(0, "uint64"), as_index(0), as_index(0)
    return made


def _numbers_compute(attrs: StringNumbersAttrs, inputs: Tensors, result: Type) -> te.Tensor:
    def body(ins: Sequence[Buffer], outs: Sequence[Buffer]) -> Stmt:
        ib = IRBuilder()
        spans, utf8, powers, numbers = map(ib.buffer_ptr, (*ins, *outs))
        text = Text(ib, spans, utf8)
        with ib.for_range(0, extent_of(spans.shape), name="string") as number:
            place = unravel_index(number.as_expr(), spans.shape)
            reader = _Reader(text, text.piece(place))
            reader.skip_blanks()
            minus = reader.sign("minus")
            decimal = _decimal(ib)
            decimal.read(reader, behind_point=False)
            if attrs.whole:
                numbers[place] = _whole(ib, decimal, minus[()])
            else:
                numbers[place] = _real(reader, decimal, minus[()], _Scale(ib, powers))
        return ib.get()

    kind = "int64" if attrs.whole else "float64"
    return te.extern(inputs[0].shape, inputs, body, name="string_numbers", dtype=kind)


def _whole(ib: IRBuilder, decimal: _Decimal, minus: Expr) -> Expr:
    """What is behind the digits is not looked at."""
    value = decimal.digits[()]
    largest = te.select(minus, te.const(1 << 63, "uint64"), te.const((1 << 63) - 1, "uint64"))
    fits = (decimal.exponent[()] == 0) & (value <= largest)
    ib.emit(Assert((decimal.count[()] > 0) & fits, "a string that is cast to an integer is none, or too large"))
    return te.cast(te.select(minus, te.const(0, "uint64") - value, value), INT64)


def _real(reader: _Reader, decimal: _Decimal, minus: Expr, scale: _Scale) -> Expr:
    ib = reader.ib
    with ib.if_scope(reader.sees(".")):
        reader.step()
        decimal.read(reader, behind_point=True)
    special = ib.allocate("float64", (), "special")
    is_special = ib.allocate("bool", (), "is_special")
    is_special[()], special[()] = te.const(False, "bool"), te.const(0.0, FLOAT64)
    with ib.if_scope(decimal.count[()] == 0):
        for word in ("nan", "inf"):
            with ib.if_scope(reader.word(word)):
                is_special[()], special[()] = te.const(True, "bool"), te.const(float(word), FLOAT64)
    exponent = ib.allocate("index", (), "exponent")
    exponent[()] = as_index(0)
    with ib.if_scope((decimal.count[()] > 0) & reader.sees("e")):
        reader.step()
        below = reader.sign("below")
        with ib.while_loop(reader.sees_digit):
            shifted = exponent[()] * 10 + as_index(reader.byte[()] - ord("0"))
            exponent[()] = te.minimum(shifted, 10**6)
            reader.step()
        exponent[()] = te.select(below[()], -exponent[()], exponent[()])
    ib.emit(Assert((decimal.count[()] > 0) | is_special[()], "a string that is cast to a number is none"))
    value = decimal.digits[()]
    high = ib.let("high", te.cast(value, FLOAT64)).as_expr()
    low = te.cast(te.cast(value - te.cast(high, "uint64"), INT64), FLOAT64)
    ten = te.maximum(te.minimum(exponent[()] + decimal.exponent[()], _MOST), -_MOST)
    found = scale.scaled(_Pair(high, low), ib.let("scale", ten).as_expr())
    zero = value == te.const(0, "uint64")
    whole = te.select(is_special[()], special[()], te.select(zero, te.const(0.0, FLOAT64), found.high + found.low))
    return te.select(minus, -whole, whole)


POWERS = ("powers", "powers of ten from -300 to 300, float64[601, 2], the sum of two each")
STRING_NUMBERS = register_op(
    "string_numbers",
    "the decimal numbers that strings begin with, as float64 or int64; an error of the run where there is none",
    [("spans", "strings"), ("utf8", "their bytes"), POWERS],
    _numbers_relation,
    OpPattern.OPAQUE,
    StringNumbersAttrs,
)
register_compute(STRING_NUMBERS, _numbers_compute)


def string_numbers(spans: Node, utf8: Node, whole: bool = False) -> Call:
    """The numbers that strings are, as float64, or as int64 if they are ``whole``.

    White space and a sign may come first; a float may be ``nan``, ``inf`` or ``infinity``, in letters of any case, and
    is rounded from its first 19 digits. What is behind a number is not looked at. A string that begins with none, or
    with an integer beyond int64, is an error of the run.
    """
    return STRING_NUMBERS(spans, utf8, Constant(powers_of_ten()), attrs=StringNumbersAttrs(whole))


# number_strings


def _strings_relation(types: Sequence[Type], attrs: None) -> Type:
    x = tensor_argument(types[0], "x")
    if x.dtype not in (INT64, FLOAT64):
        raise TypeInferenceError(f"x must be of int64 or float64, found {x}")
    room = FLOAT_BYTES if x.dtype.is_float else INTEGER_BYTES
    return TupleType((TensorType(x.shape, INT64), TensorType((simplify(extent_of(x.shape) * room),), UINT8)))


class _Writer:
    """Writes bytes into the room of a number. Mutable: the position, in memory of the builder."""

    def __init__(self, ib: IRBuilder, utf8: BufferPtr, begin: Expr) -> None:
        self.ib, self._utf8, self._at = ib, utf8, ib.allocate("index", (), "cursor")
        self._at[()] = begin

    @property
    def position(self) -> Expr:
        """Where the next byte goes."""
        return self._at[()]

    def put(self, byte: Expr | int) -> None:
        """One byte more."""
        self._utf8[self._at[()]] = te.const(byte, UINT8) if isinstance(byte, int) else te.cast(byte, UINT8)
        self._at[()] = self._at[()] + 1

    def word(self, letters: str) -> None:
        """Some characters."""
        for letter in letters:
            self.put(ord(letter))

    def whole(self, value: Expr, at_least: int = 1) -> None:
        """A number of uint64 in decimal."""
        ib = self.ib
        ten = te.const(10, "uint64")
        value = ib.let("whole", value).as_expr()
        unit = ib.allocate("uint64", (), "unit")
        unit[()] = te.const(10 ** (at_least - 1), "uint64")
        with ib.while_loop(value // unit[()] >= ten):
            unit[()] = unit[()] * ten
        with ib.while_loop(unit[()] > te.const(0, "uint64")):
            self.put(value // unit[()] % ten + te.const(ord("0"), "uint64"))
            unit[()] = unit[()] // ten


def _strings_compute(attrs: None, inputs: Tensors, result: Type) -> Tensors:
    x = inputs[0]
    room = FLOAT_BYTES if x.dtype.is_float else INTEGER_BYTES

    def body(ins: Sequence[Buffer], outs: Sequence[Buffer]) -> Stmt:
        ib = IRBuilder()
        values, powers, spans, utf8 = map(ib.buffer_ptr, (*ins, *outs))
        with ib.for_range(0, extent_of(values.shape), name="number") as number:
            place = unravel_index(number.as_expr(), values.shape)
            begin = ib.let("begin", number * room).as_expr()
            value = ib.let("value", values[place]).as_expr()
            writer = _Writer(ib, utf8, begin)
            if x.dtype.is_float:
                _write_real(writer, value, _Scale(ib, powers))
            else:
                _write_integer(writer, value)
            spans[place] = Piece(begin, writer.position).span
            with ib.for_range(writer.position, begin + room, name="rest") as rest:
                utf8[rest] = te.const(0, UINT8)
        return ib.get()

    size = simplify(extent_of(x.shape) * room)
    return te.extern([x.shape, (size,)], inputs, body, name="number_strings", dtype=[INT64, UINT8])


def _write_integer(writer: _Writer, value: Expr) -> None:
    negative = value < te.const(0, INT64)
    with writer.ib.if_scope(negative):
        writer.put(ord("-"))
    bits = te.cast(value, "uint64")
    writer.whole(te.select(negative, te.const(0, "uint64") - bits, bits))


def _write_real(writer: _Writer, value: Expr, scale: _Scale) -> None:
    ib = writer.ib
    with ib.if_scope(te.isnan(value)):
        writer.word("NaN")
    with ib.else_scope():
        with ib.if_scope(te.as_bits(value, "int64") < te.const(0, INT64)):
            writer.put(ord("-"))
        with ib.if_scope(te.isinf(value)):
            writer.word("INF")
        with ib.else_scope():
            with ib.if_scope(value == te.const(0.0, FLOAT64)):
                writer.word("0")
            with ib.else_scope():
                _write_finite(writer, ib.let("size", te.abs(value)).as_expr(), scale)


def _write_finite(writer: _Writer, size: Expr, scale: _Scale) -> None:
    """A number above 0 as ``%.8g`` of C has it."""
    ib = writer.ib
    least, most = 10.0 ** (DIGITS - 1), 10.0**DIGITS
    exponent = ib.allocate("index", (), "exponent")
    exponent[()] = as_index(te.cast(te.floor(te.log10(size)), INT64))
    zero = te.const(0.0, FLOAT64)
    guess = scale.scaled(_Pair(size, zero), (DIGITS - 1) - exponent[()])
    with ib.if_scope(guess.high < least):
        exponent[()] = exponent[()] - 1
    with ib.if_scope(guess.high >= most):
        exponent[()] = exponent[()] + 1
    found = scale.scaled(_Pair(size, zero), (DIGITS - 1) - exponent[()])
    whole = ib.let("floor", te.floor(found.high)).as_expr()
    rest = ib.let("fraction", found.high - whole + found.low).as_expr()
    up = ib.let("up", te.floor(rest + 0.5)).as_expr()
    digits = ib.allocate("uint64", (), "digits")
    digits[()] = te.cast(whole + up, "uint64")
    is_tie = rest + 0.5 == up
    odd = digits[()] % te.const(2, "uint64") == te.const(1, "uint64")
    with ib.if_scope(is_tie & odd):
        digits[()] = digits[()] - te.const(1, "uint64")
    with ib.if_scope(digits[()] >= te.const(10**DIGITS, "uint64")):
        digits[()] = te.const(10 ** (DIGITS - 1), "uint64")
        exponent[()] = exponent[()] + 1
    count = ib.allocate("index", (), "significant")
    count[()] = as_index(DIGITS)
    ten = te.const(10, "uint64")
    with ib.while_loop((digits[()] % ten == te.const(0, "uint64")) & (count[()] > 1)):
        digits[()] = digits[()] // ten
        count[()] = count[()] - 1
    scientific = (exponent[()] < -4) | (exponent[()] >= DIGITS)
    with ib.if_scope(scientific):
        _write_digits(writer, digits[()], count[()], as_index(1))
        writer.word("e")
        writer.put(te.select(exponent[()] < 0, te.const(ord("-"), "int32"), te.const(ord("+"), "int32")))
        writer.whole(te.cast(te.maximum(exponent[()], -exponent[()]), "uint64"), at_least=2)
    with ib.else_scope():
        with ib.if_scope(exponent[()] < 0):
            writer.word("0.")
            with ib.for_range(1, -exponent[()], name="zero"):
                writer.put(ord("0"))
            _write_digits(writer, digits[()], count[()], count[()])
        with ib.else_scope():
            _write_digits(writer, digits[()], count[()], exponent[()] + 1)


def _write_digits(writer: _Writer, digits: Expr, count: Expr, before: Expr) -> None:
    """So many digits, with a point behind the first ``before``, if there are more; zeros up to there, if there are
    less."""
    ib = writer.ib
    ten = te.const(10, "uint64")
    digits, count, before = (ib.let(name, x).as_expr() for name, x in (("all", digits), ("n", count), ("b", before)))
    unit = ib.allocate("uint64", (), "unit")
    unit[()] = te.const(1, "uint64")
    with ib.for_range(1, count, name="digit"):
        unit[()] = unit[()] * ten
    with ib.for_range(0, count, name="digit") as k:
        with ib.if_scope((k == before) & (k > 0)):
            writer.put(ord("."))
        writer.put(digits // unit[()] % ten + te.const(ord("0"), "uint64"))
        unit[()] = unit[()] // ten
    with ib.for_range(count, before, name="zero"):
        writer.put(ord("0"))


NUMBER_STRINGS = register_op(
    "number_strings",
    "numbers in decimal: their spans and bytes",
    [("x", "int64 or float64, of which 8 digits are written"), POWERS],
    _strings_relation,
    OpPattern.OPAQUE,
)
register_compute(NUMBER_STRINGS, _strings_compute)


def number_strings(x: Node) -> tuple[Node, Node]:
    """Numbers of int64 or float64 as strings: spans, int64, and bytes, uint8. Floats have 8 digits, as ``%.8g`` of C
    writes them, and are ``NaN`` and ``INF`` else, as in onnxruntime."""
    found = NUMBER_STRINGS(x, Constant(powers_of_ten()))
    return TupleGet(found, 0), TupleGet(found, 1)

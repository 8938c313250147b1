"""The numbers that strings begin with, in decimal: ``string_numbers``."""

from __future__ import annotations

from collections.abc import Sequence

from .... import te
from ....base.dataclass import dataclass
from ....base.dtype import FLOAT64, INT64
from ....graph.node import Call, Constant, Node
from ....graph.types import TensorType, Type
from ....ir.buffer import Buffer
from ....ir.builder import BufferPtr, IRBuilder
from ....ir.expr import Expr
from ....ir.makers import as_index
from ....ir.row_major import unravel_index
from ....ir.stmt import Assert, Stmt
from ....schedules.rows import extent_of
from ....te.tensor import Tensors
from ...definition.attrs import Attrs, attr
from ...definition.registry import OpPattern, register_op
from ...definition.strategy import register_compute
from .decimal_scale import POWERS, DecimalScale, FloatPair, powers_of_ten
from .text import Piece, Text, string_types

_MOST = 400
"""Numbers of a larger exponent are infinite, of a smaller one 0."""


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
                numbers[place] = _real(reader, decimal, minus[()], DecimalScale(ib, powers))
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


def _real(reader: _Reader, decimal: _Decimal, minus: Expr, scale: DecimalScale) -> Expr:
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
    found = scale.scaled(FloatPair(high, low), ib.let("scale", ten).as_expr())
    zero = value == te.const(0, "uint64")
    whole = te.select(is_special[()], special[()], te.select(zero, te.const(0.0, FLOAT64), found.high + found.low))
    return te.select(minus, -whole, whole)


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

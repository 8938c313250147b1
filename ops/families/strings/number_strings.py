"""Numbers as strings, in decimal: ``number_strings``."""

from __future__ import annotations

from collections.abc import Sequence

from .... import te
from ....base.dtype import FLOAT64, INT64, UINT8
from ....base.errors import TypeInferenceError
from ....graph.node import Constant, Node, TupleGet
from ....graph.types import TensorType, TupleType, Type
from ....ir.buffer import Buffer
from ....ir.builder import BufferPtr, IRBuilder
from ....ir.expr import Expr
from ....ir.makers import as_index
from ....ir.row_major import unravel_index
from ....ir.simplify import simplify
from ....ir.stmt import Stmt
from ....schedules.rows import extent_of
from ....te.tensor import Tensors
from ...definition.registry import OpPattern, register_op
from ...definition.relations import tensor_argument
from ...definition.strategy import register_compute
from .decimal_scale import POWERS, DecimalScale, FloatPair, powers_of_ten
from .text import Piece

DIGITS = 8
"""How many digits of a float are written, as onnxruntime does."""
FLOAT_BYTES, INTEGER_BYTES = 16, 20
"""The most bytes of a number: ``-1.2345678e-308`` and ``-9223372036854775808``."""


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
                _write_real(writer, value, DecimalScale(ib, powers))
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


def _write_real(writer: _Writer, value: Expr, scale: DecimalScale) -> None:
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


def _write_finite(writer: _Writer, size: Expr, scale: DecimalScale) -> None:
    """A number above 0 as ``%.8g`` of C has it."""
    ib = writer.ib
    least, most = 10.0 ** (DIGITS - 1), 10.0**DIGITS
    exponent = ib.allocate("index", (), "exponent")
    exponent[()] = as_index(te.cast(te.floor(te.log10(size)), INT64))
    zero = te.const(0.0, FLOAT64)
    guess = scale.scaled(FloatPair(size, zero), (DIGITS - 1) - exponent[()])
    with ib.if_scope(guess.high < least):
        exponent[()] = exponent[()] - 1
    with ib.if_scope(guess.high >= most):
        exponent[()] = exponent[()] + 1
    found = scale.scaled(FloatPair(size, zero), (DIGITS - 1) - exponent[()])
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
    """Write so many digits, with a point behind the first ``before``, if there are more; zeros up to there, if there
    are less."""
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

"""string_case: bytes of UTF-8 in which letters are replaced by those of the other case, where these take as many bytes.

So spans stay as they are. Letters whose other case is several characters, or takes more or fewer bytes, stay, too: ß,
ŉ, İ and some dozens more.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np
import numpy.typing as npt

from .... import te
from ....base.dtype import INT32, UINT8, UINT16
from ....base.errors import TypeInferenceError
from ....graph.node import Call, Constant, Node
from ....graph.types import Type
from ....ir.buffer import Buffer
from ....ir.builder import BufferPtr, IRBuilder
from ....ir.constants import const_int
from ....ir.expr import Expr
from ....ir.makers import as_index
from ....ir.stmt import Stmt
from ....te.tensor import Tensors
from ...definition.registry import OpPattern, register_op
from ...definition.relations import tensor_argument
from ...definition.strategy import register_compute

CODE_POINTS = 1 << 16
"""Those of up to three bytes have a case in the table."""


@cache
def case_table(upper: bool) -> npt.NDArray[np.uint16]:
    """A table that has for each code point of up to three bytes the one of the other case, or itself."""
    table = np.arange(CODE_POINTS, dtype=np.uint16)
    for code in range(CODE_POINTS):
        other = chr(code).upper() if upper else chr(code).lower()
        if len(other) == 1 and ord(other) != code and len(other.encode()) == len(chr(code).encode()):
            table[code] = ord(other)
    return table


def _relation(types: Sequence[Type], attrs: None) -> Type:
    utf8, table = tensor_argument(types[0], "utf8"), tensor_argument(types[1], "table")
    if utf8.dtype is not UINT8 or utf8.ndim != 1:
        raise TypeInferenceError(f"utf8 must be a vector of uint8, found {utf8}")
    if table.dtype is not UINT16 or [const_int(extent) for extent in table.shape] != [CODE_POINTS]:
        raise TypeInferenceError(f"table must be a vector of {CODE_POINTS} uint16, found {table}")
    return utf8


def _compute(attrs: None, inputs: Tensors, result: Type) -> te.Tensor:
    def body(ins: Sequence[Buffer], outs: Sequence[Buffer]) -> Stmt:
        ib = IRBuilder()
        utf8, table, changed = map(ib.buffer_ptr, (*ins, *outs))
        at = ib.allocate("index", (), "at")
        at[()] = as_index(0)
        with ib.while_loop(at[()] < utf8.shape[0]):
            at[()] = at[()] + _change_character(ib, utf8, table, changed, ib.let("first", at[()]).as_expr())
        return ib.get()

    return te.extern(inputs[0].shape, inputs, body, name="string_case", dtype="uint8")


def _change_character(ib: IRBuilder, utf8: BufferPtr, table: BufferPtr, changed: BufferPtr, at: Expr) -> Expr:
    """Write the character at a byte in its other case; gives how many bytes it has. What is no character, or one of
    four bytes, is copied byte by byte."""
    count = ib.allocate("index", (), "count")
    count[()] = as_index(1)
    lead = ib.let("lead", te.cast(utf8[at], INT32)).as_expr()
    left = utf8.shape[0] - at
    changed[at] = te.select(lead < 0x80, te.cast(table[as_index(te.minimum(lead, 0x7F))], UINT8), utf8[at])
    for size, mark in ((2, 0b110), (3, 0b1110)):
        with ib.if_scope(((lead >> (7 - size)) == mark) & (left >= size)):
            count[()] = as_index(size)
            code = lead & ((1 << (7 - size)) - 1)
            for k in range(1, size):
                code = code << 6 | te.cast(utf8[at + k], INT32) & 0x3F
            other = ib.let("other", te.cast(table[as_index(code)], INT32)).as_expr()
            for k in range(size):
                bits = other >> 6 * (size - 1 - k) & (0x3F if k else 0xFF)
                changed[at + k] = te.cast(bits | (0x80 if k else mark << (8 - size - 1)), UINT8)
    return count[()]


STRING_CASE = register_op(
    "string_case",
    "bytes of UTF-8 with letters in their other case, where that takes as many bytes",
    [("utf8", "a vector of uint8"), ("table", "of each code point of up to three bytes its other case, or itself")],
    _relation,
    OpPattern.OPAQUE,
)
register_compute(STRING_CASE, _compute)


def string_case(utf8: Node, upper: bool) -> Call:
    """Bytes of UTF-8, a vector of uint8, with letters in upper or lower case where that takes as many bytes; other
    characters stay."""
    return STRING_CASE(utf8, Constant(case_table(upper)))

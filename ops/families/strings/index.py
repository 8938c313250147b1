"""string_index: where strings stand in a list of keys, by a hash table that is a constant."""

from __future__ import annotations

from collections.abc import Sequence

from .... import te
from ....base.dtype import INT32, INT64
from ....base.errors import TypeInferenceError
from ....graph.node import Call, Constant, Node
from ....graph.types import TensorType, Type
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
from .hash_table import FREE, OFFSET_BASIS, PRIME, string_table
from .text import Piece, Text, string_types


def _relation(types: Sequence[Type], attrs: None) -> Type:
    spans, keys = string_types(types), string_types(types, 3, ("keys", "keys_utf8"))
    slots = tensor_argument(types[2], "slots")
    count = const_int(slots.shape[0]) if slots.ndim == 1 else None
    if slots.dtype is not INT32 or count is None or count < 1 or count & (count - 1):
        raise TypeInferenceError(f"slots must be a vector of int32, as long as a power of two, found {slots}")
    if keys.ndim != 1:
        raise TypeInferenceError(f"keys must be a vector, found {keys}")
    return TensorType(spans.shape, INT64)


def _compute(attrs: None, inputs: Tensors, result: Type) -> te.Tensor:
    def body(ins: Sequence[Buffer], outs: Sequence[Buffer]) -> Stmt:
        ib = IRBuilder()
        spans, utf8, slots, keys, keys_utf8, numbers = map(ib.buffer_ptr, (*ins, *outs))
        text = Text(ib, spans, utf8)
        with text.each_string() as place:
            numbers[place] = _number_of(text, text.piece(place), slots, Text(ib, keys, keys_utf8))
        return ib.get()

    return te.extern(inputs[0].shape, inputs, body, name="string_index", dtype="int64")


def _number_of(text: Text, piece: Piece, slots: BufferPtr, keys: Text) -> Expr:
    """The number of the key that a string is, -1 if it is none. Slots are probed from that of the string's hash on,
    until one is free; of a table without free slots each once."""
    ib, (count,) = text.builder, slots.shape
    found, key, at, probed = (ib.allocate(kind, (), name) for kind, name in (
        ("int64", "found"), ("int32", "key"), ("index", "at"), ("index", "probed")))  # fmt: skip
    found[()] = te.const(-1, INT64)
    at[()] = as_index(_hash(text, piece)) % count
    key[()] = slots[at[()]]
    probed[()] = as_index(1)
    with ib.while_loop((found[()] < 0) & (key[()] > FREE)):
        number = ib.let("number", te.minimum(as_index(key[()]), keys.spans.shape[0] - 1)).as_expr()
        at[()] = (at[()] + 1) % count
        key[()] = te.select(probed[()] < count, slots[at[()]], te.const(FREE, INT32))
        probed[()] = probed[()] + 1
        with ib.if_scope(text.equals(piece, keys, keys.piece((number,)))):
            found[()] = te.cast(number, INT64)
    return found[()]


def _hash(text: Text, piece: Piece) -> Expr:
    ib = text.builder
    value = ib.allocate("uint32", (), "hash")
    value[()] = te.const(OFFSET_BASIS, "uint32")
    with ib.for_range(piece.begin, piece.end, name="byte") as k:
        value[()] = (value[()] ^ te.cast(text.utf8[k], "uint32")) * te.const(PRIME, "uint32")
    return value[()]


STRING_INDEX = register_op(
    "string_index",
    "the number of the key that each string is, -1 for one that is none, as int64",
    [
        ("spans", "strings"),
        ("utf8", "their bytes"),
        ("slots", "numbers of keys by the FNV-1a hash of their bytes, probed one after the other; -1 is free"),
        ("keys", "a vector of spans"),
        ("keys_utf8", "their bytes"),
    ],
    _relation,
    OpPattern.OPAQUE,
)
register_compute(STRING_INDEX, _compute)


def string_index(spans: Node, utf8: Node, keys: Sequence[str]) -> Call:
    """The number of the first of ``keys`` that each string is, -1 for one that is none of them, as int64. ``spans`` are
    int64 (``base/spans.py``), ``utf8`` the bytes that they are of, a vector of uint8."""
    table = string_table(keys)
    return STRING_INDEX(spans, utf8, Constant(table.slots), Constant(table.spans), Constant(table.utf8))

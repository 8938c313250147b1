"""Strings in loop IR written by hand: where the bytes of a span begin and end, and what they are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from .... import te
from ....base.dataclass import dataclass
from ....base.dtype import INT64, UINT8
from ....base.errors import TypeInferenceError
from ....base.spans import LENGTH_BITS, LENGTHS
from ....graph.node import Constant, Node, tensor_of
from ....graph.types import TensorType, Type
from ....ir.builder import BufferPtr, IRBuilder
from ....ir.expr import Expr
from ....ir.makers import as_index
from ....ir.row_major import unravel_index
from ....schedules.rows import extent_of
from ...definition.relations import same_extent, tensor_argument
from ..binary import add, multiply


@dataclass(frozen=True, slots=True, eq=False)
class Piece:
    """Bytes from ``begin`` to before ``end``."""

    begin: Expr
    end: Expr

    @property
    def length(self) -> Expr:
        """How many bytes it has."""
        return self.end - self.begin

    @property
    def span(self) -> Expr:
        """The piece as one int64: where it begins, in the upper bits, and its length (``base/spans.py``)."""
        return te.cast(self.begin, INT64) << LENGTH_BITS | te.cast(self.length, INT64)


@dataclass(frozen=True, slots=True, eq=False)
class Text:
    """Strings in the hands of a builder."""

    builder: IRBuilder
    spans: BufferPtr
    utf8: BufferPtr

    def piece(self, position: Sequence[Expr]) -> Piece:
        """The bytes of a string, as far as they are there."""
        ib, (size,) = self.builder, self.utf8.shape
        span = ib.let("span", self.spans[tuple(position)]).as_expr()
        offset = te.minimum(as_index(span >> LENGTH_BITS), size)
        begin = ib.let("begin", te.maximum(offset, 0)).as_expr()
        length = te.minimum(as_index(span & LENGTHS), size - begin)
        return Piece(begin, ib.let("end", begin + length).as_expr())

    def equals(self, piece: Piece, other: Text, others: Piece) -> Expr:
        """Whether the bytes of a string are those of another."""
        ib = self.builder
        same = ib.allocate("bool", (), "same")
        same[()] = te.const(False, "bool")
        with ib.if_scope(piece.length == others.length):
            same[()] = te.const(True, "bool")
            with ib.for_range(0, piece.length, name="byte") as k:
                alike = self.utf8[piece.begin + k] == other.utf8[others.begin + k]
                same[()] = same[()] & alike
        return same[()]

    @contextmanager
    def each_string(self) -> Iterator[tuple[Expr, ...]]:
        """A loop over the positions of all strings, side by side."""
        with self.builder.for_range(0, extent_of(self.spans.shape), name="string", kind="parallel") as number:
            yield unravel_index(number, self.spans.shape)


def string_types(types: Sequence[Type], first: int = 0, names: tuple[str, str] = ("spans", "utf8")) -> TensorType:
    """The type of the spans of strings, which are two arguments from number ``first`` on. Raises ``TypeInferenceError``
    for others."""
    spans, utf8 = (tensor_argument(types[first + k], name) for k, name in enumerate(names))
    if spans.dtype is not INT64:
        raise TypeInferenceError(f"{names[0]} must be of int64, found {spans}")
    if utf8.dtype is not UINT8 or utf8.ndim != 1:
        raise TypeInferenceError(f"{names[1]} must be a vector of uint8, found {utf8}")
    return spans


def shape_of_both(types: Sequence[Type]) -> tuple[Expr, ...]:
    """The shape of two tensors of strings, each spans and their bytes, which is one. Open extents are made one, or each
    run compares them."""
    a, b = string_types(types, 0, ("a", "a_utf8")), string_types(types, 2, ("b", "b_utf8"))
    message = f"a and b must have one shape, found {a} and {b}"
    if a.ndim != b.ndim:
        raise TypeInferenceError(message)
    return tuple(same_extent(x, y, message) for x, y in zip(a.shape, b.shape, strict=True))


def broadcast_spans(a: Node, b: Node) -> tuple[Node, Node]:
    """Spans of one shape, as numpy broadcasts those of ``a`` and ``b``, whose extents may be open."""
    x, y = tensor_of(a).shape, tensor_of(b).shape
    if len(x) == len(y) and all(m is n for m, n in zip(x, y, strict=True)):
        return a, b
    zero = Constant(np.array(0, np.int64))
    return add(a, multiply(b, zero)), add(b, multiply(a, zero))

"""string_pieces: parts of strings, as spans of the same bytes: between delimiters, or what an automaton finds.

How many there are of a string is counted first; the most of all become an extent, and strings of fewer are filled up.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from .... import te
from ....base.dataclass import dataclass
from ....base.dtype import INT32, INT64
from ....base.errors import TypeInferenceError
from ....graph.node import Call, Constant, Node, tensor_of
from ....graph.types import TensorType, Type
from ....ir.buffer import Buffer
from ....ir.builder import BufferPtr, IRBuilder
from ....ir.constants import const_int
from ....ir.expr import Expr
from ....ir.makers import as_index
from ....ir.stmt import Stmt
from ....te.tensor import Tensors
from ...definition.attrs import Attrs, attr, one_of
from ...definition.registry import OpPattern, register_op
from ...definition.relations import tensor_argument
from ...definition.strategy import register_compute
from ..born_extents import born_extents
from ..concatenate import concatenate
from ..reduce import max as max_of
from ..reshape import reshape
from .automaton import Automaton
from .text import Piece, Text, string_types

BLANKS = b" \t\n\v\f\r\x1c\x1d\x1e\x1f"
"""What Python splits ASCII text at."""


@dataclass(frozen=True)
class PiecesAttrs(Attrs):
    """The attributes of ``string_pieces``."""

    kind: str = attr(
        "'found': what the automaton matches, the longest from where the one before ended; 'between': what is between "
        "such matches",
        "between",
        one_of("found", "between"),
    )
    most: int = attr("how many matches cut a string at most; -1: all", -1)
    strip: bool = attr("whether a match at the beginning, and at the end of the last piece of a cut, is no cut", False)
    characters: int = attr("the fewest characters of a piece, others are left out", 0)


def check_tables(types: Sequence[Type]) -> None:
    """Check the third and the fourth argument, which are an automaton. Raises ``TypeInferenceError``."""
    steps, accepts = (tensor_argument(types[2 + k], name) for k, name in enumerate(("steps", "accepts")))
    if steps.dtype is not INT32 or steps.ndim != 2 or const_int(steps.shape[1]) != 256:
        raise TypeInferenceError(f"steps must be of int32 and have 256 columns, found {steps}")
    if not accepts.dtype.is_bool or accepts.ndim != 1 or accepts.shape[0] is not steps.shape[0]:
        raise TypeInferenceError(f"accepts must be a vector of bool, one for each state, found {accepts}")


@dataclass(frozen=True, slots=True, eq=False)
class _Cutter:
    """Writes a walk over a string, which tells of each of its pieces."""

    attrs: PiecesAttrs
    text: Text
    steps: BufferPtr
    accepts: BufferPtr

    def each_piece(self, whole: Piece, tell: Callable[[Piece], None]) -> None:
        """Matches of no bytes do not count."""
        ib, attrs = self.text.builder, self.attrs
        at, begin, cuts = (ib.allocate("index", (), name) for name in ("at", "start", "cuts"))
        at[()], begin[()], cuts[()] = whole.begin, whole.begin, as_index(0)
        more = at[()] < whole.end
        if attrs.most >= 0:
            more = more & (cuts[()] < attrs.most)
        if attrs.strip:
            self._skip_match(at, begin, whole)
        with ib.while_loop(more):
            found = ib.let("match", self._match_end(at[()], whole.end)).as_expr()
            with ib.if_scope(found > at[()]):
                here = Piece(at[()], found) if attrs.kind == "found" else Piece(begin[()], at[()])
                self._tell(here, tell)
                at[()] = found
                begin[()] = found
                cuts[()] = cuts[()] + 1
            with ib.else_scope():
                at[()] = at[()] + 1
        if attrs.kind == "between":
            rest = Piece(begin[()], whole.end)
            if not attrs.strip:
                self._tell(rest, tell)
                return
            with ib.if_scope(begin[()] < whole.end):
                self._tell(rest, tell)

    def _skip_match(self, at: BufferPtr, begin: BufferPtr, whole: Piece) -> None:
        end = self.text.builder.let("blank", self._match_end(at[()], whole.end)).as_expr()
        at[()] = end
        begin[()] = end

    def _tell(self, piece: Piece, tell: Callable[[Piece], None]) -> None:
        ib = self.text.builder
        made = Piece(ib.let("first", piece.begin).as_expr(), ib.let("last", piece.end).as_expr())
        if self.attrs.characters == 0:
            tell(made)
            return
        count = ib.allocate("index", (), "characters")
        count[()] = as_index(0)
        with ib.for_range(made.begin, made.end, name="byte") as k:
            leads = te.cast(self.text.utf8[k], INT32) & 0xC0
            count[()] = count[()] + te.select(leads == 0x80, as_index(0), as_index(1))
        with ib.if_scope(count[()] >= self.attrs.characters):
            tell(made)

    def _match_end(self, begin: Expr, end: Expr) -> Expr:
        """The byte behind the longest match that begins at a byte; that byte itself if there is none."""
        ib = self.text.builder
        state, at, last = (ib.allocate("index", (), name) for name in ("state", "next", "behind"))
        state[()], at[()], last[()] = as_index(0), begin, begin
        with ib.while_loop((at[()] < end) & (state[()] >= 0)):
            state[()] = next_state(self.steps, state[()], self.text.utf8[at[()]])
            at[()] = at[()] + 1
            with ib.if_scope((state[()] >= 0) & self.accepts[te.maximum(state[()], 0)]):
                last[()] = at[()]
        return last[()]


def next_state(steps: BufferPtr, state: Expr, byte: Expr) -> Expr:
    """The state of an automaton after a byte, -1 if nothing can match any more."""
    return te.minimum(as_index(steps[state, as_index(byte)]), steps.shape[0] - 1)


def _count_relation(types: Sequence[Type], attrs: PiecesAttrs) -> Type:
    spans = string_types(types)
    check_tables(types)
    return TensorType(spans.shape, INT64)


def _count_compute(attrs: PiecesAttrs, inputs: Tensors, result: Type) -> te.Tensor:
    def body(ins: Sequence[Buffer], outs: Sequence[Buffer]) -> Stmt:
        ib = IRBuilder()
        spans, utf8, steps, accepts, counts = map(ib.buffer_ptr, (*ins, *outs))
        text = Text(ib, spans, utf8)
        with text.each_string() as place:
            counts[place] = te.const(0, INT64)

            def count(piece: Piece) -> None:
                counts[place] = counts[place] + te.const(1, INT64)

            _Cutter(attrs, text, steps, accepts).each_piece(text.piece(place), count)
        return ib.get()

    return te.extern(inputs[0].shape, inputs, body, name="count_pieces", dtype="int64")


def _pieces_relation(types: Sequence[Type], attrs: PiecesAttrs) -> Type:
    spans, filler, size = string_types(types), tensor_argument(types[4], "filler"), tensor_argument(types[5], "size")
    check_tables(types)
    if filler.dtype is not INT64 or filler.ndim != 0:
        raise TypeInferenceError(f"filler must be a span, int64 without axes, found {filler}")
    if size.ndim != 1:
        raise TypeInferenceError(f"size must have one axis, as long as there are pieces, found {size}")
    return TensorType((*spans.shape, size.shape[0]), INT64)


def _pieces_compute(attrs: PiecesAttrs, inputs: Tensors, result: Type) -> te.Tensor:
    *read, size = inputs

    def body(ins: Sequence[Buffer], outs: Sequence[Buffer]) -> Stmt:
        ib = IRBuilder()
        spans, utf8, steps, accepts, filler, pieces = map(ib.buffer_ptr, (*ins, *outs))
        text, room = Text(ib, spans, utf8), size.shape[0]
        with text.each_string() as place:
            count = ib.allocate("index", (), "count")
            count[()] = as_index(0)

            def write(piece: Piece) -> None:
                with ib.if_scope(count[()] < room):
                    pieces[(*place, count[()])] = piece.span
                    count[()] = count[()] + 1

            _Cutter(attrs, text, steps, accepts).each_piece(text.piece(place), write)
            with ib.for_range(count[()], room, name="rest") as rest:
                pieces[(*place, rest)] = filler[()]
        return ib.get()

    return te.extern((*inputs[0].shape, size.shape[0]), read, body, name="string_pieces", dtype="int64")


TABLES = [
    ("spans", "strings"),
    ("utf8", "their bytes"),
    ("steps", "the states of an automaton by state and byte, int32; it begins in 0, -1 is that nothing can match"),
    ("accepts", "of each state whether it has matched"),
]
"""The arguments of operators by an automaton."""
COUNT_PIECES = register_op(
    "count_pieces",
    "how many pieces each string has, as int64",
    TABLES,
    _count_relation,
    OpPattern.OPAQUE,
    PiecesAttrs,
)
STRING_PIECES = register_op(
    "string_pieces",
    "the pieces of strings as spans along a last axis, filled up",
    [
        *TABLES,
        ("filler", "a span that stands where a string has no more pieces"),
        ("size", "a tensor as long as there are pieces of a string at most, which is not read"),
    ],
    _pieces_relation,
    OpPattern.OPAQUE,
    PiecesAttrs,
)
register_compute(COUNT_PIECES, _count_compute)
register_compute(STRING_PIECES, _pieces_compute)


def string_pieces(
    spans: Node,
    utf8: Node,
    automaton: Automaton,
    kind: str = "between",
    most: int = -1,
    strip: bool = False,
    characters: int = 0,
    filler: int = 0,
) -> tuple[Node, Node]:
    """The pieces of strings, as spans of the same bytes with one more axis, and how many each string has, as int64.

    With ``kind="found"`` they are the longest matches of ``automaton``, one behind the other; with ``"between"`` what
    is between such matches, of which ``most`` count (-1: all). ``strip`` leaves out empty pieces at both ends.
    Pieces of less than so many ``characters`` are left out. ``filler`` is a span that stands where a string has no
    more pieces. The longest axis that is needed each run counts.
    """
    attrs = PiecesAttrs(kind, most, strip, characters)
    tables = Constant(automaton.steps), Constant(automaton.accepts)
    counts: Node = COUNT_PIECES(spans, utf8, *tables, attrs=attrs)
    size = born_extents(_largest(counts), ["pieces"], "the most pieces of a string")
    found: Call = STRING_PIECES(spans, utf8, *tables, Constant(np.array(filler, np.int64)), size, attrs=attrs)
    return found, counts


def _largest(counts: Node) -> Node:
    """The largest of some numbers, 0 if there are none, as a vector of one number."""
    flat = reshape(counts, (-1,)) if tensor_of(counts).ndim != 1 else counts
    return max_of(concatenate([flat, Constant(np.zeros(1, np.int64))], 0), 0, keepdims=True)

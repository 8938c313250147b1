"""ngram_counts: how often each n-gram of a pool occurs in rows of tokens, which may be skipped at a regular distance.

Source: ONNX's TfIdfVectorizer; which n-grams count is as in onnxruntime.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from .... import te
from ....base.dataclass import dataclass
from ....base.dtype import FLOAT32, INT32, INT64
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
from ...definition.attrs import Attrs, attr, positive
from ...definition.registry import OpPattern, register_op
from ...definition.relations import tensor_argument
from ...definition.strategy import register_compute
from .ngram_trie import MIX, NONE, PARENT_FACTOR, ngram_trie


@dataclass(frozen=True)
class NgramCountsAttrs(Attrs):
    """The attributes of ``ngram_counts``."""

    columns: int = attr("how many columns there are", check=positive)
    shortest: int = attr("the fewest tokens of an n-gram", 1, positive)
    longest: int = attr("the most tokens of an n-gram", 1, positive)
    skips: int = attr("how many tokens may be left out between two, at most", 0)


def _relation(types: Sequence[Type], attrs: NgramCountsAttrs) -> Type:
    tokens, slots, *edges = map(tensor_argument, types, ("tokens", "slots", "parents", "labels", "columns"))
    if tokens.dtype is not INT64 or tokens.ndim != 2:
        raise TypeInferenceError(f"tokens must be a matrix of int64, found {tokens}")
    count = const_int(slots.shape[0]) if slots.ndim == 1 else None
    if slots.dtype is not INT32 or count is None or count < 1 or count & (count - 1):
        raise TypeInferenceError(f"slots must be a vector of int32, as long as a power of two, found {slots}")
    for table, name, kind in zip(edges, ("parents", "labels", "columns"), (INT32, INT64, INT32), strict=True):
        if table.dtype is not kind or table.ndim != 1 or table.shape[0] is not edges[0].shape[0]:
            raise TypeInferenceError(f"{name} must be a vector of {kind}, one for each edge, found {table}")
    return TensorType((tokens.shape[0], as_index(attrs.columns)), FLOAT32)


@dataclass(frozen=True, slots=True, eq=False)
class _Walk:
    """Writes walks through the trie."""

    builder: IRBuilder
    attrs: NgramCountsAttrs
    tokens: BufferPtr
    slots: BufferPtr
    parents: BufferPtr
    labels: BufferPtr
    columns: BufferPtr
    counts: BufferPtr

    def count_row(self, row: Expr) -> None:
        """Single tokens are counted once, since nothing is left out between them."""
        attrs, ib = self.attrs, self.builder
        with ib.for_range(0, self.counts.shape[1], name="column") as column:
            self.counts[row, column] = te.const(0, FLOAT32)
        for distance in range(1, attrs.skips + 2):
            shortest = max(attrs.shortest, 2) if distance > 1 else attrs.shortest
            if shortest <= attrs.longest:
                with ib.for_range(0, self.tokens.shape[1], name="start") as start:
                    self._walk(row, start.as_expr(), distance, shortest)

    def _walk(self, row: Expr, start: Expr, distance: int, shortest: int) -> None:
        """Count the n-grams that begin at a token."""
        ib, length = self.builder, self.tokens.shape[1]
        node, size, at = (ib.allocate("index", (), name) for name in ("node", "size", "at"))
        node[()], size[()], at[()] = as_index(0), as_index(1), start
        with ib.while_loop((node[()] >= 0) & (size[()] <= self.attrs.longest) & (at[()] < length)):
            edge = ib.let("edge", self._edge(node[()], self.tokens[row, at[()]])).as_expr()
            node[()] = te.select(edge >= 0, edge + 1, as_index(-1))
            with ib.if_scope((edge >= 0) & (size[()] >= shortest)):
                column = ib.let("column", as_index(self.columns[edge])).as_expr()
                with ib.if_scope((column >= 0) & (column < self.counts.shape[1])):
                    self.counts[row, column] = self.counts[row, column] + te.const(1, FLOAT32)
            size[()] = size[()] + 1
            at[()] = at[()] + distance

    def _edge(self, node: Expr, token: Expr) -> Expr:
        """The number of the edge from a node by a token, -1 if there is none. Each slot is probed once at most."""
        ib, (count,) = self.builder, self.slots.shape
        found, slot, probed, edge = (ib.allocate("index", (), name) for name in ("found", "slot", "probed", "probe"))
        token = ib.let("token", token).as_expr()
        mixed = (te.cast(token, "uint64") ^ te.cast(node, "uint64") * te.const(PARENT_FACTOR, "uint64")) * te.const(
            MIX, "uint64"
        )
        found[()], probed[()] = as_index(NONE), as_index(0)
        slot[()] = as_index(mixed >> 32) % count
        edge[()] = as_index(self.slots[slot[()]])
        with ib.while_loop((found[()] < 0) & (edge[()] >= 0) & (probed[()] < count)):
            number = ib.let("number", te.minimum(edge[()], self.labels.shape[0] - 1)).as_expr()
            with ib.if_scope((self.labels[number] == token) & (as_index(self.parents[number]) == node)):
                found[()] = number
            slot[()] = (slot[()] + 1) % count
            probed[()] = probed[()] + 1
            edge[()] = as_index(self.slots[slot[()]])
        return found[()]


def _compute(attrs: NgramCountsAttrs, inputs: Tensors, result: Type) -> te.Tensor:
    def body(ins: Sequence[Buffer], outs: Sequence[Buffer]) -> Stmt:
        ib = IRBuilder()
        walk = _Walk(ib, attrs, *map(ib.buffer_ptr, (*ins, *outs)))
        with ib.for_range(0, walk.tokens.shape[0], name="row", kind="parallel") as row:
            walk.count_row(row.as_expr())
        return ib.get()

    shape = (inputs[0].shape[0], as_index(attrs.columns))
    return te.extern(shape, inputs, body, name="ngram_counts", dtype="float32")


NGRAM_COUNTS = register_op(
    "ngram_counts",
    "how often each n-gram of a pool occurs in rows of tokens, a column each, as float32",
    [
        ("tokens", "a matrix of int64"),
        ("slots", "numbers of edges by the hash of node and token; -1 is free"),
        ("parents", "of each edge the node that it comes from: 0 is the root, edge k leads to k + 1"),
        ("labels", "its token"),
        ("columns", "the column of the n-gram that ends there, -1 if none does"),
    ],
    _relation,
    OpPattern.OPAQUE,
    NgramCountsAttrs,
)
register_compute(NGRAM_COUNTS, _compute)


def ngram_counts(
    tokens: Node, ngrams: Iterable[tuple[Sequence[int], int]], columns: int, shortest: int, longest: int, skips: int = 0
) -> Call:
    """How often n-grams occur in rows of ``tokens``, a matrix of int64, as float32[rows, columns]. ``ngrams`` are
    sequences of tokens, each with its column. Those of ``shortest`` to ``longest`` tokens count, at each start and at
    each distance of 1 to ``skips + 1`` between tokens; single tokens once."""
    trie = ngram_trie(ngrams)
    tables = [Constant(table) for table in (trie.slots, trie.parents, trie.tokens, trie.columns)]
    return NGRAM_COUNTS(tokens, *tables, attrs=NgramCountsAttrs(columns, shortest, longest, skips))

"""tree_ensemble: what the leaves that a row reaches in many trees give together.

Which node comes next is known only when the last one was read, so several walks run side by side, and each waits for
memory while the others go on: of neighbouring rows through one tree, or, where there are few rows, of one row through
neighbouring trees. Trees are added in order either way, so that results do not depend on the number of rows or threads.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import reduce

from ... import te
from ...base.dataclass import dataclass
from ...base.dtype import INT32, DType
from ...base.errors import TypeInferenceError
from ...graph.node import Call, Constant, Node, tensor_of
from ...graph.types import TensorType, Type
from ...ir.buffer import Buffer
from ...ir.builder import BufferPtr, IRBuilder
from ...ir.constants import const_int
from ...ir.expr import Expr
from ...ir.makers import as_index
from ...ir.stmt import Stmt
from ...te.tensor import Tensors
from ..definition.arguments import integer
from ..definition.attrs import Attrs, attr, one_of, positive
from ..definition.op_group import OpGroup
from ..definition.registry import OpPattern, register_op
from ..definition.relations import same_extent, tensor_argument
from ..definition.strategy import register_compute
from .tree_tables import Floats, TreeTables

GROUP = OpGroup.TREES

WALKS = 12
"""Walks side by side: a core has that many reads under way, and their nodes just about stay in registers."""
TILE_BYTES = 1 << 17
"""Of rows that go through all trees together: they stay in the second cache, while each tree comes from memory once."""
LEVELS = 4
"""After so many levels of uneven trees it is asked whether all walks are over."""
UNEVEN = 1.5
"""Trees are uneven if they are so many times as deep as balanced ones of as many leaves, and a level more."""
LANES = 16
AGGREGATES = {"sum": (lambda a, b: a + b), "min": te.minimum, "max": te.maximum}


@dataclass(frozen=True)
class TreeEnsembleAttrs(Attrs):
    """The attributes of ``nn.tree_ensemble``."""

    targets: int = attr("how many targets there are", check=positive)
    aggregate: str = attr("how the weights of a target are taken together", "sum", one_of(*AGGREGATES))
    uneven: bool = attr("whether most ways through a tree are much shorter than the longest", default=False)


def _relation(types: Sequence[Type], attrs: TreeEnsembleAttrs) -> Type:
    x, bounds, links, trees, weights = map(tensor_argument, types, ("x", "bounds", "links", "trees", "weights"))
    if x.ndim != 2 or x.dtype not in ("float32", "float64"):
        raise TypeInferenceError(f"x must be a matrix of float32 or float64, found {x}")
    for table, name in ((bounds, "bounds"), (weights, "weights")):
        if table.dtype is not x.dtype:
            raise TypeInferenceError(f"x is {x.dtype}, but {name} is {table.dtype}")
    for table, name, rank in ((bounds, "bounds", 1), (links, "links", 2), (trees, "trees", 2), (weights, "weights", 2)):
        if table.ndim != rank:
            raise TypeInferenceError(f"{name} must be of rank {rank}, found {table}")
    for table, name in ((links, "links"), (trees, "trees")):
        if table.dtype is not INT32 or const_int(table.shape[1]) != 3:
            raise TypeInferenceError(f"{name} must be of int32 and have three columns, found {table}")
    same_extent(bounds.shape[0], links.shape[0], "bounds and links must be of the same nodes")
    width = const_int(weights.shape[1])
    if width not in (1, attrs.targets):
        raise TypeInferenceError(f"weights must have a column, or one for each of {attrs.targets} targets: {weights}")
    return TensorType((x.shape[0], as_index(attrs.targets)), x.dtype)


@dataclass(frozen=True, slots=True)
class _Walk:
    """Writes walks of rows of ``x`` through trees, and what they add to ``scores``."""

    builder: IRBuilder
    attrs: TreeEnsembleAttrs
    x: BufferPtr
    bounds: BufferPtr
    links: BufferPtr
    trees: BufferPtr
    weights: BufferPtr
    scores: BufferPtr

    @property
    def rows(self) -> Expr:
        return self.x.shape[0]

    @property
    def tree_count(self) -> Expr:
        return self.trees.shape[0]

    def clear(self, row: Expr) -> None:
        """Give each target of a row what changes no weight."""
        with self._each(self.attrs.targets) as k:
            self.scores[row, k] = _identity(self.attrs, self.scores.dtype)

    def rows_together(self, first: Expr, count: Expr) -> None:
        """Take rows through each tree in turn, ``WALKS`` side by side, as far as ``count`` comes out even."""
        ib, blocks = self.builder, count // WALKS
        with ib.for_range(0, self.tree_count, name="tree") as tree, ib.for_range(0, blocks, name="block") as block:
            self._step([(first + block * WALKS + k, tree.as_expr()) for k in range(WALKS)])

    def trees_together(self, first: Expr, count: Expr) -> None:
        """Take each row through ``WALKS`` trees side by side, then all rows through the next ones."""
        ib, groups = self.builder, self.tree_count // WALKS
        with ib.for_range(0, groups, name="group") as group, ib.for_range(0, count, name="row") as row:
            self._step([(first + row, group * WALKS + k) for k in range(WALKS)])
        rest = ib.for_range(groups * WALKS, self.tree_count, name="tree")
        with rest as tree, ib.for_range(0, count, name="row") as row:
            self._step([(first + row, tree.as_expr())])

    def _step(self, walks: Sequence[tuple[Expr, Expr]]) -> None:
        """Walk each row through its tree, and add what the leaves give, in order."""
        ib = self.builder
        nodes = ib.allocate(INT32, (len(walks),), name="nodes")
        depths = [self.trees[tree, 1] for tree in dict.fromkeys(tree for _, tree in walks)]
        for k, (_, tree) in enumerate(walks):
            nodes[k] = self.trees[tree, 0]
        levels = ib.let("levels", as_index(reduce(te.maximum, depths))).as_expr()
        rows = [row for row, _ in walks]
        if self.attrs.uneven:
            self._descend_while_moving(nodes, rows, levels)
        else:
            self._descend(nodes, rows, levels)
        for k, (row, tree) in enumerate(walks):
            self._add(row, as_index(self.trees[tree, 2]), as_index(self.links[as_index(nodes[k]), 2]))

    def _descend(self, nodes: BufferPtr, rows: Sequence[Expr], levels: Expr) -> None:
        with self.builder.for_range(0, levels, name="level"):
            for k, row in enumerate(rows):
                nodes[k] = self._next(row, as_index(nodes[k]))

    def _descend_while_moving(self, nodes: BufferPtr, rows: Sequence[Expr], levels: Expr) -> None:
        """After some levels, ask whether all walks are over: then no node has changed on the last one."""
        ib = self.builder
        moved = ib.allocate(INT32, (), name="moved")
        moved[()] = te.const(1, INT32)
        with (
            ib.for_range(0, (levels + (LEVELS - 1)) // LEVELS, name="levels") as chunk,
            ib.if_scope(moved[()] > 0),
        ):
            self._descend(nodes, rows, te.minimum(levels - chunk * LEVELS, LEVELS) - 1)
            moved[()] = te.const(0, INT32)
            for k, row in enumerate(rows):
                after = ib.let("after", self._next(row, as_index(nodes[k])))
                moved[()] = moved[()] | (after ^ nodes[k])
                nodes[k] = after

    def _next(self, row: Expr, node: Expr) -> Expr:
        """The node that a row goes on at."""
        element = self.x[row, as_index(self.links[node, 0])]
        return self.links[node, 1] + te.cast(element <= self.bounds[node], INT32)

    def _add(self, row: Expr, target: Expr, leaf: Expr) -> None:
        add = AGGREGATES[self.attrs.aggregate]
        with self._each(const_int(self.weights.shape[1]) or 0) as k:
            self.scores[row, target + k] = add(self.scores[row, target + k], self.weights[leaf, k])

    @contextmanager
    def _each(self, count: int) -> Iterator[Expr]:
        """A loop over so many targets, in vectors."""
        ib, lanes = self.builder, min(count, LANES)
        with ib.for_range(0, -(-count // LANES), name="vector") as vector:
            if lanes == 1:
                yield vector * LANES
                return
            with ib.for_range(0, lanes, name="lane", kind="vectorized") as lane:
                target = vector * LANES + lane
                with ib.if_scope(target < count):
                    yield target


def _identity(attrs: TreeEnsembleAttrs, kind: DType) -> Expr:
    match attrs.aggregate:
        case "min":
            return te.const(float("inf"), kind)
        case "max":
            return te.const(float("-inf"), kind)
        case _:
            return te.const(0, kind)


def _compute(attrs: TreeEnsembleAttrs, inputs: Tensors, result: Type) -> te.Tensor:
    def body(ins: Sequence[Buffer], outs: Sequence[Buffer]) -> Stmt:
        ib = IRBuilder()
        walk = _Walk(ib, attrs, *map(ib.buffer_ptr, (*ins, *outs)))
        tile = _tile(walk.x)
        with ib.for_range(0, (walk.rows + (tile - 1)) // tile, name="tile", kind="parallel") as number:
            first = number * tile
            count = ib.let("count", te.minimum(walk.rows - first, tile)).as_expr()
            with ib.for_range(0, count, name="row") as row:
                walk.clear(first + row)
            walk.rows_together(first, count)
            together = count // WALKS * WALKS
            walk.trees_together(first + together, count - together)
        return ib.get()

    return te.extern(tensor_argument(result, "result").shape, inputs, body, "tree_ensemble", inputs[0].dtype)


def _tile(x: BufferPtr) -> int:
    """How many rows go through all trees together."""
    row_bytes = (const_int(x.shape[1]) or 1) * x.dtype.storage_bytes
    return max(TILE_BYTES // max(row_bytes, 1) // WALKS, 4) * WALKS if row_bytes > 0 else WALKS


TREE_ENSEMBLE = register_op(
    "nn.tree_ensemble",
    "what the leaves that each row reaches in all trees give each target: the sum, least or greatest of their weights",
    [
        ("x", "[rows, columns], of float32 or float64"),
        ("bounds", "[nodes]: from a node the walk goes on at the child, or at the next node where x <= bound"),
        ("links", "[nodes, 3], int32: column of x, child, row of weights; a leaf is its own child, its bound NaN"),
        ("trees", "[trees, 3], int32: root, number of comparisons on the longest way, first target"),
        ("weights", "[leaves, 1 or targets]: what a leaf gives the first target of its tree and those after it"),
    ],
    _relation,
    OpPattern.OPAQUE,
    TreeEnsembleAttrs,
)


register_compute(TREE_ENSEMBLE, _compute)


def tree_ensemble(x: Node, tables: TreeTables, weights: Floats, targets: int, aggregate: str = "sum") -> Call:
    """What the leaves that each row of ``x`` [rows, columns] reaches give: [rows, targets].

    ``tables`` are those that ``tree_tables`` makes. ``weights`` has a row a leaf, with one weight for the target of its
    tree, or one for each target. ``aggregate`` is "sum", "min" or "max"; a target that no tree gives anything is 0, inf
    or -inf. Raises ``TypeInferenceError`` for tables that lead out of themselves, of x, or of the targets.
    """
    if not isinstance(tables, TreeTables):
        raise TypeInferenceError(f"tables should be what tree_tables makes, found a {type(tables).__name__}")
    if getattr(weights, "ndim", None) != 2:
        raise TypeInferenceError(f"weights should be an array with a row a leaf, found a {type(weights).__name__}")
    _check_tables(tensor_of(x), tables, weights, integer(targets, "targets"))
    arrays = (tables.bounds, tables.links, tables.trees, weights)
    return TREE_ENSEMBLE(x, *map(Constant, arrays), attrs=TreeEnsembleAttrs(targets, aggregate, _are_uneven(tables)))


def _are_uneven(tables: TreeTables) -> bool:
    trees = max(len(tables.trees), 1)
    leaves = (len(tables.bounds) / trees + 1) / 2
    return bool(tables.trees[:, 1].sum() / trees > UNEVEN * math.log2(max(leaves, 1)) + 1)


def _check_tables(x: TensorType, tables: TreeTables, weights: Floats, targets: int) -> None:
    """Reads by these tables are not checked again."""
    columns = const_int(x.shape[1]) if x.ndim == 2 else None
    nodes, leaves = len(tables.bounds), tables.links[:, 1] == range(len(tables.bounds))
    for what, found, end in (
        ("column", tables.links[:, 0], columns),
        ("child", tables.links[:, 1] + ~leaves, nodes),
        ("row of weights", tables.links[leaves, 2], len(weights)),
        ("root", tables.trees[:, 0], nodes),
        ("target", tables.trees[:, 2] + weights.shape[1] - 1, targets),
    ):
        if end is not None and found.size and not 0 <= found.min() <= found.max() < end:
            raise TypeInferenceError(f"a tree names {what} {found.max()}, but there are {end}")

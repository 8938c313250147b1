"""The trees of ONNX's tree ensembles, as their attributes say them, in arrays.

attributes → Forest → comparisons (forest_comparisons.py), weights (forest_weights.py) → nn.tree_ensemble
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import Any

import numpy as np
import numpy.typing as npt

from ..base.dataclass import dataclass
from ..base.errors import ModelError
from ..ops.families.tree_tables import LEAF, Floats, Integers
from .onnx_node import OnnxNode


class NodeMode(IntEnum):
    """What an inner node asks of ``x[feature]``; the numbers up to ``BRANCH_MEMBER`` are those of version 5."""

    BRANCH_LEQ = 0
    BRANCH_LT = 1
    BRANCH_GTE = 2
    BRANCH_GT = 3
    BRANCH_EQ = 4
    BRANCH_NEQ = 5
    BRANCH_MEMBER = 6
    LEAF = 7


@dataclass(frozen=True, slots=True, eq=False)
class Forest:
    """The nodes of all trees, an element a node in each array but those named here.

    ``yes`` and ``no`` are the nodes to go on at, ``LEAF`` at leaves; NaN goes to ``yes`` where ``missing`` holds.
    ``members`` has the sets of ``BRANCH_MEMBER``, ``roots`` the first node of each tree. Leaf ``leaves[k]`` gives
    target ``targets[k]`` the weight ``weights[k]``; a leaf may stand there several times.
    """

    features: Integers
    modes: Integers
    bounds: Floats
    missing: npt.NDArray[np.bool]
    no: Integers
    yes: Integers
    roots: Integers
    leaves: Integers
    targets: Integers
    weights: Floats
    members: Mapping[int, Floats]


def forest_of_ids(node: OnnxNode, kind: npt.DTypeLike, prefix: str) -> Forest:
    """The forest of a ``TreeEnsembleClassifier`` or ``-Regressor``, which name nodes by tree and number.

    ``kind`` is the dtype of bounds and weights; ``prefix`` is that of the attributes for leaves, "class" or "target".
    Raises ``ModelError`` for attributes that do not fit together, and nodes that are not there, or lead back.
    """
    trees = node.int_array("nodes_treeids")
    columns = _Columns(node, len(trees))
    find = _NodeNames.of(node, trees, columns.ints("nodes_nodeids"))
    modes = _named_modes(node, len(trees))
    inner = modes != NodeMode.LEAF
    no, yes = (np.full(len(trees), LEAF) for _ in range(2))
    for children, name in ((no, "nodes_falsenodeids"), (yes, "nodes_truenodeids")):
        children[inner] = find.nodes(trees[inner], columns.ints(name)[inner])
    leaf_trees = node.int_array(f"{prefix}_treeids")
    leaves = _Columns(node, len(leaf_trees))
    forest = Forest(
        columns.ints("nodes_featureids"),
        modes,
        columns.floats("nodes_values", kind),
        columns.flags("nodes_missing_value_tracks_true"),
        no,
        yes,
        np.flatnonzero(np.diff(trees, prepend=trees[:1] - 1)),
        find.nodes(leaf_trees, leaves.ints(f"{prefix}_nodeids")),
        leaves.ints(f"{prefix}_ids"),
        leaves.floats(f"{prefix}_weights", kind),
        {},
    )
    _check_walks(node, forest)
    return forest


def forest_of_indices(node: OnnxNode, kind: npt.DTypeLike) -> Forest:
    """The forest of a ``TreeEnsemble``, which numbers inner nodes and leaves apart: here leaves come behind the inner
    nodes. Raises ``ModelError`` as ``forest_of_ids`` does."""
    features, targets = node.int_array("nodes_featureids"), node.int_array("leaf_targetids")
    columns, leaves = _Columns(node, len(features)), _Columns(node, len(targets))
    modes = columns.sized("nodes_modes", _numbered_modes(node))
    roots = node.int_array("tree_roots")
    _check_range(node, "tree_roots", roots, len(features))
    forest = Forest(
        _behind(features, len(targets), 0),
        _behind(modes, len(targets), NodeMode.LEAF),
        _behind(columns.floats("nodes_splits", kind), len(targets), 0),
        _behind(columns.flags("nodes_missing_value_tracks_true"), len(targets), False),
        _behind(_children(columns, "false", len(targets)), len(targets), LEAF),
        _behind(_children(columns, "true", len(targets)), len(targets), LEAF),
        roots,
        np.arange(len(targets)) + len(features),
        targets,
        leaves.floats("leaf_weights", kind),
        _members(node, modes, kind),
    )
    _check_walks(node, forest)
    return forest


@dataclass(frozen=True, slots=True)
class _Columns:
    """Attributes of a node that have ``count`` elements each."""

    node: OnnxNode
    count: int

    def sized(self, name: str, found: npt.NDArray[Any]) -> npt.NDArray[Any]:
        if found.shape != (self.count,):
            raise ModelError(f"{self.node}: {name} must have {self.count} elements, found {found.size}")
        return found

    def ints(self, name: str) -> Integers:
        return self.sized(name, self.node.int_array(name))

    def floats(self, name: str, kind: npt.DTypeLike) -> Floats:
        return self.sized(name, self.node.float_array(name)).astype(kind)

    def flags(self, name: str) -> npt.NDArray[np.bool]:
        """False for those at the end that are not given."""
        found = self.node.int_array(name)[: self.count] != 0
        return np.pad(found, (0, self.count - len(found)))


@dataclass(frozen=True, slots=True, eq=False)
class _NodeNames:
    """Finds nodes by tree and number: by ``keys``, sorted, of the nodes ``order``."""

    node: OnnxNode
    trees: Integers
    numbers: range
    keys: Integers
    order: Integers

    @classmethod
    def of(cls, node: OnnxNode, trees: Integers, numbers: Integers) -> _NodeNames:
        known, numbered = np.unique(trees, return_inverse=True)
        span = range(int(numbers.min()), int(numbers.max()) + 1) if len(numbers) else range(0)
        keys = numbered * len(span) + (numbers - span.start)
        order = np.argsort(keys, kind="stable")
        names = cls(node, known, span, keys[order], order)
        twice = np.flatnonzero(np.diff(names.keys) == 0)
        if twice.size:
            at = order[twice[0]]
            raise ModelError(f"{node}: node {numbers[at]} of tree {trees[at]} is there twice")
        return names

    def nodes(self, trees: Integers, numbers: Integers) -> Integers:
        """The positions of nodes. Raises ``ModelError`` for one that is not there."""
        tree = np.minimum(np.searchsorted(self.trees, trees), max(len(self.trees) - 1, 0))
        keys = tree * len(self.numbers) + (numbers - self.numbers.start)
        at = np.minimum(np.searchsorted(self.keys, keys), max(len(self.keys) - 1, 0))
        inside = (numbers >= self.numbers.start) & (numbers < self.numbers.stop)
        found = inside & (self.trees[tree] == trees) & (self.keys[at] == keys) if len(self.keys) else inside
        if not found.all():
            lost = np.flatnonzero(~found)[0]
            raise ModelError(f"{self.node}: there is no node {numbers[lost]} in tree {trees[lost]}")
        return self.order[at]


def _behind(values: npt.NDArray[Any], count: int, value: Any) -> npt.NDArray[Any]:
    """The values of inner nodes, and behind them one for each leaf."""
    return np.pad(values, (0, count), constant_values=value)


def _check_range(node: OnnxNode, name: str, values: Integers, end: int) -> None:
    if values.size and not 0 <= values.min() <= values.max() < end:
        raise ModelError(f"{node}: {name} must be from 0 to {end - 1}, found {values.min()} to {values.max()}")


def _children(columns: _Columns, side: str, leaves: int) -> Integers:
    """The nodes that follow where the answer is ``side``, "true" or "false"."""
    name = f"nodes_{side}nodeids"
    at, is_leaf = columns.ints(name), columns.ints(f"nodes_{side}leafs") != 0
    _check_range(columns.node, name, at[is_leaf], leaves)
    _check_range(columns.node, name, at[~is_leaf], columns.count)
    return np.where(is_leaf, at + columns.count, at)


def _named_modes(node: OnnxNode, count: int) -> Integers:
    """The modes of nodes that the attribute has as strings."""
    names = node.strings("nodes_modes")
    unknown = next((name for name in set(names) if name not in NodeMode.__members__), None)
    if unknown is not None:
        raise ModelError(f"{node}: there is no mode {unknown!r}; nodes_modes are of {', '.join(NodeMode.__members__)}")
    numbers = {name: mode.value for name, mode in NodeMode.__members__.items()}
    modes = np.fromiter(map(numbers.__getitem__, names), np.int64, len(names))
    return _Columns(node, count).sized("nodes_modes", modes)


def _numbered_modes(node: OnnxNode) -> Integers:
    """The modes of nodes that the attribute has as a tensor of numbers."""
    modes = node.tensor("nodes_modes")
    if modes is None:
        raise ModelError(f"{node}: attribute nodes_modes is missing")
    _check_range(node, "nodes_modes", modes, NodeMode.LEAF)
    return modes.astype(np.int64)


def _members(node: OnnxNode, modes: Integers, kind: npt.DTypeLike) -> dict[int, Floats]:
    """The set of each node that asks for membership: runs of the attribute, each ended by a NaN."""
    wanted = np.flatnonzero(modes == NodeMode.BRANCH_MEMBER)
    values = node.float_array("membership_values").astype(kind)
    ends = np.flatnonzero(np.isnan(values))
    if len(ends) != len(wanted):
        raise ModelError(f"{node}: membership_values must have {len(wanted)} sets, each ended by a NaN, as there are "
                         f"nodes of mode BRANCH_MEMBER; found {len(ends)}")  # fmt: skip
    sets = np.split(values, ends + 1)
    return {int(k): np.unique(found[:-1]) for k, found in zip(wanted, sets, strict=False)}


def _check_walks(node: OnnxNode, forest: Forest) -> None:
    """Raise ``ModelError`` for an inner node that is in two trees, or that a walk from it can come back to. Several
    nodes of a tree may lead to one: so LightGBM's and XGBoost's converters write the sets of categories."""
    if shared := _in_two_trees(forest):
        raise ModelError(f"{node}: {shared} inner nodes are in two trees")
    ended = forest.modes == NodeMode.LEAF
    while not ended.all():
        ends = ~ended
        ends[ends] = ended[forest.no[ends]] & ended[forest.yes[ends]]
        if not ends.any():
            raise ModelError(f"{node}: from {np.count_nonzero(~ended)} inner nodes, walks go round")
        ended |= ends


def _in_two_trees(forest: Forest) -> int:
    """How many inner nodes, roots among them, walks through two trees come to; counted up to the first level that has
    any."""
    owners = np.full(len(forest.modes), LEAF)
    level, trees = forest.roots, np.arange(len(forest.roots))
    while level.size:
        inner = forest.modes[level] != NodeMode.LEAF
        level, trees = level[inner], trees[inner]
        new = owners[level] == LEAF
        owners[level[new]] = trees[new]
        if others := np.unique(level[owners[level] != trees]).size:
            return others
        parents, first = np.unique(level[new], return_index=True)
        level = np.concatenate([forest.no[parents], forest.yes[parents]])
        trees = np.tile(trees[new][first], 2)
    return 0

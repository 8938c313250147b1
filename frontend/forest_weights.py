"""The weights of a forest's leaves as the matrix that ``nn.tree_ensemble`` reads."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..base.dataclass import dataclass
from ..base.errors import ModelError
from ..base.quantities import bytes_text
from ..ops.families.tree_tables import Floats, Integers
from .forest import Forest, NodeMode
from .onnx_node import OnnxNode

MOST_BYTES = 2 << 30
FOLDS: dict[str, tuple[np.ufunc, float]] = {
    "sum": (np.add, 0.0),
    "min": (np.minimum, np.inf),
    "max": (np.maximum, -np.inf),
}
"""How weights are taken together, and what stands where a leaf has none."""


@dataclass(frozen=True, slots=True, eq=False)
class LeafWeights:
    """``rows`` has the row of ``matrix`` of each node; ``targets`` which target its first column is for, in each tree.
    It has one column, or one for each target."""

    matrix: Floats
    rows: Integers
    targets: Integers


def leaf_weights(node: OnnxNode, forest: Forest, targets: int, aggregate: str) -> LeafWeights:
    """The weights for ``targets`` targets, of a forest where they are taken together by "sum", "min" or "max".

    Raises ``ModelError`` for targets that are not there, and for a matrix of more than 2 GiB.
    """
    if forest.targets.size and not 0 <= forest.targets.min() <= forest.targets.max() < targets:
        found = f"{forest.targets.min()} to {forest.targets.max()}"
        raise ModelError(f"{node}: leaves must give targets 0 to {targets - 1} weights, found {found}")
    fold, nothing = FOLDS[aggregate]
    first = _targets_of_trees(forest)
    leaves, numbers = np.unique(forest.leaves, return_inverse=True)
    shape = (len(leaves) + 1, targets if first is None else 1)
    size = int(np.prod(shape)) * forest.weights.dtype.itemsize
    if size > MOST_BYTES:
        raise ModelError(f"{node}: the weights of {len(leaves)} leaves for {targets} targets each would take "
                         f"{bytes_text(size)}, which is more than {bytes_text(MOST_BYTES)}")  # fmt: skip
    matrix = np.full(shape, nothing, forest.weights.dtype)
    columns = forest.targets if first is None else np.zeros_like(forest.targets)
    fold.at(matrix.reshape(-1), numbers * shape[1] + columns, forest.weights)
    rows = np.full(len(forest.modes), len(leaves))
    rows[leaves] = np.arange(len(leaves))
    return LeafWeights(matrix, rows, np.zeros(len(forest.roots), np.int64) if first is None else first)


def with_first_weights(forest: Forest) -> Forest:
    """The forest whose leaves give the first of their weights only, as onnxruntime has those of one target: what names
    leaves, as decision paths of scikit-learn, gives each the same number several times."""
    _, first = np.unique(forest.leaves, return_index=True)
    return replace(forest, leaves=forest.leaves[first], targets=forest.targets[first], weights=forest.weights[first])


def _targets_of_trees(forest: Forest) -> Integers | None:
    """The target that all leaves of a tree give their weights, for each tree; None if there are several in one."""
    least = np.full(len(forest.roots), np.iinfo(np.int64).max)
    most = np.zeros(len(forest.roots), np.int64)
    owners = _trees_of_nodes(forest)[forest.leaves]
    reached = owners >= 0
    np.minimum.at(least, owners[reached], forest.targets[reached])
    np.maximum.at(most, owners[reached], forest.targets[reached])
    return most if (np.minimum(least, most) == most).all() else None


def _trees_of_nodes(forest: Forest) -> Integers:
    """The tree that each node is in, -1 for one that no root leads to."""
    trees = np.full(len(forest.modes), -1)
    level = forest.roots
    trees[level] = np.arange(len(level))
    while len(level):
        parents = level[forest.modes[level] != NodeMode.LEAF]
        level = np.concatenate([forest.no[parents], forest.yes[parents]])
        trees[level] = np.tile(trees[parents], 2)
    return trees

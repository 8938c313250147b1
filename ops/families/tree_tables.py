"""Trees of comparisons, and the tables of nodes in which ``nn.tree_ensemble`` walks them."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ...base.dataclass import dataclass
from ...base.errors import TypeInferenceError

Floats = npt.NDArray[np.floating[Any]]
Integers = npt.NDArray[np.integer[Any]]
LEAF = -1
"""Stands for a child that is not there."""


@dataclass(frozen=True, slots=True, eq=False)
class Comparisons:
    """Trees whose inner nodes all ask ``x[column] <= bound``.

    All arrays but ``roots`` have an element a node. Where the answer is yes the walk goes on at ``yes``, else, and for
    NaN, at ``no``; both are ``LEAF`` at leaves, whose ``rows`` say which weights they give. Several nodes may lead to
    one, as long as none leads back.
    """

    columns: Integers
    bounds: Floats
    no: Integers
    yes: Integers
    rows: Integers
    roots: Integers

    @property
    def leaves(self) -> npt.NDArray[np.bool]:
        """A mask of the nodes that are leaves."""
        return np.equal(self.no, LEAF)


@dataclass(frozen=True, slots=True, eq=False)
class TreeTables:
    """Nodes as they are walked: the children of a node are neighbours, and each tree is a run of nodes, by levels.

    From node n a walk goes on at ``links[n, 1] + (x[links[n, 0]] <= bounds[n])``. A leaf is its own child and has the
    bound NaN, so that walks that are over stand still while others go on. ``links[n, 2]`` is the row of a leaf's
    weights. ``trees`` has the root of each tree, the longest way to a leaf of it, and the first target that it adds to.
    """

    bounds: Floats
    links: npt.NDArray[np.int32]
    trees: npt.NDArray[np.int32]


def tree_tables(nodes: Comparisons, targets: Integers) -> TreeTables:
    """The tables of trees; ``targets`` has the first target of each. Raises ``TypeInferenceError`` for 2^31 nodes or
    more."""
    slots, pairs = _slots(nodes)
    if len(slots) > np.iinfo(np.int32).max:
        raise TypeInferenceError(f"there are {len(slots)} nodes; node numbers have 32 bits")
    children = np.where(nodes.leaves[slots], np.arange(len(slots)), pairs[slots])
    links = np.stack([nodes.columns[slots], children, nodes.rows[slots]], axis=1).astype(np.int32)
    links[nodes.leaves[slots], 0] = 0
    bounds = np.where(nodes.leaves, nodes.bounds.dtype.type(np.nan), nodes.bounds)[slots]
    trees = np.stack([_root_slots(nodes, slots), _depths(nodes), targets], axis=1).astype(np.int32)
    return TreeTables(bounds, links, trees)


def _slots(nodes: Comparisons) -> tuple[Integers, Integers]:
    """The node that stands in each slot, and the slot of the first child of each node.

    A node with several parents stands beside its sibling in each pair; its own children stand once.
    """
    pairs = np.full(len(nodes.no), LEAF)
    levels, owners = [nodes.roots], [np.arange(len(nodes.roots))]
    count = len(nodes.roots)
    while len(levels[-1]):
        inner = ~nodes.leaves[levels[-1]] & (pairs[levels[-1]] == LEAF)
        parents, trees = levels[-1][inner], owners[-1][inner]
        first = _first_of_each(parents)
        parents, trees = parents[first], trees[first]
        pairs[parents] = count + 2 * np.arange(len(parents))
        count += 2 * len(parents)
        levels.append(np.stack([nodes.no[parents], nodes.yes[parents]], axis=1).ravel())
        owners.append(np.repeat(trees, 2))
    by_tree = np.argsort(np.concatenate(owners), kind="stable")
    moved = np.empty(count, np.int64)
    moved[by_tree] = np.arange(count)
    return np.concatenate(levels)[by_tree], np.where(pairs == LEAF, LEAF, moved[pairs])


def _first_of_each(values: Integers) -> Integers:
    """The positions, in order, at which values stand for the first time."""
    return np.sort(np.unique(values, return_index=True)[1])


def _root_slots(nodes: Comparisons, slots: Integers) -> Integers:
    """The slots of the roots, which come before all other nodes of their trees."""
    found = np.full(len(nodes.no), len(slots))
    np.minimum.at(found, slots, np.arange(len(slots)))
    return found[nodes.roots]


def _depths(nodes: Comparisons) -> Integers:
    """The number of comparisons on the longest way through each tree."""
    depths = np.zeros(len(nodes.roots), np.int64)
    current, trees = nodes.roots, np.arange(len(nodes.roots))
    while True:
        inner = ~nodes.leaves[current]
        if not inner.any():
            return depths
        depths[trees[inner]] += 1
        children = np.concatenate([nodes.no[current[inner]], nodes.yes[current[inner]]])
        first = _first_of_each(children)
        current, trees = children[first], np.tile(trees[inner], 2)[first]

"""Gradient boosting of regression trees in numpy: small, and fast enough to be trained again while tuning.

Least squares, histograms of quantiles, trees that are complete to a depth (Friedman, *Greedy function approximation: a
gradient boosting machine*, 2001; Ke et al., *LightGBM*, 2017).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from ....base.dataclass import dataclass

Floats: TypeAlias = npt.NDArray[np.float64]
_Ints: TypeAlias = npt.NDArray[np.int64]
BINS = 24


@dataclass(frozen=True, slots=True)
class BoostingOptions:
    """``rate`` is the part of what is left that a tree takes away; leaves hold rows of a weight of ``least`` at the
    least, and are drawn to 0 as if by rows of the weight ``shrink``; a tree sees the part ``columns`` of the features.
    """

    trees: int = 160
    depth: int = 4
    rate: float = 0.08
    least: float = 4.0
    shrink: float = 4.0
    columns: float = 0.5
    seed: int = 0


_USUAL = BoostingOptions()


@dataclass(frozen=True, slots=True, eq=False)
class BoostedTrees:
    """Trees as arrays: a row goes left at node ``n`` of a tree, to ``2 * n + 1``, where its value of the ``features``
    is at most that of ``thresholds``, and right else; the last level are ``leaves``, by their number."""

    features: _Ints
    thresholds: Floats
    leaves: Floats

    @classmethod
    def fit(cls, rows: Floats, values: Floats, weights: Floats, options: BoostingOptions = _USUAL) -> BoostedTrees:
        """Trees whose sum is near ``values``, of one row of features each. Equal seeds give equal trees."""
        rng = np.random.default_rng(options.seed)
        edges = [_edges(rows[:, k]) for k in range(rows.shape[1])]
        bins = np.stack([np.searchsorted(e, rows[:, k]) for k, e in enumerate(edges)], axis=1)
        left = values.astype(np.float64).copy()
        grown = []
        for _ in range(options.trees):
            count = max(1, round(options.columns * bins.shape[1]))
            chosen = np.sort(rng.choice(bins.shape[1], count, replace=False))
            tree, at = _grow(bins, edges, left, weights, chosen, options)
            left -= tree[2][at]
            grown.append(tree)
        features, thresholds, leaves = (np.stack(part) for part in zip(*grown, strict=True))
        return cls(features, thresholds, leaves)

    def predict(self, rows: Floats) -> Floats:
        """The values of rows of features."""
        trees, nodes = self.features.shape
        every, numbers = np.arange(trees)[None, :], np.arange(len(rows))[:, None]
        at = np.zeros((len(rows), trees), np.int64)
        for _ in range(nodes.bit_length()):
            at = 2 * at + 1 + (rows[numbers, self.features[every, at]] > self.thresholds[every, at])
        found: Floats = self.leaves[every, at - nodes].sum(axis=1)
        return found


_Tree: TypeAlias = tuple[_Ints, Floats, Floats]


def _edges(column: Floats) -> Floats:
    """Values that part a feature in bins of as many rows, halfway between values that occur."""
    distinct = np.unique(column)
    if len(distinct) > BINS:
        distinct = np.unique(np.quantile(column, np.linspace(0.0, 1.0, BINS)))
    edges: Floats = (distinct[1:] + distinct[:-1]) / 2
    return edges


def _grow(
    bins: _Ints, edges: Sequence[Floats], left: Floats, weights: Floats, chosen: _Ints, options: BoostingOptions
) -> tuple[_Tree, _Ints]:
    """A tree for what is left, and the leaf of each row."""
    nodes = 2**options.depth - 1
    features, thresholds = np.zeros(nodes, np.int64), np.full(nodes, np.inf)
    at = np.zeros(len(left), np.int64)
    for level in range(options.depth):
        first = 2**level - 1
        split = _splits(bins[:, chosen], at - first, 2**level, left, weights, options)
        for node, (column, border) in enumerate(split):
            feature = int(chosen[column])
            if border < len(edges[feature]):
                features[first + node], thresholds[first + node] = feature, edges[feature][border]
        borders = np.array([border for _, border in split])[at - first]
        columns = chosen[np.array([column for column, _ in split])[at - first]]
        at = 2 * at + 1 + (bins[np.arange(len(at)), columns] > borders)
    leaf = at - nodes
    weight = np.bincount(leaf, weights, nodes + 1)
    total = np.bincount(leaf, weights * left, nodes + 1)
    return (features, thresholds, options.rate * total / (weight + options.shrink)), leaf


def _splits(
    bins: _Ints, node: _Ints, count: int, left: Floats, weights: Floats, options: BoostingOptions
) -> list[tuple[int, int]]:
    """The column and the bin behind which to part the rows of each node, the last bin where nothing is gained."""
    columns = bins.shape[1]
    cell = (node[:, None] * columns + np.arange(columns)) * BINS + bins
    shape = (count, columns, BINS)
    size = count * columns * BINS
    weight = np.bincount(cell.ravel(), np.repeat(weights, columns), size).reshape(shape).cumsum(axis=2)
    total = np.bincount(cell.ravel(), np.repeat(weights * left, columns), size).reshape(shape).cumsum(axis=2)
    whole, sums = weight[:, :, -1:], total[:, :, -1:]
    gain = total**2 / (weight + options.shrink) + (sums - total) ** 2 / (whole - weight + options.shrink)
    gain -= sums**2 / (whole + options.shrink)
    gain[(weight < options.least) | (whole - weight < options.least)] = 0.0
    best = gain.reshape(count, -1).argmax(axis=1)
    worth = gain.reshape(count, -1).max(axis=1) > 1e-9
    return [(int(b) // BINS, int(b) % BINS if w else BINS) for b, w in zip(best, worth, strict=True)]

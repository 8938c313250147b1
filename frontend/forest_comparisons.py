"""All questions of tree ensembles as comparisons ``z[column] <= bound``, where z is x and behind it -x.

Whatever a node asks comes down to one comparison of x or -x, or to a few nodes in a row. NaN is never less than or
equal to anything, so it goes on where the answer is no; where it is to go elsewhere, the opposite is asked.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ..ops.families.tree_tables import Comparisons, Floats, Integers
from .forest import Forest, NodeMode
from .forest_memberships import with_memberships

LEQ, LT, GTE, GT = NodeMode.BRANCH_LEQ, NodeMode.BRANCH_LT, NodeMode.BRANCH_GTE, NodeMode.BRANCH_GT
OPPOSITE = np.array([GT, GTE, LT, LEQ])


def comparisons(forest: Forest, columns: int, rows: Integers) -> Comparisons:
    """The forest as comparisons of z, which has ``columns`` columns of x. ``rows`` are the rows of leaves' weights."""
    forest = with_memberships(forest)
    made = _Nodes(forest, columns)
    made.ask_order(np.flatnonzero(forest.modes <= GT))
    made.ask_equality(np.flatnonzero((forest.modes == NodeMode.BRANCH_EQ) | (forest.modes == NodeMode.BRANCH_NEQ)))
    for node, values in forest.members.items():
        made.ask_membership(node, values)
    padded = np.pad(rows, (0, len(made.no) - len(rows)))
    return Comparisons(made.columns, made.bounds, made.no, made.yes, padded, forest.roots)


class _Nodes:
    """The nodes of a forest as comparisons, in their places; those that come on top stand behind them. Mutable: what is
    asked is put in node by node."""

    def __init__(self, forest: Forest, columns: int) -> None:
        self._forest = forest
        self._negated = columns
        self._next = len(forest.modes)
        more = 2 * int(np.isin(forest.modes, (NodeMode.BRANCH_EQ, NodeMode.BRANCH_NEQ)).sum())
        more += sum(3 * len(values) + 1 for values in forest.members.values())
        self.columns, self.no, self.yes = (np.pad(a, (0, more)) for a in (forest.features, forest.no, forest.yes))
        self.bounds = np.pad(forest.bounds, (0, more))

    def ask_order(self, nodes: Integers) -> None:
        """Put nodes that ask for less or greater."""
        forest, missing = self._forest, self._forest.missing[nodes]
        asked = np.where(missing, OPPOSITE[forest.modes[nodes]], forest.modes[nodes])
        greater, strict = np.isin(asked, (GTE, GT)), np.isin(asked, (LT, GT))
        bounds = np.where(greater, -forest.bounds[nodes], forest.bounds[nodes])
        bounds = np.where(strict, _below(bounds), bounds)
        no, yes = forest.no[nodes], forest.yes[nodes]
        only_nan = missing & np.isnan(bounds) & np.isnan(forest.bounds[nodes])
        columns = forest.features[nodes] + self._negated * (greater & ~only_nan)
        bounds = np.where(only_nan, np.inf, bounds).astype(self.bounds.dtype)
        self._put(nodes, columns, bounds, np.where(missing, yes, no), np.where(missing, no, yes))

    def ask_equality(self, nodes: Integers) -> None:
        """Put nodes that ask whether x is their bound, or is not."""
        forest = self._forest
        equal = forest.modes[nodes] == NodeMode.BRANCH_EQ
        hit, miss = (np.where(equal, *sides) for sides in ((forest.yes[nodes], forest.no[nodes]),
                                                           (forest.no[nodes], forest.yes[nodes])))  # fmt: skip
        features, bounds, first = forest.features[nodes], forest.bounds[nodes], nodes.copy()
        nan_hits = equal & forest.missing[nodes]
        first[nan_hits] = self._set_nan_apart(nodes[nan_hits], hit[nan_hits])
        self._put_equal(first, features, bounds, miss, hit)

    def ask_membership(self, node: int, values: Floats) -> None:
        """Put a node that asks whether x is one of some values, ascending: in halves, then for equality."""
        forest = self._forest
        feature, miss, hit = forest.features[node], forest.no[node], forest.yes[node]
        first = np.array([node])
        if forest.missing[node]:
            first = self._set_nan_apart(first, hit)
        if not len(values):
            self._put(first, feature, np.nan, miss, hit)
        open_ranges = [(first, values)] if len(values) else []
        while open_ranges:
            at, among = open_ranges.pop()
            if len(among) == 1:
                self._put_equal(at, feature, among, miss, hit)
                continue
            middle = len(among) // 2
            lower, upper = self._take(1), self._take(1)
            self._put(at, feature, among[middle - 1], upper, lower)
            open_ranges += [(lower, among[:middle]), (upper, among[middle:])]

    def _set_nan_apart(self, nodes: Integers, to: Integers) -> Integers:
        """Send NaN on at once; gives the nodes where all else goes on, to be put in."""
        rest = self._take(len(nodes))
        self._put(nodes, self._forest.features[nodes], np.inf, to, rest)
        return rest

    def _put_equal(self, nodes: Integers, features: Integers, bounds: Floats, miss: Integers, hit: Integers) -> None:
        """Not greater than the bound, and not less."""
        second = self._take(len(nodes))
        self._put(nodes, features, bounds, miss, second)
        self._put(second, features + self._negated, -bounds, miss, hit)

    def _put(
        self,
        nodes: Integers,
        columns: Integers,
        bounds: npt.ArrayLike,
        no: Integers,
        yes: Integers,
    ) -> None:
        self.columns[nodes], self.bounds[nodes], self.no[nodes], self.yes[nodes] = columns, bounds, no, yes

    def _take(self, count: int) -> Integers:
        """Take so many nodes behind all others."""
        self._next += count
        return np.arange(self._next - count, self._next)


def _below(bounds: Floats) -> npt.NDArray[np.floating[Any]]:
    """The next number below; NaN, which nothing is less than, below -inf."""
    return np.where(np.isneginf(bounds), np.nan, np.nextafter(bounds, bounds.dtype.type(-np.inf)))

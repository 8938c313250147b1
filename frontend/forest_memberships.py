"""Sets that trees ask for one value after the other, as questions for membership.

LightGBM's and XGBoost's converters write a split of categories so: ``x == a`` goes to a node, else ``x == b`` goes to
the same, and so on. Asked for in halves, a set of 16 takes 6 comparisons in place of up to 32.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from .forest import Forest, NodeMode


def with_memberships(forest: Forest) -> Forest:
    """The forest, where of nodes that ask one column for equality in turn, and lead to one node, the first asks for
    membership. Nothing leads to the others any more."""
    inner = forest.modes != NodeMode.LEAF
    equal = forest.modes == NodeMode.BRANCH_EQ
    after = np.where(equal, forest.no, 0)
    parents = np.bincount(np.concatenate([forest.no[inner], forest.yes[inner], forest.roots]), minlength=len(inner))
    goes_on = equal & equal[after] & (parents[after] == 1)
    goes_on &= (forest.features == forest.features[after]) & (forest.yes == forest.yes[after])
    firsts = goes_on.copy()
    firsts[after[goes_on]] = False
    modes, no, missing, members = forest.modes.copy(), forest.no.copy(), forest.missing.copy(), dict(forest.members)
    for first in np.flatnonzero(firsts):
        run = [first]
        while goes_on[run[-1]]:
            run.append(after[run[-1]])
        modes[first], no[first], missing[first] = NodeMode.BRANCH_MEMBER, forest.no[run[-1]], forest.missing[run].any()
        members[int(first)] = np.unique(forest.bounds[run])
    return replace(forest, modes=modes, no=no, missing=missing, members=members)

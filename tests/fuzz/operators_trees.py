"""Random calls of ensembles of trees."""

import numpy as np
import walked_trees
from draw import Case, Input

from loopwright.ops.families.tree_ensemble import tree_ensemble
from loopwright.ops.families.tree_tables import TreeTables


def draw_tree_ensemble(d):
    kind, columns, trees = d.one("float32", "float64"), d.int(1, 20), d.int(1, 30)
    targets = d.int(1, 20)
    width, fold = d.one(1, targets), d.one("sum", "min", "max")
    *arrays, weights = walked_trees.tables(
        trees, d.int(0, 6), columns, targets, width, np.dtype(kind).type, d.int(0, 10**6)
    )
    return Case(
        lambda x: tree_ensemble(x, TreeTables(*arrays), weights, targets, fold),
        lambda x: walked_trees.scores(x, *arrays, weights, targets, fold),
        (Input((d.int(0, 100), columns), kind),),
    )


DRAWS = {"nn.tree_ensemble": draw_tree_ensemble}

"""Random trees in the tables of ``nn.tree_ensemble``, and an oracle that goes through them row by row."""

import numpy as np

from loopwright.ops.families.tree_tables import LEAF, Comparisons, tree_tables


def comparisons(rng, trees, depth, columns, kind=np.float32):
    """Random trees, of which some leaves are not as deep as others, and the number of their leaves."""
    nodes, leaves = [], 0

    def grow(level):
        nonlocal leaves
        at = len(nodes)
        nodes.append(None)
        if level == depth or (level and rng.random() < 0.3):
            nodes[at] = (0, 0.0, LEAF, LEAF, leaves)
            leaves += 1
        else:
            no, yes = grow(level + 1), grow(level + 1)
            nodes[at] = (rng.integers(columns), rng.uniform(-3, 3), no, yes, 0)
        return at

    roots = [grow(0) for _ in range(trees)]
    at, bounds, no, yes, rows = (np.array(values) for values in zip(*nodes, strict=True))
    return Comparisons(at, bounds.astype(kind), no, yes, rows, np.array(roots)), leaves


def tables(trees, depth, columns, targets, width, kind=np.float32, seed=0):
    """The arguments behind x: bounds, links, trees, and weights of ``width`` columns."""
    rng = np.random.default_rng([seed, trees, depth])
    nodes, leaves = comparisons(rng, trees, depth, columns, kind)
    made = tree_tables(nodes, np.arange(trees) % targets if width == 1 else np.zeros(trees, int))
    return made.bounds, made.links, made.trees, rng.uniform(-1, 1, (leaves, width)).astype(kind)


def scores(x, bounds, links, trees, weights, targets, fold="sum"):
    """What the leaves that each row reaches give."""
    combine, start = {"sum": (np.add, 0.0), "min": (np.minimum, np.inf), "max": (np.maximum, -np.inf)}[fold]
    made = np.full((len(x), targets), start)
    for row, result in zip(x, made, strict=True):
        for root, _, target in trees:
            node = root
            while links[node, 1] != node:
                node = links[node, 1] + (row[links[node, 0]] <= bounds[node])
            part = result[target : target + weights.shape[1]]
            part[:] = combine(part, weights[links[node, 2]])
    return made

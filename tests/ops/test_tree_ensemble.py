"""tree_ensemble: layout of the tables, types, misuse, any number of rows."""

import numpy as np
import pytest
import walked_trees

import loopwright as lw
from loopwright.ops.families.tree_ensemble import TREE_ENSEMBLE, TreeEnsembleAttrs, tree_ensemble
from loopwright.ops.families.tree_tables import LEAF, Comparisons, TreeTables, tree_tables


def made_tables(trees=9, depth=4, columns=4, kind=np.float32):
    bounds, links, roots, weights = walked_trees.tables(trees, depth, columns, 1, 1, kind)
    return TreeTables(bounds, links, roots), weights


def test_siblings_are_neighbours_and_trees_are_runs():
    tables, _ = made_tables()
    leaves = tables.links[:, 1] == np.arange(len(tables.links))
    assert np.isnan(tables.bounds[leaves]).all()
    assert not np.isnan(tables.bounds[~leaves]).any()
    children = tables.links[~leaves, 1]
    assert sorted([*tables.trees[:, 0], *children, *(children + 1)]) == [*range(len(tables.links))]
    ends = [*tables.trees[1:, 0], len(tables.links)]
    for (root, _, _), end in zip(tables.trees, ends, strict=True):
        inside = tables.links[root:end, 1]
        assert ((inside >= root) & (inside < end)).all()


def test_a_node_with_two_parents_stands_twice_and_its_children_once():
    # 0 -> 1, 2; 1 -> 3, 2; 2 -> 4, 5
    no, yes = np.array([1, 3, 4, LEAF, LEAF, LEAF]), np.array([2, 2, 5, LEAF, LEAF, LEAF])
    nodes = Comparisons(
        np.array([0, 1, 0, 0, 0, 0]), np.array([0, 0, 5.0, 0, 0, 0]), no, yes, np.arange(6), np.array([0])
    )
    tables = tree_tables(nodes, np.array([0]))
    assert len(tables.links) == 7
    assert tables.trees.tolist() == [[0, 3, 0]]
    x = np.array([[-1.0, 0], [1, -1], [9, -1], [1, 1]])
    weights = np.arange(6.0)[:, None]
    wanted = walked_trees.scores(x, tables.bounds, tables.links, tables.trees, weights, 1)
    assert wanted.ravel().tolist() == [5, 5, 4, 3]


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("rows", [0, 1, 11, 12, 30])
def test_any_number_of_rows(ops, rows, kind):
    tables, weights = made_tables(trees=25, kind=kind)
    x = np.random.default_rng(rows).uniform(-3, 3, (rows, 4)).astype(kind)
    wanted = walked_trees.scores(x, tables.bounds, tables.links, tables.trees, weights, 1)
    for native in (False, True):
        found = ops.apply(tree_ensemble, x, tables=tables, weights=weights, targets=1, native=native)
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)


def test_open_rows_and_many_columns():
    tables, weights = made_tables(trees=5, columns=40_000)  # a tile holds few such rows
    x = lw.var("x", (lw.te.var("n"), 40_000))
    engine = lw.Engine(lw.compile(lw.Function([x], tree_ensemble(x, tables, weights, 1))))
    for rows in (1, 100):
        data = np.random.default_rng(rows).uniform(-3, 3, (rows, 40_000)).astype(np.float32)
        wanted = walked_trees.scores(data, tables.bounds, tables.links, tables.trees, weights, 1)
        np.testing.assert_allclose(engine([data])[0], wanted, atol=1e-5)


def chain(depth):
    """A tree with a leaf on each level, and one that is a leaf."""
    inner = np.arange(depth)
    no = np.concatenate([inner + depth, np.full(depth + 2, LEAF)])
    yes = np.concatenate([inner + 1, np.full(depth + 2, LEAF)])
    yes[depth - 1] = 2 * depth
    bounds = np.concatenate([-inner, np.zeros(depth + 2)]).astype(np.float32)
    roots = np.array([0, 2 * depth + 1])
    return tree_tables(Comparisons(np.zeros_like(no), bounds, no, yes, np.arange(len(no)), roots), np.zeros(2, int))


@pytest.mark.parametrize("depth", [1, 4, 5, 23])
def test_trees_with_short_ways_and_long_ones(ops, depth):
    tables, weights = chain(depth), np.random.default_rng(0).uniform(-1, 1, (2 * depth + 2, 1)).astype(np.float32)
    x = np.linspace(1, -depth - 1, 40, dtype=np.float32)[:, None]
    call = tree_ensemble(ops.var(x.shape), tables, weights, 1)
    assert call.attrs.uneven == (depth > 5)
    wanted = walked_trees.scores(x, tables.bounds, tables.links, tables.trees, weights, 1)
    for rows in (1, 40):
        for native in (False, True):
            found = ops.apply(tree_ensemble, x[:rows], tables=tables, weights=weights, targets=1, native=native)
            np.testing.assert_allclose(found, wanted[:rows], rtol=1e-6)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"column": 7}, "a tree names column 7, but there are 4"),
        ({"child": 10**6}, "a tree names child 1000001, but there are"),
        ({"row": -1}, "a tree names row of weights"),
        ({"target": 3}, "a tree names target 3, but there are 1"),
    ],
)
def test_tables_that_lead_out_are_refused(ops, change, message):
    tables, weights = made_tables()
    links, trees = tables.links.copy(), tables.trees.copy()
    (what, value), inner = *change.items(), int(np.flatnonzero(links[:, 1] != np.arange(len(links)))[0])
    leaf = int(np.flatnonzero(links[:, 1] == np.arange(len(links)))[0])
    match what:
        case "column":
            links[inner, 0] = value
        case "child":
            links[inner, 1] = value
        case "row":
            links[leaf, 2] = value
        case "target":
            trees[0, 2] = value
    with pytest.raises(lw.TypeInferenceError, match=message):
        tree_ensemble(ops.var((3, 4)), TreeTables(tables.bounds, links, trees), weights, 1)


@pytest.mark.parametrize(
    ("types", "message"),
    [
        ({0: ((3, 4), "int32")}, "x must be a matrix of float32 or float64"),
        ({0: ((4,), "float32")}, "x must be a matrix"),
        ({1: ((9,), "float64")}, "x is float32, but bounds is float64"),
        ({2: ((9, 2), "int32")}, "links must be of int32 and have three columns"),
        ({2: ((8, 3), "int32")}, "bounds and links must be of the same nodes"),
        ({3: ((3,), "int32")}, "trees must be of rank 2"),
        ({4: ((5, 3), "float32")}, "weights must have a column, or one for each of 2 targets"),
    ],
)
def test_misuse_is_told(ops, types, message):
    kinds = [((3, 4), "float32"), ((9,), "float32"), ((9, 3), "int32"), ((2, 3), "int32"), ((5, 1), "float32")]
    given = [ops.var(*types.get(k, kind)) for k, kind in enumerate(kinds)]
    with pytest.raises(lw.TypeInferenceError, match=message):
        TREE_ENSEMBLE(*given, attrs=TreeEnsembleAttrs(2))

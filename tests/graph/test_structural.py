"""Hashes of graphs: equal up to names, different where what is computed differs."""

import numpy as np

import loopwright as lw
from loopwright import te
from loopwright.graph.structural import graph_hash


def scaled(dims, name="x", factor=2.0, function="main", origin=()):
    x = lw.var(name, dims)
    doubled = lw.nn.multiply(x, lw.const(np.float32(factor), name))
    return lw.Function((x,), lw.nn.relu(doubled), function)


def test_names_do_not_count():
    assert graph_hash(scaled((3, 4))) == graph_hash(scaled((3, 4), name="y", function="other"))


def test_names_of_symbolic_dimensions_do_not_count_but_which_are_equal_does():
    n, m, k = te.var("n"), te.var("m"), te.var("n")
    square = graph_hash(scaled((n, n)))
    assert square == graph_hash(scaled((m, m)))
    assert graph_hash(scaled((n, m))) == graph_hash(scaled((m, n)))
    assert graph_hash(scaled((n, k))) == graph_hash(scaled((n, m)))  # two dimensions of one name are two
    assert graph_hash(scaled((n, k))) != square
    assert graph_hash(scaled((n * 2, n))) != square


def test_dimensions_are_those_of_all_parameters_together():
    n, m = te.var("n"), te.var("m")

    def added(first, second):
        a, b = lw.var("a", (first, 1)), lw.var("b", (1, second))
        return graph_hash(lw.Function((a, b), lw.nn.add(a, b)))

    assert added(n, n) == added(m, m) != added(n, m)


def test_what_is_computed_counts():
    x, y = lw.var("x", (3,)), lw.var("y", (3,))
    bodies = [
        lw.nn.relu(x),
        lw.nn.negative(x),
        lw.nn.leaky_relu(x, 0.0),
        lw.nn.leaky_relu(x, -0.0),
        lw.nn.leaky_relu(x, 0.5),
        lw.nn.subtract(x, y),
        lw.nn.subtract(y, x),
        lw.nn.add(x, lw.const(np.float32(0.0))),
        lw.nn.add(x, lw.const(np.float32(-0.0))),
        lw.nn.add(x, lw.const(np.zeros((1,), np.float32))),
        lw.nn.transpose(lw.nn.relu(x)),
        lw.nn.relu(lw.nn.relu(x)),
        lw.nn.add(lw.nn.relu(x), lw.nn.relu(x)),
    ]
    shared = lw.nn.relu(x)
    bodies.append(lw.nn.add(shared, shared))
    functions = [lw.Function((x, y), body) for body in bodies]
    functions += [lw.Function((y, x), bodies[5]), lw.Function((x,), bodies[0])]
    hashes = [graph_hash(f) for f in functions]
    assert hashes[5] != hashes[6] == hashes[-2]  # parameters count by position
    del hashes[-2]
    assert len(set(hashes)) == len(hashes)


def test_a_large_constant_counts_by_its_values():
    def plus(value):
        x = lw.var("x", (3,))
        return graph_hash(lw.Function((x,), lw.nn.add(x, lw.const(np.arange(3, dtype=np.float32) + value))))

    assert plus(0) == plus(0) != plus(1)

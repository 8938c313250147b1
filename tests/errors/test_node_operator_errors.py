"""Mistakes with Python's operators, numpy's functions and indices on graph nodes: each is a TypeError of ours."""

import numpy as np
import pytest

import loopwright as lw
from loopwright import te

X = lw.var("x", (2, 3))
I = lw.var("i", (2, 3), "int32")
PAIR = lw.op.Tuple((X, I))


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: np.log2(X), r"np\.log2 is computed by no operator: print\(lw\.nn\) lists those that there are"),
        (lambda: np.linalg.inv(X), r"np\.linalg\.inv is computed by no operator"),
        (lambda: np.fft.fft(X), r"np\.fft\.fft is computed by no operator"),
        (lambda: np.add.reduce(X), r"np\.add\.reduce does not apply to graph nodes: np\.sum, .* reduce them"),
        (lambda: np.add(X, 1, out=np.empty((2, 3))), r"np\.add: a graph node is not written to: out= is for arrays"),
        (lambda: np.add(X, 1, where=np.ones(3, bool)), r"np\.add takes here \(a, b\): .* 'where'"),
        (
            lambda: np.sum(X, initial=3),
            r"np\.sum takes here \(a, axis=None, dtype=None, \*, keepdims=False\):",
        ),
        (lambda: np.sum(X, axis=2), r"np\.sum: .*axis 2 is not one of a tensor of rank 2"),
        (lambda: X.mean(axis=(0, 0)), r"np\.mean: .*axes \(0, 0\) name an axis twice"),
        (lambda: X + lw.var("y", (4,)), r"np\.add: .*extents 3 of a and 4 of b do not broadcast"),
        (lambda: X + "1", r"np\.add: expected a node, a number or an array of numbers, found .* str"),
        (lambda: X + None, r"np\.add: expected a node, a number or an array of numbers, found .* NoneType"),
        (lambda: X * 1j, r"np\.multiply: expected a node, a number or an array of numbers, found .* complex"),
        (lambda: np.add(X, [X, X]), r"np\.add: a list of nodes is no operand: np\.stack makes a node of it"),
        (lambda: X + te.var("n"), r"np\.add: expected a node, a number .* found a value of type Var"),
        (lambda: lw.var("u", (2,), "uint8") + 300, r"np\.add: the constant 300 does not fit uint8: cast the node"),
        (lambda: lw.var("u", (2,), "uint8") - np.array([1, -1]), r"the constant -1 does not fit uint8"),
        (lambda: lw.var("h", (2,), "float16") * 1e6, r"the constant 1000000\.0 does not fit float16"),
        (lambda: I + 2**70, r"np\.add: the integer 1180591620717411303424 has more than 64 bits"),
        (lambda: X & 1, r"np\.bitwise_and: bitwise_and\(a: float32.*\): a must be of int, uint, found float32"),
        (lambda: ~X, r"np\.invert: .*x must be of int, uint, found float32"),
        (lambda: lw.var("b", (2,), "bool") - True, r"np\.subtract: there is no such function of bool"),
        (lambda: PAIR + 1, r"np\.add: expected a tensor, found a \(float32\[2, 3\], int32\[2, 3\]\)"),
        (lambda: PAIR.shape, r"expected a tensor, found a \(float32"),
        (lambda: PAIR[2], r"field 2 is taken of a tuple of 2"),
        (lambda: lw.Function([X], X) * 2, r"np\.multiply: expected a tensor, found a \(float32"),
        (lambda: X[2], r"x\[…\]: index 2 is not one of axis 0, which has extent 2"),
        (lambda: X[0, 0, 0], r"x\[…\]: there are 3 indices for 2 axes"),
        (lambda: X[..., ...], r"x\[…\]: there is more than one `\.\.\.`"),
        (lambda: X[True], r"x\[…\]: an index is no bool: np\.where chooses by a mask"),
        (lambda: X[X > 0], r"x\[…\]: indices are integers, found bool\[2, 3\]: np\.where chooses by a mask"),
        (lambda: X["a"], r"x\[…\]: an index is an integer, a slice, `\.\.\.` or None, found 'a'"),
        (lambda: X[0.5], r"x\[…\]: an index is an integer, a slice, `\.\.\.` or None, found 0\.5"),
        (lambda: X[:0.5], r"the end of a slice must be an integer, found 0\.5"),
        (lambda: X[[0, 1], [0, 1]], r"integers of an array or node stand on one axis only"),
        (lambda: X.reshape(4, 2), r"np\.reshape: reshape.*"),
        (lambda: X.reshape("6"), r"np\.reshape: "),
        (lambda: X.reshape(te.var("n"), 3), r"np\.reshape: .*n is not what the other extents leave"),
        (lambda: np.split(X, 2, 1), r"np\.split: an extent of 3 has no 2 equal parts"),
        (lambda: np.pad(X, (1, 2, 3)), r"np\.pad: pad_width is a number, .* found \(1, 2, 3\)"),
        (lambda: np.round(X, 2), r"np\.round: rounds graph nodes to whole numbers only, found decimals=2"),
        (lambda: bool(X), r"the truth of a graph node is not known while the graph is built: use np\.where"),
        (lambda: 1 if X > 0 else 2, r"the truth of a graph node is not known"),
        (lambda: np.asarray(X), r"a graph node has no value while the graph is built: lw\.compile makes"),
        (lambda: lw.const(X), r"a graph node has no value while the graph is built"),
        (lambda: list(X), r"'Var' object is not iterable"),
        (lambda: 1 in X, r"'Var' .*"),
    ],
)
def test_what_nodes_do_not_have_is_a_type_error(build, message):
    with pytest.raises(TypeError, match=message):
        build()


def test_functions_of_arrays_are_left_to_numpy():
    array = np.ones(3, np.float32)
    array += 1
    with pytest.raises(TypeError, match=r"np\.add: a graph node is not written to"):
        array += lw.var("x", (3,))
    assert array.tolist() == [2, 2, 2]


def test_a_name_bound_to_a_node_may_be_bound_anew_by_an_operator():
    x = X
    x += 1
    assert x.op.name == "add"
    assert X.name == "x"


def test_a_list_is_wanted_where_a_function_is_given_one_parameter_by_itself():
    with pytest.raises(lw.TypeInferenceError, match="the parameters of a function are a list of variables"):
        lw.Function(X, X)

"""Numpy's functions, and Python's operators, on graph nodes, against numpy on arrays: values, shapes and dtypes."""

import dataclasses
import operator

import numpy as np
import pytest

import loopwright as lw
from loopwright import te
from loopwright.graph.node import Call, Constant, TupleGet
from loopwright.graph.numpy_protocol import implemented
from loopwright.graph.visit import post_order
from loopwright.ops.definition.evaluate import evaluate_call

SEED = np.random.default_rng(7)
ARRAYS = {
    "x": SEED.uniform(-0.9, 0.9, (2, 3)).astype(np.float32),
    "y": SEED.uniform(0.5, 3, (2, 3)).astype(np.float32),
    "big": SEED.uniform(1.5, 9, (2, 3)).astype(np.float32),
    "m": SEED.standard_normal((3, 4)).astype(np.float32),
    "t": SEED.standard_normal((2, 3, 4)).astype(np.float32),
    "d": SEED.standard_normal((2, 3)),
    "h": SEED.uniform(0.1, 2, (2, 3)).astype(np.float16),
    "i": SEED.integers(-9, 9, (2, 3), np.int32),
    "j": SEED.integers(1, 5, (2, 3), np.int32),
    "s": SEED.integers(-9, 9, (2, 3), np.int8),
    "u": SEED.integers(0, 9, (2, 3), np.uint8),
    "b": np.array([[True, False, True], [False, False, True]]),
    "c": np.array([[True, True, False], [False, True, True]]),
    "odd": np.array([[np.nan, np.inf, -np.inf], [0, -1.5, 2.5]], np.float32),
    "k": np.array([2, 0, -1, 1]),
}

UFUNCS = {
    np.absolute: ["x", "i", "b"],
    np.add: ["x, y", "i, j", "b, c", "x, 2", "2, x", "i, 2.5", "x, d", "x, i", "u, 3", "h, 1.5", "b, 1", "u, s"],
    np.arccos: ["x"],
    np.arccosh: ["big"],
    np.arcsin: ["x"],
    np.arcsinh: ["x"],
    np.arctan: ["x"],
    np.arctanh: ["x"],
    np.bitwise_and: ["i, j", "b, c", "u, 3"],
    np.bitwise_or: ["i, j", "b, c", "u, 3"],
    np.bitwise_xor: ["i, j", "b, c", "u, 3"],
    np.ceil: ["x", "i"],
    np.cos: ["x", "i"],
    np.cosh: ["x"],
    np.divide: ["x, y", "i, j", "x, 2", "1, y", "b, c[:1] | True"],
    np.equal: ["i, j", "b, c", "x, x", "i, 1"],
    np.exp: ["x", "h", "s", "i", "d"],
    np.floor: ["x", "i"],
    np.floor_divide: ["x, y", "i, j", "x, 0.25", "i, 3", "u, 2"],
    np.fmod: ["x, y", "i, j"],
    np.greater: ["x, y", "i, 0"],
    np.greater_equal: ["x, y", "i, 0"],
    np.invert: ["i", "b", "u"],
    np.isfinite: ["odd"],
    np.isinf: ["odd"],
    np.isnan: ["odd"],
    np.left_shift: ["j, 2", "j, j"],
    np.less: ["x, y", "x, 0"],
    np.less_equal: ["x, y", "x, 0"],
    np.log: ["y", "j"],
    np.logical_and: ["b, c", "x, b", "i, u"],
    np.logical_not: ["b", "i"],
    np.logical_or: ["b, c", "x, b"],
    np.logical_xor: ["b, c", "i, u"],
    np.matmul: ["x, m", "t, m[0]", "d, m", "i, j.T", "x, [1, 2, 3]"],
    np.maximum: ["x, y", "x, 0", "b, c", "odd, x"],
    np.minimum: ["x, y", "x, 0", "b, c", "odd, x"],
    np.multiply: ["x, y", "x, 2", "b, x", "b, c", "i, 0.5", "u, u"],
    np.negative: ["x", "i"],
    np.not_equal: ["i, j", "b, c", "odd, odd"],
    np.positive: ["x"],
    np.power: ["y, x", "y, 2", "2, x", "i, 2", "j, j", "i, 2.0", "y, 0.5", "b, 2"],
    np.reciprocal: ["y"],
    np.remainder: ["x, y", "i, j", "x, 0.25", "i, -3"],
    np.right_shift: ["i, 1", "j, j"],
    np.rint: ["odd", "i"],
    np.sign: ["x", "i"],
    np.sin: ["x"],
    np.sinh: ["x"],
    np.sqrt: ["y", "j"],
    np.square: ["x", "i"],
    np.subtract: ["x, y", "1, x", "i, j"],
    np.tan: ["x"],
    np.tanh: ["x", "h"],
    np.trunc: ["x", "i"],
}
REDUCTIONS = ["", ", 0", ", axis=1", ", axis=-1", ", axis=(0, 1)", ", axis=1, keepdims=True", ", keepdims=True"]
FUNCTIONS = {
    np.sum: [f"{a}{options}" for options in REDUCTIONS for a in "xiusb"] + ["x, dtype=np.float64", "i, 0, np.int32"],
    np.prod: ["x", "i", "u", "b, 1", "x, axis=0, keepdims=True"],
    np.mean: [f"{a}{options}" for options in REDUCTIONS for a in "xib"] + ["h"],
    np.var: ["x", "x, 1", "i, axis=0, keepdims=True"],
    np.std: ["x", "x, 1"],
    np.max: [f"{a}{options}" for options in REDUCTIONS for a in "xi"] + ["b, 0", "odd"],
    np.min: ["x", "i, 1", "b, 0", "odd"],
    np.any: ["b", "x, 1", "i, axis=0, keepdims=True"],
    np.all: ["b", "x, 1", "i, axis=0, keepdims=True"],
    np.argmax: ["x", "x, 0", "i, axis=1", "odd", "x, keepdims=True", "x, 1, keepdims=True"],
    np.argmin: ["x", "x, 0", "i, axis=1", "odd"],
    np.cumsum: ["x", "x, 0", "i, axis=1", "b, 1"],
    np.shape: ["x"],
    np.ndim: ["t"],
    np.reshape: ["x, (3, 2)", "x, -1", "t, (2, -1)", "x, [6]", "x, np.shape(x)[::-1]"],
    np.ravel: ["t"],
    np.squeeze: ["x[:1]", "x[:1], 0", "t[:1, :, :1], axis=(0, 2)"],
    np.expand_dims: ["x, 0", "x, (0, -1)"],
    np.transpose: ["t", "t, (1, 0, 2)"],
    np.matrix_transpose: ["t"],
    np.swapaxes: ["t, 0, -1"],
    np.moveaxis: ["t, 0, -1", "t, [0, 1], [-1, 0]"],
    np.broadcast_to: ["x, (4, 2, 3)", "x[0], (2, 3)"],
    np.concatenate: ["(x, y)", "[x, y, x], 1", "(x, d), axis=-1", "[x, np.ones((2, 3), np.float32)]", "[i, x]"],
    np.stack: ["(x, y)", "[x, y], -1", "[i, j], axis=1"],
    np.split: ["t, 2", "t, [1, 3], -1", "x, 3, axis=1"],
    np.take: ["m, k", "m, k, 1", "t, [[0, 1], [2, -1]], axis=1", "m, 1, 0"],
    np.take_along_axis: ["t, np.argmax(t, 1, keepdims=True), 1", "x, np.argmin(x, -1, keepdims=True)"],
    np.flip: ["t", "t, 1", "t, (0, -1)"],
    np.pad: ["x, 1", "x, ((0, 1), (2, 0))", "x, (1, 2), mode='edge'", "x, 1, constant_values=3", "x, 1, 'reflect'"],
    np.tile: ["x, 2", "x, (2, 1)", "x, (2, 1, 3)"],
    np.repeat: ["x, 2", "x, 3, 1", "t, 2, axis=0"],
    np.tril: ["m", "m, 1", "t, -1"],
    np.triu: ["m", "m, 1", "t, -1"],
    np.where: ["b, x, y", "x > 0, x, 0", "b, 1.5, x", "b, i, x", "b, 1, 0", "i, x, y"],
    np.clip: ["x, 0, 0.5", "x, None, 0.5", "x, -0.1, None", "i, 0, 3", "x, min=0, max=y", "odd, -1, 1"],
    np.round: ["odd", "i"],
    np.astype: ["x, np.int32", "i, np.float16", "b, 'float32'", "x, np.float32", "i, np.uint8"],
    np.copy: ["x"],
    np.dot: ["x, m", "x, 2", "x[0], x[1]", "t, m[0]"],
    np.einsum: ["'ij,jk->ik', x, m", "'...i,...i', x, y", "'ij->j', x"],
    np.full_like: ["x, 3", "i, 3", "x, 2, dtype=np.int64"],
    np.zeros_like: ["x", "i, dtype=np.float32"],
    np.ones_like: ["x"],
    operator.getitem: [],
}
OTHERS = [
    "x + y - 1", "2 / y", "x // y", "x % y", "y ** 2", "2 ** x", "-x", "+x", "abs(x)", "~b", "b & c", "b | True",
    "i ^ j", "i << 1", "i >> j", "x @ m + m[0]", "np.ones((4, 2)) @ x", "x < y", "x <= 0", "0 > x", "x >= y",
    "np.float32(2) * x", "np.ones(3, np.float32) - x", "x * [1, 2, 3]", "x * np.arange(3)", "np.float64(0.5) + h",
    "x[0]", "x[-1, 1]", "x[:, 0:2]", "x[..., -1]", "t[:, None, ::2]", "t[::-1, 1:, -1:]", "t[1, ..., None, 0]", "x[:]",
    "t[:, 2:0:-1]", "t[5:]", "m[k]", "m[:, [2, 0]]", "t[0, k[:2]]", "t[:, k[:2], 1]", "x[None]", "t[..., 2:1]",
    "x.T", "t.T", "x.reshape(3, 2)", "x.reshape((6,))", "x.reshape(-1)", "x.ravel()", "x.flatten()", "t.transpose()",
    "t.transpose(1, 2, 0)", "t.transpose((1, 2, 0))", "t.transpose(None)", "t.swapaxes(0, 2)", "x[:1].squeeze()",
    "x[:1].squeeze(0)", "x.sum()", "x.sum(1)", "x.sum(axis=(0, 1), keepdims=True)", "i.prod()", "i.mean(0)", "x.var(1)",
    "x.std()", "x.max()", "x.min(1)", "b.any(0)", "b.all()", "x.argmax()", "x.argmin(1)", "x.clip(0, 0.5)",
    "x.astype(np.int32)", "x.astype('float16')", "x.shape", "t.ndim",
]  # fmt: skip


def shown(function):
    return f"np.{function.__name__}"


TABLES = {**UFUNCS, **FUNCTIONS}
CASES = [*(f"{shown(function)}({args})" for function, found in TABLES.items() for args in found), *OTHERS]


def value(node):
    """What a graph of constants gives, by the interpreter."""
    if isinstance(node, (list, tuple)):
        return [value(n) for n in node]
    if not isinstance(node, lw.Node):
        return node
    known = {}
    for each in post_order(node):
        if isinstance(each, Call):
            call = dataclasses.replace(each, args=tuple(known[arg] for arg in each.args))
            known[each] = Constant(evaluate_call(call))
        else:
            known[each] = each
    return known[node].value


def same(found, wanted, tolerance=2e-5):
    if isinstance(wanted, (list, tuple)):
        assert len(found) == len(wanted)
        for each in zip(found, wanted, strict=True):
            same(*each)
        return
    wanted = np.asarray(wanted)
    assert (np.shape(found), np.asarray(found).dtype) == (wanted.shape, wanted.dtype)
    tolerance = 4e-3 if wanted.dtype == np.float16 else tolerance
    np.testing.assert_allclose(found, wanted, rtol=tolerance, atol=tolerance)


BY_KIND = ["np.float64(0.5) + h", "np.ones((4, 2)) @ x", "x * np.arange(3)", "np.dot(x, 2)"]
"""Numpy's own scalars and arrays count by their kind, so that the node's dtype stays."""


@pytest.mark.parametrize("expression", CASES)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_what_numpy_gives_for_arrays_a_graph_gives_for_nodes(expression):
    nodes = {name: lw.const(array) for name, array in ARRAYS.items()}
    found = value(eval(expression, {"np": np}, nodes))
    wanted = eval(expression, {"np": np}, ARRAYS)
    if "[1, 2, 3]" in expression or expression in BY_KIND:
        wanted = wanted.astype(np.float16 if expression.endswith("h") else np.float32)
    same(found, wanted)


def test_each_function_that_is_supported_is_compared():
    assert {*UFUNCS, *FUNCTIONS} == {*implemented()}


def test_a_model_of_operators_and_functions_compiles():
    rows = te.var("rows")
    x, w, b = lw.var("x", (rows, 3)), ARRAYS["m"], np.linspace(-1, 1, 4)
    hidden = np.tanh(x @ w + b)
    scores = np.exp(hidden - hidden.max(1, keepdims=True))
    results = lw.op.Tuple(
        (scores / scores.sum(1, keepdims=True), hidden[:, ::-1].reshape(x.shape[0], 2, 2), x * (x > 0))
    )
    engine = lw.Engine(lw.compile(lw.Function([x], results, output_names=("p", "pairs", "relu")), jobs=1))
    a = ARRAYS["x"]
    made = np.tanh(a @ w + b.astype(np.float32))
    outputs = engine(a)
    same(outputs["p"], np.exp(made) / np.exp(made).sum(1, keepdims=True))
    same(outputs["pairs"], made[:, ::-1].reshape(-1, 2, 2))
    same(outputs["relu"], np.maximum(a, 0))


def test_an_element_of_an_open_axis_is_read_at_run_time():
    x = lw.var("x", (te.var("rows"), 3, te.var("columns")))
    results = lw.op.Tuple((x[0], x[:, 1, -1], x[-2, 0], x[None, :, ::2, 1], x[1, 2, 3]))
    engine = lw.Engine(lw.compile(lw.Function([x], results), jobs=1))
    a = ARRAYS["t"]
    for array in (a.reshape(2, 3, 4), SEED.standard_normal((5, 3, 7)).astype(np.float32)):
        wanted = array[0], array[:, 1, -1], array[-2, 0], array[None, :, ::2, 1], array[1, 2, 3]
        same(engine(array), wanted, 0)


def test_nodes_tell_shape_and_dtype():
    n = te.var("n")
    x = lw.var("x", (n, 3), "bfloat16")
    assert x.shape == (n, 3)
    assert (x.ndim, x.dtype) == (2, "bfloat16")
    assert (2 * x + 0.5).dtype == "bfloat16"
    assert x.T.shape == (3, n)
    for kind in ("bfloat16", x.dtype, x.dtype.to_numpy()):
        assert lw.var("like", x.shape, kind).type is x.type


def test_nodes_are_keys_by_identity():
    x, y = lw.var("x", (2,)), lw.var("x", (2,))
    assert x == x
    assert x != y
    assert {x: 1, y: 2}[y] == 2
    assert y not in [x, x]
    for number in (0, 1.5, np.ones(2)):
        with pytest.raises(TypeError, match=r"lw\.nn\.equal compares values"):
            x == number  # noqa: B015
    assert isinstance(np.equal(x, 0), Call)


def test_a_member_of_a_tuple_is_taken_by_its_number():
    pair = lw.nn.max_pool_with_indices(lw.var("x", (1, 1, 4, 4)), (2, 2))
    assert isinstance(pair[0], TupleGet)
    assert pair[-1].dtype == "int64"


def test_the_square_is_a_product():
    x = lw.var("x", (2,))
    assert (x**2).op.name == "multiply"
    assert (x**3).op.name == "power"

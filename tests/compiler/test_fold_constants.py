"""Constant parts of a graph are computed when it is compiled, and the rest is left alone."""

import numpy as np
import pytest

import loopwright as lw
from loopwright import te
from loopwright.compiler.passes.fold_constants import MAX_STEPS, fold_constants
from loopwright.compiler.passes.specialize import specialize
from loopwright.graph import Call, Constant, Function, Tuple, Var, tensor_type
from loopwright.graph.visit import post_order
from loopwright.ops import nn
from loopwright.ops.families.binary import add, multiply
from loopwright.ops.families.unary import relu

A = np.array([1.0, -2.0, 3.0], np.float32)


def in_numpy(function):
    """Evaluates the few operators that the tests use."""

    def value(node):
        if isinstance(node, Constant):
            return node.value
        args = [value(a) for a in node.args]
        return {"add": np.add, "multiply": np.multiply, "relu": lambda x: np.maximum(x, 0)}[node.op.name](*args)

    assert not function.params
    return [value(field) for field in function.body.fields]


def calls(node):
    return [n.op.name for n in post_order(node) if isinstance(n, Call)]


def test_only_what_depends_on_constants_is_folded():
    x = Var("x", tensor_type((3,), "float32"))
    constant = relu(multiply(Constant(A), Constant(A)))
    folded = fold_constants(Function([x], add(x, constant)), in_numpy)
    assert calls(folded.body) == ["add"]
    np.testing.assert_array_equal(folded.body.args[1].value, A * A)


def test_a_constant_result_is_folded():
    folded = fold_constants(Function([], Tuple((relu(Constant(A)), Constant(A)))), in_numpy)
    assert calls(folded.body) == []
    np.testing.assert_array_equal(folded.body.fields[0].value, np.maximum(A, 0))


def test_a_function_without_constant_parts_is_the_same_object():
    x = Var("x", tensor_type((3,), "float32"))
    function = Function([x], relu(x))
    assert fold_constants(function, in_numpy) is function


def test_small_values_of_long_loops_are_left():
    """Nobody waits for them when a model is compiled."""
    for count, left in ((MAX_STEPS + 1, True), (100, False)):
        function = Function([], lw.nn.sum(lw.nn.arange(0, count), axes=(0,)))
        evaluated = []
        folded = fold_constants(function, lambda f, seen=evaluated: seen.append(f) or [np.int64(0)])
        assert (folded is function, not evaluated) == (left, left)


def test_constants_that_would_grow_are_left():
    wide = Constant(np.zeros((1, 2048), np.float32))
    tall = Constant(np.zeros((2048, 1), np.float32))
    function = Function([], add(wide, tall))
    assert fold_constants(function, in_numpy) is function


def test_a_table_that_is_dear_to_compute_is_folded_though_it_grows():
    x = lw.var("x", (1024, 512))
    rows, columns = (lw.const(np.linspace(0, 2, n, dtype=np.float32).reshape(s)) for n, s in TABLE)
    table = lw.nn.exp(lw.nn.multiply(rows, columns))
    library = lw.compile(lw.Function([x], lw.nn.add(x, table)), target="x86-64-v3", jobs=1)
    assert [f.call.op for f in library.functions] == ["add"]
    value = np.exp(np.linspace(0, 2, 1024)[:, None] * np.linspace(0, 2, 512))
    (y,) = lw.Engine(library)({"x": np.ones((1024, 512), np.float32)})
    np.testing.assert_allclose(y, 1 + value, rtol=1e-6)


def test_a_cheap_table_is_folded_where_its_reader_could_not_compute_it_along():
    x = lw.var("x", (4, 1024))
    rows, columns = (lw.const(np.linspace(0, 2, n, dtype=np.float32).reshape(s)) for n, s in TABLE)
    weight = lw.nn.multiply(rows, columns)
    made = {name: lw.nn.matmul(x, weight) if name == "matmul" else lw.nn.add(lw.nn.sum(x), weight) for name in OPS}
    for name, body in made.items():
        planned = lw.compile(lw.Function([x], body), target="x86-64-v3", jobs=1)
        large = [c for c in planned.model.constants if c.nbytes > 1 << 20]
        assert bool(large) is (name == "matmul")


TABLE = ((1024, (1024, 1)), (512, (1, 512)))
OPS = ("matmul", "add")


def test_tables_that_are_too_large_together_are_left():
    x = lw.var("x", (1,))
    tall, wide = lw.const(np.zeros((1 << 15, 1), np.float32)), lw.const(np.zeros((1, 1 << 12), np.float32))
    function = lw.Function([x], lw.nn.add(x, lw.nn.exp(lw.nn.add(tall, wide))))  # 512 MiB
    assert fold_constants(function, in_numpy) is function


def test_shapes_are_put_in_for_symbolic_dimensions():
    n = lw.te.var("n")
    x = Var("x", tensor_type((n, 3), "float32"))
    function = Function([x], relu(add(x, Constant(A))))
    made = specialize(function, {"x": (5, 3)})
    assert made.body.type is tensor_type((5, 3), "float32")
    assert specialize(function, {}) is function
    with pytest.raises(lw.ModelError, match="no such input"):
        specialize(function, {"y": (1,)})
    with pytest.raises(lw.ModelError, match="contradicts"):
        specialize(function, {"x": (5, 4)})
    with pytest.raises(lw.ModelError, match="contradicts"):
        specialize(function, {"x": (5,)})


def test_a_constant_that_is_made_of_another_that_is_read_is_folded_too():
    """As the sums over weights that a product reads turned: both are computed once."""
    x, weight = lw.var("x", (te.var("n"), 64)), lw.const(np.arange(48 * 64, dtype=np.int32).reshape(48, 64))
    turned = nn.transpose(weight)
    y = nn.subtract(nn.matmul(nn.cast(x, "int32"), turned), nn.multiply(nn.sum(turned, 0), lw.const(np.int32(3))))
    library = lw.compile(lw.Function([x], y))
    assert not [function.name for function in library.functions if "sum" in function.name]
    a = np.random.default_rng(0).integers(0, 9, (2, 64)).astype(np.float32)
    np.testing.assert_array_equal(lw.Engine(library)([a])[0], (a.astype(np.int32) - 3) @ np.asarray(weight.value).T)

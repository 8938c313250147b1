"""What leaves a loop: what no iteration changes, and products of rows; the results stay the same."""

import numpy as np
import pytest

import loopwright as lw
from loopwright import te
from loopwright.compiler.passes.flatten_tuples import flatten_tuples
from loopwright.compiler.passes.hoist_invariants import hoist_invariants
from loopwright.graph import Call, Function, Tuple, Var, tensor_type
from loopwright.graph.visit import bodies_of, nested_order, post_order
from loopwright.ops.families.loop import LOOP, LoopAttrs, loop_call

RNG = np.random.default_rng(11)


def floats(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def the_loop(function):
    return next(node for node in post_order(function.body) if isinstance(node, Call) and node.op is LOOP)


def inside(function):
    """The names of the operators in the body of the loop."""
    return [node.op.name for node in post_order(the_loop(function).attrs.body.body) if isinstance(node, Call)]


def outside(function):
    return [node.op.name for node in post_order(function.body) if isinstance(node, Call) and node.op is not LOOP]


def hoisted(function):
    return hoist_invariants(flatten_tuples(function))


def same_results(function, *feeds):
    """The function compiled, which hoists, against one whose loops are seen by no pass: iterations of the body."""
    return lw.Engine(lw.compile(function))(list(feeds))


def raw_loop(body, carried, captured, trips=5):
    """A loop whose body captures values as they are: the functions of ``lw.nn`` hoist some by themselves."""
    number = Var("number", tensor_type((), "int64"))
    params = [Var(f"p{k}", node.type) for k, node in enumerate((*carried, *captured))]
    function = Function((number, *params), Tuple(tuple(body(number, *params))), "body")
    return loop_call(LoopAttrs(function, carried=len(carried), trips=trips), None, None, carried, (), captured)


def test_what_depends_on_nothing_that_changes_is_computed_before():
    a, w = lw.var("a", (4, 4)), lw.var("w", (4, 4))
    function = Function([a, w], raw_loop(lambda number, a, w: [a @ np.tanh(w)], [a], [w])[0])
    made = hoisted(function)
    assert inside(made) == ["nn.matmul"]
    assert outside(made) == ["tanh"]
    A, B = floats(4, 4) * 0.5, floats(4, 4)
    expected = A
    for _ in range(5):
        expected = expected @ np.tanh(B)
    np.testing.assert_allclose(same_results(function, A, B)[0], expected, rtol=1e-4, atol=1e-5)


def test_what_only_takes_more_memory_stays():
    a, b = lw.var("a", (4, 8)), lw.var("b", (8,))
    function = Function([a, b], raw_loop(lambda number, a, b: [a * lw.nn.broadcast_to(np.exp(b), (4, 8))], [a], [b])[0])
    made = hoisted(function)
    assert inside(made) == ["broadcast_to", "multiply"]
    assert outside(made) == ["exp"]


def test_what_is_handed_on_as_it_is_becomes_captured():
    a, x = lw.var("a", (4,)), lw.var("x", (4,))
    results = raw_loop(lambda number, a, x: [a * x, x], [a, x], [])
    function = Function([a, x], Tuple((results[1], results[0])))
    made = hoisted(function)
    assert the_loop(made).attrs.carried == 1
    assert made.body.fields[0] is made.params[1]
    A, X = floats(4), floats(4)
    found = same_results(function, A, X)
    np.testing.assert_array_equal(found[0], X)
    np.testing.assert_allclose(found[1], A * X**5, rtol=1e-5)


def test_a_loop_of_which_all_is_handed_on_still_ends():
    x = lw.var("x", (3,))
    function = Function([x], raw_loop(lambda number, x: [x], [x], [])[0])
    np.testing.assert_array_equal(same_results(function, np.ones(3, np.float32))[0], np.ones(3))


@pytest.mark.parametrize("reverse", [False, True])
def test_products_of_rows_become_one(reverse):
    h, xs, w, u, b = (lw.var(*p) for p in (("h", (1, 8)), ("xs", (6, 1, 4)), ("w", (4, 8)), ("u", (8, 8)), ("b", (8,))))
    made = lw.nn.scan(lambda h, x: (np.tanh(h @ u + (x @ w + b)), h), [h], [xs], reverse=reverse)
    function = Function([h, xs, w, u, b], made)
    hoist = hoisted(function)
    assert inside(hoist) == ["nn.matmul", "add", "tanh"]
    assert outside(hoist) == ["nn.matmul", "add"]
    assert the_loop(hoist).attrs.sliced == (reverse, reverse)
    H, X, W, U, B = (floats(*p.type.static_shape) * np.float32(0.3) for p in function.params)
    rows = np.zeros((6, 1, 8), np.float32)
    state = H
    for t in reversed(range(6)) if reverse else range(6):
        rows[t] = state
        state = np.tanh(state @ U + X[t] @ W + B)
    found = same_results(function, H, X, W, U, B)
    np.testing.assert_allclose(found[0], state, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(found[1], rows, rtol=1e-4, atol=1e-5)


def softmax(rows):
    raised = np.exp(rows - rows.max(-1, keepdims=True))
    return raised / raised.sum(-1, keepdims=True)


@pytest.mark.parametrize(
    ("name", "behind", "wanted"),
    [
        ("softmax", lw.nn.softmax, softmax),
        ("cumsum", lambda row: lw.nn.cumsum(row, 0), lambda rows: rows.cumsum(1)),
        ("transpose", lw.nn.transpose, lambda rows: rows.transpose(0, 2, 1)),
    ],
)
def test_what_is_not_elementwise_behind_a_product_of_a_row_stays_in_the_loop(name, behind, wanted):
    h, xs, w = lw.var("h", (4, 4)), lw.var("xs", (5, 4, 3)), lw.const(floats(3, 4))
    made = lw.nn.scan(lambda h, x: (np.tanh(h + behind(x @ w)), h), [h], [xs])
    function = Function([h, xs], made)
    hoist = hoisted(function)
    assert outside(hoist) == ["nn.matmul"]
    assert name in inside(hoist)
    H, X = floats(4, 4), floats(5, 4, 3)
    expected = H.astype(np.float64)
    for row in wanted(X.astype(np.float64) @ w.value):
        expected = np.tanh(expected + row)
    np.testing.assert_allclose(same_results(function, H, X)[0], expected, rtol=1e-4, atol=1e-5)


def test_products_of_rows_that_differ_in_direction_stay_apart():
    kind = tensor_type((4,), "float32")
    number, a, b = Var("number", tensor_type((), "int64")), Var("a", kind), Var("b", kind)
    w = lw.const(floats(4, 4))
    body = Function((number, a, b), Tuple(((a @ w) + (b @ w),)), "body")
    xs, ys = lw.var("xs", (5, 4)), lw.var("ys", (5, 4))
    attrs = LoopAttrs(body, sliced=(False, True), stacked=(False,), trips=5)
    function = Function([xs, ys], loop_call(attrs, None, None, (), [xs, ys], ())[0])
    X, Y = floats(5, 4), floats(5, 4)
    assert outside(hoisted(function)) == ["nn.matmul", "nn.matmul"]
    np.testing.assert_allclose(same_results(function, X, Y)[0], (X + Y[::-1]) @ w.value, rtol=1e-4, atol=1e-5)


def test_what_is_hoisted_out_of_an_inner_loop_leaves_the_outer_one_too():
    a, w = lw.var("a", (4, 4)), lw.var("w", (4, 4))

    def inner(number, a, w):
        return [raw_loop(lambda number, a, w: [a @ np.tanh(w)], [a], [w])[0]]

    made = hoisted(Function([a, w], raw_loop(inner, [a], [w])[0]))
    assert outside(made) == ["tanh"]
    (body,) = bodies_of(the_loop(made))
    assert "tanh" not in [node.op.name for node in nested_order(body.body) if isinstance(node, Call)]


def test_what_several_values_are_computed_of_goes_before_a_loop_once():
    a, w = lw.var("a", (4, 4)), lw.var("w", (4, 4))

    def body(number, a, w):
        shared = np.exp(np.tanh(w))
        return [a @ lw.nn.relu(shared) + (a - lw.nn.sigmoid(shared)) * np.sqrt(shared)]

    function = Function([a, w], lw.nn.add(raw_loop(body, [a], [w])[0], np.exp(np.tanh(w))))
    made = hoisted(function)
    assert sorted(outside(made)) == ["add", "exp", "relu", "sigmoid", "sqrt", "tanh"]
    A, B = floats(4, 4) * 0.5, floats(4, 4) * 0.2
    expected, shared = A.astype(np.float64), np.exp(np.tanh(B.astype(np.float64)))
    for _ in range(5):
        expected = expected @ np.maximum(shared, 0) + (expected - 1 / (1 + np.exp(-shared))) * np.sqrt(shared)
    np.testing.assert_allclose(same_results(function, A, B)[0], expected + shared, rtol=2e-4)


def test_a_value_that_is_used_twice_is_looked_at_once():
    """What may take more memory than what it is made of stays, and is looked through: of open extents all of it."""
    n = te.var("n")
    a, w = lw.var("a", (n,)), lw.var("w", (n,))

    def body(number, a, w):
        for _ in range(60):
            w = w + w * 0.5
        return [a + w]

    function = Function([a, w], raw_loop(body, [a], [w], trips=2)[0])
    assert inside(hoisted(function)).count("multiply") == 60
    A, B = floats(7), floats(7)
    wanted = A + 2 * B.astype(np.float64) * 1.5**60
    np.testing.assert_allclose(same_results(function, A, B)[0], wanted, rtol=1e-4)

"""What a loop captures is a constant of its body where it is known; results stay the same."""

import numpy as np
import pytest

import loopwright as lw
from loopwright import te
from loopwright.compiler.passes.flatten_tuples import flatten_tuples
from loopwright.compiler.passes.known_captures import known_captures
from loopwright.graph import Call, Constant, Function, Tuple, Var, tensor_type
from loopwright.graph.visit import post_order
from loopwright.ops.families.loop import LOOP, LoopAttrs, loop_call

nn = lw.nn
RNG = np.random.default_rng(3)


def floats(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def loop_over(body, carried, captured, trips=4):
    """The first result of a loop that captures values as they are."""
    params = [Var(f"p{k}", node.type) for k, node in enumerate((*carried, *captured))]
    number = Var("number", tensor_type((), "int64"))
    made = Function((number, *params), Tuple(tuple(body(*params))), "body")
    return loop_call(LoopAttrs(made, carried=len(carried), trips=trips), None, None, carried, (), captured)[0]


def computed(function):
    """What a function of constants gives: by compiled code, as the compiler itself has it."""
    results = function.body.fields if isinstance(function.body, Tuple) else [function.body]
    return [lw.Engine(lw.compile(Function((), result), jobs=1))([])[0] for result in results]


def the_loop(function):
    return next(node for node in post_order(function.body) if isinstance(node, Call) and node.op is LOOP)


def passed(function):
    return the_loop(known_captures(flatten_tuples(function), computed))


def test_known_weights_are_packed_for_the_products_of_a_body():
    a, weight, bias = lw.var("a", (1, 64)), floats(64, 64) * 0.2, floats(1, 64)
    other = lw.var("other", (1, 64))
    looped = loop_over(
        lambda a, w, b, o: [nn.add(nn.matmul(a, w), nn.add(b, o))],
        [a],
        [lw.const(weight), nn.negative(lw.const(bias)), other],
    )
    function = Function([a, other], looped)
    made = passed(function)
    assert len(made.args) == 2  # what is carried, and the other value
    assert {node.value.shape for node in post_order(made.attrs.body.body) if isinstance(node, Constant)} == {
        (64, 64),
        (1, 64),
    }
    library = lw.compile(function, "x86-64-v3", jobs=1)
    assert "packed_matmul.blocked" in {c.implementation for f in library.functions for c in f.choices}
    value, more = floats(1, 64), floats(1, 64)
    found = lw.Engine(library)([value, more])[0]
    for _ in range(4):
        value = value @ weight + (more - bias)
    np.testing.assert_allclose(found, value, rtol=1e-4, atol=1e-4)


def test_what_is_not_known_is_captured():
    a, w = lw.var("a", (4, 4)), lw.var("w", (4, 4))
    function = flatten_tuples(Function([a, w], loop_over(lambda a, w: [nn.matmul(a, w)], [a], [w])))
    assert known_captures(function, computed) is function


def test_weights_that_are_quantized_stay_outside():
    a = lw.var("a", (1, 8))
    weight = nn.dequantize(lw.const(np.ones((8, 8), np.int8)), lw.const(np.float32(0.1)), lw.const(np.int8(0)))
    function = flatten_tuples(Function([a], loop_over(lambda a, w: [nn.matmul(a, w)], [a], [weight])))
    assert known_captures(function, computed) is function


def test_what_the_number_of_iterations_is_told_by_is_captured():
    a, rows = lw.var("a", (2,)), lw.const(floats(3, 2))
    body = lambda a, r: [nn.add(a, nn.sum(r, 0))]  # noqa: E731
    function = Function([a], loop_over(body, [a], [rows], trips="x1_0"))
    assert len(passed(function).args) == 2
    value = floats(2)
    found = lw.Engine(lw.compile(function, jobs=1))([value])[0]
    np.testing.assert_allclose(found, value + 3 * rows.value.sum(0), rtol=1e-5)


@pytest.mark.parametrize("batch", [1, te.var("n")], ids=["known", "open"])
def test_two_loops_may_have_the_same_weights(batch):
    a, weight = lw.var("a", (batch, 16)), lw.const(floats(16, 16) * 0.3)
    once = loop_over(lambda a, w: [nn.tanh(nn.matmul(a, w))], [a], [weight])
    twice = loop_over(lambda a, w: [nn.matmul(a, w)], [once], [weight], trips=2)
    value = floats(1, 16)
    found = lw.Engine(lw.compile(Function([a], twice), jobs=1))([value])[0]
    for _ in range(4):
        value = np.tanh(value @ weight.value)
    np.testing.assert_allclose(found, value @ weight.value @ weight.value, rtol=1e-4, atol=1e-4)

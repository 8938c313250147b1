"""Branches and loops in graphs: their types, text and hashes, and what is refused."""

import numpy as np
import pytest

import loopwright as lw
from loopwright import te
from loopwright.graph import Function, Tuple, tensor_type
from loopwright.graph.structural import graph_hash
from loopwright.graph.visit import bodies_of, nested_order
from loopwright.ops.definition.retyping import with_param_types


def condition():
    return lw.var("c", (), "bool")


def branching(factor=2.0):
    x, c = lw.var("x", (2, 3)), condition()
    return Function([x, c], lw.nn.cond(c, lambda a: a * lw.const(np.float32(factor)), lambda a: a + 1, x), "f")


def the_call(function):
    return next(node for node in nested_order(function.body) if bodies_of(node))


def test_a_branch_prints_its_bodies_before_the_call():
    assert str(branching()) == (
        "def f(%x: float32[2, 3], %c: bool[]) -> float32[2, 3]:\n"
        "    def then(%operand0: float32[2, 3]) -> (float32[2, 3],):\n"
        "        %0 = multiply(%operand0, const(2.0, float32[]))  # float32[2, 3]\n"
        "        return (%0,)\n"
        "    def otherwise(%operand0: float32[2, 3]) -> (float32[2, 3],):\n"
        "        %0 = add(%operand0, const(1.0, float32[]))  # float32[2, 3]\n"
        "        return (%0,)\n"
        "    %0 = if(%c, %x, then=then, otherwise=otherwise)  # (float32[2, 3],)\n"
        "    return %0.0"
    )


def test_graphs_that_differ_in_a_body_only_have_other_hashes():
    assert graph_hash(branching()) == graph_hash(branching())
    assert graph_hash(branching()) != graph_hash(branching(3.0))


def test_what_a_body_captures_is_an_operand_once_and_constants_stay():
    x, y, c = lw.var("x", (2,)), lw.var("y", (2,)), condition()
    outer = np.exp(y)
    made = lw.nn.cond(c, lambda a: a * outer, lambda a: a + outer + lw.const(np.ones(2, np.float32)), x)
    call = the_call(Function([x, y, c], made))
    assert call.args == (c, x, outer)


def test_a_body_is_given_what_does_not_depend_on_what_is_carried():
    x, w = lw.var("x", (4, 4)), lw.var("w", (4, 4))
    made = lw.nn.for_loop(9, lambda number, a: a @ np.tanh(w), x)
    call = the_call(Function([x, w], made))
    assert [node.op.name for node in nested_order(call.attrs.body.body) if hasattr(node, "op")] == ["nn.matmul"]
    assert call.args[1].op.name == "tanh"


def test_bodies_get_the_types_of_other_arguments():
    n = te.var("n")
    xs, h = lw.var("xs", (n, 3)), lw.var("h", (3,))
    function = Function([h, xs], lw.nn.scan(lambda h, x: (h + x, x * 2), [h], [xs]))
    typed = with_param_types(function, [tensor_type((5,), "float32"), tensor_type((7, 5), "float32")])
    assert str(typed.body.type) == "(float32[5], float32[7, 5])"
    assert str(the_call(typed).attrs.body.params[1].type) == "float32[5]"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda x, c: lw.nn.cond(c, lambda a: a, np.sum, x), r"result 0 is a float32\[2\] in one branch"),
        (lambda x, c: lw.nn.cond(c, lambda a: (a, a), lambda a: a, x), "the branches give 2 and 1 values"),
        (lambda x, c: lw.nn.cond(x, lambda a: a, lambda a: a, x), "condition should be one bool"),
        (lambda x, c: lw.nn.cond(c, lambda a: 3, lambda a: a, x), "then should give nodes, found a value of type int"),
        (
            lambda x, c: lw.nn.for_loop(2, lambda number, a: np.concatenate([a, a]), x),
            r"carried value 0 is a float32\[2\], and a float32\[4\] behind an iteration",
        ),
        (lambda x, c: lw.nn.for_loop(2, lambda number, a, b: a, x, x), "is given 2 carried values, and hands on 1"),
        (lambda x, c: lw.nn.for_loop(x, lambda number, a: a, x), "the limit should be one int64"),
        (lambda x, c: lw.nn.for_loop(te.var("m"), lambda number, a: a, x), "no tensor tells the dimension m"),
        (lambda x, c: lw.nn.while_loop(lambda a: a, lambda a: a, x), "condition should be one bool"),
        (lambda x, c: lw.nn.scan(lambda a: a, [x], []), "at least one value"),
        (lambda x, c: lw.nn.scan(lambda a: a, [], [c]), "rows along its first axis"),
        (
            lambda x, c: lw.nn.scan(lambda a, b: (a, b), [], [x, lw.var("y", (3,))]),
            "sliced value 1 has 3 rows, the loop has 2 iterations",
        ),
    ],
)
def test_refusals(make, message):
    with pytest.raises(lw.TypeInferenceError, match=message):
        make(lw.var("x", (2,)), condition())


def test_several_results_are_a_tuple():
    x, c = lw.var("x", (2,)), condition()
    made = lw.nn.cond(c, lambda a: (a, -a), lambda a: (-a, a), x)
    assert isinstance(made, Tuple)
    assert len(made.fields) == 2

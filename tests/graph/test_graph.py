"""The graph IR: types are interned, nodes typed, text deterministic, traversal safe on deep graphs."""

import pickle
import re

import numpy as np
import pytest

import loopwright as lw
from loopwright import te
from loopwright.base.dtype import dtype
from loopwright.graph import Constant, Function, Tuple, TupleGet, TupleType, Var, tensor_type
from loopwright.graph.types import TensorType
from loopwright.graph.visit import post_order, rewrite, users
from loopwright.ir.expr import Binary
from loopwright.ir.makers import as_index
from loopwright.ops.definition.registry import Op, OpPattern, get_op
from loopwright.ops.families.parametric import leaky_relu

NEGATIVE, RELU = get_op("negative"), get_op("relu")


def image():
    return Var("x", tensor_type((2, 3), "float32"))


def test_equal_types_are_one_object():
    assert tensor_type((2, 3), "float32") is tensor_type((2, 3), "float32")
    assert tensor_type((2, 3), "float32") is not tensor_type((2, 3), "float64")
    n = te.var("n")
    assert tensor_type((n, 3), "int8") is tensor_type((n, 3), "int8")
    assert tensor_type((n,), "int8").static_shape is None
    assert tensor_type((4,), "int8").static_shape == (4,)


def test_a_shape_has_no_negative_extents():
    with pytest.raises(lw.TypeInferenceError, match="no negative extents"):
        tensor_type((2, -1), "float32")


@pytest.mark.parametrize("extent", ["n", None, 2.0, (2,)])
def test_what_is_no_extent_is_refused_with_a_way_to_leave_one_open(extent):
    expected = rf"an extent is a whole number, .* te\.var\('n'\) makes it; found {re.escape(repr(extent))}"
    with pytest.raises(lw.TypeInferenceError, match=expected):
        lw.var("x", (extent, 4))


def test_calls_are_typed_when_they_are_made():
    assert RELU(image()).type is tensor_type((2, 3), "float32")


def test_extents_that_a_relation_computes_are_in_normal_form():
    """Whatever a relation gives, a number among them: what follows compares extents as objects."""
    n = te.var("n")
    minus_2 = Binary("-", as_index(10), as_index(2))
    there_and_back = Binary("-", Binary("+", n, as_index(3)), as_index(3))
    given = TensorType((minus_2, there_and_back, 4), dtype("float32"))
    op = Op("given", "", (), None, lambda types, attrs: TupleType((given, given)), OpPattern.OPAQUE)
    wanted = tensor_type((8, n, 4), "float32")
    assert op().type is TupleType((wanted, wanted))
    negative = Op("negative", "", (), None, lambda *_: tensor_type((minus_2 - 9,), "int8"), OpPattern.OPAQUE)
    with pytest.raises(lw.TypeInferenceError, match="no negative extents"):
        negative()


def test_operators_check_their_arguments():
    with pytest.raises(lw.TypeInferenceError, match="relu takes the arguments x, found 2"):
        RELU(image(), image())
    with pytest.raises(lw.TypeInferenceError, match="relu has no attributes"):
        RELU(image(), attrs="alpha")
    with pytest.raises(lw.TypeInferenceError, match=r"relu\(x: bool\[2\]\).*found bool"):
        RELU(Var("b", tensor_type((2,), "bool")))


def test_a_constant_is_read_only_and_keeps_the_callers_array_writable():
    array = np.ones((2, 2), np.float32)
    node = Constant(array)
    with pytest.raises(ValueError, match="read-only"):
        node.value[0, 0] = 2
    array[0, 0] = 3


def test_a_function_prints_one_line_a_call():
    x = image()
    f = Function([x], Tuple((RELU(NEGATIVE(x)), x)), "f")
    assert str(f) == (
        "def f(%x: float32[2, 3]) -> (float32[2, 3], float32[2, 3]):\n"
        "    %0 = negative(%x)  # float32[2, 3]\n"
        "    %1 = relu(%0)  # float32[2, 3]\n"
        "    return (%1, %x)"
    )


def test_attributes_that_differ_in_the_sign_of_zero_print_differently():
    # Compiled functions are told apart by their text.
    zero, negative_zero = (str(leaky_relu(image(), alpha=alpha)) for alpha in (0.0, -0.0))
    assert zero != negative_zero
    assert "alpha=-0.0" in negative_zero


def test_fields_of_tuples_are_typed():
    pair = Tuple((image(), Constant(np.zeros(4, np.int8))))
    assert isinstance(pair.type, TupleType)
    assert TupleGet(pair, 1).type is tensor_type((4,), "int8")
    with pytest.raises(lw.TypeInferenceError, match="field 2"):
        TupleGet(pair, 2)
    with pytest.raises(lw.TypeInferenceError, match="not a tuple"):
        TupleGet(image(), 0)


def test_deep_graphs_are_traversed_without_recursion():
    node = image()
    for _ in range(5000):
        node = NEGATIVE(node)
    assert len(post_order(node)) == 5001
    assert rewrite(node, lambda n: None) is node


def test_a_rewrite_keeps_sharing():
    x = image()
    shared = NEGATIVE(x)
    body = Tuple((RELU(shared), shared))
    new = rewrite(body, lambda n: RELU(*n.args) if n is shared else None)
    assert new.fields[0].args[0] is new.fields[1]
    assert users(body)[shared] == (body.fields[0], body)


def test_graphs_are_pickled():
    x = image()
    f = pickle.loads(pickle.dumps(Function([x], RELU(x))))
    assert f.body.op is RELU
    assert f.body.args[0] is f.params[0]
    assert f.body.type is tensor_type((2, 3), "float32")

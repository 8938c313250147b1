"""The rules of gradients against differences of the functions themselves, in float64, and the sweep that uses them."""

import numpy as np
import pytest

import loopwright as lw
from loopwright.base.errors import TypeInferenceError
from loopwright.ops.families.softmax import log_softmax, softmax
from loopwright.ops.gradients.backward import gradients
from loopwright.ops.gradients.rules import RULES

STEP = 1e-5
nn = lw.nn

ELEMENTWISE = {
    function.__name__: function
    for function in (
        *(nn.negative, nn.identity, nn.abs, nn.relu, nn.reciprocal, nn.sqrt, nn.rsqrt, nn.exp, nn.log, nn.erf),
        *(nn.sin, nn.cos, nn.tan, nn.asin, nn.acos, nn.atan, nn.sinh, nn.cosh, nn.tanh, nn.asinh, nn.atanh),
        *(nn.sigmoid, nn.softplus, nn.softsign, nn.leaky_relu),
    )
} | {
    "acosh": lambda x: nn.acosh(x + lw.const(1.0, "float64")),
    "cast": lambda x: nn.cast(nn.cast(x, "float64"), "float64") * x,
    "power": lambda x: nn.power(x, x),
    "maximum": lambda x: nn.maximum(x, lw.const(0.5, "float64")),
    "minimum": lambda x: nn.minimum(x, lw.const(0.5, "float64")),
    "divide": lambda x: lw.const(2.0, "float64") / x,
    "subtract": lambda x: x - x * x * x,
    "add": lambda x: x + x * x,
}


def test_functions_of_single_numbers_have_the_slopes_that_their_differences_show():
    x = np.random.default_rng(0).uniform(0.1, 0.9, (3, 4))
    var = lw.var("x", x.shape, "float64")
    made = {name: function(var) for name, function in ELEMENTWISE.items()}
    forward = lw.Engine(lw.compile(lw.Function([var], lw.op.Tuple(tuple(made.values()))), precision="strict"))
    slopes = lw.op.Tuple(tuple(gradients(value, [var])[0] for value in made.values()))
    backward = lw.Engine(lw.compile(lw.Function([var], slopes), precision="strict"))
    more, less = forward([x + STEP]), forward([x - STEP])
    for name, found, high, low in zip(made, backward([x]), more, less, strict=True):
        np.testing.assert_allclose(found, (high - low) / (2 * STEP), rtol=1e-6, atol=1e-6, err_msg=name)


def weighted(value, rng):
    """A sum in which each element counts differently."""
    shape = [int(e.value) for e in value.type.shape]
    return nn.sum(value * lw.const(rng.random(shape)))


STRUCTURED = {
    "broadcast": (((2, 3), (3,)), lambda a, b: a * b + b / a),
    "a row against a column": (((1, 3), (4, 1)), lambda a, b: nn.maximum(a, b) - a * b),
    "matmul": (((2, 3, 4), (4, 5)), nn.matmul),
    "matmul of batches": (((2, 1, 3, 4), (3, 4, 2)), nn.matmul),
    "a vector by a matrix": (((4,), (4, 5)), nn.matmul),
    "a matrix by a vector": (((2, 3, 4), (4,)), nn.matmul),
    "dense": (((2, 3, 4), (5, 4)), nn.dense),
    "dense, plain": (((3, 4), (4, 5)), lambda x, w: nn.dense(x, w, transposed=False)),
    "batch_matmul": (((2, 4, 3), (2, 5, 4)), lambda a, b: nn.batch_matmul(a, b, transpose_a=True, transpose_b=True)),
    "conv1d": (((2, 3, 8), (4, 3, 3)), lambda x, w: nn.conv1d(x, w, strides=2, padding=1)),
    "conv2d": (((1, 2, 7, 6), (3, 2, 3, 2)), lambda x, w: nn.conv2d(x, w, strides=(2, 1), padding=(1, 0, 0, 1))),
    "conv2d, dilated": (((1, 2, 8, 8), (2, 2, 3, 3)), lambda x, w: nn.conv2d(x, w, dilation=2, strides=2)),
    "softmax": (((3, 4),), lambda x: softmax(x, 1)),
    "log_softmax": (((3, 4),), lambda x: log_softmax(x, 0)),
    "mean": (((3, 4),), lambda x: nn.mean(x, axes=1) * nn.sum(x, axes=1)),
    "mean of all": (((3, 4),), lambda x: nn.mean(x, axes=None, keepdims=True)),
    "sum_square": (((3, 4),), lambda x: nn.sum_square(x, axes=0, keepdims=True)),
    "concatenate": (((2, 3), (2, 2)), lambda a, b: nn.concatenate([a, b, a * a], axis=1)),
    "where": (((2, 3), (3,)), lambda a, b: nn.where(nn.greater(a, b), a * a, b)),
    "moves": (((2, 3),), lambda x: nn.squeeze(nn.expand_dims(nn.reshape(nn.transpose(x), (2, 3)), 0), 0)),
    "broadcast_to": (((3, 1),), lambda x: nn.broadcast_to(x, (2, 3, 4))),
}


@pytest.mark.parametrize("name", STRUCTURED)
def test_structures_have_the_slopes_that_their_differences_show(name):
    shapes, function = STRUCTURED[name]
    rng = np.random.default_rng(0)
    given = [rng.uniform(0.5, 1.5, shape) for shape in shapes]
    variables = [lw.var(f"x{k}", shape, "float64") for k, shape in enumerate(shapes)]
    total = weighted(function(*variables), rng)
    forward = lw.Engine(lw.compile(lw.Function(variables, total), precision="strict", jobs=1))
    found = lw.Engine(
        lw.compile(lw.Function(variables, lw.op.Tuple(tuple(gradients(total, variables)))), precision="strict", jobs=1)
    )(given)
    for k, (array, slopes) in enumerate(zip(given, found, strict=True)):
        assert slopes.shape == array.shape
        wanted = np.empty_like(array)
        for at in np.ndindex(array.shape):
            moved = [[x.copy() for x in given] for _ in range(2)]
            moved[0][k][at] += STEP
            moved[1][k][at] -= STEP
            (high,), (low,) = (forward(arrays) for arrays in moved)
            wanted[at] = (high - low) / (2 * STEP)
        np.testing.assert_allclose(slopes, wanted, rtol=1e-6, atol=1e-7)


def test_each_rule_is_compared():
    kinds = {"nn.matmul", "nn.dense", "nn.batch_matmul", "nn.conv1d", "nn.conv2d", "nn.conv3d", "multiply"}
    kinds |= {"reshape", "squeeze", "expand_dims", "transpose", "broadcast_to", "concatenate", "where", "sum", "mean"}
    assert set(RULES) == kinds | set(ELEMENTWISE) | {"sum_square", "softmax", "log_softmax"}


def test_a_value_used_twice_gets_both_parts_and_one_unused_gets_zeros():
    x, y = lw.var("x", (3,), "float64"), lw.var("y", (2,), "float64")
    square = x * x
    slopes = lw.op.Tuple(tuple(gradients(square * square, [x, y])))
    found = lw.Engine(lw.compile(lw.Function([x, y], slopes)))([np.array([1.0, 2.0, 3.0]), np.ones(2)])
    np.testing.assert_allclose(found[0], [4.0, 32.0, 108.0])
    np.testing.assert_array_equal(found[1], np.zeros(2))


def test_ties_share_and_powers_of_zero_are_no_nan():
    x, y = lw.var("x", (1,), "float64"), lw.var("y", (1,), "float64")
    slopes = (*gradients(nn.maximum(x, y), [x, y]), *gradients(nn.power(x, y), [x, y]))
    engine = lw.Engine(lw.compile(lw.Function([x, y], lw.op.Tuple(slopes))))
    assert [float(e[0]) for e in engine([np.full(1, 2.0), np.full(1, 2.0)])[:2]] == [0.5, 0.5]
    assert [float(e[0]) for e in engine([np.zeros(1), np.full(1, 2.0)])[2:]] == [0.0, 0.0]


def test_what_has_no_rule_is_told():
    x = lw.var("x", (2, 3))
    with pytest.raises(TypeInferenceError, match="cumsum has no rule for gradients; those that have: add"):
        gradients(nn.cumsum(x, axis=0), [x])
    with pytest.raises(TypeInferenceError, match="a gradient is of floats, found int64"):
        gradients(nn.argmax(x, axis=0), [x])
    image, weight = lw.var("i", (1, 4, 5, 5)), lw.var("w", (4, 1, 3, 3))
    with pytest.raises(TypeInferenceError, match=r"nn\.conv2d in groups.* has no rule"):
        gradients(nn.conv2d(image, weight, groups=4), [weight])

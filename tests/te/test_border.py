"""``te.clamp`` and ``te.pad``: values, against numpy, and refusals."""

import numpy as np
import pytest

import loopwright as lw
from loopwright import te
from loopwright.base.errors import ExpressionError
from loopwright.ir.constants import const_int
from loopwright.ir.interpret import interpret

MODES = ("constant", "edge", "reflect", "wrap")
WIDTHS = [((1, 2), (3, 0)), ((0, 0), (2, 2)), ((4, 7), (5, 6)), ((0, 9), (0, 13))]


def evaluate(output, inputs, arrays, shape):
    result = np.zeros(shape, arrays[0].dtype)
    interpret(lw.lower(lw.create_schedule(output), [*inputs, output]))(*arrays, result)
    return result


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("before", "after"), WIDTHS)
@pytest.mark.parametrize("symbolic", [False, True], ids=["fixed", "open"])
def test_pad_adds_what_numpy_does(mode, before, after, symbolic):
    for shape in ((4, 5), (1, 3), (2, 9)):
        x = te.placeholder((te.var("n"), te.var("m")) if symbolic else shape, name="x")
        value = np.arange(1.0, 1 + np.prod(shape), dtype=np.float32).reshape(shape)
        options = {"constant_values": 7} if mode == "constant" else {}
        expected = np.pad(value, [*zip(before, after, strict=True)], mode, **options)
        padded = te.pad(x, before, after, mode, 7)
        np.testing.assert_array_equal(evaluate(padded, [x], [value], expected.shape), expected)


@pytest.mark.parametrize("mode", MODES)
def test_counts_may_be_expressions(mode):
    """As many elements as make the extent a multiple of 4, behind twice as many as there are."""
    n = te.var("n")
    x = te.placeholder((n, 3), name="x")
    padded = te.pad(x, (n * 2, 0), ((4 - n * 3 % 4) % 4, 0), mode, 7)
    for extent in (1, 2, 5):
        value = np.arange(extent * 3, dtype=np.float32).reshape(extent, 3)
        options = {"constant_values": 7} if mode == "constant" else {}
        expected = np.pad(value, [(2 * extent, -3 * extent % 4), (0, 0)], mode, **options)
        np.testing.assert_array_equal(evaluate(padded, [x], [value], expected.shape), expected)


def test_an_expression_that_comes_out_negative_takes_elements_away():
    n = te.var("n")
    x = te.placeholder((n,), name="x")
    for mode in MODES:
        value = np.arange(6, dtype=np.float32)
        found = evaluate(te.pad(x, 2 - n, 0, mode), [x], [value], (2,))
        np.testing.assert_array_equal(found, value[4:])


def test_one_count_serves_all_axes_and_both_sides():
    x = te.placeholder((3, 4), "int32", name="x")
    padded = te.pad(x, 2, value=-1)
    value = np.arange(12, dtype=np.int32).reshape(3, 4)
    expected = np.pad(value, 2, constant_values=-1)
    assert str(padded.dtype) == "int32"
    np.testing.assert_array_equal(evaluate(padded, [x], [value], expected.shape), expected)


def test_clamp_holds_between_its_ends():
    x = te.placeholder((6,), name="x")
    held = te.compute(x.shape, lambda i: te.clamp(x[i], -1.0, 2.0), name="held")
    value = np.array([-3, -1, 0.5, 2, 9, np.nan], np.float32)
    np.testing.assert_array_equal(evaluate(held, [x], [value], (6,)), np.clip(value, -1, 2))


def test_counts_may_be_numbers_of_numpy():
    x = te.placeholder((3, 5), name="x")
    for before in (np.array([2, 1]), iter((2, 1)), (np.int64(2), 1)):
        assert [const_int(extent) for extent in te.pad(x, before, np.int64(1)).shape] == [6, 7]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((-1,), "before is a count that is not negative"),
        (((1, 2, 3),), "one for each of 2 axes, not"),
        ((1, 1, "mirror"), "mode is one of constant, edge, reflect, wrap, not 'mirror'"),
    ],
)
def test_what_makes_no_sense_is_refused(arguments, message):
    with pytest.raises(ExpressionError, match=message):
        te.pad(te.placeholder((3, 4), name="x"), *arguments)


def test_an_empty_axis_has_nothing_to_pad_with():
    with pytest.raises(ExpressionError, match="axis 1 is empty"):
        te.pad(te.placeholder((3, 0), name="x"), 1, mode="edge")

"""cumsum and cumprod: types, misuse, values against numpy, in one block and in several."""

import re

import numpy as np
import pytest

import loopwright as lw
from loopwright.base.errors import TypeInferenceError
from loopwright.ops.families.cumsum import cumprod, cumsum
from loopwright.te import var as dimension


def oracle(x, axis, exclusive, reverse):
    x = np.flip(x, axis) if reverse else x
    sums = np.cumsum(x, axis=axis, dtype=x.dtype)
    sums = sums - x if exclusive else sums
    return np.flip(sums, axis) if reverse else sums


MODES = [(False, False), (True, False), (False, True), (True, True)]


@pytest.mark.parametrize(("exclusive", "reverse"), MODES)
@pytest.mark.parametrize(
    ("shape", "axis"),
    [((7,), 0), ((3, 5), -1), ((3, 5), 0), ((2, 4, 3), 1), ((100,), 0), ((3, 64), 1), ((67, 3), 0), ((4, 33, 37), 0)],
)
def test_values_are_numpys_in_all_modes(ops, shape, axis, exclusive, reverse):
    x = np.random.default_rng(0).integers(-50, 50, shape)
    for kind in ("float32", "int64"):
        data = x.astype(kind)  # whole numbers: any order of summing is exact
        for native in (False, True):
            found = ops.apply(cumsum, data, axis=axis, exclusive=exclusive, reverse=reverse, native=native)
            np.testing.assert_array_equal(found, oracle(data, axis, exclusive, reverse))


@pytest.mark.parametrize(("exclusive", "reverse"), MODES)
@pytest.mark.parametrize(("shape", "axis"), [((7,), 0), ((3, 5), 1), ((67, 3), 0), ((0, 3), 0)])
def test_products_are_numpys_in_all_modes(ops, shape, axis, exclusive, reverse):
    x = np.random.default_rng(1).choice([-2, -1, 1, 0.5], shape).astype(np.float32)  # products are exact
    wanted = np.flip(x, axis) if reverse else x
    if exclusive:
        wanted = np.concatenate([np.ones_like(wanted), wanted], axis)
        wanted = np.take(wanted, range(shape[axis] - 1, 2 * shape[axis] - 1), axis)  # a single one in front
    wanted = np.cumprod(wanted, axis)
    for native in (False, True):
        found = ops.apply(cumprod, x, axis=axis, exclusive=exclusive, reverse=reverse, native=native)
        np.testing.assert_array_equal(found, np.flip(wanted, axis) if reverse else wanted)


@pytest.mark.parametrize("is_open", [False, True])
@pytest.mark.parametrize(
    ("shape", "axis"), [((12, 1, 3), 2), ((5, 1, 1, 7), 3), ((1, 5, 1, 7), 2), ((1, 40), 1), ((6, 1, 1), 0)], ids=str
)
def test_what_reads_it_may_have_axes_of_one_element(shape, axis, is_open):
    """A reader has the number 0 for its place on such an axis, which is a part of a task."""
    extents = [dimension(f"n{k}") if is_open and extent > 1 else extent for k, extent in enumerate(shape)]
    x, y = (lw.var(name, extents) for name in "xy")
    sums = cumsum(x, axis)
    library = lw.compile(lw.Function([x, y], lw.nn.where(lw.nn.greater(sums, y), sums, y + 3.0)), "generic", jobs=1)
    assert len(library.functions) == 1
    a, b = np.random.default_rng(0).normal(size=(2, *shape)).astype(np.float32)
    wanted = np.cumsum(a, axis)
    found = lw.Engine(library)([a, b])[0]
    np.testing.assert_allclose(found, np.where(wanted > b, wanted, b + 3), rtol=1e-5, atol=1e-5)


def test_narrow_floats_are_summed_in_float32_and_integers_wrap(ops):
    x = np.full(70, 0.1, np.float16)
    found = ops.apply(cumsum, x, native=True)
    np.testing.assert_array_equal(found, np.cumsum(x, dtype=np.float32).astype(np.float16))
    bytes_ = np.full(70, 100, np.uint8)
    np.testing.assert_array_equal(ops.apply(cumsum, bytes_), np.cumsum(bytes_, dtype=np.uint8))


def test_symbolic_and_empty_axes(ops):
    n = dimension("n")
    x = ops.var((n, 3))
    assert cumsum(x).type is x.type
    data = np.arange(15, dtype=np.float32).reshape(5, 3)
    for axis in (0, 1):
        for native in (False, True):
            found = ops.evaluate(cumsum(x, axis, reverse=True), {x: data}, native=native)
            np.testing.assert_array_equal(found, oracle(data, axis, False, True))
    assert ops.apply(cumsum, np.zeros((3, 0), np.float32), axis=1).shape == (3, 0)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda v: cumsum(v((2, 3)), 2), "axis 2 is not one of a tensor of rank 2"),
        (lambda v: cumsum(v((2,), "bool")), "x must be of float, bfloat, int, uint, found bool"),
    ],
)
def test_misuse_is_a_type_inference_error(ops, make, message):
    with pytest.raises(TypeInferenceError) as caught:
        make(ops.var)
    assert message in str(caught.value)


@pytest.mark.parametrize("shape", [(100, 10, 16, 3, 7), (30, 37, 41), (5, 7, 1000)])
def test_neighbours_are_vectors_whatever_axes_they_are_of(ops, shape):
    """Tiles are parts of all axes behind the fold's as one, whose elements no division finds."""
    x = ops.var(shape, "float32")
    library = lw.compile(lw.Function([x], cumsum(x, 0)), target="x86-64-v4", progress=False)
    (function,) = library.functions
    text = str(function.loop_ir)
    assert "//" not in text
    assert "%" not in text
    assert "ramp(" in text


@pytest.mark.parametrize(
    ("shape", "axis"),
    [
        *(((3, 2, 12, 128), axis) for axis in range(4)),
        *(((2, 3, 600, 3), axis) for axis in range(4)),
        ((2, None, 40, 31), 0),
        ((2, 9, None, 31), 1),
        ((2, 5, 3, None), 0),
    ],
    ids=str,
)
def test_what_reads_it_is_computed_in_its_loops_whatever_the_axes(shape, axis):
    """Tiles of several axes, of which one is a part, are none that a reader could be computed for."""
    x = lw.var("x", [dimension("n") if extent is None else extent for extent in shape])
    library = lw.compile(lw.Function([x], lw.nn.relu(cumsum(x, axis))), jobs=1)
    assert len(library.functions) == 1
    given = np.random.default_rng(0).integers(-9, 9, [extent or 50 for extent in shape]).astype(np.float32)
    np.testing.assert_array_equal(lw.Engine(library)([given])[0], np.maximum(np.cumsum(given, axis), 0))


@pytest.mark.parametrize("made", ["concatenate", "transpose", "strided_slice"])
def test_axes_along_which_nothing_lies_in_order_are_not_one(made):
    """Each lane would be divided to find what it reads."""
    x, y = lw.var("x", (64, 8, 196)), lw.var("y", (64, 8, 196))
    value = {
        "concatenate": lambda: lw.nn.concatenate([x, y], 2),
        "transpose": lambda: lw.nn.transpose(x, (1, 0, 2)),
        "strided_slice": lambda: lw.nn.strided_slice(x, [1], [195], [2]),
    }[made]()
    inputs = [x, y] if made == "concatenate" else [x]
    (text,) = lw.dump(lw.Function(inputs, cumsum(value, 0)), "loop", target="x86-64-v3")
    assert "// broadcast(" not in text.text
    given = [
        np.random.default_rng(k).integers(-9, 9, x.type.static_shape).astype(np.float32) for k in range(len(inputs))
    ]
    wanted = {
        "concatenate": lambda: np.concatenate(given, 2),
        "transpose": lambda: given[0].transpose(1, 0, 2),
        "strided_slice": lambda: given[0][..., 1:195],
    }[made]()
    (found,) = lw.Engine(lw.compile(lw.Function(inputs, cumsum(value, 0)), jobs=1))(given)
    np.testing.assert_array_equal(found, np.cumsum(wanted, 0))


@pytest.mark.parametrize("shape", [(64, 256), (5, 40), (3, 7, 40), (None, 20), (6, None), (100,), (None,)], ids=str)
def test_functions_of_running_sums_along_a_row_are_computed_in_vectors(shape):
    x = lw.var("x", [dimension(f"n{k}") if extent is None else extent for k, extent in enumerate(shape)])
    graph = lw.Function([x], lw.nn.tanh(cumsum(x, -1)))
    (nest,) = lw.dump(graph, "loop", target="x86-64-v3")
    functions = re.findall(r"tanh\(.*", nest.text)
    assert functions
    assert all("ramp(" in function for function in functions)
    given = np.random.default_rng(0).normal(size=[extent or 50 for extent in shape]).astype(np.float32) / 8
    (found,) = lw.Engine(lw.compile(graph, jobs=1))([given])
    np.testing.assert_allclose(found, np.tanh(np.cumsum(given, -1)), rtol=1e-4, atol=1e-5)

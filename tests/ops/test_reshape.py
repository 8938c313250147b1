"""reshape, squeeze, expand_dims and flatten against numpy; types, symbolic dimensions, misuse."""

import numpy as np
import pytest

import loopwright as lw
from loopwright import TypeInferenceError, te
from loopwright.graph.types import tensor_type
from loopwright.ops.families.reshape import expand_dims, flatten, reshape, squeeze


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ((2, 3, 4), (6, 4)),
        ((2, 3, 4), (4, 3, 2)),
        ((2, 3, 4), (2, 2, 6)),
        ((6, 5, 1), (1, 3, 10)),
        ((24,), (2, 3, 4)),
        ((1, 1), ()),
        ((), (1, 1)),
        ((0, 3), (3, 0, 2)),
        ((4, 6, 5), (8, 3, 5)),
    ],
)
def test_reshape_keeps_the_order_of_elements(ops, old, new):
    x = np.arange(np.prod(old, dtype=int), dtype=np.float32).reshape(old)
    for native in (False, True):
        np.testing.assert_array_equal(ops.apply(reshape, x, shape=new, allow_zero=True, native=native), x.reshape(new))


def test_minus_one_is_the_rest_and_zero_copies(ops):
    x = ops.var((2, 3, 4))
    assert reshape(x, (0, -1)).type is tensor_type((2, 12), "float32")
    assert reshape(x, (-1,)).type is tensor_type((24,), "float32")
    assert reshape(ops.var((0, 4)), (4, 0), allow_zero=True).type is tensor_type((4, 0), "float32")


@pytest.mark.parametrize(
    ("old", "given", "new"),
    [
        (("n", 5, 16), (0, 0, 2, -1), (0, 5, 2, 8)),
        (("n", 5, 16), (0, -1, 8), (0, 10, 8)),
        ((5, 16, "n"), (-1, 8, 0), (10, 8, 0)),
        (("n", 6), (-1, 3), (0, 3)),
    ],
)
def test_a_batch_of_nothing_leaves_the_rest_as_it_is(old, given, new):
    """Known or open, with the same result: what is copied is no part of what the others leave."""
    for n in (te.var("n"), 0):
        shape = [n if extent == "n" else extent for extent in old]
        x = lw.var("x", tuple(shape), "float32")
        engine = lw.Engine(lw.compile(lw.Function([x], lw.nn.reshape(x, given)), target="x86-64-v3", jobs=1), threads=1)
        (found,) = engine(np.zeros([0 if extent == "n" else extent for extent in old], np.float32))
        assert found.shape == new


def test_symbolic_extents_cancel(ops):
    n = te.var("n")
    x = ops.var((n, 3, 4))
    assert reshape(x, (0, 12)).type is tensor_type((n, 12), "float32")
    assert reshape(x, (-1, 6, 2)).type is tensor_type((n, 6, 2), "float32")
    assert reshape(x, (0, -1)).type is tensor_type((n, 12), "float32")
    data = np.arange(5 * 12, dtype=np.float32).reshape(5, 3, 4)
    np.testing.assert_array_equal(ops.evaluate(reshape(x, (-1, 6, 2)), {x: data}), data.reshape(5, 6, 2))
    np.testing.assert_array_equal(ops.evaluate(reshape(x, (-1,)), {x: data}), data.reshape(-1))


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ((5, 5), "has not as many elements as the shape"),
        ((5, -1), "do not fill the shape"),
        ((-1, -1), "one of them at most -1"),
        ((-2, 3), "extents of 0 or more"),
        ((2, 3, 4, 0), "there is no axis 3 to copy"),
    ],
)
def test_shapes_that_do_not_fit_are_refused(ops, shape, message):
    with pytest.raises(TypeInferenceError, match=message):
        reshape(ops.var((2, 3, 4)), shape)


def test_a_symbolic_extent_does_not_fit_a_number(ops):
    with pytest.raises(TypeInferenceError, match="has not as many elements"):
        reshape(ops.var((te.var("n"), 4)), (8,))


def test_squeeze_and_expand_dims(ops):
    x = np.arange(6, dtype=np.int64).reshape(1, 2, 1, 3)
    np.testing.assert_array_equal(ops.apply(squeeze, x), x.squeeze())
    np.testing.assert_array_equal(ops.apply(squeeze, x, axes=[-2]), x.squeeze(-2))
    np.testing.assert_array_equal(ops.apply(expand_dims, x, axes=[0, -1]), np.expand_dims(x, (0, -1)))
    assert expand_dims(ops.var((te.var("n"), 2)), 1).type.ndim == 3


def test_axes_that_do_not_fit_are_refused(ops):
    x = ops.var((1, 2))
    with pytest.raises(TypeInferenceError, match="axis 1 has extent 2: only an extent of 1"):
        squeeze(x, [1])
    with pytest.raises(TypeInferenceError, match="axis 4 is not one of a tensor of rank 2"):
        squeeze(x, [4])
    with pytest.raises(TypeInferenceError, match=r"axes \(1, 1\) name an axis twice"):
        expand_dims(x, [1, 1])


@pytest.mark.parametrize("axis", [0, 1, 2, 3, -1])
def test_flatten_makes_a_matrix(ops, axis):
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    rows = int(np.prod(x.shape[:axis], dtype=int))
    np.testing.assert_array_equal(ops.apply(flatten, x, axis=axis), x.reshape(rows, -1))


def test_flatten_keeps_open_rows_and_open_columns_apart(ops):
    n, m = te.var("n"), te.var("m")
    assert flatten(ops.var((n, 1, m)), 1).type is tensor_type((n, m), "float32")
    v = lw.var("x", (n, 2, m, 3))
    engine = lw.Engine(lw.compile(lw.Function([v], flatten(v, 2))))
    for shape in ((4, 2, 5, 3), (1, 2, 7, 3)):
        x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
        np.testing.assert_array_equal(engine([x])[0], x.reshape(shape[0] * 2, -1))


def test_flatten_keeps_a_symbolic_batch(ops):
    n = te.var("n")
    assert flatten(ops.var((n, 3, 4)), 1).type is tensor_type((n, 12), "float32")
    with pytest.raises(TypeInferenceError, match="axis 5"):
        flatten(ops.var((2, 3)), 5)

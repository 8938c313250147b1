"""Layouts: written and read, shapes and places of elements from one to another, against numpy."""

import copy
import pickle

import numpy as np
import pytest

import loopwright as lw
from loopwright import te
from loopwright.graph.layout import NCHW, NHWC, Layout, rearranged, source_index, transform
from loopwright.ir.constants import const_int
from loopwright.ir.simplify import simplify


def blocks(x, axis, size):
    """An axis cut: blocks of so many neighbours, which become an axis right behind it."""
    return x.reshape(*x.shape[:axis], x.shape[axis] // size, size, *x.shape[axis + 1 :])


def merged(x, axis):
    return x.reshape(*x.shape[:axis], x.shape[axis] * x.shape[axis + 1], *x.shape[axis + 2 :])


# Shape, layouts, and what numpy makes of it.
PAIRS = [
    ((2, 8, 3, 5), "NCHW", "NHWC", lambda x: x.transpose(0, 2, 3, 1)),
    ((2, 8, 3, 5), "NCHW", "HWCN", lambda x: x.transpose(2, 3, 1, 0)),
    ((2, 8, 3, 5), "NCHW", "NCHW4c", lambda x: blocks(x, 1, 4).transpose(0, 1, 3, 4, 2)),
    ((2, 2, 3, 5, 4), "NCHW4c", "NCHW", lambda x: merged(x.transpose(0, 1, 4, 2, 3), 1)),
    ((2, 2, 3, 5, 4), "NCHW4c", "NHWC", lambda x: merged(x.transpose(0, 2, 3, 1, 4), 3)),
    ((1, 3, 2, 2, 8), "NCHW8c", "NCHW4c", lambda x: merged(blocks(x, 4, 4).transpose(0, 1, 4, 2, 3, 5), 1)),
    (
        (1, 3, 2, 2, 8),
        "NCHW8c",
        "NCHW12c",
        lambda x: blocks(merged(x.transpose(0, 1, 4, 2, 3), 1), 1, 12).transpose(0, 1, 3, 4, 2),
    ),
    (
        (8, 12, 3, 2),
        "OIHW",
        "OIHW4i8o",
        lambda x: blocks(blocks(x, 1, 4), 0, 8).transpose(0, 2, 4, 5, 3, 1),
    ),
    (
        (8, 12, 3, 2),
        "OIHW",
        "OIHW2i4o3i",
        lambda x: blocks(blocks(blocks(x, 1, 6), 2, 3), 0, 4).transpose(0, 2, 5, 6, 3, 1, 4),
    ),
    (
        (1, 2, 3, 2, 2, 8, 3),
        "OIHW2i8o3i",
        "HWIO",
        lambda x: merged(merged(merged(x.transpose(2, 3, 1, 4, 6, 0, 5), 2), 2), 3),
    ),
    ((4, 6), "NC", "NC", lambda x: x),
]


@pytest.mark.parametrize("text", ["NCHW", "NHWC", "NCHW16c", "OIHW4i16o", "OIHW4i16o4i", "C", "NCDHW8c"])
def test_a_layout_prints_as_it_is_written(text):
    assert str(Layout(text)) == text
    assert "".join(map(str, Layout(text).axes)) == text


def test_equal_layouts_are_one_object_copied_and_pickled_too():
    assert Layout("NCHW") is NCHW
    assert Layout(text="NHWC") is NHWC
    assert Layout("NCHW16c") is not Layout("NCHW8c")
    assert pickle.loads(pickle.dumps(NCHW)) is NCHW
    assert copy.deepcopy(NCHW) is NCHW


def test_axes_and_blocks():
    layout = Layout("OIHW4i16o2i")
    assert layout.names == ("O", "I", "H", "W")
    assert layout.primal is Layout("OIHW")
    assert (layout.factor("O"), layout.factor("I"), layout.factor("H")) == (16, 8, 1)
    assert layout.blocks("I") == (4, 2)
    assert layout.digits("I") == (1, 4, 6)
    assert layout.is_blocked
    assert not NCHW.is_blocked


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "malformed"),
        ("NCHWc", "malformed at 'c'"),
        ("NCHW16", "malformed at '16'"),
        ("N-CHW", "malformed at '-CHW'"),
        ("NCHH", "has an axis twice"),
        ("NHW16c", "has a block 16c, but no axis C"),
        ("NCHW0c", "a block of no elements, 0c"),
        (None, "written as text"),
    ],
)
def test_a_malformed_layout_is_refused(text, message):
    with pytest.raises(lw.TypeInferenceError, match=message):
        Layout(text)


@pytest.mark.parametrize(("shape", "source", "destination", "oracle"), PAIRS)
def test_shapes_places_and_arrays_are_those_of_numpy(shape, source, destination, oracle):
    array = np.arange(np.prod(shape)).reshape(shape)
    expected = oracle(array)
    assert tuple(int(e) for e in transform(shape, Layout(source), Layout(destination))) == expected.shape
    np.testing.assert_array_equal(rearranged(array, Layout(source), Layout(destination)), expected)
    for place in np.ndindex(*expected.shape):
        index = source_index([te.const(i, "index") for i in place], Layout(source), Layout(destination))
        assert array[tuple(const_int(simplify(i)) for i in index)] == expected[place]


def test_equal_blocks_pass_through():
    c, block, *rest = (te.var(name) for name in ("c", "b", "n", "h", "w"))
    n, h, w = rest
    assert source_index((n, h, w, c, block), Layout("NCHW8c"), Layout("NHWC8c")) == (n, c, h, w, block)


def test_symbolic_extents_that_blocks_divide():
    n, c = te.var("n"), te.var("c")
    made = transform((n, c * 16, 4, 4), NCHW, Layout("NCHW8c"))
    assert made[0] is n
    assert made[1] is simplify(c * 2)
    assert transform(made, Layout("NCHW8c"), NCHW)[1] is simplify(c * 16)
    with pytest.raises(lw.TypeInferenceError, match="needs C in blocks of 8, which c is not"):
        transform((n, c, 4, 4), NCHW, Layout("NCHW8c"))


@pytest.mark.parametrize(
    ("shape", "source", "destination", "message"),
    [
        ((1, 8, 2, 2), "NCHW", "NCDHW", "NCHW and NCDHW have different axes"),
        ((1, 8, 2), "NCHW", "NHWC", r"has 4 axes, the shape \(1, 8, 2\) 3"),
        ((1, 3, 2, 2), "NCHW", "NCHW8c", "needs C in blocks of 8, which 3 is not"),
        ((1, 1, 2, 2, 4), "NCHW8c", "NCHW", "has blocks of 8c, the shape .* has 4"),
    ],
)
def test_what_does_not_fit_is_told(shape, source, destination, message):
    with pytest.raises(lw.TypeInferenceError, match=message):
        transform(shape, Layout(source), Layout(destination))

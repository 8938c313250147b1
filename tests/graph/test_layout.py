"""Layouts: written and read, shapes and places of elements from one to another, against numpy."""

import copy
import pickle

import numpy as np
import pytest

import loopwright as lw
from loopwright import te
from loopwright.graph.layout import NCHW, NHWC, Layout, source_index, transform
from loopwright.ir.expr import const_int
from loopwright.ir.simplify import simplify


def rearranged(array, source, destination):
    """By numpy: blocks merged into their axes, the axes moved, blocks cut off again."""
    source, destination = Layout(source), Layout(destination)
    order = [place for name in source.names for place in source.digits(name)]
    whole = array.transpose(order)
    whole = whole.reshape([int(e) for e in source.extents(array.shape).values()])
    whole = whole.transpose([source.names.index(name) for name in destination.names])
    cut, places = [], []
    for name, extent in zip(destination.names, whole.shape, strict=True):
        blocks = destination.blocks(name)
        cut += [extent // int(np.prod(blocks, dtype=int)), *blocks]
        places += destination.digits(name)
    return whole.reshape(cut).transpose(np.argsort(places))


PAIRS = [
    ((2, 8, 3, 5), "NCHW", "NHWC"),
    ((2, 8, 3, 5), "NCHW", "HWCN"),
    ((2, 8, 3, 5), "NCHW", "NCHW4c"),
    ((2, 2, 3, 5, 4), "NCHW4c", "NCHW"),
    ((2, 2, 3, 5, 4), "NCHW4c", "NHWC"),
    ((1, 3, 2, 2, 8), "NCHW8c", "NCHW4c"),
    ((1, 3, 2, 2, 8), "NCHW8c", "NCHW12c"),
    ((8, 12, 3, 2), "OIHW", "OIHW4i8o"),
    ((8, 12, 3, 2), "OIHW", "OIHW2i4o3i"),
    ((1, 2, 3, 2, 2, 8, 3), "OIHW2i8o3i", "HWIO"),
    ((4, 6), "NC", "NC"),
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


@pytest.mark.parametrize(("shape", "source", "destination"), PAIRS)
def test_shapes_and_places_are_those_of_numpy(shape, source, destination):
    array = np.arange(np.prod(shape)).reshape(shape)
    expected = rearranged(array, source, destination)
    made = transform(shape, Layout(source), Layout(destination))
    assert tuple(int(e) for e in made) == expected.shape
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

"""affine_indices: what takes the number of an element apart and puts it together again is that number."""

import numpy as np
import pytest

import loopwright as lw
from loopwright import te
from loopwright.base.dtype import FLOAT32
from loopwright.ir.build import index_var, make_buffer
from loopwright.ir.constants import ONE, ZERO, const
from loopwright.ir.contents import divides
from loopwright.ir.expr import Load
from loopwright.ir.makers import as_index
from loopwright.ir.stmt import For, PrimFunc, Store, seq
from loopwright.ir.visit import walk
from loopwright.lowering.passes.affine_indices import MOST_ITERATIONS, affine_indices

O, L = index_var("o"), index_var("l")
A, B = (make_buffer(name, (as_index(1 << 24),), "float32") for name in "AB")
NUMBER = O * 64 + L


def stored(index, extents=(960, 64), lows=(0, 0)):
    """The index of the store in two loops, after the pass, as text; it is that of the load, too."""
    body = Store(B, (index,), Load(A, (index,)))
    for var, low, extent in zip((L, O), reversed(lows), reversed(extents), strict=True):
        body = For(var, as_index(low), as_index(extent), "serial", body)
    func = affine_indices(PrimFunc("f", (A, B), body, (B,)))
    (store,) = (node for node in walk(func.body) if isinstance(node, Store))
    assert store.value.indices == store.indices
    return str(store.indices[0])


@pytest.mark.parametrize(
    ("index", "wanted"),
    [
        (NUMBER // 480 * 480 + (O + (O * 16 + L) // 48) % 10 * 48 + (O * 16 + L) % 48, "o * 64 + l"),
        ((O % 42 * 64 + L) // 7 % 128 * 7 + NUMBER % 7 + NUMBER // 896 * 896, "o * 64 + l"),
        (NUMBER // 4 * 8 + NUMBER % 4 * 2 + 5, "o * 128 + l * 2 + 5"),
        (L // 64 + O, "o"),
        (as_index(3) + (O * 64) // 32, "o * 2 + 3"),
    ],
)
def test_what_cancels_is_gone(index, wanted):
    assert stored(index) == wanted


def test_ranges_that_begin_elsewhere_are_told_apart():
    assert stored(O // 960 * 64 + L % 64, lows=(960, 64), extents=(960, 64)) == "l"


@pytest.mark.parametrize(
    "index", [NUMBER // 7, NUMBER % 63, NUMBER // 480 * 480 + NUMBER % 479, (NUMBER + 1) // 61440 + L], ids=str
)
def test_what_is_no_sum_stays(index):
    """The last one differs in one iteration only."""
    assert stored(index) == str(index)


def test_too_many_iterations_and_open_extents_stay():
    index = NUMBER // 480 * 480 + NUMBER % 480
    assert stored(index, extents=(MOST_ITERATIONS // 64 + 1, 64)) == str(index)
    n = index_var("n")
    func = PrimFunc("f", (B,), For(O, ZERO, n, "serial", Store(B, (O // 3 * 3 + O % 3,), const(1.0, FLOAT32))), (B,))
    assert affine_indices(func).body is func.body
    other = PrimFunc("f", (B,), For(O, ZERO, as_index(9), "serial", Store(B, (O + ONE,), const(1.0, FLOAT32))), (B,))
    assert affine_indices(other).body is other.body


@pytest.mark.parametrize("extents", [(3, 9), (9, 3), (3, None)])
def test_all_loops_of_a_variable_count(extents):
    """The index is that number up to 3, and 0 from there on."""
    n = index_var("n")
    store = Store(B, (O % 3,), const(1.0, FLOAT32))
    loops = [For(O, ZERO, n if extent is None else as_index(extent), "serial", store) for extent in extents]
    func = PrimFunc("f", (B,), seq(*loops), (B,))
    assert affine_indices(func).body is func.body


@pytest.mark.parametrize("shape", [(128, 10, 48), (33, 128, 7), (5, 3, 11)])
def test_a_function_of_another_shape_is_read_in_order(shape):
    """Tiles of several vectors, which the extents of axes do not divide."""
    x = te.placeholder(shape, name="x")
    columns = shape[1] * shape[2]
    y = te.compute((shape[0], columns), lambda i, j: te.sigmoid(x[i, j // shape[2], j % shape[2]]), name="y")
    schedule = lw.default_schedule([y], "x86-64-v3")
    func = lw.lower(schedule, [x, y], target="x86-64-v3")
    assert not any(divides(node.indices[0]) for node in walk(func.body) if isinstance(node, (Load, Store)))
    given = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    found = np.empty((shape[0], columns), np.float32)
    lw.build(schedule, [x, y], target="x86-64-v3")(given, found)
    np.testing.assert_allclose(found, 1 / (1 + np.exp(-given.reshape(shape[0], -1))), rtol=1e-5)

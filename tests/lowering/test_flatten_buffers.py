"""flatten_buffers: N-d accesses become 1-d ones of the same memory."""

import pytest

from loopwright.ir.build import index_var, make_buffer
from loopwright.ir.constants import const
from loopwright.ir.expr import Load
from loopwright.ir.stmt import Allocate, Store, seq
from loopwright.ir.visit import buffers_accessed
from loopwright.lowering.passes.flatten_buffers import flatten_buffers


def transpose(nest, n, m):
    A, B = make_buffer("A", (n, m), "float32"), make_buffer("B", (m, n), "float32")
    body = nest.loop("i", n, lambda i: nest.loop("j", m, lambda j: Store(B, (j, i), Load(A, (i, j)))))
    return nest.kernel((A, B), body)


@pytest.mark.parametrize("shape", [(3, 5), (1, 1), (7, 1), (0, 4)])
def test_row_major_indices(nest, shape):
    func = transpose(nest, *shape)
    flat = flatten_buffers(func)
    assert flat.params == func.params
    assert all(b.ndim == 1 for b in buffers_accessed(flat.body))
    nest.same(func, flat)


def test_index_text(nest):
    assert "B[j * 3 + i] = A[i * 5 + j]" in str(flatten_buffers(transpose(nest, 3, 5)))


@pytest.mark.parametrize(("n", "m"), [(3, 5), (1, 7), (0, 3), (2, 0)])
def test_symbolic_shapes(nest, n, m):
    func = transpose(nest, index_var("n"), index_var("m"))
    nest.same(func, flatten_buffers(func), n=n, m=m)


def test_strides_and_offset_move_into_the_index(nest):
    A = make_buffer("A", (4, 4), "float32")
    window = make_buffer("A", (3, 2), "float32", strides=(4, 2), elem_offset=1, data=A.data)
    B = make_buffer("B", (3, 2), "float32")
    body = nest.loop("i", 3, lambda i: nest.loop("j", 2, lambda j: Store(B, (i, j), Load(window, (i, j)))))
    func = nest.kernel((A, B), body)
    flat = flatten_buffers(func)
    nest.same(func, flat)
    (view,) = [b for b in buffers_accessed(flat.body) if b.data is A.data]
    assert view.strides is None
    assert view.alignment == 4


def test_scalar_buffers_get_one_element(nest):
    S, B = make_buffer("S", (), "float32", scope="local"), make_buffer("B", (2,), "float32")
    body = Allocate(S, seq(Store(S, (), const(3, "float32")), nest.loop("i", 2, lambda i: Store(B, (i,), Load(S, ())))))
    func = nest.kernel((B,), body)
    flat = flatten_buffers(func)
    assert isinstance(flat.body, Allocate)
    assert [int(e) for e in flat.body.buffer.shape] == [1]
    nest.same(func, flat)


def test_padded_allocation_keeps_its_size(nest):
    T, B = make_buffer("T", (3, 4), "float32", scope="local", strides=(8, 1)), make_buffer("B", (3, 4), "float32")

    def fill(i):
        return nest.loop("j", 4, lambda j: Store(T, (i, j), const(1, "float32")))

    def copy(i):
        return nest.loop("j", 4, lambda j: Store(B, (i, j), Load(T, (i, j))))

    func = nest.kernel((B,), Allocate(T, seq(nest.loop("i", 3, fill), nest.loop("i", 3, copy))))
    flat = flatten_buffers(func)
    assert isinstance(flat.body, Allocate)
    assert [int(e) for e in flat.body.buffer.shape] == [20]
    nest.same(func, flat)


def test_flat_functions_are_left_alone(nest):
    A, B = make_buffer("A", (6,), "float32"), make_buffer("B", (6,), "float32")
    func = nest.kernel((A, B), nest.loop("i", 6, lambda i: Store(B, (i,), Load(A, (i,)))))
    assert flatten_buffers(func) is func

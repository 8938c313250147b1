"""The builder: what is written with its blocks and subscripts is the statement one would build by hand."""

import pytest

from loopwright import te
from loopwright.base.errors import ExpressionError
from loopwright.ir.build import make_buffer
from loopwright.ir.stmt import Seq


def built(write):
    A, B = make_buffer("A", (8,), "float32"), make_buffer("B", (8, 2), "float32")
    ib = te.IRBuilder()
    write(ib, ib.buffer_ptr(A), ib.buffer_ptr(B))
    return str(ib.get())


def test_blocks_nest_as_they_are_written():
    def write(ib, A, B):
        with ib.for_range(0, 8, name="i", kind="parallel") as i:
            with ib.if_scope(A[i] > 0.0):
                B[i, 0] = A[i]
            with ib.else_scope():
                B[i, 0] = 0.0
            with ib.while_loop(B[i, 0] < 10.0):
                B[i, 0] = B[i, 0] * 2.0 + 1.0

    assert (
        built(write)
        == """\
for i in parallel(8):
    if A[i] > 0.0:
        B[i, 0] = A[i]
    else:
        B[i, 0] = 0.0
    while B[i, 0] < 10.0:
        B[i, 0] = B[i, 0] * 2.0 + 1.0"""
    )


def test_a_declaration_holds_for_the_rest_of_its_block():
    def write(ib, A, B):
        with ib.for_range(2, 5, name="i") as i:
            x = ib.let("x", A[i])
            T = ib.allocate("float32", (), "T")
            T[()] = x + x
            B[i, 1] = T[()]
        A[0] = 1.0

    assert (
        built(write)
        == """\
for i in range(2, 5):
    x = A[i]
    T: float32[] = allocate('local')
    T[()] = x + x
    B[i, 1] = T[()]
A[0] = 1.0"""
    )


def test_an_empty_block_is_an_empty_statement():
    ib = te.IRBuilder()
    assert isinstance(ib.get(), Seq)


@pytest.mark.parametrize(
    ("write", "message"),
    [
        (lambda ib, A, B: ib.else_scope().__enter__(), "follow directly on an if_scope"),
        (lambda ib, A, B: A[1, 2], "1 dimensions, but is accessed with 2 indices"),
        (lambda ib, A, B: A[0:4], "not by slices"),
        (lambda ib, A, B: list(A), "cannot be iterated over"),
        (lambda ib, A, B: A.__setitem__(0, te.const(1, "int8")), "store of a int8 into A"),
    ],
)
def test_misuse_is_refused(write, message):
    with pytest.raises(ExpressionError, match=message):
        built(write)


def test_a_second_else_is_refused():
    def write(ib, A, B):
        with ib.if_scope(A[0] > 0.0):
            A[1] = 1.0
        for _ in range(2):
            with ib.else_scope():
                A[1] = 2.0

    with pytest.raises(ExpressionError, match="follow directly"):
        built(write)


def test_get_comes_after_the_blocks():
    ib = te.IRBuilder()
    with ib.for_range(0, 2), pytest.raises(ExpressionError, match="after the `with` blocks"):
        ib.get()

"""Externs: outputs and their dtypes; what their statements may not do is refused when they are made."""

import pytest

from loopwright import te
from loopwright.base.errors import ExpressionError
from loopwright.ir.stmt import Seq


@pytest.fixture
def A():
    return te.placeholder((8,), "float32", name="A")


def nothing(ins, outs):
    return Seq(())


def writing(act):
    def fcompute(ins, outs):
        ib = te.IRBuilder()
        act(ib, *map(ib.buffer_ptr, (*ins, *outs)))
        return ib.get()

    return fcompute


def test_one_shape_gives_a_tensor_and_a_list_gives_several(A):
    assert repr(te.extern((3, 4), [A], nothing, name="B")) == "B: float32[3, 4]"
    several = te.extern([(3,), ()], [A], nothing, name="B", dtype=["int32", "bool"])
    assert repr(several) == "(B.v0: int32[3], B.v1: bool[])"
    assert several[0].op is several[1].op
    assert several[0].op.inputs == (A,)


def test_the_function_gets_buffers_like_the_tensors(A):
    seen = []

    def fcompute(ins, outs):
        seen.extend((ins, outs))
        return Seq(())

    n = te.var("n")
    te.extern((n,), [A, te.placeholder((n,), "int8", name="K")], fcompute, name="B", dtype="int64")
    assert repr(seen) == "[[Buffer(A: float32[8]), Buffer(K: int8[n])], [Buffer(B: int64[n])]]"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda A: te.extern((8,), [A, te.placeholder((), "int8")], nothing), "do not share a dtype"),
        (lambda A: te.extern((8,), [], nothing), "do not share a dtype"),
        (lambda A: te.extern((8,), A, nothing), "are a sequence of tensors"),
        (lambda A: te.extern([], [A], nothing), "has no outputs"),
        (lambda A: te.extern((8,), [A], nothing, dtype=["int8", "int8"]), "1 outputs, but 2 dtypes"),
        (lambda A: te.extern((-8,), [A], nothing), "no negative extents"),
        (lambda A: te.extern((8,), [A], nothing, name="a b"), "must be an identifier"),
        (lambda A: te.extern((8,), [A], lambda ins, outs: None), "returned None: return a statement"),
        (lambda A: te.extern((8,), [A], writing(lambda ib, A, B: A.__setitem__(0, 1.0))), "neither an output"),
        (
            lambda A: te.extern((8,), [A], writing(lambda ib, A, B: B.__setitem__(te.var("k"), 1.0))),
            "k is used, but not",
        ),
        (
            lambda A: te.extern((8,), [A], writing(lambda ib, A, B: B.__setitem__(0, A[0] + C(ib)[0]))),
            "neither a param",
        ),
        (lambda A: te.extern((8,), [A], writing(lambda ib, A, B: B.__setitem__(0, T[0]))), "belongs to tensor expr"),
    ],
)
def test_misuse_is_refused(A, make, message):
    with pytest.raises(ExpressionError, match=message) as caught:
        make(A)
    assert "bug in loopwright" not in str(caught.value)


def C(ib):
    """A buffer that is not the extern's."""
    return te.IRBuilder().allocate("float32", (8,), "C")


T = te.placeholder((8,), name="T")

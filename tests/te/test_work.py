"""What a definition is said to take, against counts by hand."""

import pytest

import loopwright as lw
from loopwright import te
from loopwright.ir.constants import const_int
from loopwright.te.work import operations


def count(*tensors):
    return const_int(operations(tensors))


def test_a_product_takes_two_operations_a_term():
    A, B = te.placeholder((5, 7), name="A"), te.placeholder((7, 3), name="B")
    r = te.reduce_axis((0, 7), name="r")
    assert count(te.compute((5, 3), lambda i, j: te.sum(A[i, r] * B[r, j], axis=r))) == 2 * 5 * 7 * 3


def test_stages_add_up_and_count_once_for_several_readers():
    A = te.placeholder((4, 6), name="A")
    E = te.compute((4, 6), lambda i, j: te.exp(A[i, j] - 1.0))
    left, right = te.compute((4, 6), lambda i, j: E[i, j] * E[i, j]), te.compute((4, 6), lambda i, j: E[i, j] + 2.0)
    assert count(left, right) == 4 * 6 * (2 + 1 + 1)


def test_indices_conditions_and_copies_take_none():
    A = te.placeholder((8,), name="A")
    padded = te.compute((12,), lambda i: te.if_then_else(i >= 4, A[i - 4], 0.0))
    assert count(padded) == 0


def test_a_part_that_stands_twice_is_computed_once():
    A = te.placeholder((8,), name="A")
    assert count(te.compute((8,), lambda i: (A[i] + 1.0) * (A[i] + 1.0))) == 8 * 2


def test_fused_multiplications_count_both_operations():
    A = te.placeholder((8,), name="A")
    assert count(te.compute((8,), lambda i: te.fma(A[i], A[i], A[i]))) == 16


def test_symbolic_extents_stay():
    n = te.var("n")
    A = te.placeholder((n, 3), name="A")
    work = operations([te.compute((n, 3), lambda i, j: A[i, j] * 2.0 + 1.0)])
    assert str(work) == "n * 6"


@pytest.mark.parametrize("kind", ["ragged", "scan"])
def test_where_the_definition_does_not_tell_it_says_nothing(kind):
    if kind == "ragged":
        start, x = te.placeholder((5,), "int32", "start"), te.placeholder((9,), name="x")
        r = te.reduce_axis((start[0], start[1]), name="r")
        made = te.compute((4,), lambda i: te.sum(x[r], axis=r))
    else:
        x = te.placeholder((6, 2), name="x")
        state = te.scan_state((6, 2), name="state")
        init = te.compute((1, 2), lambda _, j: x[0, j])
        update = te.compute((6, 2), lambda t, j: state[t - 1, j] + x[t, j])
        made = te.scan(init, update, state)
    assert count(made) == 0


def test_compiled_functions_carry_operations_and_traffic_in_terms_of_their_dimensions():
    x = lw.var("x", (te.var("N"), 8))
    library = lw.compile(lw.Function([x], lw.nn.relu(lw.nn.add(x, x))), target="x86-64-v3")
    (function,) = library.functions
    assert (str(function.operations), str(function.traffic)) == ("n0 * 16", "n0 * 64")

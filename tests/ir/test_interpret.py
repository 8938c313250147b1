"""How the interpreter runs statements, and what it refuses: bounds, memory never written, races, wrong arguments."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from loopwright.base.dtype import FLOAT32
from loopwright.base.errors import ExpressionError, InterpretError, RuntimeArgumentError
from loopwright.ir.build import index_var, make_buffer
from loopwright.ir.constants import ZERO, const
from loopwright.ir.expr import Broadcast, Expr, Load, Ramp, Select, TensorBase, TensorRead, Var
from loopwright.ir.interpret import interpret
from loopwright.ir.stmt import (
    Allocate,
    Assert,
    Evaluate,
    For,
    If,
    IRModule,
    Launch,
    LetStmt,
    PrefetchStmt,
    PrimFunc,
    Stmt,
    Store,
    While,
    seq,
)

ONE = const(1, "index")
RACY = ["parallel", "vectorized"]


def loop(var: Var, extent, body: Stmt, kind="serial", low: Expr = ZERO) -> For:
    return For(var, low, const(extent, "index") if isinstance(extent, int) else extent, kind, body)


def run(body: Stmt, buffers, *arrays, outputs=()) -> None:
    interpret(PrimFunc("f", tuple(buffers), body, tuple(outputs)))(*arrays)


@pytest.mark.parametrize("kind", ["float16", "bfloat16", "float32", "float64", "int8", "uint64"])
def test_matmul_agrees_with_numpy(kind):
    numpy_type = ml_dtypes.bfloat16 if kind == "bfloat16" else np.dtype(kind)
    rng = np.random.default_rng(1)
    a, b = (rng.integers(0, 4, shape).astype(numpy_type) for shape in ((3, 5), (5, 4)))
    n, m, k = (index_var(name) for name in "nmk")
    A, B, C = make_buffer("A", (n, k), kind), make_buffer("B", (k, m), kind), make_buffer("C", (n, m), kind)
    i, j, r = (index_var(name) for name in "ijr")
    update = Store(C, (i, j), Load(C, (i, j)) + Load(A, (i, r)) * Load(B, (r, j)))
    body = loop(i, n, loop(j, m, seq(Store(C, (i, j), const(0, kind)), loop(r, k, update))), "parallel")
    c = np.empty((3, 4), numpy_type)
    run(body, (A, B, C), a, b, c, outputs=(C,))
    np.testing.assert_array_equal(c.astype(np.float64), a.astype(np.float64) @ b.astype(np.float64))


def test_loops_start_at_their_minimum_and_may_be_empty():
    out, i = make_buffer("out", (6,), "int32"), index_var("i")
    result = np.zeros(6, "int32")
    run(loop(i, 3, Store(out, (i,), const(1, "int32")), low=const(2, "index")), [out], result)
    assert result.tolist() == [0, 0, 1, 1, 1, 0]
    for extent in (0, -5):
        run(loop(index_var("i"), extent, Store(out, (const(99, "index"),), const(1, "int32"))), [out], result)


def test_while_if_let_and_views():
    """Collatz steps of each number: a While around an If, on a one-dimensional view of a local matrix."""
    i, x, n = index_var("i"), Var("x", const(0, "int32").dtype), index_var("n")
    numbers, steps = make_buffer("numbers", (n,), "int32"), make_buffer("steps", (n,), "int32")
    state = make_buffer("state", (1, 1), "int32", "local")
    flat = make_buffer("flat", (1,), "int32", "local", data=state.data)
    current = Load(state, (ZERO, ZERO))
    step = If(
        Select(x % 2 == 0, const(True, "bool"), const(False, "bool")),
        Store(flat, (ZERO,), x // 2),
        Store(flat, (ZERO,), x * 3 + 1),
    )
    body = seq(
        Store(state, (ZERO, ZERO), Load(numbers, (i,))),
        Store(steps, (i,), const(0, "int32")),
        While(current > 1, LetStmt(x, Load(flat, (ZERO,)), seq(step, Store(steps, (i,), Load(steps, (i,)) + 1)))),
    )
    counts = np.full(4, -1, "int32")
    run(loop(i, n, Allocate(state, body), "parallel"), (numbers, steps), np.array([1, 2, 7, 27], "int32"), counts)
    assert counts.tolist() == [0, 1, 16, 111]


def test_the_memory_behind_a_parameter_may_be_seen_flat():
    A = make_buffer("A", (3, 4), "int32")
    flat, column = (
        make_buffer("flat", (12,), "int32", data=A.data),
        make_buffer("column", (3,), "int32", strides=(4,), elem_offset=2, data=A.data),
    )
    i, j = index_var("i"), index_var("j")
    a = np.zeros((3, 4), "int32")
    run(
        seq(loop(i, 12, Store(flat, (i,), const(1, "int32"))), loop(j, 3, Store(column, (j,), const(7, "int32")))),
        [A],
        a,
    )
    assert a.tolist() == [[1, 1, 7, 1]] * 3


def test_vector_access_with_masks_touches_only_active_lanes():
    A, B = make_buffer("A", (5,), "float32"), make_buffer("B", (5,), "float32")
    index = Ramp(const(2, "index"), ONE, 4)
    mask = index < Broadcast(const(5, "index"), 4)
    a, b = np.arange(5, dtype="float32"), np.full(5, -1, "float32")
    run(Store(B, (index,), Load(A, (index,), mask) * 10.0, mask), (A, B), a, b)
    assert b.tolist() == [-1, -1, 20, 30, 40]
    wide = make_buffer("W", (8,), "float32")
    w = np.full(8, -1, "float32")
    run(Store(wide, (index,), Load(A, (index,), mask)), (A, wide), a, w)
    assert w.tolist() == [-1, -1, 2, 3, 4, 0, -1, -1]


def test_a_gather_reads_one_element_a_lane():
    table, where, out = make_buffer("T", (4,), "int8"), make_buffer("I", (4,), "index"), make_buffer("O", (4,), "int8")
    lanes = Ramp(ZERO, ONE, 4)
    result = np.zeros(4, "int8")
    run(
        Store(out, (lanes,), Load(table, (Load(where, (lanes,)),))),
        (table, where, out),
        np.array([1, 2, 3, 4], "int8"),
        np.array([3, 3, 0, 1]),
        result,
    )
    assert result.tolist() == [4, 4, 1, 2]


def test_buffers_of_vectors():
    tile = make_buffer("tile", (2,), "float32x4", "register")
    A = make_buffer("A", (8,), "float32")
    i = index_var("i")
    load = Store(tile, (i,), Load(A, (Ramp(i * 4, ONE, 4),)))
    back = Store(A, (Ramp(ZERO, ONE, 4),), Load(tile, (ZERO,)) + Load(tile, (ONE,)))
    a = np.arange(8, dtype="float32")
    run(Allocate(tile, seq(loop(i, 2, load, "unrolled"), back)), [A], a)
    assert a.tolist() == [4, 6, 8, 10, 4, 5, 6, 7]


def test_strided_arguments_are_written_in_place():
    row, n = index_var("row"), index_var("n")
    A, i = make_buffer("A", (n, 2), "int32", strides=(row, 1)), index_var("i")
    memory = np.zeros((3, 5), "int32")
    run(loop(i, n, Store(A, (i, ONE), const(1, "int32"))), [A], memory[:, :2])
    assert memory.tolist() == [[0, 1, 0, 0, 0]] * 3


def launched(index, extent=5) -> IRModule:
    A = make_buffer("A", (8,), "int32")
    begin, end, k = index_var("begin"), index_var("end"), index_var("k")
    body = For(k, begin, end - begin, "serial", Store(A, (index(k),), const(1, "int32")))
    task = PrimFunc("task", (begin, end, A), body, (A,))
    return IRModule((PrimFunc("f", (A,), Launch("task", const(extent, "index"), (A,)), (A,)), task))


def test_a_launch_covers_its_extent():
    a = np.zeros(8, "int32")
    interpret(launched(lambda k: k))(a)
    assert a.tolist() == [1] * 5 + [0] * 3


def test_a_launch_passes_variables():
    A, B = make_buffer("A", (8,), "index"), make_buffer("B", (8,), "index")
    begin, end, shift, i = index_var("begin"), index_var("end"), index_var("shift"), index_var("i")
    task = PrimFunc("task", (begin, end, B, shift), Store(B, (shift,), begin + shift * 10), (B,))
    module = IRModule((PrimFunc("f", (A,), loop(i, 3, Launch("task", ONE, (A, i))), (A,)), task))
    a = np.zeros(8, "int64")
    interpret(module)(a)
    assert a.tolist() == [0, 10, 20, 0, 0, 0, 0, 0]


def refused(body: Stmt, buffers, *arrays) -> str:
    with pytest.raises(InterpretError) as caught:
        run(body, buffers, *arrays)
    return str(caught.value)


def test_an_access_out_of_bounds_names_buffer_indices_shape_and_loops():
    A = make_buffer("A", (4, 8), "float32")
    i, j = index_var("i"), index_var("j")
    message = refused(
        loop(i, 4, loop(j, 8, Store(A, (i, j + 1), const(0, "float32")))), [A], np.zeros((4, 8), "float32")
    )
    assert message == (
        "out of bounds: A[i, j + 1] writes A[0, 8], but dimension 1 of A has extent 8; its shape is (4, 8)\n"
        "  in `A[i, j + 1] = 0.0`\n  at i = 0, j = 7"
    )


def test_each_dimension_and_each_lane_is_checked():
    A = make_buffer("A", (4, 8), "float32")
    array = np.zeros((4, 8), "float32")
    zero = const(0, "float32")
    assert "dimension 0 of A" in refused(Store(A, (const(-1, "index"), ZERO), zero), [A], array)
    assert "dimension 1 of A" in refused(Evaluate(Load(A, (ZERO, const(9, "index")))), [A], array)
    lanes = Ramp(const(6, "index"), ONE, 4)
    assert "A[0, 8] in lane 2" in refused(Evaluate(Load(A, (ZERO, lanes))), [A], array)


def test_a_view_must_stay_inside_its_memory():
    A = make_buffer("A", (4,), "float32")
    wide = make_buffer("wide", (8,), "float32", data=A.data)
    message = refused(Evaluate(Load(wide, (const(5, "index"),))), [A], np.zeros(4, "float32"))
    assert "out of bounds: wide[5] is element 5 of its memory, which has 4; wide is a view with shape (8)" in message
    shifted = make_buffer("shifted", (4,), "float32", elem_offset=-1, data=A.data)
    assert "element -1" in refused(Evaluate(Load(shifted, (ZERO,))), [A], np.zeros(4, "float32"))


def test_memory_never_written_must_not_be_read():
    T, A, i = make_buffer("T", (4,), "float32", "local"), make_buffer("A", (4,), "float32"), index_var("i")
    fill = loop(i, 3, Store(T, (i,), const(0, "float32")))
    read = Store(A, (ZERO,), Load(T, (const(3, "index"),)))
    assert "read of memory never written: T[3]" in refused(Allocate(T, seq(fill, read)), [A], np.zeros(4, "float32"))
    masked = Load(T, (Ramp(ZERO, ONE, 4),), Ramp(ZERO, ONE, 4) < Broadcast(const(3, "index"), 4))
    run(Allocate(T, seq(fill, Evaluate(masked))), [A], np.zeros(4, "float32"))


def test_memory_is_fresh_each_time_it_is_allocated():
    T, i = make_buffer("T", (1,), "float32", "local"), index_var("i")
    body = Allocate(T, If(i == 0, Store(T, (ZERO,), const(0, "float32")), Evaluate(Load(T, (ZERO,)))))
    assert "never written" in refused(loop(i, 2, body), [])


@pytest.mark.parametrize("kind", RACY)
def test_two_iterations_must_not_write_one_element(kind):
    A, i = make_buffer("A", (8,), "int32"), index_var("i")
    message = refused(loop(i, 8, Store(A, (i // 2,), const(0, "int32")), kind), [A], np.zeros(8, "int32"))
    assert message.startswith(
        "race: iteration i = 6 writes A[3], which iteration i = 7 wrote\n  in `A[i // 2] = int32(0)`"
    )


@pytest.mark.parametrize("kind", RACY)
@pytest.mark.parametrize("shift", [-1, 1])
def test_no_iteration_may_read_what_another_writes(kind, shift):
    A, i = make_buffer("A", (8,), "int32"), index_var("i")
    body = For(i, ONE, const(4, "index"), kind, Store(A, (i,), Load(A, (i + shift,))))
    message = refused(body, [A], np.zeros(8, "int32"))
    expected = (
        "i = 3 writes A[3], which iteration i = 4 read"
        if shift < 0
        else "i = 3 reads A[4], which iteration i = 4 wrote"
    )
    assert expected in message


def test_a_read_by_several_iterations_is_no_race_until_one_of_them_writes():
    A, B, i = make_buffer("A", (8,), "int32"), make_buffer("B", (1,), "int32"), index_var("i")
    read = Store(A, (i,), Load(B, (ZERO,)))
    arrays = np.zeros(8, "int32"), np.zeros(1, "int32")
    run(loop(i, 8, read, "parallel"), (A, B), *arrays)
    late = If(i == 0, Store(B, (ZERO,), const(1, "int32")))
    assert "i = 0 writes B[0], which iteration i = 7 read" in refused(
        loop(i, 8, seq(read, late), "parallel"), (A, B), *arrays
    )


def test_races_are_per_run_of_the_loop_and_serial_loops_may_carry_values():
    A, i, j = make_buffer("A", (8,), "int32"), index_var("i"), index_var("j")
    a = np.zeros(8, "int32")
    run(loop(j, 3, loop(i, 8, Store(A, (i,), Load(A, (i,)) + 1), "parallel")), [A], a)
    assert a.tolist() == [3] * 8
    inner = loop(j, 3, Store(A, (i,), Load(A, (i,)) + 1))
    run(loop(i, 8, inner, "parallel"), [A], a)
    assert a.tolist() == [6] * 8


def test_a_race_between_outer_iterations_is_seen_through_inner_loops():
    A, i, j = make_buffer("A", (8,), "int32"), index_var("i"), index_var("j")
    body = loop(i, 2, loop(j, 8, Store(A, (j,), const(1, "int32")), "vectorized"), "parallel")
    assert "race: iteration i = 0 writes A[7], which iteration i = 1 wrote" in refused(body, [A], np.zeros(8, "int32"))


@pytest.mark.parametrize("kind", RACY)
def test_memory_allocated_inside_an_iteration_is_private(kind):
    A, T, i = make_buffer("A", (8,), "int32"), make_buffer("T", (1,), "int32", "local"), index_var("i")
    use = seq(Store(T, (ZERO,), const(2, "int32")), Store(A, (i,), Load(T, (ZERO,))))
    a = np.zeros(8, "int32")
    run(loop(i, 8, Allocate(T, use), kind), [A], a)
    assert a.tolist() == [2] * 8
    assert "race" in refused(Allocate(T, loop(i, 8, use, kind)), [A], a)


def test_lanes_of_a_store_must_not_meet():
    A = make_buffer("A", (8,), "int32")
    store = Store(A, (Ramp(ZERO, ZERO, 4),), Broadcast(const(1, "int32"), 4))
    assert "race: lanes 0 and 1 of one store write A[0]" in refused(store, [A], np.zeros(8, "int32"))


def test_chunks_of_a_launch_must_not_meet():
    with pytest.raises(
        InterpretError, match=r"race: chunk of task from 3 writes A\[1\], which chunk of task from 4 wrote"
    ):
        interpret(launched(lambda k: k // 3))(np.zeros(8, "int32"))


def test_parallel_loops_run_in_no_expected_order():
    """An argument counts as written, so only the order shows that iterations are not in sequence."""
    A, i = make_buffer("A", (4,), "index"), index_var("i")
    order: list[int] = []

    class Spy(np.ndarray):
        def __setitem__(self, key, value):
            order.append(key)
            super().__setitem__(key, value)

    run(loop(i, 4, Store(A, (i,), i), "parallel"), [A], np.zeros(4, "int64").view(Spy))
    assert order == [3, 2, 1, 0]


def test_an_assertion_that_fails_ends_the_run():
    i = index_var("i")
    assert refused(loop(i, 3, Assert(i < 2, "i is small")), []).startswith("assertion failed: i is small\n")


def test_an_index_must_not_be_divided_by_zero():
    i = index_var("i")
    for value in (const(8, "index") // i, const(8, "index") % i):
        assert "division of an index by 0" in refused(loop(i, 3, Evaluate(value)), [])


def test_programs_that_are_not_legal_say_so():
    A, T = make_buffer("A", (4,), "int32"), make_buffer("T", (4,), "int32")
    assert "T is used, but neither a parameter nor allocated" in refused(Evaluate(Load(T, (ZERO,))), [A])
    assert "`x` is used, but not bound here" in refused(Evaluate(Load(A, (index_var("x"),))), [A])
    view = make_buffer("V", (4,), "int8", data=A.data)
    assert "V views memory of int32 as int8" in refused(Evaluate(Load(view, (ZERO,))), [A])
    assert "launch of g, which is no function" in refused(Launch("g", ONE, ()), [])

    class Tensor(TensorBase):
        name, dtype, shape = "X", FLOAT32, (ONE,)

    assert "belongs to tensor expressions" in refused(Evaluate(TensorRead(Tensor(), (ZERO,))), [])


def test_allocations_have_no_negative_extents():
    n = index_var("n")
    body = LetStmt(n, const(-2, "index"), Allocate(make_buffer("T", (n,), "int8", "local"), Evaluate(n)))
    assert "T is allocated with the negative shape [-2]" in refused(body, [])


def square(n: Var):
    A, B, i = make_buffer("A", (n, n), "float32"), make_buffer("B", (n * 2,), "float32"), index_var("i")
    return PrimFunc("sq", (A, B), loop(i, n, Store(B, (i,), Load(A, (i, i)))), (B,))


def readonly(array):
    array.setflags(write=False)
    return array


OVERLAPPING = np.zeros(8, "float32")

WRONG = {
    "count": ((np.zeros((2, 2), "float32"),), "sq takes 2 arrays (A, B), not 1"),
    "kind": (([[1.0]], np.zeros(4, "float32")), "sq, argument A: expected a numpy array, found a list"),
    "dtype": ((np.zeros((2, 2)), np.zeros(4, "float32")), "argument A: expected dtype float32, found float64"),
    "rank": ((np.zeros(4, "float32"), np.zeros(4, "float32")), "argument A: expected 2 dimensions, found shape (4,)"),
    "shape": ((np.zeros((2, 3), "float32"), np.zeros(4, "float32")), "extent 1 should be n = 2 (n = 2), found 3"),
    "derived shape": (
        (np.zeros((2, 2), "float32"), np.zeros(5, "float32")),
        "argument B: extent 0 should be n * 2 = 4 (n = 2), found 5",
    ),
    "strides": (
        (np.zeros((4, 4), "float32")[::2, ::2], np.zeros(4, "float32")),
        "argument A: expected a C-contiguous array, found strides (8, 2)",
    ),
    "read-only": (
        (np.zeros((2, 2), "float32"), readonly(np.zeros(4, "float32"))),
        "argument B: the array is read-only",
    ),
    "overlap": (
        (OVERLAPPING[:4].reshape(2, 2), OVERLAPPING[2:6]),
        "argument B: the array overlaps the one of A, but the function writes it",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_arguments_are_refused(case):
    arrays, message = WRONG[case]
    with pytest.raises(RuntimeArgumentError) as caught:
        interpret(square(index_var("n")))(*arrays)
    assert message in str(caught.value)


def test_a_dimension_that_no_argument_determines_is_refused():
    n = index_var("n")
    A = make_buffer("A", (n + 1,), "float32")
    with pytest.raises(RuntimeArgumentError, match=r"no array determines n, of which n \+ 1 is made"):
        interpret(PrimFunc("f", (A,), Evaluate(n)))(np.zeros(3, "float32"))


def test_strides_that_go_backwards_are_refused():
    A = make_buffer("A", (2, 3), "float32", strides=(-3, 1))
    backwards = np.zeros((2, 3), "float32")[::-1]
    with pytest.raises(RuntimeArgumentError, match=r"argument A: negative strides: \[-3, 1\]"):
        interpret(PrimFunc("f", (A,), Store(A, (ZERO, ZERO), const(0, "float32"))))(backwards)


def test_a_line_of_cache_is_that_of_one_element():
    A = make_buffer("A", (8,), "float32")
    with pytest.raises(ExpressionError, match="prefetch of A with vector indices"):
        PrefetchStmt(A, (Ramp(ZERO, const(1, "index"), 4),))


def test_one_compiled_program_serves_many_calls():
    n = index_var("n")
    function = interpret(square(n))
    for size in (1, 3, 2):
        a, b = np.random.default_rng(size).random((size, size), "float32"), np.zeros(size * 2, "float32")
        function(a, b)
        np.testing.assert_array_equal(b[:size], np.diag(a))

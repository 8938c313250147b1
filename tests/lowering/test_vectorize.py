"""vectorize: iterations become lanes; masks, private memory and what must be refused."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopwright.base.errors import ScheduleError
from loopwright.ir.build import index_var, make_buffer
from loopwright.ir.constants import const
from loopwright.ir.expr import Binary, Broadcast, IfThenElse, Let, Load, Ramp, Select, Var
from loopwright.ir.intrinsics import call
from loopwright.ir.makers import cast
from loopwright.ir.stmt import Allocate, Assert, For, If, LetStmt, Store, While, seq
from loopwright.lowering.passes.vectorize import vectorize


def buffers(*specs):
    return [make_buffer(name, shape, kind) for name, shape, kind in specs]


def check(nest, func, **sizes):
    done = vectorize(func)
    assert nest.count(done, For, kind="vectorized") == 0
    nest.same(func, done, **sizes)
    return str(done)


def test_elementwise_text(nest):
    A, x, B = buffers(("A", (8,), "float32"), ("x", (1,), "float32"), ("B", (8,), "float32"))
    body = nest.loop("v", 8, lambda v: Store(B, (v,), Load(A, (v,)) * Load(x, (0 + const(0, "index"),))), "vectorized")
    text = check(nest, nest.kernel((A, x, B), body))
    assert "B[ramp(0, 1, 8)] = A[ramp(0, 1, 8)] * broadcast(x[0" in text


@pytest.mark.parametrize("n", [0, 1, 3, 8, 17])
def test_tail_guard_becomes_a_mask(nest, n):
    N = index_var("n")
    A, B = buffers(("A", (N,), "float32"), ("B", (N,), "float32"))

    def tile(o):
        return nest.loop(
            "v", 8, lambda v: If(o * 8 + v < N, Store(B, (o * 8 + v,), Load(A, (o * 8 + v,)) + 1.0)), "vectorized"
        )

    text = check(nest, nest.kernel((A, B), nest.loop("o", (N + 7) // 8, tile)), n=n)
    assert "where" in text
    assert "if" not in text


def test_shared_loads_under_a_mask_need_an_active_lane(nest):
    """``x[0]`` does not exist when n is 0: no lane is active, so it must not be read."""
    N = index_var("n")
    x, B = buffers(("x", (N,), "float32"), ("B", (4,), "float32"))
    body = nest.loop("v", 4, lambda v: If(v < N, Store(B, (v,), Load(x, (const(0, "index"),)))), "vectorized")
    func = nest.kernel((x, B), body)
    assert "if 0 < n" in check(nest, func, n=0)
    check(nest, func, n=2)


def test_shared_loads_under_a_scattered_mask(nest):
    """Nobody can say cheaply whether a lane is active: the load itself is masked."""
    N = index_var("n")
    A, x, B = buffers(("A", (4,), "int32"), ("x", (N,), "float32"), ("B", (4,), "float32"))
    never = const(100, "int32")

    def item(v):
        return If(Load(A, (v,)) > never, Store(B, (v,), Load(x, (const(0, "index"),))))

    check(nest, nest.kernel((A, x, B), nest.loop("v", 4, item, "vectorized")), n=0)


def test_nested_conditions_and_else(nest):
    A, B = buffers(("A", (16,), "int32"), ("B", (16,), "int32"))

    def item(v):
        inner = If(Load(A, (v,)) > 3, Store(B, (v,), Load(A, (v,)) * 2), Store(B, (v,), const(-1, "int32")))
        return If(v % 3 < 2, inner, Store(B, (v,), Load(B, (v,)) - 5))

    check(nest, nest.kernel((A, B), nest.loop("v", 16, item, "vectorized")))


def test_a_condition_is_read_before_its_branches_write(nest):
    (B,) = buffers(("B", (8,), "int32"))
    flip = lambda v: If(Load(B, (v,)) > 0, Store(B, (v,), const(-7, "int32")), Store(B, (v,), const(7, "int32")))  # noqa: E731
    check(nest, nest.kernel((B,), nest.loop("v", 8, flip, "vectorized")))


def test_padding_is_not_read(nest):
    A, B = buffers(("A", (6,), "float32"), ("B", (8,), "float32"))

    def item(v):
        inside = (v >= 1) & (v < 7)
        return Store(B, (v,), IfThenElse(inside, Load(A, (v - 1,)), const(0, "float32")))

    text = check(nest, nest.kernel((A, B), nest.loop("v", 8, item, "vectorized")))
    assert "select(" in text
    assert "if_then_else" not in text


def test_rows_of_padding_load_nothing(nest):
    """A masked load none of whose lanes is on may take hundreds of cycles where it ends in no memory of the process."""
    A, B = buffers(("A", (3, 6), "float32"), ("B", (5, 8), "float32"))

    def item(row, v):
        inside = (row >= 1) & (v >= 1) & (row < 4) & (v < 7)
        return Store(B, (row, v), IfThenElse(inside, Load(A, (row - 1, v - 1)), const(0, "float32")))

    vector = lambda row: nest.loop("v", 8, lambda v: item(row, v), "vectorized")  # noqa: E731
    text = check(nest, nest.kernel((A, B), nest.loop("row", 5, vector)))
    assert "if_then_else(row >= 1 and row < 4, select(" in text


def test_index_division_by_zero_in_lanes_that_are_off(nest):
    A, B = buffers(("A", (8,), "int32"), ("B", (8,), "int32"))

    def item(v):
        safe = IfThenElse(v > 3, cast("int32", const(20, "index") // (v - 3)), const(0, "int32"))
        return Store(B, (v,), safe + Load(A, (v,)))

    check(nest, nest.kernel((A, B), nest.loop("v", 8, item, "vectorized")))


@pytest.mark.parametrize("n", [0, 3, 8])
def test_a_quotient_that_is_the_same_in_all_lanes_stays_one(nest, n):
    """Where n is 0, no lane is on."""
    N = index_var("n")
    x, B = buffers(("x", (N,), "float32"), ("B", (8,), "int32"))

    def item(v):
        return Store(B, (v,), IfThenElse(v < N, cast("int32", const(20, "index") // N), const(0, "int32")))

    text = check(nest, nest.kernel((x, B), nest.loop("v", 8, item, "vectorized")), n=n)
    assert "broadcast(int32(20 // select(n != 0, n, 1)), 8)" in text


@pytest.mark.parametrize("n", [0, 3, 8])
def test_only_divisors_become_1_in_lanes_that_are_off(nest, n):
    N = index_var("n")
    x, B = buffers(("x", (N,), "float32"), ("B", (8,), "int32"))

    def item(v):
        return Store(B, (v,), IfThenElse(v < N, cast("int32", Binary("min", v + 1, N - 1)), const(0, "int32")))

    text = check(nest, nest.kernel((x, B), nest.loop("v", 8, item, "vectorized")), n=n)
    assert "min(ramp(1, 1, 8), broadcast(n - 1, 8))" in text


def test_scalar_conditions_stay_branches(nest):
    A, B = buffers(("A", (3, 8), "float32"), ("B", (3, 8), "float32"))

    def row(i):
        def item(v):
            value = IfThenElse(i > 0, Load(A, (i - 1, v)), const(2, "float32"))
            return If(i < 2, Store(B, (i, v), value))

        return nest.loop("v", 8, item, "vectorized")

    text = check(nest, nest.kernel((A, B), nest.loop("i", 3, row)))
    assert "if i < 2:" in text
    assert "where" not in text


def test_inner_loops_and_private_accumulators(nest):
    A, B = buffers(("A", (5, 8), "float32"), ("B", (8,), "float32"))
    acc = make_buffer("acc", (1,), "float32", scope="local")
    zero = (const(0, "index"),)

    def item(v):
        update = nest.loop("k", 5, lambda k: Store(acc, zero, Load(acc, zero) + Load(A, (k, v))))
        return Allocate(acc, seq(Store(acc, zero, const(0, "float32")), update, Store(B, (v,), Load(acc, zero))))

    text = check(nest, nest.kernel((A, B), nest.loop("v", 8, item, "vectorized")))
    assert "acc: float32x8[1]" in text
    assert "for k in range(5)" in text


@pytest.mark.parametrize("n", [0, 5, 8])
def test_private_accumulators_under_one_guard_need_no_mask(nest, n):
    N = index_var("n")
    A, B = buffers(("A", (5, N), "float32"), ("B", (N,), "float32"))
    acc = make_buffer("acc", (1,), "float32", scope="local")
    zero = (const(0, "index"),)

    def item(v):
        update = nest.loop("k", 5, lambda k: If(v < N, Store(acc, zero, Load(acc, zero) + Load(A, (k, v)))))
        first = If(v < N, Store(acc, zero, const(0, "float32")))
        return Allocate(acc, seq(first, update, If(v < N, Store(B, (v,), Load(acc, zero)))))

    text = check(nest, nest.kernel((A, B), nest.loop("v", 8, item, "vectorized")), n=n)
    assert "acc[0] = acc[0] +" in text


def test_private_memory_under_different_conditions(nest):
    A, B = buffers(("A", (8,), "int32"), ("B", (8,), "int32"))
    acc = make_buffer("acc", (2,), "int32", scope="local")
    zero = (const(0, "index"),)

    def item(v):
        change = If(Load(A, (v,)) > 0, Store(acc, zero, Load(acc, zero) + 1))
        return Allocate(acc, seq(Store(acc, zero, Load(A, (v,))), change, Store(B, (v,), Load(acc, zero))))

    check(nest, nest.kernel((A, B), nest.loop("v", 8, item, "vectorized")))


@pytest.mark.parametrize("shape", [(4,), (2, 2)])
def test_private_memory_with_varying_indices(nest, shape):
    B = make_buffer("B", (8,), "int32")
    table = make_buffer("table", shape, "int32", scope="local")
    at = (lambda i: (i,)) if len(shape) == 1 else (lambda i: (i // 2, i % 2))

    def item(v):
        fill = nest.loop("k", 4, lambda k: Store(table, at(k), cast("int32", k * v)))
        return Allocate(table, seq(fill, Store(B, (v,), Load(table, at(v % 4)))))

    check(nest, nest.kernel((B,), nest.loop("v", 8, item, "vectorized")))


def test_lets_of_vectors(nest):
    A, B = buffers(("A", (8,), "float32"), ("B", (8,), "float32"))
    t, u, w = Var("t", A.dtype), Var("u", A.dtype), Var("w", A.dtype)

    def item(v):
        inner = IfThenElse(v > 2, Let(u, t * 2.0, u + u), Let(w, t + 1.0, w * w))
        return LetStmt(t, Load(A, (v,)), Store(B, (v,), inner + Select(v < 5, t, const(0, "float32"))))

    check(nest, nest.kernel((A, B), nest.loop("v", 8, item, "vectorized")))


def test_casts_calls_and_wrapping_ramps(nest):
    (B,) = buffers(("B", (16,), "int8"))

    def item(v):
        value = cast("int8", call("sqrt", cast("float32", v)))
        return Store(B, (v,), value + cast("int8", v) * const(17, "int8"))

    check(nest, nest.kernel((B,), nest.loop("v", 16, item, "vectorized", low=0)))


def test_inner_loop_that_starts_at_the_lane(nest):
    A, B = buffers(("A", (12,), "int32"), ("B", (8,), "int32"))

    def item(v):
        return nest.loop("k", 3, lambda k: Store(B, (v,), Load(B, (v,)) + Load(A, (k,))), low=v)

    check(nest, nest.kernel((A, B), nest.loop("v", 8, item, "vectorized")))


@given(
    lanes=st.integers(2, 9),
    stride=st.integers(1, 3),
    offset=st.integers(0, 4),
    low=st.integers(0, 5),
    bound=st.integers(0, 30),
)
def test_random_affine_accesses(nest, lanes, stride, offset, low, bound):
    size = stride * (low + lanes) + offset
    A, B = buffers(("A", (size,), "int32"), ("B", (size,), "int32"))

    def item(v):
        at = (v * stride + offset,)
        return If(v * 2 + offset <= bound, Store(B, at, Load(A, at) * 3 - Load(B, at)))

    check(nest, nest.kernel((A, B), nest.loop("v", lanes, item, "vectorized", low=low)))


def test_a_condition_that_leaves_one_iteration(nest):
    """The simplifier writes ``C[4]`` for ``C[v + 4]`` under ``v < 1``, which is no reduction."""
    A, B = buffers(("A", (8,), "int32"), ("B", (8,), "int32"))
    at = (const(4, "index"),)
    acc = make_buffer("acc", (1,), "int32", scope="local")
    zero = (const(0, "index"),)

    def only(v):
        return If(v < 1, Store(B, at, Load(B, at) + Load(A, at)))

    def private(v):
        last = If(v > 2, Store(B, at, Load(acc, zero)))
        return Allocate(acc, seq(Store(acc, zero, Load(A, (v,))), last))

    def mixed(v):
        return seq(Store(A, (v,), Load(B, (v,))), If(v < 1, Store(B, at, Load(A, (v,))), Store(A, (v,), Load(B, (v,)))))

    assert "ramp" not in check(nest, nest.kernel((A, B), nest.loop("v", 4, only, "vectorized")))
    check(nest, nest.kernel((A, B), nest.loop("v", 4, private, "vectorized")))
    func = nest.kernel((A, B), nest.loop("v", 4, mixed, "vectorized"))
    check(nest, replace(func, outputs=(A, B)))


def refuse(nest, params, body, match):
    with pytest.raises(ScheduleError, match=match) as error:
        vectorize(nest.kernel(params, body))
    assert "# <-- here" in str(error.value)


def test_refuses_reductions(nest):
    A, B = buffers(("A", (8,), "float32"), ("B", (1,), "float32"))
    zero = (const(0, "index"),)
    add = nest.loop("v", 8, lambda v: Store(B, zero, Load(B, zero) + Load(A, (v,))), "vectorized")
    refuse(nest, (A, B), add, "rfactor")


def test_refuses_nested_vectorized_loops(nest):
    (B,) = buffers(("B", (4, 4), "float32"))
    store = lambda i: nest.loop("j", 4, lambda j: Store(B, (i, j), const(0, "float32")), "vectorized")  # noqa: E731
    refuse(nest, (B,), nest.loop("i", 4, store, "vectorized"), "inside it")


@pytest.mark.parametrize("extent", [index_var("n"), 1000])
def test_refuses_extents(nest, extent):
    B = make_buffer("B", (extent,), "float32")
    refuse(nest, (B,), nest.loop("v", extent, lambda v: Store(B, (v,), const(0, "float32")), "vectorized"), "split it")


def test_refuses_loops_that_differ_between_lanes(nest):
    (B,) = buffers(("B", (8,), "float32"))
    triangle = nest.loop(
        "v", 8, lambda v: nest.loop("k", v, lambda k: Store(B, (v,), const(0, "float32"))), "vectorized"
    )
    refuse(nest, (B,), triangle, "differs from lane to lane")
    wait = nest.loop("v", 8, lambda v: While(Load(B, (v,)) > 0.0, Store(B, (v,), const(0, "float32"))), "vectorized")
    refuse(nest, (B,), wait, "while")


def test_refuses_assertions(nest):
    (B,) = buffers(("B", (8,), "float32"))
    body = nest.loop("v", 8, lambda v: seq(Assert(v < 9, "no"), Store(B, (v,), const(0, "float32"))), "vectorized")
    refuse(nest, (B,), body, "no vector form")


def test_refuses_stores_of_vectors(nest):
    (B,) = buffers(("B", (8,), "float32"))
    stored = Broadcast(const(0, "float32"), 4)
    body = nest.loop("v", 2, lambda v: Store(B, (Ramp(v * 4, const(1, "index"), 4),), stored), "vectorized")
    refuse(nest, (B,), body, "it contains vectors already")


@pytest.mark.parametrize("n", [0, 3])
def test_what_is_there_in_any_case_is_read_once_under_any_mask(nest, n):
    """Lanes in the middle are on; a mask for each of them would make a gather of one element."""
    N = index_var("n")
    x, y, B = buffers(("x", (1, 2), "float32"), ("y", (N,), "float32"), ("B", (4,), "float32"))
    value = Load(x, (const(0, "index"), const(1, "index")))
    body = nest.loop("v", 4, lambda v: If((v >= 1) & (v < N), Store(B, (v,), value)), "vectorized")
    assert "broadcast(x[0, 1], 4)" in check(nest, nest.kernel((x, y, B), body), n=n)


def test_what_a_mask_has_read_is_read_once(nest):
    """A bin is added to where it is that of a pixel, which the comparison reads in any case."""
    x, B = buffers(("x", (4,), "int32"), ("B", (4, 8), "int32"))

    def row(i):
        pixel = Load(x, (i,))

        def element(v):
            found = IfThenElse(pixel % 8 == cast("int32", v), pixel, const(0, "int32"))
            return Store(B, (i, v), found)

        return nest.loop("v", 8, element, "vectorized")

    text = check(nest, nest.kernel((x, B), nest.loop("i", 4, row)))
    assert "where" not in text


@pytest.mark.parametrize("n", [0, 3])
def test_what_a_mask_reads_in_a_branch_needs_an_active_lane(nest, n):
    """Where ``n`` is 0 the comparison is with 0, and there is nothing to read."""
    N = index_var("n")
    x, B = buffers(("x", (N,), "int32"), ("B", (8,), "int32"))
    first = Load(x, (const(0, "index"),))
    compared = IfThenElse(N > 0, first, const(9, "int32"))
    body = nest.loop(
        "v",
        8,
        lambda v: Store(B, (v,), IfThenElse(compared == cast("int32", v), first, const(0, "int32"))),
        "vectorized",
    )
    check(nest, nest.kernel((x, B), body), n=n)

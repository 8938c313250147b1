"""unroll: one copy an iteration."""

import pytest

from loopwright.base.errors import ScheduleError
from loopwright.ir.build import index_var, make_buffer
from loopwright.ir.constants import const
from loopwright.ir.expr import Let, Load, Var
from loopwright.ir.stmt import Allocate, For, If, LetStmt, Store, seq
from loopwright.lowering.passes.unroll import unroll


@pytest.mark.parametrize("extent", [0, 1, 2, 5])
def test_copies_with_constant_indices(nest, extent):
    A, B = make_buffer("A", (extent,), "float32"), make_buffer("B", (extent,), "float32")
    func = nest.kernel((A, B), nest.loop("i", extent, lambda i: Store(B, (i,), Load(A, (i,)) + 1.0), "unrolled"))
    done = unroll(func)
    assert nest.count(done, For) == 0
    assert nest.count(done, Store) == extent
    nest.same(func, done)


def test_bound_variables_and_memory_are_fresh_in_each_copy(nest):
    A, B = make_buffer("A", (6,), "int32"), make_buffer("B", (6,), "int32")
    t, u = Var("t", A.dtype), Var("u", A.dtype)

    def item(i):
        temporary = make_buffer("temporary", (i + 1,), "int32", scope="local")
        fill = nest.loop("k", i + 1, lambda k: Store(temporary, (k,), t * 2))
        use = Store(B, (i,), Let(u, Load(temporary, (i,)), u + t))
        return LetStmt(t, Load(A, (i,)), Allocate(temporary, seq(fill, use)))

    func = nest.kernel((A, B), nest.loop("i", 3, item, "unrolled", low=2))
    nest.same(func, unroll(func))


def test_nested_unrolled_loops(nest):
    B = make_buffer("B", (3, 4), "float32")
    body = nest.loop(
        "i", 3, lambda i: nest.loop("j", 4, lambda j: Store(B, (i, j), const(2, "float32")), "unrolled"), "unrolled"
    )
    func = nest.kernel((B,), body)
    done = unroll(func)
    assert nest.count(done, Store) == 12
    nest.same(func, done)


def test_symbolic_starts(nest):
    n = index_var("n")
    B = make_buffer("B", (n,), "int32")
    body = nest.loop(
        "o", n // 2, lambda o: nest.loop("i", 2, lambda i: Store(B, (i,), const(7, "int32")), "unrolled", low=o * 2)
    )
    func = nest.kernel((B,), body)
    nest.same(func, unroll(func), n=7)


def test_other_loops_are_left_alone(nest):
    B = make_buffer("B", (4,), "float32")
    func = nest.kernel((B,), nest.loop("i", 4, lambda i: Store(B, (i,), const(2, "float32"))))
    assert unroll(func) is func


def test_refuses_symbolic_extents(nest):
    n = index_var("n")
    B = make_buffer("B", (n,), "float32")
    func = nest.kernel((B,), nest.loop("i", n, lambda i: Store(B, (i,), const(2, "float32")), "unrolled"))
    with pytest.raises(ScheduleError, match="extent is not constant"):
        unroll(func)


def test_refuses_too_many_statements(nest):
    B = make_buffer("B", (40, 40), "float32")
    body = nest.loop(
        "i", 40, lambda i: nest.loop("j", 40, lambda j: Store(B, (i, j), const(2, "float32")), "unrolled"), "unrolled"
    )
    func = nest.kernel((B,), body)
    with pytest.raises(ScheduleError, match="makes 1600 statements, more than the 100 allowed"):
        unroll(func, max_statements=100)


def test_of_choices_that_an_iteration_decides_only_what_is_chosen_is_made(nest):
    """Of a transposed convolution of stride 4, a phase has one tap in four on each axis."""
    B = make_buffer("B", (4, 4), "int32")

    def tap(i, j, r, q):
        return If((i + 3 - r) % 4 == 0, If((j + 1 - q) % 4 == 0, Store(B, (i, j), Load(B, (i, j)) + 1)))

    def unrolled(name, body):
        return nest.loop(name, 4, body, "unrolled")

    body = unrolled(
        "i", lambda i: unrolled("j", lambda j: unrolled("r", lambda r: unrolled("q", lambda q: tap(i, j, r, q))))
    )
    func = nest.kernel((B,), body)
    done = unroll(func, max_statements=16)
    assert (nest.count(done, For), nest.count(done, If), nest.count(done, Store)) == (0, 0, 16)
    nest.same(func, done)
    with pytest.raises(ScheduleError, match="makes 16 or more statements, more than the 15 allowed"):
        unroll(func, max_statements=15)


def test_of_a_choice_with_two_branches_one_is_made(nest):
    B = make_buffer("B", (6,), "int32")
    body = nest.loop(
        "i",
        6,
        lambda i: If(i % 3 == 1, Store(B, (i,), const(2, "int32")), Store(B, (i,), const(5, "int32"))),
        "unrolled",
    )
    func = nest.kernel((B,), body)
    done = unroll(func)
    assert (nest.count(done, If), nest.count(done, Store)) == (0, 6)
    nest.same(func, done)

"""loop_partition: hot loops lose their guards."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import loopwright as lw
from loopwright import te
from loopwright.base.dtype import INDEX, INT32
from loopwright.ir.build import index_var, make_buffer
from loopwright.ir.constants import const, const_int
from loopwright.ir.contents import substitute
from loopwright.ir.expr import IfThenElse, Load, Var
from loopwright.ir.simplify import simplify, simplify_func
from loopwright.ir.stmt import Allocate, For, If, LetStmt, PrefetchStmt, Store, seq
from loopwright.ir.visit import walk
from loopwright.lowering.passes.loop_partition import loop_partition
from loopwright.lowering.passes.vectorize import vectorize


def conditions(node):
    return sum(isinstance(n, (If, IfThenElse)) for n in walk(node))


def loops(func):
    """(name, extent text, conditions inside) of each loop, outermost first."""
    return [(n.var.name, str(n.extent), conditions(n.body)) for n in walk(func.body) if isinstance(n, For)]


def split_copy(nest, n, factor, kind="serial", inner="serial"):
    A, B = make_buffer("A", (n,), "int32"), make_buffer("B", (n,), "int32")

    def item(o, i):
        at = (o * factor + i,)
        return If(o * factor + i < n, Store(B, at, Load(A, at) + 1))

    def tile(o):
        return nest.loop("i", factor, lambda i: item(o, i), inner)

    return simplify_func(nest.kernel((A, B), nest.loop("o", (n + factor - 1) // factor, tile, kind)))


@pytest.mark.parametrize("n", [0, 1, 8, 20, 23])
def test_constant_split_tail(nest, n):
    func = split_copy(nest, n, 8)
    nest.same(func, loop_partition(func))


def test_main_part_has_no_guard(nest):
    done = loop_partition(split_copy(nest, 20, 8))
    assert loops(done)[0] == ("o", "2", 0)
    assert conditions(done.body) == 0, "the border of a loop of known size needs no guard either"


def test_symbolic_split_tail(nest):
    func = split_copy(nest, index_var("n"), 8)
    done = loop_partition(func)
    assert loops(done)[0] == ("o", "n // 8", 0)
    for n in (0, 1, 7, 8, 9, 24, 25):
        nest.same(func, done, n=n)


def test_a_vectorized_tile_is_masked_in_the_tail_only(nest):
    func = split_copy(nest, index_var("n"), 8, inner="vectorized")
    done = vectorize(loop_partition(func))
    main = next(n for n in walk(done.body) if isinstance(n, For))
    assert "where" not in str(main)
    assert "where" in str(done)
    for n in (0, 5, 8, 19):
        nest.same(func, done, n=n)


def test_a_parallel_loop_stays_one_loop(nest):
    func = split_copy(nest, index_var("n"), 8, kind="parallel")
    done = loop_partition(func)
    assert nest.count(done, For, kind="parallel") == 1
    choice = next(n for n in walk(done.body) if isinstance(n, For)).body
    assert isinstance(choice, If)
    assert conditions(choice.then) == 0
    for n in (0, 5, 8, 19):
        nest.same(func, done, n=n)


def test_a_task_whose_rows_end_early_has_one_body(nest):
    """Tasks of four rows of an open number: the last one's loop over them is shorter, what is in it stands once."""
    n = index_var("n")
    A, B = make_buffer("A", (n, 8), "int32"), make_buffer("B", (n, 8), "int32")

    def row(t, u):
        at = t * 4 + u
        return If(at < n, nest.loop("i", 8, lambda i: Store(B, (at, i), Load(A, (at, i)) + 1)))

    tasks = nest.loop("t", (n + 3) // 4, lambda t: nest.loop("u", 4, lambda u: row(t, u)), "parallel")
    func = simplify_func(nest.kernel((A, B), tasks))
    done = loop_partition(func)
    assert loops(done) == [("t", "(n + 3) // 4", 0), ("u", "min(n - t * 4, 4)", 0), ("i", "8", 0)]
    for size in (0, 1, 4, 5, 11):
        nest.same(func, done, n=size)


def test_only_what_a_test_decides_stands_twice_in_a_task(nest):
    """Tasks of four rows, copied, doubled and stored: only the copy and the store ask which rows there are."""
    n = index_var("n")
    A, B = make_buffer("A", (n, 8), "int32"), make_buffer("B", (n, 8), "int32")
    T, U = (make_buffer(name, (4, 8), "int32", scope="local") for name in "TU")

    def rows(do):
        return nest.loop("u", 4, lambda u: nest.loop("i", 8, lambda i: do(u, i)), "unrolled")

    def task(t):
        load = rows(lambda u, i: If(t * 4 + u < n, Store(T, (u, i), Load(A, (t * 4 + u, i)))))
        double = nest.loop("d", 4, lambda u: nest.loop("i", 8, lambda i: Store(U, (u, i), Load(T, (u, i)) * 2)))
        store = rows(lambda u, i: If(t * 4 + u < n, Store(B, (t * 4 + u, i), Load(U, (u, i)))))
        clear = nest.loop("c", 4, lambda u: nest.loop("i", 8, lambda i: Store(T, (u, i), const(0, INT32))))
        return Allocate(T, seq(clear, load, Allocate(U, seq(double, store))))

    func = simplify_func(nest.kernel((A, B), nest.loop("t", (n + 3) // 4, task, "parallel")))
    done = loop_partition(func)
    names = [name[0] for name, _, _ in loops(done)]
    assert names.count("d") == names.count("c") == 1
    assert names.count("u") == 4
    tests = [node.condition for node in walk(done.body) if isinstance(node, If) and node.orelse is not None]
    assert len(tests) == 2
    assert tests[0] is tests[1]
    for size in (0, 1, 4, 5, 11):
        nest.same(func, done, n=size)


def test_loops_of_the_last_task_lose_their_guards_too(nest):
    """Where each tests ``16t + 4o + i < 42``, of three tasks of 16, the last has two whole tiles of four."""
    A, B = make_buffer("A", (42,), "int32"), make_buffer("B", (42,), "int32")

    def item(t, o, i):
        at = (t * 16 + o * 4 + i,)
        return If(at[0] < 42, Store(B, at, Load(A, at) + 1))

    def chunk(t):
        return nest.loop("o", 4, lambda o: nest.loop("i", 4, lambda i: item(t, o, i)))

    func = simplify_func(nest.kernel((A, B), nest.loop("t", 3, chunk, "parallel")))
    done = loop_partition(func)
    assert [guards for name, _, guards in loops(done) if name.startswith("o")][:2] == [0, 0]
    nest.same(func, done)


def test_a_partial_panel_does_not_make_a_border_of_tasks_with_all_rows(nest):
    """Tasks of two rows and 16 of 26 columns: every second one has a tile of four columns that is partial, and one that
    is empty. Where both its rows are there, its whole tiles test nothing."""
    n = index_var("n")
    A, B = make_buffer("A", (n, 26), "int32"), make_buffer("B", (n, 26), "int32")

    def item(t, u, o, i):
        row, column = t // 2 * 2 + u, t % 2 * 16 + o * 4 + i
        return If(row < n, If(column < 26, Store(B, (row, column), Load(A, (row, column)) + 1)))

    def task(t):
        def tile(o):
            return nest.loop("u", 2, lambda u: nest.loop("i", 4, lambda i: item(t, u, o, i)), "unrolled")

        return nest.loop("o", 4, tile)

    func = simplify_func(nest.kernel((A, B), nest.loop("t", (n + 1) // 2 * 2, task, "parallel")))
    done = loop_partition(func)
    choice = next(node for node in walk(done.body) if isinstance(node, If))
    assert "%" not in str(choice.condition), "tasks are chosen by their rows alone"
    tiles, *_ = (node for node in walk(choice.then) if isinstance(node, For) and node.var.name.startswith("o"))
    assert conditions(tiles) == 0
    for rows in (0, 1, 2, 5, 8):
        nest.same(func, done, n=rows)


@pytest.mark.parametrize("kind", ["serial", "parallel"])
def test_a_loop_whose_whole_body_is_guarded_gets_shorter(nest, kind):
    n = index_var("n")
    B = make_buffer("B", (n,), "int32")

    def item(i):
        return If((i < n) & (i >= 2) & (n > 3), Store(B, (i,), const(1, "int32")))

    func = nest.kernel((B,), nest.loop("i", 8, item, kind))
    done = loop_partition(func)
    assert nest.count(done, For) == 1
    assert str(next(n for n in walk(done.body) if isinstance(n, For)).min) == "2"
    for size in (0, 2, 4, 9):
        nest.same(func, done, n=size)


def convolution(nest, h, w, kernel=3, pad=1, kind="serial"):
    """A depthwise convolution of one channel with zero padding."""
    A, W = make_buffer("A", (h, w), "int32"), make_buffer("W", (kernel, kernel), "int32")
    C = make_buffer("C", (h + 2 * pad - kernel + 1, w + 2 * pad - kernel + 1), "int32")

    def step(y, x, ky, kx):
        row, column = y + ky - pad, x + kx - pad
        inside = (row >= 0) & (row < h) & (column >= 0) & (column < w)
        value = IfThenElse(inside, Load(A, (row, column)), const(0, "int32"))
        return Store(C, (y, x), Load(C, (y, x)) + value * Load(W, (ky, kx)))

    def window(y, x):
        return nest.loop("ky", kernel, lambda ky: nest.loop("kx", kernel, lambda kx: step(y, x, ky, kx)))

    body = nest.loop("y", C.shape[0], lambda y: nest.loop("x", C.shape[1], lambda x: window(y, x)), kind)
    return simplify_func(nest.kernel((A, W, C), body))


@pytest.mark.parametrize("size", [(6, 7), (1, 1), (2, 5), (5, 2)])
@pytest.mark.parametrize(("kernel", "pad"), [(3, 1), (5, 2), (1, 0), (2, 2)])
def test_padded_convolution_means_the_same(nest, size, kernel, pad):
    func = convolution(nest, *size, kernel, pad)
    nest.same(func, loop_partition(func))


@pytest.mark.parametrize("kind", ["serial", "parallel"])
def test_the_interior_of_a_padded_convolution_has_no_guard(nest, kind):
    func = convolution(nest, 8, 9, kind=kind)
    done = loop_partition(func)
    assert ("x", "7", 0) in loops(done)
    nest.same(func, done)


def test_padded_convolution_of_symbolic_size(nest):
    func = convolution(nest, index_var("h"), index_var("w"))
    done = loop_partition(func)
    assert ("kx", "3", 0) in loops(done)
    for h, w in [(1, 1), (2, 3), (4, 5)]:
        nest.same(func, done, h=h, w=w)


def test_no_copies_no_partition(nest):
    func = convolution(nest, 8, 9)
    assert loop_partition(func, max_copies=0) is func


def test_conditions_on_data_are_left_alone(nest):
    A, B = make_buffer("A", (6,), "int32"), make_buffer("B", (6,), "int32")
    func = nest.kernel((A, B), nest.loop("i", 6, lambda i: If(Load(A, (i,)) > 0, Store(B, (i,), const(1, "int32")))))
    assert loop_partition(func) is func


@given(
    extent=st.integers(0, 7),
    inner=st.integers(0, 3),
    a=st.integers(-3, 3),
    b=st.integers(-3, 3),
    bound=st.integers(-8, 12),
    op=st.sampled_from(["<", "<=", ">", ">="]),
    low=st.integers(-2, 2),
    kind=st.sampled_from(["serial", "parallel"]),
    symbolic=st.booleans(),
)
def test_random_guards(nest, extent, inner, a, b, bound, op, low, kind, symbolic):
    from loopwright.ir.makers import compare

    n = index_var("n")
    A, B = make_buffer("A", (n,), "int32"), make_buffer("B", (8, 4), "int32")

    def item(i, j):
        holds = compare(op, a * i + b * j, n - bound if symbolic else const(bound, "index"))
        return If(holds, Store(B, (i - low, j), const(1, "int32")), Store(B, (i - low, j), const(2, "int32")))

    count = n if symbolic else extent
    body = nest.loop("i", count, lambda i: nest.loop("j", inner, lambda j: item(i, j)), kind, low=low)
    func = nest.kernel((A, B), body)
    nest.same(func, loop_partition(func), n=extent)


def test_inside_a_vector_no_range_depends_on_the_lane(nest):
    A, B = make_buffer("A", (12,), "int32"), make_buffer("B", (5,), "int32")

    def term(i, at):
        return If((at >= 2) & (at < 12), Store(B, (i,), Load(B, (i,)) + Load(A, (at - 2,))))

    def item(i):
        at = Var("at", INDEX)
        whole = nest.loop("w", 3, lambda w: term(i, i * 2 + w))
        bound = LetStmt(at, i * 2, nest.loop("v", 3, lambda v: term(i, at + v)))
        return seq(Store(B, (i,), const(0, "int32")), whole, bound)

    func = nest.kernel((A, B), nest.loop("i", 5, item, "vectorized"))
    nest.same(func, vectorize(loop_partition(func)))


def test_what_is_behind_a_choice_of_memory_is_no_border(nest):
    """A concatenation of three: each piece is copied by a loop of its own."""
    A, B, C = (make_buffer(name, (n,), "int32") for name, n in (("A", 5), ("B", 9), ("C", 7)))
    out = make_buffer("out", (21,), "int32")

    def item(i):
        last = IfThenElse(i < 14, Load(B, (i - 5,)), Load(C, (i - 14,)))
        return Store(out, (i,), IfThenElse(i < 5, Load(A, (i,)), last))

    func = simplify_func(nest.kernel((A, B, C, out), nest.loop("i", 21, item)))
    done = loop_partition(func)
    assert [(extent, guards) for _, extent, guards in loops(done)] == [("5", 0), ("9", 0), ("7", 0)]
    nest.same(func, done)


@pytest.mark.parametrize("n", [1, 4, 9, 16])
def test_cuts_that_decide_nothing_are_not_made_again_and_again(n):
    """Where a tile begins is a product of two open numbers here: no cut tells which side a choice takes."""
    size = te.var("n")
    B = te.placeholder((size,), name="B")
    C = te.compute((size,), lambda i: te.if_then_else(i < 1, B[size - 1], B[i - 1]) + B[i], name="C")
    s = lw.create_schedule(C)
    outer, _ = s[C].split(C.op.axis[0], 4)
    s[C].split(outer, nparts=2, tail="shift")
    function = lw.lower(s, [B, C], target="x86-64")
    assert len(str(function).splitlines()) < 60
    b, c = np.arange(n, dtype=np.float32), np.empty(n, np.float32)
    lw.interpret(function)(b, c)
    np.testing.assert_array_equal(c, np.roll(b, 1) + b)


def assert_tiles_end_with(nest, func, n):
    """The loops over tiles of 4, of which there is room for 8, end with the elements; all else is as it was."""
    done = loop_partition(func)
    for size in (1, 3, 4, 5, 30, 31, 32, 40):
        nest.same(func, done, n=size)
    tiles = [node for node in walk(done.body) if isinstance(node, For) and node.var.name.startswith("t")]
    ends = [simplify(substitute(loop.min + loop.extent, {n: const(9, INDEX)})) for loop in tiles]
    assert max(const_int(end) for end in ends) == 3


def sums_in_tiles(n):
    """Arrays of 3 rows of terms and of sums; the first value of a sum of a tile, and what adds a term to it."""
    A, B = make_buffer("A", (3, n), "int32"), make_buffer("B", (n,), "int32")

    def first(t, i):
        return If(t * 4 + i < n, Store(B, (t * 4 + i,), const(7, "int32")))

    def item(r, t, i):
        return If(t * 4 + i < n, Store(B, (t * 4 + i,), Load(B, (t * 4 + i,)) + Load(A, (r, t * 4 + i))))

    return A, B, first, item


@pytest.mark.parametrize("inner", ["serial", "vectorized"])
def test_iterations_that_do_nothing_are_left_out_whatever_stands_between(nest, inner):
    """A block of 32 elements, in tiles of 4, of an array of n: the tiles end where the array does."""
    n = index_var("n")
    A, B = make_buffer("A", (n,), "int32"), make_buffer("B", (n,), "int32")

    def item(t, k, i):
        return If(t * 4 + i < n, Store(B, (t * 4 + i,), Load(B, (t * 4 + i,)) * 2 + Load(A, (t * 4 + i,))))

    def tile(t):
        return nest.loop("k", 2, lambda k: nest.loop("i", 4, lambda i: item(t, k, i), inner))

    func = simplify_func(nest.kernel((A, B), nest.loop("t", 8, tile)))
    assert_tiles_end_with(nest, func, n)


@pytest.mark.parametrize("inner", ["serial", "vectorized"])
def test_iterations_are_left_out_in_which_no_part_of_the_body_does_anything(nest, inner):
    """A block of 32 sums, in tiles of 4: the first values and the terms behind them end where the array of n does."""
    n = index_var("n")
    A, B, first, item = sums_in_tiles(n)

    def tile(r, t):
        return seq(
            If(r < 1, nest.loop("i", 4, lambda i: first(t, i), inner)),
            nest.loop("i", 4, lambda i: item(r, t, i), inner),
        )

    func = simplify_func(nest.kernel((A, B), nest.loop("r", 3, lambda r: nest.loop("t", 8, lambda t: tile(r, t)))))
    assert_tiles_end_with(nest, func, n)


def test_iterations_are_left_out_in_which_loops_inside_only_fetch_ahead(nest):
    """Sums of a block of 32, in tiles of 4, each of which goes through its terms by itself."""
    n = index_var("n")
    A, B, first, item = sums_in_tiles(n)

    def terms(t):
        ahead = PrefetchStmt(A, (const(0, INDEX), const(0, INDEX)))
        return nest.loop("r", 3, lambda r: seq(ahead, nest.loop("i", 4, lambda i: item(r, t, i), "unrolled")))

    def tile(t):
        return seq(nest.loop("i", 4, lambda i: first(t, i), "unrolled"), terms(t))

    func = simplify_func(nest.kernel((A, B), nest.loop("t", 8, tile)))
    assert_tiles_end_with(nest, func, n)


def test_a_part_that_does_more_keeps_all_iterations(nest):
    n, m = index_var("n"), index_var("m")
    A, M, B = make_buffer("A", (n,), "int32"), make_buffer("M", (m,), "int32"), make_buffer("B", (2, 8), "int32")

    def both(i):
        return seq(
            If(i < n, Store(B, (const(0, INDEX), i), Load(A, (i,)))),
            If(i < m, Store(B, (const(1, INDEX), i), Load(M, (i,)))),
        )

    func = simplify_func(nest.kernel((A, M, B), nest.loop("i", 8, both)))
    done = loop_partition(func)
    for sizes in ((2, 5), (5, 2), (8, 9)):
        nest.same(func, done, n=sizes[0], m=sizes[1])


def test_a_border_does_not_ask_for_what_fails_there(nest):
    n, p, q = index_var("n"), index_var("p"), index_var("q")
    A, limits, B = (make_buffer(x, shape, "int32") for x, shape in (("A", (n,)), ("L", (p, q)), ("B", (n,))))

    def item(i):
        return Store(B, (i,), IfThenElse(i >= p, IfThenElse(i < q, Load(A, (i,)), const(3, INT32)), const(4, INT32)))

    func = simplify_func(nest.kernel((A, limits, B), nest.loop("i", n, item)))
    done = loop_partition(func)
    before, main, after = (n for n in walk(done.body) if isinstance(n, For))
    assert [str(before.body).count("p"), conditions(main.body), str(after.body).count("q")] == [0, 0, 0]
    for extents in ((0, 1, 2), (9, 2, 7), (9, 7, 2), (9, 12, 15), (9, 0, 4), (9, 0, 9)):
        nest.same(func, done, **dict(zip("npq", extents, strict=True)))

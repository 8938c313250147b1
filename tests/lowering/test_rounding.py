"""Loops that are rounded up: full tiles without conditions, and no result that depends on what lies beyond the end."""

import re

import numpy as np
import pytest

import loopwright as lw
from loopwright import te
from loopwright.ir.stmt import If
from loopwright.ir.verify import verify
from loopwright.ir.visit import walk


def product(n=10, m=20, k=7, dtype="float32"):
    """A product of matrices, summed in a stage of its own: schedule, arguments, that stage."""
    A, B = te.placeholder((n, k), dtype, name="A"), te.placeholder((k, m), dtype, name="B")
    r = te.reduce_axis((0, k), name="r")
    C = te.compute((n, m), lambda i, j: te.sum(A[i, r] * B[r, j], axis=r), name="C")
    s = lw.create_schedule(C)
    return s, [A, B, C], s.cache_write(C, "global")


def copies(s, args, total, pads=(0, 0)):
    return [s.cache_read(T, "global", [total], pad=pad) for T, pad in zip(args, pads, strict=False) if pad is not None]


def tiled(s, total, steps=4):
    """Full tiles of 4 by 16, vectorized and unrolled, the terms by fours."""
    i, j, r = s[total].loops
    i_outer, i_inner = s[total].split(i, 4, tail="round_up")
    j_outer, j_inner = s[total].split(j, 16, tail="round_up")
    r_outer, r_inner = s[total].split(r, steps, tail="round_up")
    s[total].reorder(i_outer, j_outer, r_outer, r_inner, i_inner, j_inner)
    s[total].vectorize(j_inner)
    s[total].unroll(i_inner)
    return i_outer, j_outer


def small(*shape, seed=0):
    """Small whole numbers: every order of adding gives the same."""
    return np.random.default_rng([seed, *shape]).integers(-8, 9, shape).astype(np.float32)


def results(s, args, inputs, shape):
    """What the interpreter and native code give."""
    function = lw.lower(s, args, target="x86-64-v3")
    verify(function)
    interpreted, native = np.full(shape, -7, np.float32), np.full(shape, -7, np.float32)
    lw.interpret(function)(*inputs, interpreted)
    lw.build(s, args, target="native")(*inputs, native)
    return interpreted, native


def check_product(s, args, n=10, m=20, k=7, a=None):
    a, b = small(n, k) if a is None else a, small(k, m, seed=1)
    for found in results(s, args, (a, b), (n, m)):
        np.testing.assert_array_equal(found, a @ b, err_msg=str(s))


def nest_of(s, total):
    """The lines of the nest that stores into a stage."""
    text = str(s)
    begin = text.index("\n", text.index(f"{total.op.name}: float32"))
    *_, last = re.finditer(rf"{re.escape(total.op.name)}\[.*\] = ", text)
    return text[begin : last.start()]


def test_the_stage_that_sums_a_ragged_product_has_no_condition_and_no_mask():
    s, args, total = product()
    copies(s, args, total)
    tiled(s, total)
    assert "if" not in nest_of(s, total).replace("if_then_else", "")
    function = lw.lower(s, args, target="x86-64-v4")
    assert not any(isinstance(node, If) for node in walk(function.body))
    lines = [line for line in str(function).splitlines() if f"{total.op.name}[" in line and " * " in line]
    assert lines
    assert not any(" where " in line for line in lines)
    check_product(s, args)


@pytest.mark.parametrize("n", [0, 1, 4, 9])
def test_open_extents_are_rounded_up_when_the_kernel_runs(n):
    s, args, total = product(n=te.var("n"))
    copies(s, args, total)
    tiled(s, total)
    assert "if" not in nest_of(s, total)
    check_product(s, args, n=n)


def test_what_lies_beyond_the_end_of_a_spatial_axis_reaches_no_result():
    s, args, total = product(k=8)
    copies(s, args, total, pads=(np.nan, float("inf")))
    tiled(s, total)
    assert "if" not in nest_of(s, total)
    check_product(s, args, k=8)


def test_terms_that_are_not_proved_to_change_nothing_are_tested_for():
    """0 times what the other factor holds there is not 0 if that is infinite."""
    s, args, total = product(n=12, m=16)
    copies(s, args, total, pads=(0, np.inf))
    tiled(s, total)
    assert "if r_outer * 4 + r_inner < 7" in str(s)
    check_product(s, args, n=12, m=16)


def test_one_factor_that_is_an_input_keeps_the_condition_and_is_not_read_beyond_its_end():
    s, args, total = product(n=12, m=16)
    copies(s, args, total, pads=(0, None))
    tiled(s, total)
    assert "if r_outer * 4 + r_inner < 7" in str(s)
    check_product(s, args, n=12, m=16)


def test_the_largest_of_plain_reads_needs_the_least_value():
    A = te.placeholder((10, 7), name="A")
    r = te.reduce_axis((0, 7), name="r")
    B = te.compute((10,), lambda i: te.max(A[i, r], axis=r), name="B")
    for pad, tested in ((float("-inf"), False), (-1e30, True)):
        s = lw.create_schedule(B)
        s.cache_read(A, "global", [B], pad=pad)
        s[B].split(s[B].loops[1], 4, tail="round_up")
        assert ("if r_outer" in str(s)) is tested
        a = -np.abs(small(10, 7)) - 1e30
        for found in results(s, [A, B], [a], (10,)):
            np.testing.assert_array_equal(found, a.max(axis=1))


def test_a_reducer_of_pairs_leaves_out_the_terms_beyond_the_end():
    A = te.placeholder((5, 7), name="A")
    r = te.reduce_axis((0, 7), name="r")
    moments = te.reducer("moments", lambda a, b: (a[0] + b[0], a[1] + b[1]), lambda t: [te.const(0, k) for k in t])
    S, Q = te.compute((5,), lambda i: moments((A[i, r], A[i, r] * A[i, r] + 1.0), axis=r), name="S")
    s = lw.create_schedule([S, Q])
    s.cache_read(A, "global", [S], pad=0)
    s[S].split(s[S].loops[1], 4, tail="round_up")
    assert "if r_outer" in str(s)
    a, sums, squares = small(5, 7), np.empty(5, np.float32), np.empty(5, np.float32)
    lw.interpret(lw.lower(s, [A, S, Q]))(a, sums, squares)
    np.testing.assert_array_equal(sums, a.sum(1))
    np.testing.assert_array_equal(squares, (a * a + 1).sum(1))


def test_a_reducer_of_ones_own_whose_terms_are_the_identity_needs_no_test():
    A = te.placeholder((7,), name="A")
    r = te.reduce_axis((0, 7), name="r")
    furthest = te.reducer("furthest", lambda a, b: (te.maximum(a[0], b[0]),), lambda t: [te.const(0, t[0])])
    B = te.compute((), lambda: furthest((A[r] * A[r],), axis=r)[0], name="B")
    s = lw.create_schedule(B)
    s.cache_read(A, "global", [B], pad=0)
    s[B].split(s[B].loops[0], 4, tail="round_up")
    assert "if r_outer" not in str(s)
    a = small(7)
    for found in results(s, [A, B], [a], ()):
        assert found == (a * a).max()


@pytest.mark.parametrize("place", ["root", "at"])
@pytest.mark.parametrize("layout", [None, "lambda i, j: (j // 16, i, j % 16)", "align"])
def test_memory_has_room_for_the_rounded_box(place, layout):
    s, args, total = product()
    a, b = copies(s, args, total)
    i_outer, j_outer = tiled(s, total)
    if layout == "align":
        s[b].storage_align(0, 16, 3)
    elif layout is not None:
        s[b].transform_layout(layout)
        s[total].transform_layout("lambda i, j: (j, i)")
    if place == "at":
        s[a].compute_at(s[total], i_outer)
        s[b].compute_at(s[total], j_outer)
    check_product(s, args)


def test_a_tile_computed_where_it_is_copied_has_no_condition():
    s, args, total = product()
    copies(s, args, total)
    i, j = s[args[2]].loops
    _, j_outer, _, _ = s[args[2]].tile(i, j, 4, 16)
    s[total].compute_at(s[args[2]], j_outer)
    tiled(s, total)
    assert "if" not in nest_of(s, total)
    check_product(s, args)


def test_what_follows_is_computed_after_a_rounded_tile():
    s, args, total = product()
    copies(s, args, total)
    _, j_outer = tiled(s, total)
    s[args[2]].reverse_compute_at(s[total], j_outer)
    check_product(s, args)


def test_parts_parallel_loops_and_fused_loops_are_rounded_up():
    s, args, total = product()
    copies(s, args, total)
    i, j, _ = s[total].loops
    i_outer, _ = s[total].split(i, nparts=3, tail="round_up")
    j_outer, _ = s[total].split(j, 8, tail="round_up")
    assert "C.global: float32[12, 24]" in str(s)
    s[total].parallel(i_outer)
    outer, _ = s[total].split(j_outer, 2, tail="round_up")
    s[total].unroll(outer)
    assert "C.global: float32[12, 32]" in str(s)
    check_product(s, args)


def test_a_fused_loop_is_rounded_up_by_the_outer_one():
    s, args, total = product()
    copies(s, args, total)
    i, j, _ = s[total].loops
    s[total].split(s[total].fuse(i, j), 16, tail="round_up")
    assert "C.global: float32[11, 20]" in str(s)
    check_product(s, args)


def test_rows_as_long_as_those_of_the_padded_source_are_one_contiguous_axis():
    """A convolution along rows of 9 with a window of 3: outputs in rows of 9, too, so that i and j fuse."""
    A, W = te.placeholder((5, 9), name="A"), te.placeholder((3,), name="W")
    r = te.reduce_axis((0, 3), name="r")
    B = te.compute((5, 7), lambda i, j: te.sum(A[i, j + r] * W[r], axis=r), name="B")
    s = lw.create_schedule(B)
    total = s.cache_write(B, "global")
    s.cache_read(A, "global", [total], pad=0)
    i, j, _ = s[total].loops
    j = s[total].round_up(j, to=9)
    s[total].vectorize(s[total].split(s[total].fuse(i, j), 8, tail="round_up")[1])
    assert "C.global" not in str(s)
    assert "B.global: float32[6, 9]" in str(s)
    assert "if i_j" not in str(s)
    a, w = small(5, 9), small(3, seed=1)
    expected = sum(a[:, k : k + 7] * w[k] for k in range(3))
    for found in results(s, [A, W, B], (a, w), (5, 7)):
        np.testing.assert_array_equal(found, expected)


def test_an_elementwise_stage_between_is_computed_as_far_as_it_is_read():
    s, args, total = product(k=8)
    (a, _) = copies(s, args, total)
    twice = te.compute((10, 20), lambda i, j: args[2][i, j] * 2.0, name="D")
    s = lw.create_schedule(twice)
    total = s.cache_write(args[2], "global")
    copies(s, args, total)
    rows = s.cache_write(twice, "global")
    tiled(s, total)
    s[rows].split(s[rows].loops[0], 8, tail="round_up")
    s[args[2]].compute_root()
    assert "C: float32[16, 20]" in str(s)
    assert "C.global: float32[16, 32]" in str(s)
    a, b = small(10, 8), small(8, 20, seed=1)
    for found in results(s, [*args[:2], twice], (a, b), (10, 20)):
        np.testing.assert_array_equal(found, 2 * (a @ b))


def test_an_inlined_copy_tests_each_read():
    s, args, total = product()
    a, b = copies(s, args, total)
    tiled(s, total)
    s[a].compute_inline()
    s[b].compute_inline()
    check_product(s, args)


def test_rfactor_keeps_the_test_of_the_terms():
    s, args, total = product()
    copies(s, args, total)
    _, r_inner = s[total].split(s[total].loops[2], 4, tail="round_up")
    s.rfactor(total, r_inner)
    check_product(s, args)


def test_a_width_that_divides_changes_nothing():
    s, args, total = product(n=8, m=16, k=8)
    tiled(s, total)
    assert not re.search(r"\bif\b", str(s))
    check_product(s, args, n=8, m=16, k=8)


def test_steps_are_kept_in_traces():
    s, args, total = product()
    copies(s, args, total, pads=(np.nan, float("-inf")))
    s[total].round_up(s[total].loops[0], to=32)
    s[total].round_up(s[total].loops[1], 8)
    twin = lw.create_schedule(args[2])
    twin.replay(lw.Trace.from_json(s.trace.to_json()))
    assert str(twin) == str(s)
    again = lw.create_schedule(args[2])
    exec(str(s.trace), {"s": again})
    assert str(again) == str(s)
    assert 'pad="-inf"' in str(s.trace)


@pytest.mark.parametrize("how", [{"factor": 4}, {"to": 16}])
@pytest.mark.parametrize(("n", "m"), [(3, 0), (0, 3), (3, 5)])
@pytest.mark.parametrize("symbolic", [False, True])
def test_what_is_empty_stays_empty(how, n, m, symbolic):
    shape = (te.var("n") if symbolic else n, m)
    A = te.placeholder(shape, name="A")
    B = te.compute(shape, lambda i, j: A[i, j] * 2.0, name="B")
    s = lw.create_schedule(B)
    total = s.cache_write(B, "global")
    s.cache_read(A, "global", [total], pad=0)
    s[total].round_up(s[total].fuse(*s[total].loops), **how)
    a, found = small(n, m), np.empty((n, m), np.float32)
    lw.interpret(lw.lower(s, [A, B]))(a, found)
    np.testing.assert_array_equal(found, a * 2)


def product_by_panels(n, m, k, width, chunk):
    """A product whose right factor is an input in panels, tile by tile in chunks that do not divide the panels."""
    tiles = -(-m // width)
    A, P = te.placeholder((n, k), "float32", name="A"), te.placeholder((tiles, k, width), "float32", name="P")
    r = te.reduce_axis((0, k), name="r")
    C = te.compute((n, m), lambda i, j: te.sum(A[i, r] * P[j // width, r, j % width], axis=r), name="C")
    s = lw.create_schedule(C)
    total = s.cache_write(C, "local")
    i, j = s[C].loops
    panel, column = s[C].split(j, factor=width)
    outer, panel = s[C].split(panel, factor=chunk)
    s[C].reorder(outer, panel, i, column)
    s[total].compute_at(s[C], panel)
    return s, [A, P, C], total


def test_a_guard_around_a_tile_says_how_far_an_input_is_read():
    n, m, k, width = 3, 19 * 4 - 2, 5, 4  # 19 panels in chunks of 2: none is read behind the last one
    s, args, total = product_by_panels(n, m, k, width, chunk=2)
    _, column, _ = s[total].loops
    s[total].round_up(column, factor=width)
    a, b = small(n, k), small(k, m, seed=1)
    panels = np.zeros((19 * width, k), np.float32)
    panels[:m] = b.T
    panels = np.ascontiguousarray(panels.reshape(19, width, k).swapaxes(1, 2))
    for found in results(s, args, (a, panels), (n, m)):
        np.testing.assert_array_equal(found, a @ b)


def test_without_a_guard_around_it_a_tile_reads_beyond_the_input():
    s, _, total = product_by_panels(3, 74, 5, 4, chunk=2)
    _, column, _ = s[total].loops
    with pytest.raises(lw.ScheduleError, match="up to index 19, of 19 elements of an input"):
        s[total].round_up(column, factor=8)


@pytest.mark.parametrize("open_extents", [(), (0,), (1,), (0, 1)], ids=str)
@pytest.mark.parametrize(("n", "m"), [(3, 7), (1, 16), (5, 4), (16, 1)])
def test_rows_that_a_copy_reads_as_one_are_rounded_up_where_its_test_holds(n, m, open_extents):
    rows, columns = (te.var(name) if d in open_extents else e for d, (name, e) in enumerate((("n", n), ("m", m))))
    A = te.placeholder((rows, columns), name="A")
    flat = te.compute((rows * columns,), lambda i: A[i // columns, i % columns], name="flat")
    B = te.compute((rows * columns,), lambda i: flat[i] * 2.0, name="B")
    s = lw.create_schedule(B)
    copy = s.cache_read(flat, "local", [B], pad=0)
    s[flat].compute_inline()
    outer, _ = s[B].split(s[B].loops[0], 8)
    s[copy].compute_at(s[B], outer)
    s[copy].vectorize(s[copy].round_up(s[copy].loops[0], factor=8))
    a = small(n, m)
    for found in results(s, [A, B], [a], n * m):
        np.testing.assert_array_equal(found, a.reshape(-1) * 2)


def test_rows_read_as_one_without_a_test_go_beyond_the_input():
    A = te.placeholder((3, 7), name="A")
    flat = te.compute((21,), lambda i: A[i // 7, i % 7], name="flat")
    B = te.compute((21,), lambda i: flat[i] * 2.0, name="B")
    s = lw.create_schedule(B)
    s[flat].compute_at(s[B], s[B].split(s[B].loops[0], 8)[0])
    with pytest.raises(lw.ScheduleError, match="along dimension 0: up to index 3, of 3 elements of an input"):
        s[flat].round_up(s[flat].loops[0], factor=8)


def test_the_state_of_a_scan_is_not_read_beyond_its_end():
    x = te.placeholder((4, 4), name="x")
    state = te.scan_state((4, 4), "float32", name="state")
    cell = te.compute((4, 4), lambda t, i: state[t - 1, i] + x[t, i], name="cell")
    update = te.compute((4, 4), lambda t, i: cell[t, i] * 2, name="update")
    first = te.compute((1, 4), lambda t, i: x[0, i], name="first")
    s = lw.create_schedule(te.scan(first, update, state, name="sums"))
    s.cache_read("x", "global", ["cell"], pad=0)
    (_, i) = s["cell"].loops
    with pytest.raises(lw.ScheduleError, match=r"cell would read state.* beyond the ends .* not computed by loops"):
        s["cell"].split(i, factor=8, tail="round_up")


@pytest.mark.parametrize("n", [0, 1, 5, 16, 35])
def test_memory_is_had_also_where_rows_that_are_read_as_one_are_empty(n):
    rows = te.var("rows")
    x = te.placeholder((1, rows), name="x")
    flat = te.compute((rows,), lambda i: x[i // rows, i % rows] * 2, name="flat")
    s = lw.create_schedule(flat)
    s.cache_write("flat", "global")
    s.cache_read("x", "global", ["flat.global"], pad=0)
    s["flat.global"].split("i", factor=16, tail="round_up")
    value = small(1, n)
    for found in results(s, [x, flat], [value], (n,)):
        np.testing.assert_array_equal(found, value[0] * 2)


def edged(inline):
    """Tiles of 4 rows of an open number, which read the last row again beyond their end."""
    n = te.var("n")
    s, args, total = product(n=n, m=16)
    copy = s.cache_read(args[0], "global", [total], pad="edge")
    if inline:
        s[copy].compute_inline()
    i, j, _ = s[total].loops
    _, i_inner = s[total].split(i, 4, tail="round_up")
    s[total].reorder(s[total].loops[0], s[total].loops[3], i_inner, j)
    s[total].vectorize(j)
    s[total].unroll(i_inner)
    return s, args


@pytest.mark.parametrize("inline", [False, True])
@pytest.mark.parametrize("n", [0, 1, 3, 4, 5, 10])
def test_the_nearest_element_stands_beyond_the_end(inline, n):
    s, args = edged(inline)
    check_product(s, args, n=n, m=16)


def test_reads_of_the_nearest_element_need_no_test_and_no_memory():
    s, _ = edged(inline=True)
    text = str(s)
    assert " if " not in text
    assert "A.global: " not in text
    assert "min(" in text


def test_a_copy_holds_the_nearest_element_of_each_axis():
    A = te.placeholder((3, 5), "float32", name="A")
    B = te.compute((3, 5), lambda i, j: A[i, j] * 2, name="B")
    C = te.compute((3, 5), lambda i, j: B[i, j] + 1, name="C")
    s = lw.create_schedule(C)
    s.cache_read(A, "global", [B], pad="edge")
    for axis, factor in enumerate((4, 8)):
        s[B].round_up(s[B].loops[axis], factor=factor)
    a = small(3, 5)
    for found in results(s, [A, C], (a,), (3, 5)):
        np.testing.assert_array_equal(found, a * 2 + 1)
    assert 'pad="edge"' in str(s.trace)
    replayed = lw.create_schedule(C)
    replayed.replay(s.trace)
    assert str(replayed) == str(s)


@pytest.mark.parametrize("n", [0, 1, 2, 5])
def test_rows_of_a_multiple_of_an_open_extent_are_read_again_at_their_end(n):
    """That there is a last row follows from there being a tile."""
    m = te.var("n")
    rows = m * 7
    A, B = te.placeholder((rows, 6), "float32", name="A"), te.placeholder((6, 16), "float32", name="B")
    D = te.placeholder((m,), "float32", name="D")
    r = te.reduce_axis((0, 6), name="r")
    total = te.compute((rows, 16), lambda i, j: te.sum(A[i, r] * B[r, j], axis=r), name="total")
    C = te.compute((rows, 16), lambda i, j: total[i, j] + D[i // 7], name="C")
    s = lw.create_schedule(C)
    s[s.cache_read(A, "local", [total], pad="edge")].compute_inline()
    block, _ = s[C].split(s[C].loops[0], factor=5)
    s[total].compute_at(s[C], block)
    s[total].round_up(s[total].loops[0], factor=5)
    a, b, d = small(n * 7, 6), small(6, 16, seed=1), small(n, seed=2)
    for found in results(s, [A, B, D, C], (a, b, d), (n * 7, 16)):
        np.testing.assert_array_equal(found, a @ b + np.repeat(d, 7)[:, None])


def test_a_step_that_leaves_an_unrolled_copy_an_open_number_of_rows_is_refused():
    n = te.var("n")
    A = te.placeholder((7, n), "float32", name="A")
    B = te.compute(
        (7, n + 2), lambda i, j: te.if_then_else(te.all(j >= 1, j <= n), A[i, j - 1], te.const(0, "float32")), name="B"
    )
    s = lw.create_schedule(B)
    total = s.cache_write(B, "global")
    copy = s.cache_read(A, "global", [total], pad=0)
    fused = s[total].fuse(*s[total].loops)
    s[copy].unroll(s[copy].loops[0])
    with pytest.raises(lw.ScheduleError, match=r"loop ax0 of A.global cannot be unrolled: its extent is"):
        s[total].split(fused, factor=16, tail="round_up")
    lw.lower(s, [A, B])


def test_a_fused_loop_over_some_rows_of_an_open_number_of_columns_needs_these_rows_alone():
    n = te.var("n")
    A = te.placeholder((7, n), "float32", name="A")
    B = te.compute((7, n), lambda i, j: A[i, j] * 2, name="B")
    s = lw.create_schedule(B)
    total = s.cache_write(B, "global")
    copy = s.cache_read(A, "global", [total], pad=0)
    i, j = s[total].loops
    _, inner = s[total].split(i, factor=2, tail="round_up")
    s[copy].unroll(s[copy].loops[0])
    s[total].fuse(inner, j)
    assert "for ax0 in unrolled(8)" in str(s)
    a = small(7, 5)
    np.testing.assert_array_equal(results(s, [A, B], (a,), (7, 5))[0], a * 2)


def test_a_copy_that_goes_on_with_the_edge_of_what_has_no_elements_reads_none():
    A = te.placeholder((3, 0), "int32", name="A")
    B = te.compute((3, 0), lambda i, j: A[i, j] + 1, name="B")
    s = lw.create_schedule(B)
    total = s.cache_write(B, "global")
    copy = s.cache_read(A, "global", [total], pad=0)
    i, j = s[total].loops
    s[total].split(i, factor=11, tail="round_up")
    s[total].round_up(j, factor=11)
    s.cache_read(A, "local", [copy], pad="edge", axes="lambda i, j: (i * 16 + j,)")
    empty = np.zeros((3, 0), np.int32)
    lw.interpret(lw.lower(s, [A, B]))(empty, empty.copy())  # which checks bounds


@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (3, 5), (4, 1), (8, 6), (13, 9)])
def test_rows_of_open_length_in_one_axis_are_computed_block_by_block(rows, columns):
    """A block needs what its rows are made of, however long they are, and no tile beyond the last row."""
    n, m = te.var("n"), te.var("m")
    pitch = m + 2
    A = te.placeholder((n, pitch), name="A")
    B = te.compute(((n - 1) * pitch + m,), lambda j: A[j // pitch, j % pitch] * 2.0, name="B")
    C = te.compute((n, m), lambda i, j: B[i * pitch + j] + 1.0, name="C")
    s = lw.create_schedule(C)
    s.cache_read(A, "global", [B], pad=0)
    block, _ = s["C"].split(s["C"].loops[0], factor=4)
    s["B"].compute_at(s["C"], block)
    _, lane = s["B"].split(s["B"].loops[0], factor=8, tail="round_up")
    s["B"].vectorize(lane)
    assert "B: float32[(m + 1) // 2 * 8 + 8]" in str(s)
    assert "if m * i_outer * 4 + i_outer * 8 + j_outer * 8 < (n - 1) * (m + 2) + m:" in str(s)
    a = small(rows, columns + 2)
    for found in results(s, [A, C], (a,), (rows, columns)):
        np.testing.assert_array_equal(found, a[:, :columns] * 2 + 1, err_msg=str(s))


@pytest.mark.parametrize("n", [3, 8, 13])
def test_a_reduction_whose_bounds_follow_a_rounded_axis_reads_no_further_than_there_is(n):
    A = te.placeholder((n,), name="A")

    def running(k):
        r = te.reduce_axis((0, k + 1), name="r")
        return te.sum(A[r], axis=r)

    S = te.compute((n,), running, name="S")

    def rounded(copied):
        s = lw.create_schedule(S)
        sums = s[s.cache_write(S, "local")]
        if copied:
            s.cache_read(A, "local", [sums], pad=0)
        sums.split(sums.loops[0], factor=4, tail="round_up")
        return s

    if n % 4 == 0:
        rounded(copied=False)
    else:
        with pytest.raises(lw.ScheduleError, match="beyond the ends of A"):
            rounded(copied=False)
    x = np.arange(1, n + 1, dtype=np.float32)
    s = rounded(copied=True)
    for run in (lw.interpret(lw.lower(s, [A, S])), lw.build(s, [A, S])):
        out = np.full(n, np.nan, np.float32)
        run(x, out)
        np.testing.assert_array_equal(out, np.cumsum(x))


@pytest.mark.parametrize("how", [{"factor": 4}, {"to": 4}])
@pytest.mark.parametrize("rows", [0, 1, 4, 7])
def test_the_rows_of_a_tile_of_an_open_number_have_no_condition_each(rows, how):
    """A loop that is rounded up to a whole tile is one: only what reads it tests its rows."""
    n = te.var("n")
    A = te.placeholder((n, 3), name="A")
    r = te.reduce_axis((0, 3), name="r")
    B = te.compute((n,), lambda i: te.sum(A[i, r], axis=r), name="B")
    C = te.compute((n,), lambda i: B[i] + 1.0, name="C")
    s = lw.create_schedule(C)
    s.cache_read(A, "global", [B], pad=0)
    tile, _ = s["C"].split(s["C"].loops[0], factor=4)
    s["B"].compute_at(s["C"], tile)
    row = s["B"].round_up(s["B"].loops[0], **how)
    s["B"].reorder(s["B"].loops[1], row)
    s["B"].unroll(row)
    sums = str(s).split("B: float32[4]")[1].split("for i_inner")[0]
    assert "if " not in sums, sums
    a = small(rows, 3)
    for found in results(s, [A, C], (a,), (rows,)):
        np.testing.assert_array_equal(found, a.sum(axis=1) + 1, err_msg=str(s))


def test_a_copy_for_tiles_that_are_rounded_up_ends_with_the_last_of_them():
    """It is placed around groups of four tiles, of which the last group has fewer."""
    n = te.var("n")
    s, args, total = product(n=n, m=16)
    (a,) = copies(s, args, total, pads=(0, None))
    i, _ = s[args[-1]].loops
    group, _ = s[args[-1]].split(i, 32)
    s[total].compute_at(s[args[-1]], group)
    s[a].compute_at(s[args[-1]], group)
    rows, j, r = s[total].loops
    rows, row = s[total].split(s[total].round_up(rows, factor=8), 8)
    s[total].reorder(rows, r, row, j)
    ends = re.findall(r"for ax0\w* in range\((.*)\):", str(lw.lower(s, args, target="x86-64-v3")))
    assert ends[0] == "32", "of whole groups"
    assert "n + 6" in ends[1], "a tile of 8 that begins before n ends before n + 7"
    for size in (0, 1, 7, 8, 9, 31, 33, 45, 64):
        check_product(s, args, n=size, m=16)

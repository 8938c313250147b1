"""Copies and sums over other axes: ``cache_read`` and ``cache_write`` with ``axes``, against numpy."""

from contextlib import suppress

import numpy as np
import pytest

import loopwright as lw
from loopwright import te
from loopwright.ir.contents import substitute
from loopwright.ir.row_major import ravel_index
from loopwright.ir.verify import verify


def small(*shape):
    """Small whole numbers: every order of adding gives the same."""
    return np.random.default_rng(shape).integers(-8, 9, shape).astype(np.float32)


def results(s, args, inputs, shape):
    """What the interpreter and native code give."""
    function = lw.lower(s, args, target="x86-64-v3")
    verify(function)
    interpreted, native = np.full(shape, -7, np.float32), np.full(shape, -7, np.float32)
    lw.interpret(function)(*inputs, interpreted)
    lw.build(s, args, target="native")(*inputs, native)
    return interpreted, native


def convolution(channels=3, height=7, width=9, filters=4, window=3, images=1):
    x = te.placeholder((images, channels, height, width), name="x")
    w = te.placeholder((filters, channels, window, window), name="w")
    c, r, q = (te.reduce_axis((0, e), name=name) for e, name in ((channels, "c"), (window, "r"), (window, "q")))
    shape = (images, filters, height - window + 1, width - window + 1)
    y = te.compute(shape, lambda n, k, i, j: te.sum(x[n, c, i + r, j + q] * w[k, c, r, q], axis=[c, r, q]), name="y")
    return lw.create_schedule(y), [x, w, y]


def convolved(x, w):
    window = w.shape[-1]
    height, width = (extent - window + 1 for extent in x.shape[2:])
    parts = (
        np.einsum("nchw,kc->nkhw", x[:, :, r : r + height, q : q + width], w[:, :, r, q])
        for r in range(window)
        for q in range(window)
    )
    return sum(parts)


@pytest.mark.parametrize("size", [(1, 1), (1, 7), (3, 5), (4, 4), (7, 2)])
@pytest.mark.parametrize("tile", [1, 4, 16])
def test_tiles_of_positions_run_on_from_row_to_row(size, tile):
    height, width = size
    s, args = convolution(3, height, width, 4, 1, images=2)
    x, _, y = args
    copy = s.cache_read(
        x,
        "local",
        y,
        pad="nan",
        axes=lambda n, c, *o: (n, ravel_index(o, size) // tile, c, ravel_index(o, size) % tile),
    )
    core = s.cache_write(
        y, "local", axes=lambda n, k, *o: (n, k, ravel_index(o, size) // tile, ravel_index(o, size) % tile)
    )
    assert [int(e) for e in copy.shape] == [2, -(-height * width // tile), 3, tile]
    *_, i, j = s[y].loops
    at, _ = s[y].split(s[y].fuse(i, j), factor=tile)
    s[core].compute_at(s[y], at)
    assert f"x.local[n, {at.name}, c, i_j" in str(s) or tile == 1 or height * width <= tile
    a, b = small(2, 3, height, width), small(4, 3, 1, 1)
    for found in results(s, args, (a, b), (2, 4, height, width)):
        np.testing.assert_array_equal(found, convolved(a, b))


@pytest.mark.parametrize("images", [2, None])
def test_rows_of_sums_as_long_as_those_of_what_they_read_are_one_axis(images):
    s, args = convolution(images=images or te.var("n"))
    x, _, y = args
    s.cache_read(x, "local", y, pad=0, axes="lambda n, c, i, j: (n, c, i * 9 + j)")
    core = s.cache_write(y, "local", axes="lambda n, k, i, j: (n, k, i * 9 + j)")
    s[core].split(s[core].loops[2], 8, tail="round_up")
    assert "if " not in str(s).split("y.local")[1]
    a, b = small(2, 3, 7, 9), small(4, 3, 3, 3)
    for found in results(s, args, (a, b), (2, 4, 5, 7)):
        np.testing.assert_array_equal(found, convolved(a, b))


def test_positions_at_a_stride_come_to_stand_side_by_side():
    x, w = te.placeholder((2, 23), name="x"), te.placeholder((5, 2, 3), name="w")
    c, r = te.reduce_axis((0, 2), name="c"), te.reduce_axis((0, 3), name="r")
    y = te.compute((5, 11), lambda k, o: te.sum(x[c, o * 2 + r] * w[k, c, r], axis=[c, r]), name="y")
    s = lw.create_schedule(y)
    copy = s.cache_read(x, "local", y, pad=0, axes=lambda c, i: (c, i % 2, i // 2))
    assert "x.local[c, r % 2, o + r // 2]" in str(s)
    assert [int(e) for e in copy.shape] == [2, 2, 12]
    a, b = small(2, 23), small(5, 2, 3)
    windows = np.lib.stride_tricks.sliding_window_view(a, 3, axis=1)[:, ::2]
    for found in results(s, [x, w, y], (a, b), (5, 11)):
        np.testing.assert_array_equal(found, np.einsum("cor,kcr->ko", windows, b))


@pytest.mark.parametrize("extents", [(1, 1), (1, 5), (3, 1), (3, 5)])
def test_elements_that_are_none_of_the_tensor_hold_the_pad(extents):
    m, n = extents
    A = te.placeholder(extents, name="A")
    B = te.compute(extents, lambda i, j: A[i, j], name="B")
    s = lw.create_schedule(B)
    copy = s.cache_read(A, "global", B, pad=5, axes=f"lambda i, j: ((i * {n + 2} + j) // 4, (i * {n + 2} + j) % 4)")
    rows, axes = int(copy.shape[0]), copy.op.axis
    held = te.compute(
        (rows, 4), lambda *i: substitute(copy.op.body[0], {a.var: index.var for a, index in zip(axes, i, strict=True)})
    )
    a, wanted = small(m, n), np.full(rows * 4, 5, np.float32)
    for i in range(m):
        wanted[i * (n + 2) : i * (n + 2) + n] = a[i]
    for found in results(lw.create_schedule(held), [A, held], (a,), (rows, 4)):
        np.testing.assert_array_equal(found.ravel(), wanted)


@pytest.mark.parametrize("pad", [5, "edge"])
@pytest.mark.parametrize("text", ["lambda i: (i + 3,)", "lambda i: ((i + 3) // 4, (i + 3) % 4)"])
def test_a_copy_may_begin_before_the_first_element(text, pad):
    A = te.placeholder((6,), name="A")
    B = te.compute((6,), lambda i: A[i] + 1, name="B")
    s = lw.create_schedule(B)
    copy = s.cache_read(A, "global", B, pad=pad, axes=text)
    a = small(6)
    for found in results(s, [A, B], (a,), (6,)):
        np.testing.assert_array_equal(found, a + 1)
    shape, axes = tuple(int(e) for e in copy.shape), copy.op.axis
    held = te.compute(
        shape, lambda *i: substitute(copy.op.body[0], {a.var: index.var for a, index in zip(axes, i, strict=True)})
    )
    wanted = np.array([*[a[0] if pad == "edge" else 5] * 3, *a, *[a[-1] if pad == "edge" else 5] * 3], np.float32)
    for found in results(lw.create_schedule(held), [A, held], (a,), shape):
        np.testing.assert_array_equal(found.ravel(), wanted[: found.size])


@pytest.mark.parametrize("text", ["lambda i: (i // 4, i % 4 + 2)", "lambda i: (i % 4, i // 4 + 1)"])
def test_axes_that_begin_before_a_digit_tell_no_element(text):
    """At a negative digit there would be the element of another block."""
    A = te.placeholder((8,), name="A")
    B = te.compute((8,), lambda i: A[i] + 1, name="B")
    with pytest.raises(lw.ScheduleError, match="do not tell which of the"):
        lw.create_schedule(B).cache_read(A, "global", B, pad=0, axes=text)


def test_sums_may_begin_before_the_first_one_where_what_they_read_is_padded():
    """So vectors of what is padded at both ends are of the same elements as those of x, also of x in blocks."""
    x = te.placeholder((3, 4), name="x")
    padded = te.compute(
        (14,), lambda c: te.if_then_else(te.all(c >= 1, c < 13), x[(c - 1) // 4, (c - 1) % 4], 0.0), name="padded"
    )
    tap = te.reduce_axis((0, 3), name="tap")
    y = te.compute((12,), lambda c: te.sum(padded[c + tap], axis=tap), name="y")
    s = lw.create_schedule(y)
    core = s.cache_write(padded, "local", axes=lambda c: ((c + 3) // 4, (c + 3) % 4))
    s[padded].compute_inline()
    s[core].vectorize(s[core].loops[-1])
    a = small(3, 4)
    wanted = np.convolve(a.ravel(), np.ones(3), "same")
    for found in results(s, [x, y], (a,), (12,)):
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("rows", [0, 1, 3])
def test_axes_of_a_copy_of_open_extent_may_have_no_elements(rows):
    """Rows that lie further apart than they are long: without any, the last one would end before the first."""
    n = te.var("n")
    A = te.placeholder((n, 4), name="A")
    B = te.compute((n, 4), lambda i, j: A[i, j] + 1, name="B")
    s = lw.create_schedule(B)
    s.cache_read(A, "global", B, pad=0, axes="lambda i, j: ((i * 20 + j) // 4, (i * 20 + j) % 4)")
    a = small(rows, 4)
    for found in results(s, [A, B], (a,), (rows, 4)):
        np.testing.assert_array_equal(found, a + 1)


def test_random_axes_of_copies_and_sums_change_no_result():
    rng = np.random.default_rng(0)
    maps = (
        "lambda i, j: (j, i)",
        "lambda i, j: (i * {n} + j,)",
        "lambda i, j: ((i * {n} + j) // {t}, (i * {n} + j) % {t})",
        "lambda i, j: (j // {t}, i, j % {t})",
        "lambda i, j: (i % 2, i // 2 * {n} + j)",
        "lambda i, j: (i % 2, j % {t}, i // 2, j // {t})",
        "lambda i, j: (i + {t}, j + 1)",
        "lambda i, j: (i, (j + 3) // {t}, (j + 3) % {t})",
        "lambda i, j: ((i * {n} + j + 2) // {t}, (i * {n} + j + 2) % {t})",
    )
    written = 0
    for _ in range(40):
        m, n, k, t = (int(e) for e in rng.integers(1, 9, 4))
        first = str(rng.choice(maps)).format(n=n + int(rng.integers(0, 3)), t=t)
        second = str(rng.choice(maps)).format(n=n, t=t)
        s, args = followed_product(m, n, k)
        s.cache_read("C", "local", "D", pad=0, axes=first)
        with suppress(lw.ScheduleError):  # where elements between those of C would read beyond the ends of A
            s.cache_write("C", "local", axes=second)
            written += 1
        a, b = small(m, k), small(k, n)
        for found in results(s, args, (a, b), (m, n)):
            np.testing.assert_array_equal(found, a @ b + 1, err_msg=f"{first} {second} {m} {n} {k}")
    assert written > 5


def followed_product(m, n, k):
    A, B = te.placeholder((m, k), name="A"), te.placeholder((k, n), name="B")
    r = te.reduce_axis((0, k), name="r")
    C = te.compute((m, n), lambda i, j: te.sum(A[i, r] * B[r, j], axis=r), name="C")
    D = te.compute((m, n), lambda i, j: C[i, j] + 1.0, name="D")
    return lw.create_schedule(D), [A, B, D]


def test_a_trace_with_axes_is_replayed():
    s, (x, _, y) = convolution()
    s.cache_read(x, "local", y, pad=0, axes=lambda n, c, i, j: (n, c, i * 9 + j))
    s.cache_write(y, "local", axes=lambda n, k, i, j: (n, k, i * 9 + j))
    again = lw.create_schedule(y)
    again.replay(lw.Trace.from_json(s.trace.to_json()))
    assert str(again) == str(s)


def test_an_axis_that_a_map_leaves_as_it_is_keeps_its_extent():
    """It reads nothing more than before, although there may be fewer windows than none in the eyes of bounds."""
    n, r = te.var("n"), te.reduce_axis((0, 3), name="r")
    x, w = te.placeholder((n,), name="x"), te.placeholder((3, 6), name="w")
    y = te.compute(((n - 3) // 2 + 1, 6), lambda i, k: te.sum(x[i * 2 + r] * w[r, k], axis=r), name="y")
    s = lw.create_schedule(y)
    s.cache_read(w, "local", [y], pad=0, axes=lambda r, k: (r, k // 4, k % 4))
    s.cache_write(y, "local", axes=lambda i, k: (i, k // 4, k % 4))
    a, b = np.arange(10, dtype=np.float32), np.arange(18, dtype=np.float32).reshape(3, 6)
    found = np.zeros((4, 6), np.float32)
    lw.interpret(lw.lower(s, [x, w, y]))(a, b, found)
    np.testing.assert_array_equal(found, np.stack([a[i : i + 3] @ b for i in range(0, 8, 2)]))


@pytest.mark.parametrize("made", ["cache_write", "cache_read", "transform_layout"])
def test_a_tensor_without_elements_has_none_in_another_order(made):
    """Between its rows there would be elements, which might read what does not exist."""
    A = te.placeholder((4, 0), name="A")
    B = te.compute((4, 0), lambda i, j: A[i, te.maximum(te.minimum(j, -1), 0)] + 1, name="B")
    s = lw.create_schedule(B)
    if made == "cache_write":
        s.cache_write(B, "local", axes="lambda i, j: (i * 16 + j,)")
    elif made == "cache_read":
        s.cache_read(A, "local", [B], axes="lambda i, j: (i * 16 + j,)", pad=0)
    else:
        s[s.cache_write(B, "local")].transform_layout("lambda i, j: (i * 16 + j,)")
    lw.interpret(lw.lower(s, [A, B]))(np.zeros((4, 0), np.float32), np.zeros((4, 0), np.float32))
    assert "[" not in str(lw.lower(s, [A, B])).replace("float32[4, 0]", "")


def spread_by_two(window, where):
    """Sums of an image that is spread by a stride of 2, of a copy with a border of zeros."""
    x, w = te.placeholder((5, 6), name="x"), te.placeholder((window, window), name="w")
    border = (window - 1) // 2
    inside = lambda i, j: te.all(i >= border, i < 5 + border, j >= border, j < 6 + border)  # noqa: E731
    source = te.compute(
        (5 + 2 * border, 6 + 2 * border),
        lambda i, j: te.if_then_else(inside(i, j), x[i - border, j - border], 0.0),
        name="source",
    )
    r, q = te.reduce_axis((0, window), name="r"), te.reduce_axis((0, window), name="q")
    y = te.compute(
        (10 + 2 * border, 12 + 2 * border),
        lambda i, j: te.sum(
            source[(i - r) // 2 + border, (j - q) // 2 + border] * w[r, q],
            axis=[r, q],
            where=te.all(*[(i - r) % 2 == 0, (j - q) % 2 == 0][:where]) if where else None,
        ),
        name="y",
    )
    s = lw.create_schedule(y)
    width = 6 + 2 * border
    s.cache_read(source, "local", y, pad=0, axes=lambda i, j: i * width + j)
    s[source].compute_inline()
    return s, [x, w, y], width


@pytest.mark.parametrize("window", [2, 3, 4, 5])
def test_sums_by_phases_read_only_where_a_distance_is_divided_without_a_rest(window):
    """Of (p - r) // 2, for p = 0 and r = 3, it would be -2, which is nowhere."""
    s, args, width = spread_by_two(window, 2)
    core = s.cache_write(args[2], "local", axes=lambda i, j: (i % 2, j % 2, i // 2 * width + j // 2))
    p, o, position, r, q = s[core].loops
    r, digit = s[core].split(r, 2)
    tile, lane = s[core].split(position, 8, tail="round_up")
    s[core].reorder(p, o, tile, r, q, digit, lane)
    for loop in (p, o, digit):
        s[core].unroll(loop)
    a, b = small(5, 6), small(window, window)
    wanted = np.zeros((10 + window, 12 + window), np.float32)
    for i, j in np.ndindex(5, 6):
        wanted[2 * i : 2 * i + window, 2 * j : 2 * j + window] += a[i, j] * b
    shape = tuple(int(e) for e in args[2].shape)
    for found in results(s, args, (a, b), shape):
        np.testing.assert_array_equal(found, wanted[: shape[0], : shape[1]])


@pytest.mark.parametrize("where", [0, 1])
def test_sums_by_phases_that_read_before_the_first_element_are_refused(where):
    s, (_, _, y), width = spread_by_two(4, where)
    with pytest.raises(lw.ScheduleError, match="may be beyond the ends of source"):
        s.cache_write(y, "local", axes=lambda i, j: (i % 2, j % 2, i // 2 * width + j // 2))

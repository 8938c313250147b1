"""The four tails of a split: the nests they make, and that all compute the same whatever else is done to the loops."""

import re

import numpy as np
import pytest

import loopwright as lw
from loopwright import te
from loopwright.ir.expr import Load, Ramp
from loopwright.ir.makers import as_index
from loopwright.ir.stmt import For, If, Store
from loopwright.ir.verify import verify
from loopwright.ir.visit import walk

TAILS = ("guard", "mask", "peel", "shift")
PAIRS = [("mask", "mask"), ("peel", "peel"), ("shift", "shift"), ("guard", "peel"), ("shift", "peel")]
EXTENTS = [(n,) for n in (0, 1, 7, 8, 60, 61, 64)]
symbolic = pytest.mark.parametrize("symbolic", [False, True], ids=["constant", "symbolic"])


def elementwise(n, tail, *, vector=True, **width):
    """``B = A * 2 + 1`` with its one loop split; gives the schedule, its arguments and the two loops."""
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: A[i] * 2.0 + 1.0, name="B")
    s = lw.create_schedule(B)
    outer, inner = s[B].split(B.op.axis[0], tail=tail, **(width or {"factor": 8}))
    if vector:
        s[B].vectorize(inner)
    return s, [A, B], (outer, inner)


def program(s, args, shape_of):
    """Runs the lowered schedule in the interpreter, which finds accesses out of bounds, and races."""
    func = lw.lower(s, args, target="x86-64-v3")
    verify(func)
    interpreted = lw.interpret(func)

    def run(*inputs):
        out = np.full(shape_of(*inputs), np.nan, np.float32)
        interpreted(*inputs, out)
        return out

    return run


def check(make, symbols, cases, inputs_of, reference):
    """What ``make(*dims)`` gives (a schedule, its arguments), is what the reference gives: for each case of constant
    dims if ``symbols`` is None, else once for all."""
    compiled = None
    for case in cases:
        if compiled is None or symbols is None:
            s, args = make(*(case if symbols is None else map(te.var, symbols)))
            compiled = program(s, args, lambda *inputs: reference(*inputs).shape)
        inputs = inputs_of(*case)
        np.testing.assert_array_equal(compiled(*inputs), reference(*inputs), err_msg=f"{case}\n{s}")


def values(*shape):
    """Small whole numbers: every order of adding gives the same."""
    return np.random.default_rng(len(shape)).integers(-8, 9, shape).astype(np.float32)


def test_a_mask_stays_in_one_loop():
    s, args, _ = elementwise(60, "mask")
    assert str(s) == (
        "for i_outer in range(8):\n"
        "    for i_inner in vectorized(8):\n"
        "        if i_outer * 8 + i_inner < 60:  # mask\n"
        "            B[i_outer * 8 + i_inner] = A[i_outer * 8 + i_inner] * 2.0 + 1.0"
    )
    func = lw.lower(s, args)
    assert [str(n.extent) for n in walk(func.body) if isinstance(n, For)] == ["8"]
    assert not any(isinstance(n, If) for n in walk(func.body))


def test_a_mask_of_a_loop_that_is_no_vector_is_a_test_in_each_iteration():
    s, args, _ = elementwise(60, "mask", vector=False)
    func = lw.lower(s, args)
    assert [str(n.extent) for n in walk(func.body) if isinstance(n, For)] == ["8", "8"]
    assert sum(isinstance(n, If) for n in walk(func.body)) == 1


@pytest.mark.parametrize(("extent", "rest"), [(60, 4), (61, 5)])
def test_a_peeled_remainder_of_known_extent_is_a_shorter_vector(extent, rest):
    s, _, _ = elementwise(extent, "peel")
    assert str(s) == (
        "for i_outer in range(7):\n"
        "    for i_inner in vectorized(8):\n"
        "        B[i_outer * 8 + i_inner] = A[i_outer * 8 + i_inner] * 2.0 + 1.0\n"
        f"for i_inner_1 in vectorized({rest}):\n"
        "    B[i_inner_1 + 56] = A[i_inner_1 + 56] * 2.0 + 1.0"
    )


def test_a_peeled_remainder_of_symbolic_extent_is_a_masked_vector():
    s, _, _ = elementwise(te.var("n"), "peel")
    assert str(s) == (
        "for i_outer in range(n // 8):\n"
        "    for i_inner in vectorized(8):\n"
        "        B[i_outer * 8 + i_inner] = A[i_outer * 8 + i_inner] * 2.0 + 1.0\n"
        "for i_outer_1 in range(n // 8, (n + 7) // 8):\n"
        "    for i_inner_1 in vectorized(8):\n"
        "        if i_outer_1 * 8 + i_inner_1 < n:\n"
        "            B[i_outer_1 * 8 + i_inner_1] = A[i_outer_1 * 8 + i_inner_1] * 2.0 + 1.0"
    )


def test_a_shifted_tile_ends_where_the_loop_ends():
    s, _, _ = elementwise(60, "shift")
    assert str(s) == (
        "for i_outer in range(8):\n"
        "    for i_inner in vectorized(8):\n"
        "        B[min(i_outer * 8, 52) + i_inner] = A[min(i_outer * 8, 52) + i_inner] * 2.0 + 1.0"
    )


def test_a_test_chooses_a_masked_tile_where_a_shifted_one_might_not_fit():
    s, _, _ = elementwise(te.var("n"), "shift")
    assert str(s) == (
        "if n >= 8:\n"
        "    for i_outer in range((n + 7) // 8):\n"
        "        for i_inner in vectorized(8):\n"
        "            B[min(i_outer * 8, n - 8) + i_inner] = A[min(i_outer * 8, n - 8) + i_inner] * 2.0 + 1.0\n"
        "else:\n"
        "    for i_outer_1 in range((n + 7) // 8):\n"
        "        for i_inner_1 in vectorized(8):\n"
        "            if i_inner_1 < n:\n"
        "                B[i_inner_1] = A[i_inner_1] * 2.0 + 1.0"
    )


@pytest.mark.parametrize("tail", ["peel", "shift"])
def test_a_loop_shorter_than_a_tile_is_one_shorter_tile(tail):
    s, _, _ = elementwise(7, tail)
    assert str(s) == "for i_inner in vectorized(7):\n    B[i_inner] = A[i_inner] * 2.0 + 1.0"


@pytest.mark.parametrize("tail", TAILS)
def test_a_factor_that_divides_leaves_no_tail(tail):
    s, _, _ = elementwise(64, tail)
    assert str(s) == (
        "for i_outer in range(8):\n"
        "    for i_inner in vectorized(8):\n"
        "        B[i_outer * 8 + i_inner] = A[i_outer * 8 + i_inner] * 2.0 + 1.0"
    )


@symbolic
@pytest.mark.parametrize("width", [{"factor": 8}, {"nparts": 4}, {"nparts": 7}], ids=str)
@pytest.mark.parametrize("tail", TAILS)
def test_elements(tail, width, symbolic):
    def make(n):
        return elementwise(n, tail, vector="factor" in width, **width)[:2]

    check(make, "n" if symbolic else None, EXTENTS, lambda n: [values(n)], lambda a: a * 2 + 1)


def split_again(s, B, outer, inner):
    s[B].split(outer, factor=3, tail="peel")


def split_again_in_parts(s, B, outer, inner):
    s[B].split(outer, nparts=3)
    s[B].split(inner, factor=3, tail="shift")


def split_the_inner_one(s, B, outer, inner):
    _, lanes = s[B].split(inner, factor=4)
    s[B].vectorize(lanes)


def swap(s, B, outer, inner):
    s[B].reorder(inner, outer)


def fuse_back(s, B, outer, inner):
    s[B].split(s[B].fuse(outer, inner), factor=5, tail="peel")


def unroll_the_inner_one(s, B, outer, inner):
    s[B].unroll(inner)


AFTERWARDS = (split_again, split_again_in_parts, split_the_inner_one, swap, fuse_back, unroll_the_inner_one)


@symbolic
@pytest.mark.parametrize("then", AFTERWARDS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("tail", TAILS)
def test_what_is_done_to_the_loops_afterwards(tail, then, symbolic):
    def make(n):
        s, args, loops = elementwise(n, tail, vector=False)
        then(s, args[-1], *loops)
        return s, args

    cases = EXTENTS if symbolic else [(7,), (21,), (61,)]
    check(make, "n" if symbolic else None, cases, lambda n: [values(n)], lambda a: a * 2 + 1)


def transposed(n, m, tails, then):
    """``B[i, j] = A[j, i]`` with both loops tiled."""
    A = te.placeholder((m, n), name="A")
    B = te.compute((n, m), lambda i, j: A[j, i], name="B")
    s = lw.create_schedule(B)
    i, j = B.op.axis
    (io, ii), (jo, ji) = (s[B].split(x, factor=4, tail=t) for x, t in zip((i, j), tails, strict=True))
    s[B].reorder(io, jo, ii, ji)
    then(s[B], io, jo, ii, ji)
    return s, [A, B]


def vectorized(stage, io, jo, ii, ji):
    stage.vectorize(ji)
    stage.unroll(ii)


def fused_tiles(stage, io, jo, ii, ji):
    stage.fuse(io, jo)
    stage.vectorize(stage.fuse(ii, ji))


def parallel_tiles(stage, io, jo, ii, ji):
    stage.vectorize(ji)
    stage.parallel(io)
    stage.parallel(jo)


def parallel_fused_tiles(stage, io, jo, ii, ji):
    stage.parallel(stage.fuse(io, jo))


def parallel_inside(stage, io, jo, ii, ji):
    stage.reorder(ii, ji, io, jo)
    stage.parallel(ii)


@symbolic
@pytest.mark.parametrize(
    "then", [vectorized, fused_tiles, parallel_tiles, parallel_fused_tiles, parallel_inside], ids=lambda f: f.__name__
)
@pytest.mark.parametrize("tails", PAIRS, ids="-".join)
def test_two_tiled_loops(tails, then, symbolic):
    race = tails[0] == "shift" if then is parallel_inside else "shift" in tails
    if race and then in (parallel_tiles, parallel_fused_tiles, parallel_inside):
        with pytest.raises(lw.ScheduleError, match="two iterations write the same elements"):
            transposed(9, 9, tails, then)
        return
    cases = [(0, 3), (3, 3), (4, 9), (9, 5)] if symbolic else [(3, 9), (9, 5)]
    check(
        lambda n, m: transposed(n, m, tails, then),
        "nm" if symbolic else None,
        cases,
        lambda n, m: [values(m, n)],
        lambda a: a.T,
    )


def matmul(n, k, m, tail, reduce_tail):
    A = te.placeholder((n, k), name="A")
    B = te.placeholder((k, m), name="B")
    r = te.reduce_axis((0, k), name="r")
    C = te.compute((n, m), lambda i, j: te.sum(A[i, r] * B[r, j], axis=r), name="C")
    s = lw.create_schedule(C)
    i, j = C.op.axis
    io, jo, ii, ji = s[C].tile(i, j, 3, 8, tail)
    ro, ri = s[C].split(r, factor=4, tail=reduce_tail)
    return s, [A, B, C], (io, jo, ro, ri, ii, ji)


@pytest.mark.parametrize(
    ("symbolic", "inner_reduction"),
    [(False, False), (False, True), (True, False)],
    ids=["constant", "inner", "symbolic"],
)
@pytest.mark.parametrize(("tail", "reduce_tail"), [pair for pair in PAIRS if pair[1] != "shift"])
def test_tails_inside_a_reduction(tail, reduce_tail, symbolic, inner_reduction):
    def make(k, m):
        s, args, (io, jo, ro, ri, ii, ji) = matmul(4, k, m, tail, reduce_tail)
        C = args[-1]
        s[C].reorder(*((io, jo, ii, ji, ro, ri) if inner_reduction else (io, jo, ro, ri, ii, ji)))
        if not inner_reduction:
            s[C].vectorize(ji)
            s[C].unroll(ii)
        return s, args

    cases = [(5, 13), (4, 8), (3, 7), (0, 1)] if symbolic else [(5, 13), (3, 7), (2, 0)]
    symbols = "km" if symbolic else None
    check(make, symbols, cases, lambda k, m: [values(4, k), values(k, m)], lambda a, b: a @ b)


@symbolic
@pytest.mark.parametrize("place", [0, 1])
@pytest.mark.parametrize(("tail", "producer_tail"), PAIRS)
def test_a_stage_computed_in_the_tiles(tail, producer_tail, place, symbolic):
    def make(n):
        A = te.placeholder((n + 2,), name="A")
        P = te.compute((n + 2,), lambda i: A[i] * 2.0, name="P")
        B = te.compute((n,), lambda i: P[i] + P[i + 1] + P[i + 2], name="B")
        s = lw.create_schedule(B)
        loops = s[B].split(B.op.axis[0], factor=8, tail=tail)
        s[P].compute_at(s[B], loops[place])
        _, lanes = s[P].split(P.op.axis[0], factor=4, tail=producer_tail)
        s[P].vectorize(lanes)
        if place == 0:
            s[B].vectorize(loops[1])
        return s, [A, B]

    cases = [(0,), (1,), (7,), (8,), (29,)] if symbolic else [(7,), (29,)]
    expected = lambda a: (a[:-2] + a[1:-1] + a[2:]) * 2  # noqa: E731
    check(make, "n" if symbolic else None, cases, lambda n: [values(n + 2)], expected)


def test_the_copies_that_tails_make_are_bounded():
    dims = [5] * 4
    A = te.placeholder(dims, name="A")
    B = te.compute(dims, lambda *i: A[i] + 1.0, name="B")
    s = lw.create_schedule(B)
    tiles = [s[B].split(axis, factor=4, tail="peel") for axis in B.op.axis]
    s[B].reorder(*(outer for outer, _ in tiles), *(inner for _, inner in tiles))
    assert 8 <= str(s).count("B[") < 16
    a = values(*dims)
    np.testing.assert_array_equal(program(s, [A, B], np.shape)(a), a + 1)


@pytest.mark.parametrize("tail", TAILS)
def test_copies_of_loops_are_marked_with_the_loop_they_come_from(tail):
    s, args, (outer, _) = elementwise(te.var("n"), tail, vector=False)
    with pytest.raises(lw.ScheduleError) as caught:
        s[args[-1]].vectorize(outer)
    marked = re.findall(r"for (\w+) in .*# <-- here", str(caught.value))
    assert marked == (["i_outer", "i_outer_1"] if tail in ("peel", "shift") else ["i_outer"])


@pytest.mark.parametrize("tail", TAILS)
def test_an_intrinsic_inside_the_rest_of_a_peeled_loop(tail):
    lanes = Ramp(as_index(0), as_index(1), 4)
    x = te.placeholder((4,), name="x")
    y = te.compute((4,), lambda i: x[i] + 1.0, name="y")

    def add(x, y):
        return Store(y, (lanes,), Load(x, (lanes,)) + 1.0)

    add4 = lw.declare_intrinsic("add4", y, add, override=True)
    A = te.placeholder((9, 10), name="A")
    B = te.compute((9, 10), lambda i, j: A[i, j] + 1.0, name="B")
    s = lw.create_schedule(B)
    i, j = B.op.axis
    io, ii = s[B].split(i, factor=8, tail="peel")
    jo, ji = s[B].split(j, factor=4, tail=tail)
    s[B].reorder(io, ii, jo, ji)
    s[B].tensorize(ji, add4)
    a = values(9, 10)
    np.testing.assert_array_equal(program(s, [A, B], np.shape)(a), a + 1)

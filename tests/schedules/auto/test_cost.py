"""The analytic model: what it counts, against counts made one by one."""

import itertools
import random
import re

import numpy as np
import pytest

import loopwright as lw
from loopwright import te
from loopwright.ir.build import index_var
from loopwright.ir.constants import const
from loopwright.ir.contents import substitute
from loopwright.ir.expr import Ramp
from loopwright.ir.makers import as_index
from loopwright.ir.visit import with_body
from loopwright.schedules.auto.cost.digits import split_digits
from loopwright.schedules.auto.cost.footprint import LINE, accesses_of_lanes, footprint
from loopwright.schedules.auto.cost.instructions import work_of
from loopwright.schedules.auto.cost.nest import loop_tree
from loopwright.schedules.auto.cost.predict import predict
from loopwright.schedules.auto.cost.samples import POINTS, evaluate
from loopwright.schedules.machine import CORE

TARGET = lw.resolve_target("llvm -mcpu=x86-64-v3 -threads=4")


def product(n=96, m=96, k=96):
    A, B = te.placeholder((n, k), name="A"), te.placeholder((k, m), name="B")
    r = te.reduce_axis((0, k), name="r")
    C = te.compute((n, m), lambda i, j: te.sum(A[i, r] * B[r, j], axis=r), name="C")
    return A, B, C


def tiled(C, rows, vectors, parallel=True):
    s = lw.create_schedule(C)
    i, j, r = s[C].loops
    block, panel, row, column = s[C].tile(i, j, rows, vectors * 8)
    vector, lane = s[C].split(column, factor=8)
    s[C].reorder(block, panel, r, row, vector, lane)
    s[C].vectorize(lane)
    s[C].unroll(vector)
    s[C].unroll(row)
    if parallel:
        s[C].parallel(s[C].fuse(block, panel))
    return s


def cycles(schedule, *args, target=TARGET):
    return predict(lw.lower(schedule, args, target=target), target)


def test_a_step_of_a_register_tile_counts_its_fmas_and_loads():
    A, B, C = product()
    root = loop_tree(lw.lower(tiled(C, 4, 3), [A, B, C], target=TARGET))
    work = work_of(root, TARGET)
    innermost = max((node for node in work if not node.inner), key=lambda node: node.iterations)
    assert innermost.iterations == 96 * (96 // 4) * (96 // 24)
    assert (work[innermost].operations, work[innermost].loads) == (12, 3 + 4)
    assert work[innermost].kept == 12 + 3 + 1


def test_tiles_beat_single_sums_and_tiles_that_registers_do_not_hold():
    A, B, C = product()
    good, single, large = (cycles(tiled(C, *size), A, B, C).computing for size in ((4, 3), (1, 1), (12, 3)))
    assert good < single
    assert good < large


@pytest.mark.parametrize(("rows", "vectors", "fits"), [(4, 3, True), (6, 2, True), (5, 3, False), (7, 2, False)])
def test_a_loop_whose_sums_find_no_registers_takes_half_as_long_again(rows, vectors, fits):
    A, B, C = product(n=2 * rows, m=16 * vectors)
    s = tiled(C, rows, vectors, parallel=False)
    assembly = lw.build(s, [A, B, C], target=TARGET).assembly
    assert bool(re.search(r"vmovups\s+%ymm\d+, -?\d*\(%rsp\)", assembly)) == (not fits)
    work = innermost_work(s, A, B, C)
    assert (work.kept <= TARGET.vector_registers) == fits
    fmas = rows * vectors
    least = fmas / CORE.full_rate + CORE.loop_cycles
    assert work.cycles(TARGET.vector_registers) == pytest.approx(least if fits else 1.5 * least)


def innermost_work(schedule, *args):
    root = loop_tree(lw.lower(schedule, args, target=TARGET))
    return work_of(root, TARGET)[max(root.all_inside(), key=lambda node: node.iterations)]


@pytest.mark.parametrize(("lanes", "kept"), [(8, 12 + 1), (32, 4 * (12 + 1))])
def test_values_that_wait_for_a_second_use_want_registers(lanes, kept):
    A = te.placeholder((1 << 10,), name="A")
    window = [lambda i, k=k: A[i + k] for k in range(12)]
    C = te.compute(
        (512,),
        lambda i: (total := sum(a(i) for a in window)) * total + sum(a(i) * float(k) for k, a in enumerate(window)),
        name="C",
    )
    s = lw.create_schedule(C)
    s[C].vectorize(s[C].split(s[C].loops[0], factor=lanes)[1])
    work = innermost_work(s, A, C)
    assert kept <= work.kept <= 1.5 * kept
    assert (work.cycles(1000) < work.cycles(TARGET.vector_registers)) == (lanes > 8)


def test_numbers_that_several_taps_multiply_want_registers_beside_the_sums():
    A, W = te.placeholder((64, 70), name="A"), te.placeholder((64, 3, 8), name="W")
    r, q = te.reduce_axis((0, 64), name="r"), te.reduce_axis((0, 3), name="q")
    C = te.compute((64, 8), lambda j, k: te.sum(A[r, j + q] * W[r, q, k], axis=(r, q)), name="C")
    kept = {}
    for unrolled in (False, True):
        s = lw.create_schedule(C)
        j, k, r, q = s[C].loops
        outer, inner = s[C].split(j, factor=8)
        s[C].reorder(outer, r, q, inner, k)
        s[C].vectorize(k)
        s[C].unroll(inner)
        if unrolled:
            s[C].unroll(q)
        kept[unrolled] = innermost_work(s, A, W, C).kept
    assert kept == {False: 8 + 1 + 1, True: 8 + 7 + 1}  # seven of the first tap's numbers come again


def test_threads_share_parallel_loops():
    A, B, C = product()
    together, alone = (cycles(tiled(C, 4, 3, parallel), A, B, C).computing for parallel in (True, False))
    assert 3.9 < alone / together < 4.1


def test_lanes_that_are_no_neighbours_cost_more():
    A = te.placeholder((64, 64), name="A")

    def vectorized(body):
        B = te.compute((64, 64), body, name="B")
        s = lw.create_schedule(B)
        _, lane = s[B].split(s[B].loops[-1], factor=8)
        s[B].vectorize(lane)
        return cycles(s, A, B).computing

    assert vectorized(lambda i, j: A[j, i] * 2.0) > 2 * vectorized(lambda i, j: A[i, j] * 2.0)


def test_expressions_that_rows_share_are_computed_once():
    A = te.placeholder((66, 64), name="A")
    Y = te.compute((64, 64), lambda i, j: te.exp(A[i, j]) + te.exp(A[i + 1, j]) + te.exp(A[i + 2, j]), name="Y")

    def with_rows(rows):
        s = lw.create_schedule(Y)
        _, _, row, lane = s[Y].tile("i", "j", rows, 8)
        s[Y].vectorize(lane)
        s[Y].unroll(row)
        return cycles(s, A, Y).computing

    assert with_rows(4) < 0.6 * with_rows(1)  # 6 functions for 4 rows in place of 12


@pytest.mark.parametrize("seed", range(12))
def test_footprints_are_those_of_counting_lines(seed):
    """Random affine accesses of a few loops: the model is within a half of what one finds by listing all lines."""
    rng = random.Random(seed)
    loops = [(index_var("i"), rng.choice([2, 5, 8])), (index_var("j"), rng.choice([3, 7, 16]))]
    strides = [rng.choice([8, 64, 512, 1000]), rng.choice([1, 8, 24, 100])]
    offsets = [0, *rng.sample([1, 2, 64, 512, 1000], 2)]
    lanes, apart = rng.choice([1, 8]), rng.choice([1, 2, 40, 1000])
    accesses, lines = [], set()
    for offset in offsets:
        index = as_index(offset)
        for (var, _), stride in zip(loops, strides, strict=True):
            index = index + var * stride
        accesses += accesses_of_lanes(Ramp(index, as_index(apart), lanes) if lanes > 1 else index, lanes, 4)
        for point in itertools.product(*(range(extent) for _, extent in loops)):
            at = offset + sum(p * s for p, s in zip(point, strides, strict=True))
            lines.update((at + lane * apart) * 4 // LINE for lane in range(lanes))
    found = footprint(accesses, {var: float(extent) for var, extent in loops}, 1e9).lines
    assert len(lines) / 2 <= found <= 2 * len(lines) + 2, (strides, offsets, lanes, apart, len(lines), found)


def test_digits_of_fused_loops_compute_the_same():
    A, B, C = product(6, 16, 5)
    func = lw.lower(tiled(C, 4, 1), [A, B, C], target=TARGET)  # 2 × 2 tiles, the last ones of rows cut
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((6, 5), np.float32), rng.standard_normal((5, 16), np.float32)
    apart, c = with_body(func, split_digits(func.body)), np.zeros((6, 16), np.float32)
    assert apart.body is not func.body
    lw.interpret(apart)(a, b, c)
    np.testing.assert_allclose(c, a @ b, rtol=1e-5, atol=1e-5)


def test_conditions_are_tried_at_points_that_are_spread_evenly():
    i, j = index_var("i"), index_var("j")
    points = {i: np.arange(POINTS, dtype=np.float64), j: np.full(POINTS, 3.0)}
    for e in ((i // 7) % 3 + j * 2, te.minimum(i, 9) - j, te.select(i < 5, i, j)):
        expected = [lw_value(e.as_expr(), {i: k, j: 3}) for k in range(POINTS)]
        np.testing.assert_array_equal(evaluate(e.as_expr(), points), expected)


def lw_value(e, values):
    """The number that the simplifier makes of an expression."""
    from loopwright.ir.constants import const_int
    from loopwright.ir.simplify import simplify

    return const_int(simplify(substitute(e, {var: const(value, "index") for var, value in values.items()})))


def test_what_does_not_fit_a_cache_costs_more_unless_it_is_blocked():
    def rows_first(n):
        A, B, C = product(96, n, 512)
        return cycles(tiled(C, 4, 3), A, B, C).fetching / n

    assert rows_first(3072) > 1.3 * rows_first(96)


def test_lanes_apart_cost_more_than_neighbours_and_lanes_that_divide_an_index_more_than_a_ramp():
    x, y = te.placeholder((64, 64), name="x"), te.placeholder((64 * 64,), name="y")

    def computing(index):
        z = te.compute((64, 64), index, name="z")
        s = lw.create_schedule(z)
        _, lane = s[z].split(z.op.axis[1], factor=8)
        s[z].vectorize(lane)
        return cycles(s, *z.op.inputs, z).computing

    rows, divided = computing(lambda i, j: x[i, j]), computing(lambda i, j: y[(i * 64 + j) * 7 % 100])
    apart, columns = computing(lambda i, j: y[i + j * 4]), computing(lambda i, j: x[j, i])
    assert rows < apart < columns < divided
    z = te.compute((64, 64), lambda i, j: x[j, i], name="z")
    s = lw.create_schedule(z)
    i, j = s[z].loops
    _, lane = s[z].split(i, factor=8)
    s[z].reorder(j, lane)
    s[z].vectorize(lane)
    assert cycles(s, x, z).computing > columns  # it is stored apart, and loaded from neighbours

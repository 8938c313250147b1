"""The analytic model: what caches let through, against a cache that is simulated, and accesses that cross lines."""

import itertools
from collections import OrderedDict
from dataclasses import replace

import pytest

import loopwright as lw
from loopwright import te
from loopwright.schedules.auto.cost.footprint import LINE, SETS, accesses_of_lanes, footprint
from loopwright.schedules.auto.cost.instructions import work_of
from loopwright.schedules.auto.cost.nest import loop_tree
from loopwright.schedules.auto.cost.predict import predict
from loopwright.schedules.auto.cost.traffic import Arrays

WAYS = 8
V3 = lw.resolve_target("x86-64-v3").with_threads(1)


def window(rows, columns, width):
    """A window of 5 × 5 over rows that are ``width`` numbers apart."""
    X, K = te.placeholder((rows + 4, width), name="X"), te.placeholder((5, 5), name="K")
    p, q = te.reduce_axis((0, 5), name="p"), te.reduce_axis((0, 5), name="q")
    Y = te.compute((rows, columns), lambda i, j: te.sum(X[i + p, j + q] * K[p, q], axis=(p, q)), name="Y")
    return X, K, Y


def tiled_window(height, width, rows=96, columns=256):
    X, K, Y = window(rows, columns, width)
    s = lw.create_schedule(Y)
    i, j, p, q = s[Y].loops
    block, panel, row, column = s[Y].tile(i, j, height, 16)
    s[Y].reorder(block, panel, p, q, row, column)
    vector, lane = s[Y].split(column, factor=8)
    s[Y].vectorize(lane)
    for loop in (vector, row):
        s[Y].unroll(loop)
    return lw.lower(s, [X, K, Y], target=V3)


def misses_of_window(height, width, rows=96, columns=256):
    """The lines of X that come to a first cache of 8 ways for the same tiles, the least recent leaving first."""
    sets, misses = [OrderedDict() for _ in range(SETS)], 0
    tiles = itertools.product(range(0, rows, height), range(0, columns, 16))
    for (i, j), p, q in itertools.product(tiles, range(5), range(5)):
        for row, vector in itertools.product(range(height), range(2)):
            begin = 4 * ((i + row + p) * width + j + 8 * vector + q)
            for line in {begin // LINE, (begin + 31) // LINE}:
                held = sets[line % SETS]
                if line not in held:
                    misses += 1
                    if len(held) == WAYS:
                        held.popitem(last=False)
                held[line] = True
                held.move_to_end(line)
    return misses


@pytest.mark.parametrize("width", [1024, 1024 + 80])
@pytest.mark.parametrize("height", [4, 12])
def test_lines_that_come_to_a_cache_are_those_of_a_simulated_one(height, width):
    """Rows of 4096 bytes share a set: a cache of 8 ways does not keep 12 of them, however little they are."""
    root = loop_tree(tiled_window(height, width))
    arrays = Arrays(root)
    found = sum(arrays.traffic(nest, float(SETS * WAYS * LINE)).lines for nest in root.inner)
    expected = misses_of_window(height, width) + 96 * 256 * 4 / LINE  # and the output's
    assert expected / 2.5 <= found <= 2.5 * expected


def test_rows_at_the_same_place_of_a_page_need_more_room():
    def room(stride, rows):
        offsets = [4 * stride * row for row in range(rows)]
        found = [accesses_of_lanes(lw.te.const(0, "index") + offset // 4, 1, 4)[0] for offset in offsets]
        return footprint(found, {}, 1e9).room

    assert room(1024, 12) == 12 * SETS
    assert room(1024 + 16, 12) <= 12 * SETS / 8


def machine(cpu, fma_per_cycle=2):
    return replace(lw.resolve_target(f"llvm -mcpu={cpu} -threads=1"), fma_per_cycle=fma_per_cycle)


def body_of(target, *tensors):
    """The work of the loop over the vectors of the last tensor."""
    s, output = lw.create_schedule(tensors[-1]), tensors[-1]
    s[output].vectorize(s[output].split(s[output].loops[-1], factor=target.lanes("float32"))[1])
    work = work_of(loop_tree(lw.lower(s, tensors, target=target)), target)
    return max(work.values(), key=lambda each: each.loads)


@pytest.mark.parametrize(
    ("target", "aligned", "crossing"),
    [(machine("znver5", 1), 2.0, 4.0), (machine("znver5"), 1.0, 2.0), (machine("haswell"), 1.0, 1.5)],
    ids=["halves", "whole", "256 bits"],
)
def test_vectors_that_cross_lines_are_loaded_twice_and_halves_are_two(target, aligned, crossing):
    """A Zen 4 loads 512 bits by halves; of vectors of 256 bits every other one crosses a line."""
    A = te.placeholder((64, 256), name="A")

    def loads(offset):
        return body_of(target, A, te.compute((64, 128), lambda i, j: A[i, j + offset] + 1.0, name="B")).loads

    assert (loads(0), loads(1)) == (aligned, crossing)


def test_a_core_with_half_the_units_multiplies_half_as_many_wide_vectors():
    A, B = te.placeholder((64, 256), name="A"), te.placeholder((64, 256), name="B")
    C = te.compute((64, 256), lambda i, j: A[i, j] * B[i, j] * A[i, j] * B[i, j] * A[i, j] * B[i, j], name="C")
    half, whole = (body_of(machine("znver5", rate), A, B, C) for rate in (1, 2))
    assert half.products == 2 * whole.products == 10
    assert half.cycles(32) > whole.cycles(32)


def test_a_gather_does_not_hide_behind_products_on_a_core_with_half_the_units():
    """What fills the front of a core takes its time beside them, however few of its units multiply."""
    A, B = te.placeholder((64, 256), name="A"), te.placeholder((256, 64), name="B")
    target = machine("znver5", 1)

    def cycles(read):
        C = te.compute((64, 64), lambda i, j: sum(A[i, k * 64 + j] * read(i, j) for k in range(4)), name="C")
        return body_of(target, A, B, C).cycles(32)

    beside = cycles(lambda i, j: B[j, i]) - cycles(lambda i, j: B[i, j])
    assert beside >= 15  # of 16 lanes, each of which takes a cycle


def test_to_compare_two_integers_takes_no_vector_unit():
    """One comparison tells of all lanes where it does not depend on them."""
    A, L = te.placeholder((64, 64), name="A"), te.placeholder((64,), "int32", name="L")
    r, target = te.reduce_axis((0, 64), name="r"), machine("znver5")
    C = te.compute((4, 64), lambda k, j: te.sum(te.select(L[r] == te.cast(k, "int32"), A[r, j], 0.0), axis=r), name="C")
    s = lw.create_schedule(C)
    s[C].vectorize(s[C].split("j", 16)[1])
    s[C].reorder("k", "j_outer", "r", "j_inner")
    work = work_of(loop_tree(lw.lower(s, [A, L, C], target=target)), target)
    assert max(work.values(), key=lambda each: each.loads).operations == 2  # to select and to add


def test_a_fence_and_the_bits_of_a_number_cost_nothing():
    A = te.placeholder((64, 256), name="A")

    def computing(body):
        B = te.compute((64, 256), body, name="B")
        s = lw.create_schedule(B)
        s[B].vectorize(s[B].split(s[B].loops[-1], factor=8)[1])
        return predict(lw.lower(s, [A, B], target=V3), V3).computing

    plain = computing(lambda i, j: A[i, j] * 3.0 + 1.0)
    assert computing(lambda i, j: te.arithmetic_fence(A[i, j] * 3.0 + 1.0)) == plain
    assert computing(lambda i, j: te.exp(A[i, j])) > 2 * plain


def test_what_strips_hand_on_does_not_come_from_memory():
    """Of images that no cache holds: the strips in between stay in caches, and only what is whole goes to memory."""
    A = te.placeholder((2050, 4096), name="A")
    X = te.compute((2050, 4096), lambda i, j: te.sqrt(A[i, j]), name="X")
    Y = te.compute((2048, 4096), lambda i, j: X[i, j] + X[i + 1, j] + X[i + 2, j], name="Y")

    def fetching(in_strips):
        s = lw.create_schedule(Y)
        strip, _ = s[Y].split(s[Y].loops[0], factor=16)
        for stage in (X, Y):
            s[stage].vectorize(s[stage].split(s[stage].loops[-1], factor=8)[1])
        if in_strips:
            s[X].compute_at(s[Y], strip)
        return predict(lw.lower(s, [A, Y], target=V3), V3).fetching

    memory = 2050 * 4096 * 4 / LINE * 10
    assert 3 * memory <= fetching(in_strips=True) <= 4 * memory
    assert fetching(in_strips=False) >= 1.5 * fetching(in_strips=True)

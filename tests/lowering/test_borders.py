"""Reads that are clamped at the ends of a tensor: no element too many is computed, and inner loops have plain reads."""

import numpy as np
import pytest

import loopwright as lw
from loopwright import te
from loopwright.ir.constants import const_int
from loopwright.ir.expr import Binary, IfThenElse, Load, Ramp, Select
from loopwright.ir.interpret import interpret
from loopwright.ir.stmt import For, Store
from loopwright.ir.visit import walk

TARGET = "x86-64-v3"
N = 256


def before(i):
    return te.maximum(i - 1, 0)


def after(i, n):
    return te.minimum(i + 1, n - 1)


READS = {
    "max": lambda B, i, n: B[before(i)] + B[i],
    "min": lambda B, i, n: B[i] + B[after(i, n)],
    "both": lambda B, i, n: B[before(i)] + B[i] + B[after(i, n)],
    "nested": lambda B, i, n: B[te.clamp(i - 2, 0, n - 1)] + B[te.clamp(i + 2, 0, n - 1)],
    "select": lambda B, i, n: B[te.select(i >= 1, i - 1, 0)] + B[te.select(i > n - 2, n - 1, i + 1)],
    "choice of reads": lambda B, i, n: te.if_then_else(i >= 1, B[i - 1], B[0]) + B[i],
    "choice of expressions": lambda B, i, n: B[i] + te.if_then_else(i < n - 1, B[i + 1] * 2.0, B[n - 1] * 3.0),
    "mirrored": lambda B, i, n: B[te.maximum(i - 2, 2 - i)] + B[te.minimum(i + 2, (n - 1) * 2 - i - 2)],
    "mirrored by choices": lambda B, i, n: te.if_then_else(i < 2, B[2 - i], B[i - 2]) + B[i],
    "strided": lambda B, i, n: B[te.maximum(i * 2 - 1, 0) // 2] + B[te.minimum(i * 2 + 1, n * 2 - 1) // 2],
}
WIDEST = {"nested": 36, "mirrored": 36, "mirrored by choices": 34}
"""Elements of B that a tile of 32 needs: 33 or 34, where nothing else is said."""


def stencil(read, n):
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: A[i] * 2.0 + 1.0, name="B")
    C = te.compute((n,), lambda i: read(B, i, n), name="C")
    return A, B, C


def tiled(B, C, factor=32, lanes=None):
    s = lw.create_schedule(C)
    outer, inner = s[C].split(C.op.axis[0], factor=factor)
    s[B].compute_at(s[C], outer)
    if lanes is not None:
        s[C].vectorize(s[C].split(inner, factor=lanes)[1])
    return s


def run(schedule, A, C, n, lower=lw.lower):
    x = np.random.default_rng(0).standard_normal(n, dtype=np.float32)
    result = np.empty(n, np.float32)
    interpret(lower(schedule, [A, C], target=TARGET))(x, result)
    return x, result


def naive(A, C, n):
    return run(lw.create_schedule(C), A, C, n)[1]


@pytest.mark.parametrize("case", READS)
@pytest.mark.parametrize("n", [N, 250])
def test_a_tile_computes_only_what_it_reads(case, n, stores):
    A, B, C = stencil(READS[case], n)
    expected = naive(A, C, n)
    stores.clear()
    s = tiled(B, C)
    _, result = run(s, A, C, n)
    np.testing.assert_array_equal(result, expected)
    tiles = -(-n // 32)
    assert n <= stores["B"] <= tiles * WIDEST.get(case, 34)


@pytest.mark.parametrize("case", [case for case in READS if case != "mirrored"])
def test_tiles_of_open_extents_compute_only_what_they_read(case, stores):
    n = te.var("n")
    A, B, C = stencil(READS[case], n)
    for extent in (N, 250, 40, 7):
        expected = naive(*stencil(READS[case], extent)[::2], extent)
        stores.clear()
        _, result = run(tiled(B, C), A, C, extent)
        np.testing.assert_array_equal(result, expected)
        assert stores["B"] <= -(-extent // 32) * WIDEST.get(case, 34)


def odd(loop):
    """What is not plain in a loop: clamps and remainders in indices, lanes that are no neighbours, choices."""
    inside = [node for node in walk(loop.body) if isinstance(node, (Load, IfThenElse, Select))]
    loads = [node for node in inside if isinstance(node, Load)]
    clamps = [
        n
        for load in loads
        for i in load.indices
        for n in walk(i)
        if isinstance(n, Binary) and n.op in ("min", "max", "%")
    ]
    gathers = [
        load
        for load in loads
        if load.indices[-1].dtype.lanes > 1
        and not (isinstance(load.indices[-1], Ramp) and const_int(load.indices[-1].stride) == 1)
    ]
    return [*clamps, *gathers, *(node for node in inside if not isinstance(node, Load))]


def innermost(func):
    loops = [node for node in walk(func.body) if isinstance(node, For)]
    return [loop for loop in loops if not any(isinstance(node, For) for node in walk(loop.body))]


@pytest.mark.parametrize("case", [case for case in READS if case != "strided"])
@pytest.mark.parametrize("n", [N, 1024])
def test_the_interior_of_a_clamped_loop_has_plain_vectors(case, n):
    A, B, C = stencil(READS[case], n)
    s = tiled(B, C, 64, lanes=8)
    func = lw.lower(s, [A, C], target=TARGET)
    assert not [found for loop in innermost(func) for found in odd(loop)]
    _, result = run(s, A, C, n)
    np.testing.assert_array_equal(result, naive(A, C, n))


@pytest.mark.parametrize("case", [case for case in READS if case != "strided"])
def test_tasks_of_the_interior_have_plain_vectors(case):
    A, B, C = stencil(READS[case], N)
    s = tiled(B, C, 64, lanes=8)
    s[C].parallel(s[C].loops[0])
    func = lw.lower(s, [A, C], target=TARGET)
    stores = [(loop, node) for loop in innermost(func) for node in walk(loop.body) if isinstance(node, Store)]
    plain = [loop for loop, store in stores if store.buffer.name == "C" and not odd(loop)]
    assert len(plain) == 2, "one in tasks of the interior, one in the interior of the others"
    _, result = run(s, A, C, N)
    np.testing.assert_array_equal(result, naive(A, C, N))


def test_what_is_decided_nowhere_is_two_loads_instead_of_a_gather():
    """Of two vectors in a loop, each has an end: none is the interior."""
    A, _, _ = stencil(READS["both"], 16)
    C = te.compute((16,), lambda i: A[before(i)] + A[after(i, 16)], name="C")
    s = lw.create_schedule(C)
    s[C].vectorize(s[C].loops[0])
    func = lw.lower(s, [A, C], target=TARGET)
    loads = [node for node in walk(func.body) if isinstance(node, Load) and node.indices[0].dtype.lanes > 1]
    assert loads
    assert all(isinstance(load.indices[0], Ramp) and const_int(load.indices[0].stride) == 1 for load in loads)
    x, result = run(s, A, C, 16)
    np.testing.assert_array_equal(result, x[np.r_[0, :15]] + x[np.r_[1:16, 15]])

"""Masked stores of integers that were wider: nothing but the lanes of the mask is written."""

import ml_dtypes
import numpy as np
import pytest

import loopwright as lw
from loopwright import te

HOST = lw.resolve_target("native")
TARGETS = ["native", *(name for name, needs in (("x86-64-v4", "avx512vl"), ("x86-64-v3", "avx2")) if HOST.has(needs))]
TAKES = {"int64": ["int32", "int16", "int8"], "int32": ["int16", "uint8"], "int16": ["int8"], "float32": ["bfloat16"]}
PAIRS = [(wide, narrow) for wide, several in TAKES.items() for narrow in several]
GUARD = 16
"""Elements behind the result that nobody may write."""


def array(name):
    return np.dtype(ml_dtypes.bfloat16) if name == "bfloat16" else np.dtype(name)


def moved(x):
    """What LLVM cannot compute in the narrow type: its upper bits go down."""
    return x * np.float32(3) if x.dtype == "float32" else x >> 2


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("lanes", [2, 3, 4, 8, 16, 32, 64])
@pytest.mark.parametrize(("wide", "narrow"), PAIRS)
def test_a_last_element_is_stored_with_its_own_bytes(wide, narrow, lanes, target):
    n = lanes + 1
    A = te.placeholder((n,), wide, name="A")
    C = te.compute((n,), lambda i: te.cast(moved(A[i]), narrow), name="C")
    s = lw.create_schedule(C)
    _, lane = s[C].split(s[C].loops[0], factor=lanes, tail="mask")
    s[C].vectorize(lane)
    kernel = lw.build(s, [A, C], target)
    a = np.arange(-3, n - 3).astype(wide) * 5
    memory = np.full(n + GUARD, -5).astype(array(narrow))
    kernel(a, memory[:n])
    np.testing.assert_array_equal(memory[:n], moved(a).astype(array(narrow)))
    np.testing.assert_array_equal(memory[n:], np.full(GUARD, -5).astype(array(narrow)))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("wide", "narrow"), PAIRS)
def test_rows_that_end_with_one_element_leave_the_next_row_alone(wide, narrow, target):
    """Rows of 97, the last columns first."""
    A = te.placeholder((3, 97), wide, name="A")
    C = te.compute((3, 97), lambda i, j: te.cast(moved(A[i, j]), narrow), name="C")
    s = lw.create_schedule(C)
    i, j = s[C].loops
    outer, lane = s[C].split(j, factor=16, tail="mask")
    s[C].reorder(outer, i, lane)
    s[C].vectorize(lane)
    s[C].unroll(i)
    s[C].unroll(outer)
    kernel = lw.build(s, [A, C], target)
    a = np.random.default_rng(0).integers(-100, 100, (3, 97)).astype(wide)
    c = np.zeros((3, 97), array(narrow))
    kernel(a, c)
    np.testing.assert_array_equal(c, moved(a).astype(array(narrow)))


@pytest.mark.parametrize("shape", [(3, 36, 97), (5, 37, 97)])
def test_products_of_bfloat16_leave_the_next_row_alone(shape):
    rows, terms, columns = shape
    rng = np.random.default_rng(0)
    x, w = (rng.standard_normal(s).astype(ml_dtypes.bfloat16) for s in ((rows, terms), (terms, columns)))
    given = lw.var("x", (rows, terms), "bfloat16")
    library = lw.compile(lw.Function([given], lw.nn.matmul(given, lw.const(w))), jobs=1)
    wanted = x.astype(np.float64) @ w.astype(np.float64)
    np.testing.assert_allclose(lw.Engine(library)([x])[0].astype(np.float64), wanted, rtol=1e-2, atol=0.15)

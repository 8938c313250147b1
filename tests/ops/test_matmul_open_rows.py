"""Products whose number of rows only a run knows: kernels by tiles of several heights, without a test in their sums."""

import ml_dtypes
import numpy as np
import pytest
from pairs import each_pair, each_value

import loopwright as lw
from loopwright.te import var as dimension

HOST = lw.resolve_target("native")
TARGETS = ["native", *(name for name in ("x86-64-v3", "x86-64") if HOST.has("avx2"))]
ROWS = [0, 1, 2, 3, 4, 5, 7, 8, 9, 12, 13, 16, 17, 25, 31, 33, 40, 66, 110]
TOLERANCE = {"float64": 1e-13, "float32": 2e-6, "float16": 1e-3, "bfloat16": 8e-3}
"""Of the largest result."""


def numbers(shape, dtype, seed):
    """Numbers of a dtype, and the same in float64."""
    rng = np.random.default_rng([seed, *shape])
    if dtype in ("int8", "uint8"):
        low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
        made = rng.integers(low, high + 1, shape).astype(dtype)
    else:
        made = rng.standard_normal(shape).astype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)
    return made, made.astype(np.float64)


def compiled(x, w, target, bias=None):
    """An engine of x · w, with a bias and a relu behind it if there is one."""
    made = lw.nn.matmul(x, w)
    if bias is not None:
        made = lw.nn.relu(made + lw.const(bias))
    return lw.Engine(lw.compile(lw.Function([x], made), target, jobs=1))


def check(found, wanted, dtype):
    if dtype in TOLERANCE:
        assert np.abs(found.astype(np.float64) - wanted).max(initial=0) <= TOLERANCE[dtype] * np.abs(wanted).max(
            initial=1
        )
    else:
        np.testing.assert_array_equal(found, wanted)


@each_value(
    factor=[(64, 200), (37, 97), (1024, 48)],
    dtype=["float32", "float16", "bfloat16", "int8", "uint8"],
    target=TARGETS,
)
def test_products_by_a_constant_are_right_for_any_number_of_rows(factor, dtype, target):
    w, exact = numbers(factor, "int8" if dtype == "uint8" else dtype, 1)
    terms, _ = factor
    engine = compiled(lw.var("x", (dimension("n"), terms), dtype), lw.const(w), target)
    for rows in ROWS:
        x, wide = numbers((rows, terms), dtype, 2)
        check(engine([x])[0], wide @ exact, dtype)


@pytest.mark.parametrize("target", TARGETS)
def test_what_follows_a_product_is_computed_for_the_rows_that_there_are(target):
    w, exact = numbers((48, 130), "float32", 3)
    bias = np.linspace(-4, 4, 130, dtype=np.float32)
    engine = compiled(lw.var("x", (dimension("n"), 48)), lw.const(w), target, bias)
    for rows in ROWS:
        x, wide = numbers((rows, 48), "float32", 4)
        check(engine([x])[0], np.maximum(wide @ exact + bias, 0), "float32")


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int8"])
def test_a_row_has_the_same_bits_among_any_others(dtype):
    w, _ = numbers((512, 96), dtype, 5)
    engine = compiled(lw.var("x", (dimension("n"), 512), dtype), lw.const(w), "native")
    x, _ = numbers((max(ROWS), 512), dtype, 6)
    whole = engine([x])[0]
    for rows in ROWS:
        np.testing.assert_array_equal(engine([x[:rows]])[0], whole[:rows])


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", ["float32", "int8"])
def test_a_factor_that_is_no_constant_serves_an_open_number_of_rows(dtype, target):
    x, w = lw.var("x", (dimension("n"), 40), dtype), lw.var("w", (40, 70), dtype)
    engine = lw.Engine(lw.compile(lw.Function([x, w], lw.nn.matmul(x, w)), target, jobs=1))
    right, exact = numbers((40, 70), dtype, 7)
    for rows in ROWS:
        left, wide = numbers((rows, 40), dtype, 8)
        check(engine([left, right])[0], wide @ exact, dtype)


def test_sums_of_open_rows_have_no_test_among_their_steps():
    x = lw.var("x", (dimension("n"), 96))
    w, _ = numbers((96, 64), "float32", 9)
    library = lw.compile(lw.Function([x], lw.nn.matmul(x, lw.const(w))), "x86-64-v4", jobs=1)
    (nest,) = (f.loop_ir for f in library.functions)
    steps = [line for line in nest.splitlines() if "_reg[" in line and "broadcast(p0" in line]
    assert steps
    assert not [line for line in nest.splitlines() if " where " in line and "p1[" in line]


def nest_of_open_rows(terms, target):
    x = lw.var("x", (dimension("b"), dimension("n"), terms))
    w, _ = numbers((terms, 256), "float32", 14)
    bias, _ = numbers((256,), "float32", 15)
    library = lw.compile(lw.Function([x], lw.nn.matmul(x, lw.const(w)) + lw.const(bias)), target, jobs=1)
    (nest,) = (f.loop_ir for f in library.functions)
    return nest


@pytest.mark.parametrize(("target", "rows"), [("x86-64-v3", 5), ("x86-64-v4", 13)])
def test_high_tiles_of_open_rows_test_nothing(target, rows):
    """The last tile of many rows is full as well: what it would read beyond the end is the last row again. That a panel
    is there, which a task's number over its rows says, is no question."""
    nest = nest_of_open_rows(96, target)
    assert "if quotient" not in nest
    assert f"* {rows} + 1, n0 * n1 - 1)" in nest
    assert not [line for line in nest.splitlines() if "if remainder" in line and f"* {rows} <" in line]


def test_high_tiles_of_rows_that_evict_each_other_stand_once():
    """They read a copy, which has the last row again and again."""
    *_, high = nest_of_open_rows(1024, "x86-64-v4").split("else:")
    assert "rows.local" in high
    assert "if " not in high
    assert high.count("for k_outer") == 1


@each_pair(
    shape=[(None, None), (None, 1), (5, 3), (2, None), (3, 2, 7)],
    dtype=["float32", "float16", "bfloat16", "int8"],
    target=TARGETS,
)
def test_few_rows_of_many_matrices_are_those_of_one(shape, dtype, target):
    """A sequence whose batch comes second."""
    extents = tuple(dimension(f"d{k}") if extent is None else extent for k, extent in enumerate(shape))
    w, exact = numbers((40, 72), dtype, 10)
    engine = compiled(lw.var("x", (*extents, 40), dtype), lw.const(w), target)
    for given in (1, 4, 33):
        sizes = tuple(given + k if extent is None else extent for k, extent in enumerate(shape))
        x, wide = numbers((*sizes, 40), dtype, 11)
        check(engine([x])[0], wide @ exact, dtype)


@pytest.mark.parametrize("shape", [(None, None), (None, 1), (6, 3)], ids=str)
def test_what_follows_joined_rows_has_the_axes_of_the_matrices(shape):
    extents = tuple(dimension(f"d{k}") if extent is None else extent for k, extent in enumerate(shape))
    x, y = lw.var("x", (*extents, 24)), lw.var("y", (extents[1], 40))
    w, exact = numbers((24, 40), "float32", 12)
    made = lw.nn.relu(lw.nn.matmul(x, lw.const(w)) + y)
    engine = lw.Engine(lw.compile(lw.Function([x, y], made), jobs=1))
    for given in (1, 5, 18):
        sizes = tuple(given + k if extent is None else extent for k, extent in enumerate(shape))
        left, wide = numbers((*sizes, 24), "float32", 13)
        added, _ = numbers((sizes[1], 40), "float32", 14)
        check(engine([left, added])[0], np.maximum(wide @ exact + added, 0), "float32")


OPEN = {
    "all": (("m", "k"), ("k", "n")),
    "terms": ((24, "k"), ("k", 40)),
    "columns": ((24, 33), (33, "n")),
    "batches": ((2, "m", "k"), (2, "k", "n")),
    "one right factor": (("b", "m", "k"), ("k", "n")),
}
RUNS = [(1, 1, 1), (3, 5, 7), (5, 0, 9), (0, 3, 4), (7, 4, 0), (16, 33, 17), (40, 64, 130)]


@each_value(name=OPEN, dtype=["float32", "float64", "bfloat16", "int8"], target=TARGETS)
def test_columns_and_terms_may_be_open_too(name, dtype, target):
    dims = {extent: dimension(extent) for shape in OPEN[name] for extent in shape if isinstance(extent, str)}
    variables = [lw.var(f"x{k}", [dims.get(e, e) for e in shape], dtype) for k, shape in enumerate(OPEN[name])]
    engine = lw.Engine(lw.compile(lw.Function(variables, lw.nn.matmul(*variables)), target, jobs=1))
    for m, k, n in RUNS:
        sizes = {"m": m, "k": k, "n": n, "b": 3}
        given = [numbers([sizes.get(e, e) for e in shape], dtype, 15 + i) for i, shape in enumerate(OPEN[name])]
        (a, exact_a), (b, exact_b) = given
        found = engine([a, b])[0]
        assert found.shape == (exact_a @ exact_b).shape
        check(found, exact_a @ exact_b, dtype)


def test_a_row_by_open_columns_has_the_same_bits_among_any_others():
    x, w = lw.var("x", (dimension("n"), dimension("k"))), lw.var("w", (dimension("k"), dimension("c")))
    engine = lw.Engine(lw.compile(lw.Function([x, w], lw.nn.matmul(x, w)), jobs=1))
    a, _ = numbers((40, 300), "float32", 20)
    b, _ = numbers((300, 70), "float32", 21)
    whole = engine([a, b])[0]
    for rows in ROWS:
        np.testing.assert_array_equal(engine([a[:rows], b])[0], whole[:rows])


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int8"])
def test_a_constant_of_known_extents_meets_terms_that_are_open(dtype):
    w, exact = numbers((100, 48), dtype, 22)
    x = lw.var("x", (dimension("n"), dimension("k")), dtype)
    try:
        body = lw.nn.matmul(x, lw.const(w))
    except lw.TypeInferenceError:
        return  # which is right as well
    engine = lw.Engine(lw.compile(lw.Function([x], body), "x86-64-v3", jobs=1))
    left, wide = numbers((5, 100), dtype, 23)
    check(engine([left])[0], wide @ exact, dtype)

"""Branches and loops compiled: against numpy, with open shapes, saved, exported, nested."""

import ctypes

import numpy as np
import pytest
from needed_tools import needs

import loopwright as lw
from loopwright import te
from loopwright.graph import Function, Tuple

RNG = np.random.default_rng(5)
W = RNG.standard_normal((8, 8)).astype(np.float32) * 0.5
X = RNG.standard_normal((4, 8)).astype(np.float32)


def run(function, *feeds, **options):
    return lw.Engine(lw.compile(function, **options))(list(feeds))


def near(found, expected):
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("holds", [True, False])
def test_a_branch_computes_what_its_condition_says(holds):
    x, c, w = lw.var("x", (4, 8)), lw.var("c", (), "bool"), lw.const(W)
    y = lw.nn.cond(c, lambda a: np.tanh(a @ w), lambda a: a + 1, x)
    (found,) = run(Function([x, c], y), X, np.array(holds))
    near(found, np.tanh(X @ W) if holds else X + 1)


@pytest.mark.parametrize("holds", [True, False])
def test_a_branch_may_give_what_it_is_given_and_constants(holds):
    x, c = lw.var("x", (4, 8)), lw.var("c", (), "bool")
    y = lw.nn.cond(
        c, lambda a: (a, lw.const(W), lw.const(np.int8(3))), lambda a: (-a, lw.const(-W), lw.const(np.int8(4))), x
    )
    found = run(Function([x, c], y), X, np.array(holds))
    sign = 1 if holds else -1
    for result, expected in zip(found, [sign * X, sign * W, 3 if holds else 4], strict=True):
        np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("holds", [True, False])
def test_a_branch_may_capture_what_it_is_given_as_well(holds):
    n = te.var("n")
    x, c = lw.var("x", (n, 8)), lw.var("c", (), "bool")
    y = lw.nn.cond(c, lambda a: np.tanh(a) + x, lambda a: x - a * 3, x)
    (found,) = run(Function([x, c], y), X, np.array(holds))
    near(found, np.tanh(X) + X if holds else X * -2)


@pytest.mark.parametrize("trips", [-3, 0, 1, 2, 5])
def test_a_loop_runs_as_often_as_each_run_says(trips):
    x, n, w = lw.var("x", (4, 8)), lw.var("n", (), "int64"), lw.const(W)
    y = lw.nn.for_loop(n, lambda number, a: a @ w + lw.nn.cast(number, "float32"), x)
    (found,) = run(Function([x, n], y), X, np.array(trips))
    expected = X
    for number in range(trips):
        expected = expected @ W + np.float32(number)
    near(found, expected)


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_a_loop_ends_when_its_condition_does_not_hold(scale):
    x = lw.var("x", (4, 8))
    limit = lw.const(np.float32(100))
    y = lw.nn.while_loop(lambda a: np.sum(np.abs(a)) < limit, lambda a: a * 2, x)
    feed = X * np.float32(scale)
    expected = feed
    while np.abs(expected).sum() < 100:
        expected = expected * 2
    near(run(Function([x], y), feed)[0], expected)


def cell(w):
    def step(h, x):
        new = np.tanh(h @ w + x)
        return new, new

    return step


def scanned(h, xs, reverse=False):
    rows = np.zeros_like(xs)
    for t in reversed(range(len(xs))) if reverse else range(len(xs)):
        h = rows[t] = np.tanh(h @ W + xs[t])
    return h, rows


@pytest.mark.parametrize("reverse", [False, True])
def test_a_scan_over_open_rows_writes_them_where_they_belong(reverse):
    T, B = te.var("T"), te.var("B")
    h, xs = lw.var("h", (B, 8)), lw.var("xs", (T, B, 8))
    engine = lw.Engine(lw.compile(Function([h, xs], lw.nn.scan(cell(lw.const(W)), [h], [xs], reverse=reverse))))
    for t, b in ((3, 2), (0, 4), (7, 1), (2, 0), (3, 2)):
        feeds = [RNG.standard_normal(shape).astype(np.float32) for shape in ((b, 8), (t, b, 8))]
        for found, expected in zip(engine(feeds), scanned(*feeds, reverse), strict=True):
            near(found, expected)


def test_values_that_are_swapped_keep_apart():
    x, y = lw.var("x", (4, 8)), lw.var("y", (4, 8))
    made = lw.nn.for_loop(3, lambda number, a, b: (b, a), x, y)
    found = run(Function([x, y], made), X, -X)
    np.testing.assert_array_equal(found[0], -X)
    np.testing.assert_array_equal(found[1], X)


def nested(w):
    """A loop over rows, in which a branch has a loop."""

    def step(h, x):
        turned = lw.nn.cond(
            np.sum(h) < lw.const(np.float32(0)),
            lambda a: lw.nn.for_loop(2, lambda number, b: np.tanh(b @ w), a),
            lambda a: a - 1,
            h,
        )
        return turned + x, turned

    return step


def nested_by_numpy(h, xs):
    rows = []
    for x in xs:
        h = np.tanh(np.tanh(h @ W) @ W) if h.sum() < 0 else h - 1
        rows.append(h)
        h = h + x
    return h, np.array(rows).reshape(xs.shape)


def nested_function():
    T = te.var("T")
    h, xs = lw.var("h", (1, 8)), lw.var("xs", (T, 1, 8))
    return Function([h, xs], lw.nn.scan(nested(lw.const(W)), [h], [xs]), "nested", ("last", "rows"))


def feeds_of(t):
    return [RNG.standard_normal(shape).astype(np.float32) for shape in ((1, 8), (t, 1, 8))]


@pytest.mark.parametrize("jobs", [1, 2])
def test_nested_control_flow(jobs):
    engine = lw.Engine(lw.compile(nested_function(), jobs=jobs))
    for t in (9, 0, 4):
        feeds = feeds_of(t)
        for found, expected in zip(engine(feeds), nested_by_numpy(*feeds), strict=True):
            near(found, expected)


def test_a_library_with_control_flow_is_saved_and_loaded(tmp_path):
    library = lw.compile(nested_function())
    library.save(tmp_path / "nested.lwlib")
    loaded = lw.load(tmp_path / "nested.lwlib")
    assert [f.symbol for f in loaded.functions] == [f.symbol for f in library.functions]
    feeds = feeds_of(5)
    for found, expected in zip(lw.Engine(loaded)(feeds), nested_by_numpy(*feeds), strict=True):
        near(found, expected)


@needs("cc", package="gcc")
def test_an_export_runs_control_flow(tmp_path):
    exported = lw.compile(nested_function()).export(tmp_path, "shared")
    program = ctypes.CDLL(str(exported.code))
    context = ctypes.c_void_p()
    assert program.nested_create(ctypes.byref(context), 1) == 0
    for t in (6, 0, 11):
        feeds = feeds_of(t)
        outputs = np.zeros((1, 8), np.float32), np.zeros((t, 1, 8), np.float32)
        pointers = [ctypes.c_void_p(a.ctypes.data) for a in (*feeds, *outputs)]
        assert program.nested_run(context, *pointers, ctypes.c_int64(t)) == 0
        for found, expected in zip(outputs, nested_by_numpy(*feeds), strict=True):
            near(found, expected)
    program.nested_destroy(context)


def test_loops_that_differ_in_their_weights_only_share_code():
    x = lw.var("x", (4, 8))
    y = x
    for k in range(3):
        weights = lw.const(W * np.float32(k + 1))
        y = lw.nn.for_loop(2, lambda number, a, w=weights: np.tanh(a @ w), y)
    library = lw.compile(Function([x], y))
    assert len(library.functions) == 2
    expected = X
    for k in range(3):
        for _ in range(2):
            expected = np.tanh(expected @ (W * np.float32(k + 1)))
    near(lw.Engine(library)([X])[0], expected)


def test_a_loop_over_constants_is_folded():
    x = lw.var("x", (8, 8))
    table = lw.nn.for_loop(3, lambda number, a: a @ a, lw.const(W))
    library = lw.compile(Function([x], x + table))
    assert [f.name for f in library.functions] == ["fused_add"]
    near(lw.Engine(library)([W])[0], W + np.linalg.matrix_power(W, 8))


def test_reports_know_control_flow():
    library = lw.compile(nested_function())
    names = [function.name for function in lw.explain(library).functions]
    assert any(name.startswith("loop_") for name in names)
    assert any(name.startswith("if_") for name in names)
    assert any("matmul" in name for name in (f.name for f in lw.explain(nested_function()).functions))
    assert "loop" in str(lw.Engine(library).profile(feeds_of(3)))


def test_results_are_members_of_tuples():
    x, c = lw.var("x", (4, 8)), lw.var("c", (), "bool")
    y = lw.nn.cond(c, lambda a: (a * 2, a * 3), lambda a: (a * 4, a * 5), x)
    found = run(Function([x, c], Tuple((y.fields[1], y.fields[0] + y.fields[1]))), X, np.array(False))
    np.testing.assert_array_equal(found[0], X * 5)
    near(found[1], X * 9)


@pytest.fixture
def failing():
    """A packed function that fails when it is called for the third time."""
    calls = []

    def fail(x, y):
        calls.append(None)
        if len(calls) == 3:
            raise ValueError("the third call")
        y[...] = x + 1

    lw.register_func("test.control_flow.failing", fail, override=True)
    return calls


def test_an_error_in_a_loop_names_the_iteration_and_leaves_the_engine_usable(failing):
    x = lw.var("x", (4,))
    made = lw.nn.for_loop(5, lambda number, a: lw.nn.extern("test.control_flow.failing", a), x)
    engine = lw.Engine(lw.compile(Function([x], made)))
    with pytest.raises(lw.KernelError, match="iteration 2: ValueError: the third call"):
        engine([np.zeros(4, np.float32)])
    np.testing.assert_array_equal(engine([np.zeros(4, np.float32)])[0], np.full(4, 5, np.float32))

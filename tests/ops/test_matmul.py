"""nn.matmul and nn.dense against numpy: all combinations of ranks, broadcasting, dtypes, misuse."""

import re

import ml_dtypes
import numpy as np
import pytest

import loopwright as lw
from loopwright.artifact.options import CodegenOptions
from loopwright.base.errors import TypeInferenceError
from loopwright.compiler.passes.turn_weights import turn_weights
from loopwright.compiler.selection.select import select_implementation
from loopwright.compiler.settings import CompileSettings
from loopwright.graph.node import Constant
from loopwright.graph.types import tensor_type
from loopwright.ops.definition.strategy import strategy_of
from loopwright.ops.families.matmul.matmul import dense, matmul
from loopwright.te import var as dimension

SHAPES = [
    ((5,), (5,)),
    ((5,), (5, 7)),
    ((3, 5), (5,)),
    ((3, 5), (5, 7)),
    ((1, 5), (5, 33)),
    ((2, 3, 5), (5, 7)),
    ((2, 3, 5), (2, 5, 7)),
    ((4, 1, 3, 5), (2, 5, 7)),
    ((3, 5), (2, 5, 7)),
    ((5,), (2, 5, 7)),
    ((2, 3, 5), (5,)),
    ((2, 3, 5), (1, 5, 1)),
    ((0, 5), (5, 7)),
    ((3, 0), (0, 7)),
]
TARGETS = ["native", *(["x86-64-v3", "x86-64"] if lw.resolve_target("native").has("avx2") else [])]
rng = np.random.default_rng(0)
TARGET = "x86-64-v3"


@pytest.mark.parametrize("native", [False, True], ids=["interpreted", "native"])
@pytest.mark.parametrize(("a", "b"), SHAPES, ids=str)
def test_products_follow_numpys_rules(ops, a, b, native):
    x, y = rng.normal(size=a).astype(np.float32), rng.normal(size=b).astype(np.float32)
    np.testing.assert_allclose(ops.apply(matmul, x, y, native=native), x @ y, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("shape", [(1, 40, 70), (33, 17, 65), (70, 129, 40), (13, 64, 16), (2, 3, 400)], ids=str)
def test_products_of_awkward_sizes_are_numpys_native(ops, shape):
    m, k, n = shape
    a, b = rng.normal(size=(m, k)).astype(np.float32), rng.normal(size=(k, n)).astype(np.float32)
    np.testing.assert_allclose(ops.apply(matmul, a, b, native=True), a @ b, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(ops.apply(dense, a, b.T, native=True), a @ b, rtol=1e-4, atol=1e-4)
    found = ops.apply(dense, a, b, native=True, transposed=False)
    np.testing.assert_allclose(found, a @ b, rtol=1e-4, atol=1e-4)


FEW = {  # operator, shapes, the implementation
    "row by matrix": (matmul, (1, 40), (40, 70), "matmul.few_rows"),
    "rows by matrices": (matmul, (2, 3, 40), (2, 40, 33), "matmul.few_rows"),
    "matrix by column": (matmul, (37, 67), (67, 1), "matmul.dots"),
    "matrices by columns": (matmul, (2, 24, 67), (67, 1), "matmul.dots"),
    "matrix by columns": (matmul, (24, 67), (67, 5), "matmul.paneled"),
    "row by weight": (dense, (1, 67), (37, 67), "matmul.dots"),
    "few rows by weight": (dense, (2, 67), (37, 67), "matmul.dots"),
    "rows by weight": (dense, (2, 6, 64), (40, 64), "matmul.paneled"),
}


@pytest.mark.parametrize("kind", ["float32", "int8"])
@pytest.mark.parametrize("case", FEW)
def test_few_rows_or_columns_have_implementations_of_their_own(ops, case, kind):
    op, a, b, name = FEW[case]
    x, y = (rng.integers(-128, 128, shape).astype(kind) for shape in (a, b))
    call = op(ops.var(a, kind), ops.var(b, kind))
    own = name.replace("paneled", "bytes").replace("few_rows", "bytes_few_rows") if kind == "int8" else name
    assert select_implementation(call, CompileSettings(lw.resolve_target(TARGET))).chosen.name == own
    wanted = x.astype(np.int64) @ (y.T if op is dense else y).astype(np.int64)
    np.testing.assert_array_equal(ops.apply(op, x, y, native=True, target=TARGET), wanted)  # exact in float32, too


@pytest.mark.parametrize(
    ("rows", "terms", "columns", "name"),
    [
        (64, 2048, 7, "matmul.dots"),
        (64, 2048, 8, "matmul.dots"),
        (64, 2048, 9, "matmul.paneled"),  # vectors of columns are full enough
        (64, 64, 7, "matmul.paneled"),  # to add the lanes takes longer
        (8, 2048, 7, "matmul.paneled"),  # it is not worth it to turn the right factor over
    ],
)
def test_many_rows_by_some_columns_are_summed_along_the_terms(ops, rows, terms, columns, name):
    a, b = (rng.normal(size=shape).astype(np.float32) for shape in ((rows, terms), (terms, columns)))
    call = matmul(ops.var(a.shape), ops.var(b.shape))
    assert select_implementation(call, CompileSettings(lw.resolve_target("x86-64-v4"))).chosen.name == name
    np.testing.assert_allclose(ops.apply(matmul, a, b, native=True), a @ b, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("target", ["x86-64-v3", "x86-64-v4"])
@pytest.mark.parametrize(
    ("rows", "known", "name"),
    [
        (4, True, "packed_matmul.blocked"),
        (16, True, "packed_matmul.blocked"),
        (4, False, "matmul.dots"),
        (16, False, "matmul.paneled"),
    ],
)
def test_some_rows_by_a_constant_take_panels_which_cost_nothing_then(rows, known, name, target):
    weight = rng.standard_normal((512, 256)).astype(np.float32)
    x = lw.var("x", (rows, 256))
    right = lw.const(weight) if known else lw.var("w", weight.shape)
    library = lw.compile(lw.Function([x] if known else [x, right], dense(x, right)), target, jobs=1)
    assert [c.implementation for f in library.functions for c in f.choices] == [name]


def test_lanes_of_terms_are_not_taken_where_the_order_of_sums_counts(ops):
    weight, target = ops.var((40, 64)), lw.resolve_target(TARGET)
    call = dense(ops.var((1, 64)), weight)
    assert select_implementation(call, CompileSettings(target, CodegenOptions("standard"))).chosen.name == "matmul.dots"
    assert (
        select_implementation(call, CompileSettings(target, CodegenOptions("strict"))).chosen.name == "matmul.paneled"
    )


def test_symbolic_rows_take_the_implementation_for_few_where_they_are_few():
    m = dimension("m")
    x, weight, packed = lw.var("x", (m, 64)), lw.var("weight", (40, 64)), lw.var("packed", (40, 33))
    model = lw.Function([x, weight, packed], lw.nn.matmul(lw.nn.dense(x, weight), packed))
    engine = lw.Engine(lw.compile(model))
    w, p = rng.normal(size=(40, 64)).astype(np.float32), rng.normal(size=(40, 33)).astype(np.float32)
    for rows in (1, 4, 5, 16, 17, 40):
        a = rng.normal(size=(rows, 64)).astype(np.float32)
        (found,) = engine([a, w, p])
        np.testing.assert_allclose(found, a @ w.T @ p, rtol=1e-3, atol=1e-3)


def test_integers_wrap_and_half_precision_is_summed_in_float32(ops):
    a, b = np.full((2, 300), 100, np.int16), np.full((300, 2), 3, np.int16)
    for native in (False, True):
        np.testing.assert_array_equal(ops.apply(matmul, a, b, native=native), a @ b)
    for kind in (np.float16, ml_dtypes.bfloat16):
        ones = np.ones((1, 5000), kind)  # in float16 a sum of ones stops growing at 2048, in bfloat16 at 256
        assert ops.apply(matmul, ones, ones.T)[0, 0] == kind(5000)


def test_nan_and_infinity_come_through(ops):
    a = np.array([[np.inf, 1.0], [np.nan, 1.0], [0.0, 1.0]], np.float32)
    b = np.array([[1.0, -1.0], [2.0, np.inf]], np.float32)
    with np.errstate(invalid="ignore"):
        wanted = a @ b
    np.testing.assert_array_equal(ops.apply(matmul, a, b, native=True), wanted)


def test_symbolic_dimensions_come_through(ops):
    n, m = dimension("n"), dimension("m")
    assert matmul(ops.var((n, 4, m)), ops.var((m, 3))).type is tensor_type((n, 4, 3), "float32")
    assert dense(ops.var((n, 4)), ops.var((3, 4))).type is tensor_type((n, 3), "float32")
    x, w = ops.var((n, 8)), ops.var((8, 5))
    a, b = rng.normal(size=(7, 8)).astype(np.float32), rng.normal(size=(8, 5)).astype(np.float32)
    for native in (False, True):
        np.testing.assert_allclose(ops.evaluate(matmul(x, w), {x: a, w: b}, native=native), a @ b, rtol=1e-5, atol=1e-6)


def test_a_constant_weight_is_turned_over_once(ops):
    x, w = ops.var((2, 5)), rng.normal(size=(5, 5)).astype(np.float32)
    weight = Constant(w)
    function = turn_weights(lw.Function([x], dense(dense(x, weight), weight)))
    last, first = function.body, function.body.args[0]
    assert not last.attrs.transposed
    assert last.args[1] is first.args[1]
    np.testing.assert_array_equal(last.args[1].value, w.T)
    a = rng.normal(size=(2, 5)).astype(np.float32)
    np.testing.assert_allclose(ops.evaluate(last, {x: a}), a @ w.T @ w.T, rtol=1e-5, atol=1e-5)
    open_weight = lw.Function([x, y := ops.var((3, 5), name="y")], dense(x, y))
    assert turn_weights(open_weight) is open_weight


def test_large_matrices_are_turned_over_in_squares():
    w = rng.normal(size=(300, 517))
    np.testing.assert_array_equal(Constant(w.T).value, w.T)
    assert Constant(w.T).value.flags.c_contiguous


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda v: matmul(v((2, 3)), v((4, 5))), "the axes to multiply over differ in extent: 3 of a and 4 of b"),
        (lambda v: matmul(v((3,)), v((4,))), "the axes to multiply over differ in extent: 3 of a and 4 of b"),
        (lambda v: matmul(v(()), v((4, 5))), "a scalar has no axis to multiply over"),
        (lambda v: matmul(v((2, 3)), v((3, 2), "float64")), "a is float32, but b is float64"),
        (lambda v: matmul(v((2, 3), "bool"), v((3, 2), "bool")), "a product is of numbers, not of bool"),
        (lambda v: matmul(v((2, 4, 3)), v((3, 3, 2))), "extents 2 of a and 3 of b do not broadcast"),
        (lambda v: dense(v((2, 3)), v((4, 5))), "the axes to multiply over differ in extent: 3 of x and 5 of weight"),
        (lambda v: dense(v((2, 3)), v((3, 4)), transposed=True), "differ in extent: 3 of x and 4 of weight"),
        (lambda v: dense(v((2, 3)), v((3,))), "weight two axes"),
        (lambda v: matmul(v((2, 3), "int8"), v((3, 2), "int16")), "a is int8, but b is int16"),
        (lambda v: dense(v((2, 3), "uint8"), v((4, 3))), "x is uint8, but weight is float32"),
        (
            lambda v: matmul(v((2, 3), "int8"), v((3, 2), "uint8"), out_dtype="int8"),
            "(a: int8[2, 3], b: uint8[3, 2]): out_dtype is int8, but sums of products of int8 and uint8 are int32",
        ),
        (lambda v: dense(v((2, 3)), v((4, 3)), out_dtype="float64"), "out_dtype is float64, but sums"),
    ],
)
def test_misuse_is_a_type_inference_error(ops, make, message):
    with pytest.raises(TypeInferenceError) as caught:
        make(ops.var)
    assert message in str(caught.value)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    ("a", "b"),
    [((70, 33), (33, 90)), ((3, 20), (20, 300)), ((2, 3, 50, 20), (3, 20, 40)), ((64, 1024), (1024, 1100))],
    ids=str,
)
def test_what_follows_is_computed_in_the_same_nest(ops, a, b, target):
    resolved = lw.resolve_target(target)
    call = matmul(ops.var(a), ops.var(b))
    ops.check_product_with_epilogue(
        call, "matmul.paneled" if a[-2] > 4 else "matmul.few_rows", resolved, tolerance=1e-3
    )


@pytest.mark.parametrize("make", [matmul, dense, lambda x, w: dense(x, w, transposed=False)], ids=["kn", "nk", "dense"])
@pytest.mark.parametrize("shape", [(1, 40, 70), (37, 65, 100), (2, 13, 64, 48), (30, 1024, 40)], ids=str)
def test_constants_are_packed_when_the_model_is_compiled(make, shape):
    *rows, k, n = shape
    w = rng.normal(size=(n, k) if make is dense else (k, n)).astype(np.float32)
    bias = rng.normal(size=n).astype(np.float32)
    x = lw.var("x", (*rows, k))
    library = lw.compile(lw.Function([x], lw.nn.relu(lw.nn.add(make(x, Constant(w)), Constant(bias)))))
    assert [f.name for f in library.functions] == ["fused_nn_packed_matmul_add_relu"]
    a = rng.normal(size=(*rows, k)).astype(np.float32)
    (found,) = lw.Engine(library)([a])
    wanted = np.maximum(a @ (w.T if make is dense else w) + bias, 0)
    np.testing.assert_allclose(found, wanted, rtol=1e-3, atol=1e-3)


def test_panels_hold_the_columns_they_say(ops):
    with pytest.raises(TypeInferenceError, match="40 columns do not fill 2 panels of 16"):
        lw.nn.packed_matmul(ops.var((3, 5)), ops.var((2, 5, 16)), columns=40)
    with pytest.raises(TypeInferenceError, match="differ in extent: 4 of a and 5 of panels"):
        lw.nn.packed_matmul(ops.var((3, 4)), ops.var((2, 5, 16)), columns=32)
    with pytest.raises(TypeInferenceError, match="a needs two axes at least, and panels has three"):
        lw.nn.packed_matmul(ops.var((5,)), ops.var((2, 5, 16)), columns=32)


@pytest.mark.parametrize("width", [32, 64])
def test_panels_wider_than_the_registers_are_multiplied(width):
    rng = np.random.default_rng(0)
    a, panels = (rng.uniform(-1, 1, shape).astype(np.float32) for shape in ((7, 5), (2, 5, width)))
    x = lw.var("x", a.shape)
    product = lw.nn.packed_matmul(x, lw.const(panels), columns=2 * width - 3)
    library = lw.compile(lw.Function([x], product), "x86-64", jobs=1)
    wanted = a.astype(np.float64) @ panels.swapaxes(0, 1).reshape(5, -1)[:, :-3]
    np.testing.assert_allclose(lw.Engine(library)([a])[0], wanted, rtol=1e-5, atol=1e-5)


def test_float_products_have_one_definition_and_schedules():
    call = matmul(lw.var("a", (48, 3000)), lw.var("b", (3000, 5000)))
    offered = strategy_of(call.op, call.attrs, [a.type for a in call.args], call.type, lw.resolve_target(TARGET))
    computes = {made.name: made.compute for _, made in offered.candidates()}
    names = ("matmul.direct", "matmul.paneled", "matmul.few_rows", "matmul.streamed")
    assert len({computes[name] for name in names}) == 1


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("size", [5, 24, 70])
def test_a_matrix_is_multiplied_by_itself(size, target):
    x = lw.var("x", (size, size))
    value = rng.integers(-8, 9, (size, size)).astype(np.float32)
    (found,) = lw.Engine(lw.compile(lw.Function([x], matmul(x, x)), target=target))([value])
    np.testing.assert_array_equal(found, value @ value)


@pytest.mark.parametrize("target", ["x86-64-v3", "x86-64-v4"])
def test_panels_of_a_ragged_constant_serve_an_open_number_of_rows(target):
    a = lw.var("a", (dimension("n"), 100))
    product = matmul(a, lw.const(np.ones((100, 1000), np.float32)))
    library = lw.compile(lw.Function([a], product), target=target)
    chosen = [c.implementation for f in library.model.functions for c in f.choices]
    assert chosen[0] == "packed_matmul.blocked_one_row"
    assert chosen[-1] == "packed_matmul.blocked"


@pytest.mark.parametrize("target", ["x86-64-v3", "znver4"])
@pytest.mark.parametrize(("rows", "terms"), [((7, 7), 3072), ((14, 14), 1536), ((5,), 2000)])
def test_products_of_rows_in_an_open_batch_have_their_schedule(rows, terms, target, caplog):
    """Their number is no multiple of a tile's rows: that there are any follows from the number of tiles."""
    x = lw.var("x", (dimension("b"), *rows, terms))
    product = lw.nn.matmul(x, lw.const(np.ones((terms, 768), np.float32)))
    library = lw.compile(lw.Function([x], product), target=target, jobs=1)
    assert "packed_matmul.blocked" in [c.implementation for f in library.functions for c in f.choices]
    assert not [r for r in caplog.records if "refused" in r.message]


def test_tiles_of_pixels_of_open_images_fetch_no_whole_images():
    shape = dimension("b"), dimension("h"), dimension("w"), 96
    x = lw.var("x", shape)
    product = lw.nn.matmul(x, lw.const(np.ones((96, 384), np.float32)))
    (function,) = lw.compile(lw.Function([x], product), target="x86-64-v4", jobs=1).functions
    loops_that_fetch = re.findall(r"_ahead\w* in range\(.*\)", function.loop_ir)
    assert not [loop for loop in loops_that_fetch if "n1" in loop]


@pytest.mark.parametrize("columns", [214, 360])
@pytest.mark.parametrize("batch", [(), (dimension("b"),)])
def test_products_of_open_rows_by_a_constant_have_their_schedule_whatever_the_columns(columns, batch, caplog):
    rng = np.random.default_rng(0)
    weight = rng.standard_normal((120, columns)).astype(np.float32)
    x = lw.var("x", (*batch, dimension("n"), 120))
    library = lw.compile(lw.Function([x], lw.nn.relu(lw.nn.matmul(x, lw.const(weight)))), target="znver4", jobs=1)
    assert "packed_matmul.blocked" in [c.implementation for f in library.functions for c in f.choices]
    assert not [r for r in caplog.records if "refused" in r.message]

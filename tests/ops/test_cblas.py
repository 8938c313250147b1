"""Products by BLAS against numpy: in kernels, models and saved libraries, and where they are not offered."""

import ctypes
import re

import needed_tools
import numpy as np
import pytest

import loopwright as lw
from loopwright import te
from loopwright.compiler.selection.select import select_implementation
from loopwright.compiler.settings import CompileSettings
from loopwright.ops.families.matmul import cblas
from loopwright.runtime.functions import symbols

needed_tools.module("scipy")

TARGET = lw.resolve_target("llvm -mcpu=native -libs=cblas")
rng = np.random.default_rng(0)

SHAPES = [
    ((3, 5), (5, 7)),
    ((1, 70), (70, 33)),
    ((129, 65), (65, 1)),
    ((200, 150), (150, 90)),
    ((5, 100), (100, 1300)),
    ((2, 3, 17, 33), (33, 9)),
    ((2, 3, 17, 33), (3, 33, 9)),
    ((2, 1, 7, 5), (1, 3, 5, 4)),
    ((4, 5), (3, 5, 2)),
    ((5,), (5, 6)),
    ((4, 5), (5,)),
    ((5,), (5,)),
    ((3, 4, 5), (5,)),
    ((2, 3, 5), (1, 5, 4)),
    ((5,), (3, 5, 4)),
    ((0, 5), (5, 7)),
    ((4, 5), (5, 0)),
]


def normal(*shape, kind="float32"):
    return rng.standard_normal(shape).astype(kind)


def var_of(array, name):
    return lw.var(name, array.shape, array.dtype.name)


def close(found, wanted):
    np.testing.assert_allclose(found, wanted, rtol=2e-4, atol=2e-4)


def compiled(make, *arrays, target=TARGET, **options):
    variables = [var_of(array, f"x{k}") for k, array in enumerate(arrays)]
    return lw.compile(lw.Function(variables, make(*variables)), target=target, jobs=1, **options)


def chosen(library):
    return [choice.implementation for function in library.functions for choice in function.choices]


@pytest.mark.parametrize(("a", "b"), SHAPES, ids=str)
def test_matmul_follows_numpys_rules(a, b):
    x, y = normal(*a), normal(*b)
    library = compiled(lw.nn.matmul, x, y)
    assert chosen(library) == ["matmul.cblas"]
    close(lw.Engine(library)([x, y])[0], x.astype(np.float64) @ y)


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("kind", ["float32", "float64"])
def test_dense_takes_weights_either_way_round_and_what_follows_runs_behind_the_call(transposed, kind):
    x, w, b = normal(2, 9, 40, kind=kind), normal(40, 25, kind=kind), normal(25, kind=kind)
    weight = np.ascontiguousarray(w.T) if transposed else w

    def layer(x, weight, b):
        return lw.nn.relu(lw.nn.add(lw.nn.dense(x, weight, transposed=transposed), b))

    library = compiled(layer, x, weight, b)
    assert len(library.functions) == 1
    assert chosen(library)[0] == "dense.cblas"
    close(lw.Engine(library)([x, weight, b])[0], np.maximum(x @ w + b, 0))


def test_the_number_of_rows_may_be_symbolic():
    n, x, w = te.var("n"), normal(2600, 20), normal(20, 30)
    made = lw.nn.dense(lw.var("x", (n, 20)), lw.const(w), transposed=False)
    found = select_implementation(made, CompileSettings(TARGET))
    assert found.chosen.name == "dense.cblas"
    tensors = [te.placeholder((n, 20), name="x"), te.placeholder((20, 30), name="w")]
    output = found.chosen.compute(made.attrs, tuple(tensors), made.type)
    kernel = lw.build(lw.create_schedule(output), [*tensors, output], target=TARGET)
    for rows in (0, 1, 5, 2600):
        y = np.full((rows, 30), np.nan, np.float32)
        kernel(x[:rows], w, y)
        close(y, x[:rows] @ w)


def test_a_symbolic_number_of_terms_is_guarded_since_blas_may_leave_an_empty_sum_unwritten():
    k = te.var("k")
    call = lw.nn.matmul(lw.var("a", (4, k)), lw.var("b", (k, 3)))
    library = next(
        c
        for c in select_implementation(call, CompileSettings(TARGET)).candidates
        if c.implementation.name == "matmul.cblas"
    )
    assert library.guards == ("k >= 1", "k <= 2147483647")


@pytest.mark.parametrize(
    ("kinds", "shape", "reason"),
    [
        (("int32", "int32"), (4, 4), "float32 or float64 throughout"),
        (("float16", "float16"), (4, 4), "float32 or float64 throughout"),
        (("float32", "float32"), (4, 0), ">= 1"),
        (("float32", "float32"), (1, 1 << 31), "<= 2147483647"),
    ],
)
def test_what_it_cannot_serve_is_left_to_others(kinds, shape, reason):
    a, b = lw.var("a", shape, kinds[0]), lw.var("b", shape[::-1], kinds[1])
    found = select_implementation(lw.nn.matmul(a, b), CompileSettings(TARGET))
    refused = next(c for c in found.candidates if c.implementation.name == "matmul.cblas")
    assert reason in refused.rejected
    assert found.chosen.name != "matmul.cblas"


def test_strict_precision_does_without_since_blas_sums_in_an_order_of_its_own():
    x, y = normal(8, 8), normal(8, 8)
    library = compiled(lw.nn.matmul, x, y, precision="strict")
    assert "matmul.cblas" not in chosen(library)
    (choice,) = library.functions[0].choices
    (refused,) = (c for c in choice.candidates if c.implementation == "matmul.cblas")
    assert [clause.text for clause in refused.clauses if not clause.holds] == [
        "sums in the order of the definition (strict precision)"
    ]
    close(lw.Engine(library)([x, y])[0], x @ y)


def test_explanations_show_it_chosen_and_refused():
    a, b = lw.var("a", (64, 32)), lw.var("b", (32, 48))
    function = lw.Function([a, b], lw.nn.matmul(a, b))
    assert "→ matmul.cblas" in str(lw.explain(function, target=TARGET))
    strict = str(lw.explain(function, target=TARGET, precision="strict"))
    assert "→ matmul.cblas" not in strict
    assert re.search(r"matmul\.cblas .*rejected.*sums in the order of the definition \(strict precision\)", strict)


def test_without_the_library_in_the_target_it_is_not_offered():
    found = select_implementation(
        lw.nn.matmul(lw.var("a", (4, 4)), lw.var("b", (4, 4))), CompileSettings(lw.resolve_target("native"))
    )
    assert all("cblas" not in c.implementation.name for c in found.candidates)


def test_the_result_does_not_depend_on_the_number_of_threads():
    x, y = normal(300, 200), normal(200, 300)
    library = compiled(lw.nn.matmul, x, y)
    one, several = (lw.Engine(library, threads=threads)([x, y])[0] for threads in (1, 4))
    np.testing.assert_array_equal(one, several)
    assert "parallel" in library.functions[0].loop_ir


def test_a_saved_library_finds_blas_when_it_is_loaded(tmp_path):
    x, y = normal(6, 8), normal(8, 5)
    library = compiled(lw.nn.matmul, x, y)
    library.save(tmp_path / "product.lwlib")
    loaded = lw.load(tmp_path / "product.lwlib")
    assert [p.split("(")[0] for p in loaded.functions[0].externs] == ["void sgemm_"]
    engine = lw.Engine(loaded)
    close(engine([x, y])[0], x @ y)
    assert len(engine.time_steps([x, y])) == 1


def test_blas_uses_one_thread_of_its_own():
    blas = needed_tools.module("scipy.linalg.cython_blas")
    lw.Engine(compiled(lw.nn.matmul, normal(4, 4), normal(4, 4)))([normal(4, 4), normal(4, 4)])
    library = ctypes.CDLL(blas.__file__)
    if not hasattr(library, "scipy_openblas_get_num_threads"):
        pytest.skip("this scipy brings no OpenBLAS of its own")
    assert library.scipy_openblas_get_num_threads() == 1


def test_blocks_cut_the_longer_side_and_are_few():
    e = te.const
    assert cblas._block((), e(8, "index"), e(8, "index"), e(8, "index")) == (8, 8)
    assert cblas._block((), e(4096, "index"), e(512, "index"), e(512, "index")) == (256, 512)
    assert cblas._block((), e(32, "index"), e(4096, "index"), e(512, "index")) == (32, 256)
    assert cblas._block((e(64, "index"),), e(512, "index"), e(512, "index"), e(512, "index")) == (512, 512)


def test_a_model_of_symbolic_shapes_calls_blas_where_its_guards_hold():
    n, k = te.var("n"), te.var("k")
    a, b = lw.var("a", (n, k)), lw.var("b", (k, 5))
    library = lw.compile(lw.Function([a, b], lw.nn.relu(lw.nn.matmul(a, b))), target=TARGET, jobs=1)
    assert chosen(library) == ["matmul.cblas", "matmul.paneled", "matmul.direct", "relu.generic"]
    engine = lw.Engine(library)
    for rows, terms in ((3, 4), (0, 4), (3, 0), (70, 33)):
        x, y = normal(rows, terms), normal(terms, 5)
        close(engine([x, y])[0], np.maximum(x @ y, 0))


def test_compiled_functions_are_kept_apart_by_the_libraries_of_their_targets():
    x, y = normal(5, 6), normal(6, 7)
    plain = lw.resolve_target("native")
    assert str(plain) != str(TARGET)
    for target, name in ((TARGET, "matmul.cblas"), (plain, "matmul.paneled"), (TARGET, "matmul.cblas")):
        assert chosen(compiled(lw.nn.matmul, x, y, target=target)) == [name]


def test_another_blas_may_be_registered_in_the_place_of_scipys(monkeypatch):
    asked = []

    def sgemm(*arguments):
        asked.append([arguments[k][0] for k in (2, 3, 4, 7, 9, 12)])

    monkeypatch.setattr(symbols, "_registered", {})
    pointers = [ctypes.POINTER(c) for c in (*[ctypes.c_int8] * 2, *[ctypes.c_int] * 3, *[ctypes.c_float] * 2)]
    matrix, size = ctypes.POINTER(ctypes.c_float), ctypes.POINTER(ctypes.c_int)
    callback = ctypes.CFUNCTYPE(None, *pointers, size, matrix, size, matrix, matrix, size)(sgemm)
    lw.register_symbol(cblas.GEMM["float32"], callback)
    x, y = normal(5, 6), normal(6, 7)
    lw.Engine(compiled(lw.nn.matmul, x, y))([x, y])
    assert asked == [[7, 5, 6, 7, 6, 7]]  # by columns the product of y and x: 7 by 5, with rows of 7, 6 and 7 apart

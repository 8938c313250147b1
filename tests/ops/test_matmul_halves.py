"""Products of float16 and bfloat16 against float64: sums in float32, on targets that multiply pairs and on others."""

import ml_dtypes
import numpy as np
import pytest

import loopwright as lw
from loopwright import te
from loopwright.artifact.options import CodegenOptions
from loopwright.base.errors import TypeInferenceError
from loopwright.compiler.selection.select import select_implementation
from loopwright.compiler.settings import CompileSettings
from loopwright.graph.node import Constant
from loopwright.ops.definition.implementation import outputs_of
from loopwright.ops.families.matmul.batch_matmul import batch_matmul
from loopwright.ops.families.matmul.matmul import dense, matmul
from loopwright.ops.families.matmul.packed import WordPanels
from loopwright.ops.families.transpose import transpose

PAIRS, OTHER = (lw.resolve_target(f"llvm -mtriple=x86_64-unknown-linux-gnu -mcpu={c}") for c in ("znver4", "x86-64-v3"))
KINDS = {"float16": np.float16, "bfloat16": ml_dtypes.bfloat16}


def operands(kind, *shapes):
    rng = np.random.default_rng(0)
    return [rng.standard_normal(shape).astype(KINDS[kind]) for shape in shapes]


def interpreted(call, target, arrays, kind=None):
    """What the implementation that is chosen gives, as it is scheduled."""
    chosen = select_implementation(call, CompileSettings(target)).chosen
    inputs = tuple(te.placeholder(a.type.shape, a.type.dtype, name=a.name) for a in call.args)
    computed = chosen.computed(call.op.name, call.attrs, inputs, call.type)
    anchor = outputs_of(computed)
    schedule = chosen.schedule(call.attrs, computed, anchor, target)
    result = np.empty([int(e) for e in call.type.shape], kind or arrays[0].dtype)
    lw.interpret(lw.lower(schedule, [*inputs, *anchor], name="product"))(*arrays, result)
    return chosen.name, result


@pytest.mark.parametrize(
    ("kind", "target", "name"),
    [("bfloat16", PAIRS, "matmul.pairs"), ("bfloat16", OTHER, "matmul.widened"), ("float16", PAIRS, "matmul.widened")],
    ids=["pairs", "widened", "float16"],
)
@pytest.mark.parametrize("extents", [(5, 6, 9), (17, 7, 33), (1, 1, 2)], ids=str)
@pytest.mark.parametrize("transposed", [False, True])
def test_sums_are_kept_in_float32_and_rounded_once(kind, target, name, extents, transposed):
    m, k, n = extents
    a, b = operands(kind, (m, k), (n, k) if transposed else (k, n))
    x, weight = lw.var("x", a.shape, kind), lw.var("weight", b.shape, kind)
    found, result = interpreted(dense(x, weight) if transposed else matmul(x, weight), target, [a, b])
    wanted = a.astype("float64") @ (b.T if transposed else b).astype("float64")
    assert found == ("matmul.few_rows" if m == 1 and not transposed else name)
    np.testing.assert_allclose(result.astype("float64"), wanted, rtol=2**-7, atol=1e-5)
    if kind == "bfloat16":
        np.testing.assert_array_equal(result, wanted.astype("float32").astype(KINDS[kind]))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shapes", [((33, 47), (47, 65)), ((2, 3, 16), (2, 16, 5)), ((2, 3, 4), (4, 7))], ids=str)
def test_native_products_are_numpys(ops, kind, shapes):
    a, b = operands(kind, *shapes)
    result = ops.apply(matmul, a, b, native=True)
    np.testing.assert_allclose(
        result.astype("float64"), a.astype("float64") @ b.astype("float64"), rtol=2**-7, atol=1e-5
    )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("lies", ["rows", "columns"])
def test_factors_of_open_extents_are_widened_once(kind, lies):
    m, k, n = te.var("m"), te.var("k"), te.var("n")
    x = lw.var("x", (m, 2, k), kind)
    y = lw.var("y", (2, k, n) if lies == "rows" else (2, n, k), kind)
    rows = transpose(x, (1, 0, 2))
    product = matmul(rows, y) if lies == "rows" else batch_matmul(rows, y, transpose_b=True)
    library = lw.compile(lw.Function([x, y], product), target="x86-64-v3", jobs=1, progress=False)
    chosen = {choice.implementation for function in library.functions for choice in function.choices}
    assert ("matmul.widened" if lies == "rows" else "batch_matmul.widened") in chosen
    engine = lw.Engine(library)
    for rows_of_each, terms, columns in ((1, 5, 3), (2, 1, 17), (17, 64, 17), (5, 33, 70), (3, 0, 4)):
        shape = (2, terms, columns) if lies == "rows" else (2, columns, terms)
        a, b = operands(kind, (rows_of_each, 2, terms), shape)
        right = b if lies == "rows" else b.transpose(0, 2, 1)
        wanted = a.astype("float64").transpose(1, 0, 2) @ right.astype("float64")
        (result,) = engine([a, b])
        np.testing.assert_allclose(result.astype("float64"), wanted, rtol=2**-7, atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_few_rows_of_an_open_number_widen_the_right_factor_where_they_read_it(kind):
    """Others widen it once, into panels. One matrix multiplies the rows of all matrices on the left."""
    x, y = lw.var("x", (lw.te.var("n"), 3, 20), kind), lw.var("y", (20, 37), kind)
    library = lw.compile(lw.Function([x, y], lw.nn.relu(matmul(x, y))), target=OTHER, jobs=1, progress=False)
    (function,) = library.functions
    assert [choice.implementation for choice in function.choices][:2] == ["matmul.few_rows", "matmul.widened"]
    engine = lw.Engine(library)
    for count in (0, 1, 2, 5):
        a, b = operands(kind, (count, 3, 20), (20, 37))
        wanted = np.maximum(a.astype("float64") @ b.astype("float64"), 0)
        np.testing.assert_allclose(engine([a, b])[0].astype("float64"), wanted, rtol=2**-7, atol=1e-5)


def test_strict_precision_takes_no_pairs():
    x, y = lw.var("x", (8, 8), "bfloat16"), lw.var("y", (8, 8), "bfloat16")
    assert (
        select_implementation(matmul(x, y), CompileSettings(PAIRS, CodegenOptions("strict"))).chosen.name
        == "matmul.widened"
    )
    names = [function.name for function in compiled(PAIRS, weight=np.ones((8, 8)), precision="strict").functions]
    assert names == ["fused_nn_matmul"]


def compiled(target, weight, make=matmul, **options):
    """A product by a constant of bfloat16, for another machine, maybe."""
    x = lw.var("x", (37, weight.shape[make is dense]), "bfloat16")
    return lw.compile(lw.Function([x], make(x, Constant(weight.astype(KINDS["bfloat16"])))), target=target, **options)


@pytest.mark.parametrize("make", [matmul, dense, lambda x, w: dense(x, w, transposed=False)], ids=["kn", "nk", "dense"])
@pytest.mark.parametrize(("target", "name"), [(PAIRS, "nn_packed_pair_matmul"), (OTHER, "nn_packed_matmul")])
def test_constants_are_packed_in_pairs_where_the_target_multiplies_these(make, target, name):
    weight = np.ones((100, 66) if make is dense else (66, 100))
    (function,) = compiled(target, weight, make).functions
    assert function.name == f"fused_{name}"


@pytest.mark.parametrize("kind", ["bfloat16", "float32"])
@pytest.mark.parametrize(("extents", "width"), [((5, 6, 9), 16), ((17, 7, 33), 32), ((1, 1, 2), 16), ((4, 10, 64), 24)])
def test_sums_over_packed_pairs_are_rounded_once(extents, width, kind):
    m, k, n = extents
    a, b = operands("bfloat16", (m, k), (k, n))
    panels = np.ascontiguousarray(WordPanels(width, transposed=False)(b))
    call = lw.nn.packed_pair_matmul(lw.var("a", a.shape, "bfloat16"), lw.var("p", panels.shape, "int32"), n, kind)
    found, result = interpreted(call, PAIRS, [a, panels], np.dtype(KINDS.get(kind, kind)))
    assert found == ("packed_pair_matmul.direct" if width % 16 else "packed_pair_matmul.blocked")
    wanted = (a.astype("float64") @ b.astype("float64")).astype("float32")
    if kind == "float32":
        np.testing.assert_allclose(result, wanted, rtol=1e-5, atol=1e-5)
    else:
        np.testing.assert_array_equal(result, wanted.astype(KINDS[kind]))


def test_packed_pairs_run_on_any_machine(ops):
    """The instruction where there is one, two products elsewhere; rows whose stride divides pages; what follows."""
    a, b = operands("bfloat16", (29, 2048), (2048, 50))
    panels = np.ascontiguousarray(WordPanels(32, transposed=False)(b))
    x, words = lw.var("a", a.shape, "bfloat16"), lw.var("p", panels.shape, "int32")
    call = lw.nn.relu(lw.nn.packed_pair_matmul(x, words, 50, "float32"))
    (result,) = lw.Engine(lw.compile(lw.Function([x, words], call)))([a, panels])
    np.testing.assert_allclose(result, np.maximum(a.astype("float64") @ b.astype("float64"), 0), atol=1e-3)


def test_panels_of_pairs_hold_what_they_say(ops):
    a = ops.var((3, 5), "bfloat16")
    with pytest.raises(TypeInferenceError, match="40 columns do not fill 2 panels of 16"):
        lw.nn.packed_pair_matmul(a, ops.var((2, 3, 16), "int32"), columns=40)
    with pytest.raises(TypeInferenceError, match="differ in extent: 3 of words of a and 4 of panels"):
        lw.nn.packed_pair_matmul(a, ops.var((2, 4, 16), "int32"), columns=32)
    with pytest.raises(TypeInferenceError, match="multiplied by pairs in int32, to bfloat16 or float32; found"):
        lw.nn.packed_pair_matmul(ops.var((3, 5), "float16"), ops.var((2, 3, 16), "int32"), columns=32)
    with pytest.raises(TypeInferenceError, match=r"found .* float16"):
        lw.nn.packed_pair_matmul(a, ops.var((2, 3, 16), "int32"), columns=32, out_dtype="float16")

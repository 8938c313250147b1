"""Products of float16 and bfloat16 against float64: sums in float32, on targets that multiply pairs and on others."""

import ml_dtypes
import numpy as np
import pytest

import loopwright as lw
from loopwright import te
from loopwright.compiler.selection import select_implementation
from loopwright.ops.matmul.matmul import dense, matmul

PAIRS, OTHER = (lw.resolve_target(f"llvm -mtriple=x86_64-unknown-linux-gnu -mcpu={c}") for c in ("znver4", "x86-64-v3"))
KINDS = {"float16": np.float16, "bfloat16": ml_dtypes.bfloat16}


def operands(kind, *shapes):
    rng = np.random.default_rng(0)
    return [rng.standard_normal(shape).astype(KINDS[kind]) for shape in shapes]


def interpreted(call, target, arrays):
    """What the implementation that is chosen gives, as it is scheduled."""
    chosen = select_implementation(call, target).chosen
    inputs = tuple(te.placeholder(a.type.shape, a.type.dtype, name=a.name) for a in call.args)
    anchor = (chosen.compute(call.attrs, inputs, call.type),)
    schedule = chosen.schedule(call.attrs, anchor, anchor, target)
    result = np.empty([int(e) for e in call.type.shape], arrays[0].dtype)
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
    assert found == name
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


def test_strict_precision_takes_no_pairs():
    x, y = lw.var("x", (8, 8), "bfloat16"), lw.var("y", (8, 8), "bfloat16")
    assert select_implementation(matmul(x, y), PAIRS, "strict").chosen.name == "matmul.widened"

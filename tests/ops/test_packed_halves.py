"""Products of halves by a constant: packed as halves, widened in registers, summed in float32, rounded once."""

import ml_dtypes
import numpy as np
import pytest

import loopwright as lw

KINDS = {"float16": (np.float16, 2.0**-11), "bfloat16": (ml_dtypes.bfloat16, 2.0**-8)}


def product(kind, rows, terms, columns, transposed, target, **options):
    """The library of x · w for a constant w, x, and the product in float64."""
    rng = np.random.default_rng(rows * terms + columns)
    x, w = (rng.standard_normal(shape).astype(kind) for shape in ((rows, terms), (terms, columns)))
    left = lw.var("x", (rows, terms), np.dtype(kind).name)
    weight = lw.const(np.ascontiguousarray(w.T) if transposed else w)
    body = lw.nn.dense(left, weight, transposed=transposed)
    library = lw.compile(lw.Function([left], body), target=target, jobs=1, **options)
    return library, x, x.astype(np.float64) @ w.astype(np.float64)


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize(("rows", "terms", "columns"), [(1, 64, 48), (7, 33, 37), (40, 128, 130)])
def test_products_are_rounded_once(name, transposed, rows, terms, columns):
    kind, epsilon = KINDS[name]
    library, x, expected = product(kind, rows, terms, columns, transposed, "x86-64-v3")
    assert [f.implementation for f in library.functions] == ["packed_matmul.widened"]
    (packed,) = library.model.constants
    assert packed.dtype == kind  # no larger than the weight, but for the last panel
    (y,) = lw.Engine(library, threads=1)({"x": x})
    bound = 1.02 * epsilon * np.exp2(np.ceil(np.log2(np.abs(expected) + 1e-9))) + 1e-5
    assert np.all(np.abs(y.astype(np.float64) - expected) <= bound)


def test_a_target_without_instructions_for_it_widens_each_factor_once():
    library, x, expected = product(np.float16, 5, 40, 24, False, "x86-64")
    assert [f.call.op for f in library.functions] == ["nn.dense"]
    (y,) = lw.Engine(library, threads=1)({"x": x})
    np.testing.assert_allclose(y, expected, rtol=2e-3, atol=2e-3)


def test_the_definition_sums_in_float32():
    """1024 and 1024 times 2^-11: sums in float16 would not grow."""
    x, panels = np.full((1, 1025), 1, np.float16), np.full((1, 1025, 8), 2.0**-11, np.float16)
    x[0, 0], panels[0, 0] = 1024, 1
    left = lw.var("x", x.shape, "float16")
    function = lw.Function([left], lw.nn.packed_matmul(left, lw.const(panels), columns=8))
    for precision in ("strict", "standard"):
        library = lw.compile(function, target="x86-64-v3", precision=precision, jobs=1)
        np.testing.assert_array_equal(lw.Engine(library, threads=1)({"x": x})[0], np.float16(1024.5))

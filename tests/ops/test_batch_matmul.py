"""nn.batch_matmul against numpy: transposes, batches that broadcast, dtypes, symbolic dimensions, misuse."""

from itertools import product

import needed_tools
import numpy as np
import pytest

import loopwright as lw
from loopwright import te
from loopwright.graph.types import tensor_type
from loopwright.ops.families.matmul.batch_matmul import batch_matmul

rng = np.random.default_rng(0)
TRANSPOSES = list(product([False, True], repeat=2))


def turned(array, transposed):
    return np.ascontiguousarray(array.swapaxes(1, 2)) if transposed else array


def operands(a, b, transposes, kind="float32"):
    """Arrays as they are multiplied, and as they are stored."""
    made = [rng.normal(size=shape).astype(kind) for shape in (a, b)]
    return made, [turned(x, t) for x, t in zip(made, transposes, strict=True)]


@pytest.mark.parametrize("transposes", TRANSPOSES, ids=str)
@pytest.mark.parametrize("batches", [(3, 3), (1, 3), (3, 1), (1, 1)], ids=str)
def test_products_and_transposes_are_numpys(ops, batches, transposes):
    (a, b), stored = operands((batches[0], 5, 6), (batches[1], 6, 7), transposes)
    found = ops.apply(batch_matmul, *stored, transpose_a=transposes[0], transpose_b=transposes[1])
    np.testing.assert_allclose(found, a @ b, rtol=1e-5, atol=1e-5)


LIBRARY = "llvm -mcpu=native -libs=cblas"


@pytest.mark.parametrize("transposes", TRANSPOSES, ids=str)
@pytest.mark.parametrize(("target", "kind"), [("native", "float32"), (LIBRARY, "float32"), (LIBRARY, "float64")])
def test_models_with_awkward_sizes_and_an_epilogue_are_numpys(target, kind, transposes):
    if target == LIBRARY:
        needed_tools.module("scipy")
    (a, b), stored = operands((3, 37, 130), (1, 130, 65), transposes, kind)
    x, y = (lw.var(f"x{k}", array.shape, kind) for k, array in enumerate(stored))
    made = lw.nn.relu(batch_matmul(x, y, *transposes))
    library = lw.compile(lw.Function([x, y], made), target=target, jobs=1)
    assert library.functions[0].choices[0].implementation == (
        "batch_matmul.cblas" if target == LIBRARY else "batch_matmul.paneled"
    )
    (found,) = lw.Engine(library)(stored)
    np.testing.assert_allclose(found, np.maximum(a @ b, 0), rtol=1e-4, atol=1e-4)


def test_bytes_are_summed_in_int32(ops):
    a = rng.integers(0, 256, (2, 6, 9)).astype(np.uint8)
    b = rng.integers(-128, 128, (2, 6, 11)).astype(np.int8)
    found = ops.apply(batch_matmul, a, b, native=True, transpose_a=True)
    assert found.dtype == np.int32
    np.testing.assert_array_equal(found, a.swapaxes(1, 2).astype(np.int32) @ b.astype(np.int32))


def test_batches_and_rows_may_be_symbolic():
    n, m = te.var("n"), te.var("m")
    call = batch_matmul(lw.var("a", (n, 4, m)), lw.var("b", (n, 5, 4)), transpose_a=True, transpose_b=True)
    assert call.type is tensor_type((n, m, 5), "float32")


def test_operands_that_do_not_fit():
    a = lw.var("a", (2, 3, 4))
    with pytest.raises(lw.TypeInferenceError, match="batches of matrices, which have 3 axes or more"):
        batch_matmul(a, lw.var("b", (4, 5)))
    with pytest.raises(lw.TypeInferenceError, match="the axes to multiply over differ in extent: 4 of a and 3 of b"):
        batch_matmul(a, lw.var("b", (2, 3, 5)))
    with pytest.raises(lw.TypeInferenceError, match=r"nn\.batch_matmul\(.*2.*5"):
        batch_matmul(a, lw.var("b", (5, 4, 5)))
    with pytest.raises(lw.TypeInferenceError, match=r"float32.*float64"):
        batch_matmul(a, lw.var("b", (2, 4, 5), "float64"))

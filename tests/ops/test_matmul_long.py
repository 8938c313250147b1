"""Products with few columns and many terms, whose factors are read as they lie, against numpy."""

from dataclasses import replace

import numpy as np
import pytest

import loopwright as lw
from loopwright.compiler.selection.select import select_implementation
from loopwright.compiler.settings import CompileSettings
from loopwright.ops.definition.implementation import outputs_of
from loopwright.ops.families.matmul.batch_matmul import batch_matmul
from loopwright.ops.families.matmul.matmul import dense, matmul

SMALL_CACHE = 2**12
TARGETS = ["native", *(["x86-64-v3", "x86-64"] if lw.resolve_target("native").has("avx2") else [])]
rng = np.random.default_rng(0)


def target_of(name):
    return replace(lw.resolve_target(name), l1_bytes=SMALL_CACHE, l2_bytes=SMALL_CACHE)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("rows", "terms"), [(8, 96), (64, 192), (100, 224)])
@pytest.mark.parametrize("batch", [(), (3,)], ids=str)
def test_it_is_numpys_product_with_what_follows_in_the_same_nest(ops, batch, rows, terms, target):
    resolved = target_of(target)
    columns = 2 * resolved.lanes("float32")
    call = matmul(ops.var((*batch, rows, terms)), ops.var((*batch, terms, columns)))
    ops.check_product_with_epilogue(call, "matmul.long", resolved, tolerance=1e-4)


def test_the_interpreter_agrees_on_all_stages(ops):
    resolved = target_of("x86-64")
    call = batch_matmul(ops.var((1, 160, 8)), ops.var((1, 160, 8)), transpose_a=True)
    a, b = (rng.normal(size=[int(e) for e in arg.type.shape]).astype(np.float32) for arg in call.args)
    chosen, tensors, computed = ops.implement(call, resolved)
    (product,) = outputs_of(computed)
    assert chosen.name == "batch_matmul.long"
    schedule = chosen.schedule(call.attrs, computed, (product,), resolved)
    found = np.empty((1, 8, 8), np.float32)
    lw.interpret(lw.lower(schedule, [*tensors, product], target=resolved))(a, b, found)
    np.testing.assert_allclose(found, a.swapaxes(1, 2) @ b, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("make", "left", "right"),
    [
        pytest.param(matmul, (64, 4096), (4096, 256), id="a row of panels"),
        pytest.param(matmul, (64, 256), (256, 64), id="a factor that is soon copied"),
        pytest.param(matmul, (61, 4096), (4096, 64), id="rows that no tile of several divides"),
        pytest.param(matmul, (64, 4099), (4099, 64), id="terms that no block divides"),
        pytest.param(dense, (64, 4096), (64, 4096), id="a factor that must be turned over"),
    ],
)
def test_it_is_for_a_large_factor_as_wide_as_a_register_tile(ops, make, left, right):
    target = lw.resolve_target("x86-64-v4")
    call = make(ops.var(left), ops.var(right))
    assert select_implementation(call, CompileSettings(target)).chosen.name != "matmul.long"


@pytest.mark.parametrize("terms", [1024, 4096])
def test_a_long_product_is_not_copied(ops, terms):
    call = matmul(ops.var((64, terms)), ops.var((terms, 64)))
    assert select_implementation(call, CompileSettings(lw.resolve_target("x86-64-v4"))).chosen.name == "matmul.long"

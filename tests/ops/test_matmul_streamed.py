"""Products of few rows by a large matrix, which is read once as it lies, against numpy."""

from dataclasses import replace

import numpy as np
import pytest

import loopwright as lw
from loopwright.compiler.selection.select import select_implementation
from loopwright.compiler.settings import CompileSettings
from loopwright.ops.definition.implementation import outputs_of
from loopwright.ops.families.matmul.batch_matmul import batch_matmul
from loopwright.ops.families.matmul.matmul import dense, matmul
from loopwright.ops.families.matmul.streamed import STREAMS

SMALL_CACHE = 2**16
TARGETS = ["native", *(["x86-64-v3", "x86-64"] if lw.resolve_target("native").has("avx2") else [])]
rng = np.random.default_rng(0)


def target_of(name):
    return replace(lw.resolve_target(name), l2_bytes=SMALL_CACHE)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    ("a", "b"),
    [((8, 32), (32, 1024)), ((1, 35), (35, 1030)), ((21, 18), (18, 1100)), ((2, 3, 17), (2, 17, 1025))],
    ids=str,
)
def test_it_is_numpys_product_with_what_follows_in_the_same_nest(ops, a, b, target):
    resolved = target_of(target)
    call = matmul(ops.var(a), ops.var(b))
    ops.check_product_with_epilogue(call, "matmul.streamed", resolved, tolerance=1e-4)


def test_the_interpreter_agrees_on_all_stages(ops):
    resolved = target_of("x86-64")
    call = batch_matmul(ops.var((1, 18, 2)), ops.var((1, 18, 1027)), transpose_a=True)
    a, b = (rng.normal(size=[int(e) for e in arg.type.shape]).astype(np.float32) for arg in call.args)
    chosen, tensors, computed = ops.implement(call, resolved)
    (product,) = outputs_of(computed)
    assert chosen.name == "batch_matmul.streamed"
    schedule = chosen.schedule(call.attrs, computed, (product,), resolved)
    found = np.empty((1, 2, 1027), np.float32)
    lw.interpret(lw.lower(schedule, [*tensors, product], target=resolved))(a, b, found)
    np.testing.assert_allclose(found, a.swapaxes(1, 2) @ b, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("columns", [2048, 4096])
def test_one_row_of_many_pages_is_several_tasks(ops, columns):
    resolved = target_of("native")
    call = matmul(ops.var((1, 64)), ops.var((64, columns)))
    chosen, _, computed = ops.implement(call, resolved)
    (product,) = outputs_of(computed)
    nest = str(chosen.schedule(call.attrs, computed, (product,), resolved))
    assert chosen.name == "matmul.streamed"
    assert "in parallel" in nest


def test_each_row_that_is_read_at_once_has_an_instruction_of_its_own(ops):
    resolved = target_of("native")
    call = matmul(ops.var((1, 64)), ops.var((64, 2048)))
    chosen, tensors, computed = ops.implement(call, resolved)
    (product,) = outputs_of(computed)
    func = lw.lower(chosen.schedule(call.attrs, computed, (product,), resolved), [*tensors, product], target=resolved)
    sums = [line for line in str(func).splitlines() if f"{tensors[1].name}[ramp(" in line]
    assert len(sums) == STREAMS, func


@pytest.mark.parametrize(
    ("make", "rows", "right"),
    [
        pytest.param(matmul, 64, (32, 1024), id="many rows use a copy"),
        pytest.param(matmul, 8, (8, 1024), id="a small factor stays in cache"),
        pytest.param(matmul, 8, (64, 512), id="rows that share pages"),
        pytest.param(dense, 20, (1024, 32), id="a factor that must be turned over"),
    ],
)
def test_it_is_for_few_rows_and_a_large_factor(ops, make, rows, right):
    call = make(ops.var((rows, 32 if make is dense else right[0])), ops.var(right))
    assert select_implementation(call, CompileSettings(target_of("native"))).chosen.name != "matmul.streamed"


@pytest.mark.parametrize("shape", [(2, 41), (2, 3, 17), (8, 32)], ids=str)
def test_few_rows_of_each_of_many_matrices_are_many(ops, shape):
    """All of them read the one right factor, which would go by once for each matrix."""
    call = matmul(ops.var((*shape, 32)), ops.var((32, 1024)))
    assert select_implementation(call, CompileSettings(target_of("native"))).chosen.name != "matmul.streamed"


@pytest.mark.parametrize("rows", [(16,), (32,), (48,), (2, 41), (32, 32)], ids=str)
@pytest.mark.parametrize("factor", [(64, 8192), (256, 4096), (1024, 1024)], ids=str)
@pytest.mark.parametrize("target", ["x86-64-v4", "x86-64-v3"])
def test_a_large_constant_is_packed_for_that_costs_nothing(rows, factor, target):
    """What goes by as it lies keeps its sums in memory between two blocks of the reduction."""
    x, w = lw.var("x", (*rows, factor[0])), lw.const(np.ones(factor, np.float32))
    (graph,) = lw.dump(lw.Function([x], lw.nn.matmul(x, w)), "graph", target=target, arithmetic="direct")
    assert "nn.packed_matmul" in graph.text

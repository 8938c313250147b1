"""Reductions along rows of a few vectors: chosen where they should be, right for any extents, on any target."""

import numpy as np
import pytest
from pairs import each_value

import loopwright as lw
from loopwright import te
from loopwright.compiler.selection.select import select_implementation
from loopwright.compiler.settings import CompileSettings
from loopwright.ops.families import argreduce, reduce

TARGETS = ["x86-64", "x86-64-v3", "native"]


def run(ops, call, data, target):
    chosen = select_implementation(call, CompileSettings(target)).chosen
    assert chosen.name.endswith(".short_rows")
    x = te.placeholder(call.args[0].type.shape, call.args[0].type.dtype, name="x")
    stages = chosen.compute(call.attrs, (x,), call.type)
    result = stages.result
    found = np.empty(call.type.static_shape, call.type.dtype.to_numpy())
    schedule = chosen.schedule(call.attrs, stages, (result,), target)
    lw.build(schedule, [x, result], target=target, precision="strict")(data, found)
    return found


@pytest.mark.parametrize("cpu", TARGETS)
@pytest.mark.parametrize("shape", [(3, 11, 16), (5, 37), (32, 7, 7), (1, 63), (40, 5), (7, 3, 13)])
def test_values_are_numpys(ops, cpu, shape):
    target = lw.resolve_target(cpu)
    axes = (1, 2) if shape[1:] == (7, 7) else (len(shape) - 1,)
    x, data = ops.var(shape), np.random.default_rng(0).normal(size=shape).astype(np.float32)
    np.testing.assert_allclose(run(ops, reduce.sum(x, axes), data, target), data.sum(axes), rtol=1e-5, atol=1e-5)
    kept = reduce.mean(x, axes, keepdims=True)
    np.testing.assert_allclose(run(ops, kept, data, target), data.mean(axes, keepdims=True), rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(run(ops, reduce.min(x, axes), data, target), data.min(axes))


@pytest.mark.parametrize("kind", ["float64", "int8", "bool"])
def test_other_dtypes(ops, kind):
    data = (np.random.default_rng(0).normal(size=(19, 21)) * 9).astype(kind)
    x, target = ops.var(data.shape, kind), lw.resolve_target("native")
    if kind == "bool":
        np.testing.assert_array_equal(run(ops, reduce.all(x, 1), data, target), data.all(1))
    else:
        found = run(ops, reduce.sum(x, 1), data, target)
        np.testing.assert_allclose(found, data.sum(1, dtype=kind), rtol=1e-12)


@pytest.mark.parametrize("cpu", TARGETS)
def test_positions_of_extremes_with_ties_and_nan(ops, cpu):
    target = lw.resolve_target(cpu)
    data = np.random.default_rng(1).integers(0, 5, (33, 50)).astype(np.float32)
    data[4, [7, 30]] = np.nan
    x = ops.var(data.shape)
    np.testing.assert_array_equal(run(ops, argreduce.argmax(x, 1), data, target), data.argmax(1))
    last = run(ops, argreduce.argmin(x, 1, select_last_index=True), data, target)
    np.testing.assert_array_equal(last, 49 - data[:, ::-1].argmin(1))


@pytest.mark.parametrize("width", [5, 12, 15])
def test_what_fills_a_vector_up_is_no_part_of_a_row(ops, width):
    """A row is read as one vector, whose other lanes hold what changes nothing: no element of the next row, no 0."""
    data = np.full((37, width), -np.inf, np.float32)
    data[::3], data[1::3, width // 2] = -3, np.nan
    x, target = ops.var(data.shape), lw.resolve_target("native")
    np.testing.assert_array_equal(run(ops, reduce.max(x, 1), data, target), data.max(1))
    np.testing.assert_array_equal(run(ops, reduce.min(x, 1), -data, target), (-data).min(1))
    np.testing.assert_array_equal(run(ops, reduce.prod(x, 1), data, target), data.prod(1))
    if width >= 12:
        np.testing.assert_array_equal(run(ops, argreduce.argmax(x, 1), data, target), data.argmax(1))


def test_rows_are_loaded_and_stored_as_vectors(ops):
    target = lw.resolve_target("x86-64-v4")
    call = reduce.max(ops.var((64, 56)), 1)
    x = te.placeholder((64, 56), name="x")
    chosen = select_implementation(call, CompileSettings(target)).chosen
    stages = chosen.compute(call.attrs, (x,), call.type)
    result = stages.result
    kernel = lw.build(chosen.schedule(call.attrs, stages, (result,), target), [x, result], target=target)
    assert "gather" not in kernel.llvm_ir
    assert "scatter" not in kernel.llvm_ir
    assert kernel.assembly.count("vpermt2ps") >= 16


def test_a_result_that_costs_much_may_be_read_twice_behind_it():
    """The root of a norm is asked for by a condition and by a choice."""
    data = np.random.default_rng(2).normal(size=(9, 30)).astype(np.float32)
    data[4] = 0
    x = lw.var("x", data.shape)
    norm = reduce.l2(x, 1, keepdims=True)
    library = lw.compile(
        lw.Function([x], lw.nn.where(lw.nn.abs(norm) > 0.5, norm, lw.const(np.ones((), np.float32)))), jobs=1
    )
    assert [f.implementation for f in library.functions] == ["l2.short_rows"]
    wanted = np.linalg.norm(data, axis=1, keepdims=True)
    np.testing.assert_allclose(lw.Engine(library)([data])[0], np.where(wanted > 0.5, wanted, 1), rtol=1e-6)


@pytest.mark.parametrize("shape", [(1, 16), (40, 33), (3, 5, 20)])
def test_a_sum_may_be_read_twice_behind_it(shape):
    """Sums that are the anchor themselves, not what something is made of them."""
    data = np.random.default_rng(3).normal(size=shape).astype(np.float32)
    x = lw.var("x", shape)
    library = lw.compile(lw.Function([x], lw.nn.swish(reduce.sum(x, -1))), jobs=1)
    assert [f.implementation for f in library.functions] == ["sum.short_rows"]
    wanted = data.sum(-1)
    np.testing.assert_allclose(lw.Engine(library)([data])[0], wanted / (1 + np.exp(-wanted)), rtol=1e-5, atol=1e-6)


FOLDS = {
    "sum": (reduce.sum, np.sum),
    "max": (reduce.max, np.max),
    "argmin": (argreduce.argmin, np.argmin),
    "log_sum_exp": (reduce.log_sum_exp, lambda a, axis: np.log(np.exp(a.astype(np.float64)).sum(axis))),
}


@each_value(name=FOLDS, cpu=["x86-64-v3", "native"])
def test_rows_of_an_open_number_of_elements_are_short_ones_up_to_long_ones(name, cpu):
    fold, wanted = FOLDS[name]
    x = lw.var("x", (te.var("n"), 3, te.var("m")))
    library = lw.compile(lw.Function([x], fold(x, -1)), target=cpu, jobs=1)
    (function,) = library.functions
    assert [choice.implementation for choice in function.choices] == [f"{name}.rows", f"{name}.short_rows"]
    engine = lw.Engine(library)
    for n, m in [(1, 1), (2, 5), (6, 15), (5, 16), (7, 17), (11, 40), (2, 63), (2, 64), (3, 200), (0, 7)]:
        data = np.random.default_rng(m).normal(size=(n, 3, m)).astype(np.float32)
        found = engine([data])[0]
        np.testing.assert_allclose(found, wanted(data, axis=-1), rtol=1e-5, atol=1e-5)
        if m in {16, 40, 64, 200}:  # shorter ones of a known extent are folded one by one
            known = lw.var("x", (n, 3, m))
            same = lw.Engine(lw.compile(lw.Function([known], fold(known, -1)), target=cpu, jobs=1))([data])[0]
            np.testing.assert_array_equal(found, same)


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_softmax_of_rows_of_few_vectors(name):
    data = np.random.default_rng(0).normal(size=(5, 49)).astype(np.float32)
    data[1, 3], data[2], data[3, 7] = -np.inf, np.finfo(np.float32).min, np.inf
    with np.errstate(invalid="ignore"):
        exact = data.astype(np.float64) - data.max(1, keepdims=True)
        wanted = np.exp(exact) / np.exp(exact).sum(1, keepdims=True)
        wanted = wanted if name == "softmax" else exact - np.log(np.exp(exact).sum(1, keepdims=True))
    for shape in [(5, 49), (te.var("n"), te.var("m"))]:
        x = lw.var("x", shape)
        library = lw.compile(lw.Function([x], getattr(lw.nn, name)(x)), jobs=1)
        assert library.functions[0].choices[-1].implementation == f"{name}.short_rows"
        np.testing.assert_allclose(lw.Engine(library)([data])[0], wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("cpu", TARGETS)
def test_log_softmax_and_normalisation_of_rows_of_part_of_a_vector(cpu):
    n = te.var("n")
    for width, name in ((5, "log_softmax"), (13, "log_softmax"), (8, "nn.layer_norm"), (11, "nn.layer_norm")):
        x, ones, zeros = lw.var("x", (n, width)), np.ones(width, np.float32), np.zeros(width, np.float32)
        normed = lw.nn.layer_norm(x, lw.const(ones), lw.const(zeros), epsilon=1e-5)
        y = lw.nn.log_softmax(x) if name == "log_softmax" else normed
        library = lw.compile(lw.Function([x], y), target=cpu, jobs=1)
        assert library.functions[0].choices[-1].implementation == f"{name}.short_rows"
        data = np.random.default_rng(width).normal(3, 2, (21, width)).astype(np.float32)
        exact = data.astype(np.float64) - data.mean(1, keepdims=True, dtype=np.float64)
        wanted = exact / np.sqrt((exact * exact).mean(1, keepdims=True) + 1e-5)
        if name == "log_softmax":
            wanted = exact - np.log(np.exp(exact).sum(1, keepdims=True))
        np.testing.assert_allclose(lw.Engine(library)([data])[0], wanted, rtol=1e-5, atol=1e-5)


def test_normalisation_of_rows_of_few_vectors():
    data = np.random.default_rng(0).normal(5, 2, size=(3, 4, 7, 7)).astype(np.float32)
    exact = data.astype(np.float64)
    wanted = (exact - exact.mean((2, 3), keepdims=True)) / np.sqrt(exact.var((2, 3), keepdims=True) + 1e-5)
    for shape in [data.shape, (te.var("n"), 4, te.var("h"), te.var("w"))]:
        x, ones = lw.var("x", shape), lw.const(np.ones(4, np.float32))
        library = lw.compile(lw.Function([x], lw.nn.instance_norm(x, ones, lw.const(np.zeros(4, np.float32)))), jobs=1)
        assert library.functions[0].choices[-1].implementation == "nn.instance_norm.short_rows"
        np.testing.assert_allclose(lw.Engine(library)([data])[0], wanted, rtol=1e-5, atol=1e-5)

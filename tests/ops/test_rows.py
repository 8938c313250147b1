"""The schedule of rows in fused functions: producers join the row, results are numpy's, nothing is left scalar."""

import numpy as np
import pytest
from pairs import each_value

import loopwright as lw
from loopwright import te
from loopwright.compiler.fusion.closed_function import as_function
from loopwright.compiler.fusion.partition import partition
from loopwright.compiler.model.lower_function import lower_function
from loopwright.compiler.settings import CompileSettings
from loopwright.graph.node import Function
from loopwright.lowering.passes.outline_parallel import outline_parallel
from loopwright.ops.families import argreduce, binary, reduce, softmax, unary


def normalised(x, axis=-1):
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def fused(body, feeds):
    """The one fused function of a graph, and its value by the interpreter."""
    (group,) = partition(Function(tuple(feeds), body))
    target = lw.resolve_target("llvm -mcpu=x86-64-v3")
    func, *_ = lower_function(as_function(group)[0], CompileSettings(target), "fused")
    result = np.empty(body.type.static_shape, body.type.dtype.to_numpy())
    lw.interpret(outline_parallel(func))(*[feeds[node] for node in group.inputs], result)
    return str(func), result


CASES = {
    "softmax": (softmax.softmax, normalised),
    "softmax over a middle axis": (lambda x: softmax.softmax(x, 1), lambda x: normalised(x, 1)),
    "log_softmax": (softmax.log_softmax, lambda x: np.log(normalised(x))),
    "sum": (lambda x: reduce.sum(x, -1), lambda x: x.sum(-1)),
    "sum that keeps its axis": (lambda x: reduce.sum(x, -1, keepdims=True), lambda x: x.sum(-1, keepdims=True)),
    "mean over two axes": (lambda x: reduce.mean(x, (1, 3)), lambda x: x.mean((1, 3))),
    "log_sum_exp": (lambda x: reduce.log_sum_exp(x, -1), lambda x: np.log(np.exp(x).sum(-1))),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("costly", [False, True], ids=["cheap", "costly"])
def test_producers_join_the_rows(ops, name, costly):
    make, oracle = CASES[name]
    rng = np.random.default_rng(0)
    x, mask = ops.var((2, 4, 3, 80), name="x"), ops.var((2, 1, 1, 80), name="mask")
    feeds = {
        x: rng.normal(size=(2, 4, 3, 80)).astype("float32"),
        mask: rng.normal(size=(2, 1, 1, 80)).astype("float32"),
    }
    body = binary.add(x, unary.exp(mask) if costly else mask)
    value = feeds[x] + (np.exp(feeds[mask]) if costly else feeds[mask])
    if costly:
        body, value = unary.tanh(body), np.tanh(value)
    text, result = fused(make(body), feeds)
    np.testing.assert_allclose(result, oracle(value), rtol=1e-5, atol=1e-6)
    if "mean" not in name:
        assert text.count("parallel(") == 1, text
    assert "p1[ramp(" in text


@pytest.mark.parametrize("name", CASES)
def test_what_follows_joins_the_rows(ops, name):
    make, oracle = CASES[name]
    rng = np.random.default_rng(0)
    x = ops.var((2, 4, 3, 80), name="x")
    made = make(x)
    y = ops.var(made.type.static_shape, name="y")
    feeds = {n: rng.normal(size=n.type.static_shape).astype("float32") for n in (x, y)}
    text, result = fused(unary.tanh(binary.multiply(made, y)), feeds)
    np.testing.assert_allclose(result, np.tanh(oracle(feeds[x]) * feeds[y]), rtol=1e-5, atol=1e-6)
    assert text.count("parallel(") == 1, text
    assert "p0[ramp(" in text


def test_rows_of_a_sum_are_read_by_vectors_however_its_shape_is_kept(ops):
    x = ops.var((5, 96))
    for keepdims in (False, True):
        text, _ = fused(reduce.sum(x, 1, keepdims=keepdims), {x: np.ones((5, 96), np.float32)})
        assert text.count("p0[ramp(") == 96 // 8, text
        assert "p0[block" not in text


@pytest.mark.parametrize("make", [softmax.softmax, softmax.log_softmax])
def test_the_next_row_is_fetched_where_rows_do_not_stay_in_cache_and_once_only(ops, make):
    target = lw.resolve_target("native")
    for rows, times in ((4, 0), (target.l2_bytes // 4096 + 1, 1)):
        call = make(ops.var((rows, 1024)))
        chosen, _, outputs = ops.implement(call)
        text = str(chosen.schedule(call.attrs, outputs, outputs, target))
        assert text.count("prefetch(") == times, text


def test_elements_run_along_all_axes_whose_elements_are_neighbours():
    x, scale = te.placeholder((8, 16, 7, 9), name="x"), te.placeholder((16,), name="scale")
    by_channel = te.compute(x.shape, lambda n, c, i, j: x[n, c, i, j] / te.sqrt(scale[c]), name="by_channel")
    turned = te.compute((8, 16, 9, 7), lambda n, c, i, j: x[n, c, j, i] * scale[c], name="turned")
    counted = te.compute(x.shape, lambda n, c, i, j: x[n, c, i, j] * te.cast(j, "float32"), name="counted")
    together = [(by_channel, "n_c_fused"), (turned, "n_c_fused_i_fused"), (counted, "n_c_fused_i_fused")]
    for result, spread in together:
        text = str(lw.default_schedule(result, lw.resolve_target("x86-64-v3")))
        assert text.startswith(f"for {spread} in parallel("), text


def test_a_second_pass_over_a_row_fetches_the_next_one_and_a_single_pass_does_not(ops):
    x, target = ops.var((1024, 1024)), lw.resolve_target("x86-64-v3")
    for made, fetches in ((argreduce.argmax(x, 1), True), (reduce.max(x, 1), False)):
        func, *_ = lower_function(as_function(partition(Function((x,), made))[0])[0], CompileSettings(target), "fused")
        assert ("prefetch(" in str(func)) is fetches


OPEN_PLANES = {
    "sum": (lambda x: reduce.sum(x, (2, 3)), lambda x: x.sum((2, 3))),
    "mean that keeps its axes": (
        lambda x: reduce.mean(x, (2, 3), keepdims=True),
        lambda x: x.mean((2, 3), keepdims=True),
    ),
    "max": (lambda x: reduce.max(x, (2, 3)), lambda x: x.max((2, 3))),
    "softmax": (lambda x: softmax.softmax(x, (2, 3)), lambda x: normalised(x, (2, 3))),
    "all three axes": (lambda x: reduce.sum(x, (1, 2, 3)), lambda x: x.sum((1, 2, 3))),
}


@each_value(name=OPEN_PLANES, target=["native", "x86-64"])
def test_planes_of_open_extents_are_one_row(name, target):
    """However short the rows of a plane are, if it has elements enough together."""
    make, wanted = OPEN_PLANES[name]
    x = lw.var("x", (te.var("n"), 3, te.var("h"), te.var("w")))
    library = lw.compile(lw.Function([x], make(x)), target, jobs=1)
    reasons = [choice.reason for f in library.functions for choice in f.choices]
    assert any("*" in reason for reason in reasons if reason.startswith("where"))
    engine = lw.Engine(library)
    for height, width in ((1, 1), (7, 7), (9, 8), (13, 65), (70, 3)):
        given = np.random.default_rng([height, width]).standard_normal((2, 3, height, width)).astype(np.float32)
        np.testing.assert_allclose(engine([given])[0], wanted(given.astype(np.float64)), rtol=1e-4, atol=1e-4)

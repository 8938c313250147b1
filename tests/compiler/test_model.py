"""Compiled models: results, deduplication, determinism, libraries on disk, engines."""

import os
import subprocess
import sys
import threading
from dataclasses import replace

import numpy as np
import pytest

import loopwright as lw
from loopwright.artifact.options import CodegenOptions
from loopwright.compiler.fusion.closed_function import as_function
from loopwright.compiler.fusion.partition import partition
from loopwright.compiler.model.compile_model import compile_model
from loopwright.compiler.model.function_cache import function_key
from loopwright.compiler.settings import CompileSettings
from loopwright.graph import Constant, Function, Tuple, Var, tensor_type
from loopwright.ops.definition.registry import get_op
from loopwright.runtime.engine import Engine
from loopwright.runtime.library import Library, load

NEGATIVE, RELU = get_op("negative"), get_op("relu")
X = np.linspace(-2, 2, 15, dtype=np.float32).reshape(3, 5)


def model():
    x = Var("x", tensor_type((3, 5), "float32"))
    y = RELU(NEGATIVE(x))
    return Function([x], Tuple((y, x, y, Constant(np.arange(4.0)))), "small")


def compiled(function=None, **options):
    return compile_model(function or model(), CompileSettings(lw.resolve_target("native")), **options)


def check(outputs):
    relu = np.maximum(-X, 0)
    for got, expected in zip(outputs, [relu, X, relu, np.arange(4.0)], strict=True):
        np.testing.assert_array_equal(got, expected)


def test_inputs_constants_and_repeated_values_may_be_results():
    check(Engine(Library(compiled()))({"x": X}))


def test_elementwise_calls_become_one_function():
    groups = partition(model())
    assert [len(group.calls) for group in groups] == [2]


def test_equal_functions_are_compiled_once():
    x = Var("x", tensor_type((3, 5), "float32"))
    first = RELU(x)
    function = Function([x], Tuple((first, NEGATIVE(first), RELU(Constant(X)))))
    made = compiled(function)
    assert len(made.steps) == 3
    assert [f.name for f in made.functions] == ["fused_relu", "fused_negative"]


def test_serial_and_parallel_compiles_give_the_same_code():
    texts = []
    for jobs in (1, 2):
        made = compile_model(
            model(), CompileSettings(lw.resolve_target("x86-64-v3"), CodegenOptions(cache=False)), jobs=jobs
        )
        texts.append([made.entry_llvm_ir, *(f.llvm_ir for f in made.functions)])
    assert texts[0] == texts[1]


def test_functions_for_other_cache_sizes_are_kept_apart():
    target = lw.resolve_target("x86-64-v3")
    function = as_function(partition(model())[0])[0]
    keys = {function_key(function, CompileSettings(replace(target, l1_bytes=size))) for size in (32768, 49152)}
    assert len(keys) == 2


def test_a_library_is_saved_and_loaded_in_another_process(tmp_path):
    path = tmp_path / "small.lwlib"
    Library(compiled()).save(path)
    check(Engine(load(path))({"x": X}))
    script = (
        "import sys, numpy as np\n"
        "from loopwright.runtime.engine import Engine\n"
        "from loopwright.runtime.library import load\n"
        "x = np.full((3, 5), -2, np.float32)\n"
        "assert (Engine(load(sys.argv[1]))([x])[0] == 2).all()\n"
    )
    subprocess.run([sys.executable, "-c", script, os.fspath(path)], check=True, timeout=600)


def test_a_library_that_cannot_be_written_leaves_nothing_behind(tmp_path):
    with pytest.raises(lw.ModelError, match="cannot be written: No such file or directory"):
        Library(compiled()).save(tmp_path / "missing" / "small.lwlib")
    (tmp_path / "folder").mkdir()
    with pytest.raises(lw.ModelError, match="cannot be written"):
        Library(compiled()).save(tmp_path / "folder")
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


def test_the_four_phases():
    engine = Engine(Library(compiled())).init()
    with pytest.raises(lw.RuntimeArgumentError, match="input x is not set"):
        engine.run()
    with pytest.raises(lw.RuntimeArgumentError, match="call run first"):
        engine.get_output(0)
    engine.set_input("x", X)
    engine.run()
    check([engine.get_output(k) for k in range(4)])
    with pytest.raises(lw.RuntimeArgumentError, match="small has no output 4; its outputs are output0"):
        engine.get_output(4)
    engine.set_input(0, X)
    with pytest.raises(lw.RuntimeArgumentError, match="call run first"):
        engine.get_output(0)


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ({}, "missing: x"),
        ({"x": X, "y": X}, "unknown: y"),
        ({"x": X.astype(np.float64)}, "should have dtype float32"),
        ({"x": X[:2]}, r"should have shape \(3, 5\)"),
        ({"x": X.T.copy().T}, "not contiguous"),
        ([X, X], "takes 1 input, x, found 2"),
    ],
)
def test_inputs_that_do_not_fit_are_told(inputs, message):
    with pytest.raises(lw.RuntimeArgumentError, match=message):
        Engine(Library(compiled()))(inputs)


def test_threads_may_share_an_engine():
    engine = Engine(Library(compiled()), threads=2)
    failures = []

    def work(scale):
        x = X * np.float32(scale)
        if not all(np.array_equal(engine([x])[0], np.maximum(-x, 0)) for _ in range(200)):
            failures.append(scale)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_the_times_of_steps_are_those_of_their_kernels():
    rng = np.random.default_rng(0)
    x, w = Var("x", tensor_type((400, 400), "float32")), Constant(rng.standard_normal((400, 400)).astype(np.float32))
    library = lw.compile(Function([x], Tuple((lw.nn.matmul(x, w), RELU(x)))))
    seconds = lw.Engine(library, threads=1).time_steps([np.ones((400, 400), np.float32)])
    by_name = {library.model.function_of(step).name: s for step, s in zip(library.model.steps, seconds, strict=True)}
    assert by_name["fused_nn_packed_matmul"] > 3 * by_name["fused_relu"] > 0


def test_schedules_of_operators_fold_sums_in_the_order_that_strict_precision_asks_for():
    rng = np.random.default_rng(0)
    x, w = Var("x", tensor_type((1, 4, 6, 80), "float32")), Constant(rng.standard_normal((3, 4, 3, 3), np.float32))
    m = Constant(rng.standard_normal((80, 20), np.float32))
    results = (lw.nn.matmul(x, m), lw.nn.mean(x), lw.nn.softmax(x), lw.nn.conv2d(x, w), lw.nn.global_avg_pool(x))
    data = rng.standard_normal((1, 4, 6, 80), np.float32)
    product, mean, *_ = lw.Engine(lw.compile(Function([x], Tuple(results)), precision="strict"))([data])
    np.testing.assert_allclose(product, data @ m.value, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(mean.item(), data.mean(), rtol=1e-4, atol=1e-6)

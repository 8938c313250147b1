"""Open dimensions with bounds: checked by each run, used by the code, kept in files, and shown."""

import ctypes
import subprocess
import sys

import needed_tools
import numpy as np
import onnx
import onnx.parser
import pytest

import loopwright as lw
from loopwright import te
from loopwright.base.dtype import INDEX
from loopwright.cli import main
from loopwright.ir.expr import Dimension
from loopwright.ir.facts import prove
from loopwright.ir.makers import minimum
from loopwright.ir.simplify import simplify

TARGET = "x86-64-v3"
RNG = np.random.default_rng(7)
W = RNG.standard_normal((16, 8)).astype(np.float32)


def product(batch="b"):
    x = lw.var("x", (te.var(batch), 16))
    return lw.Function([x], lw.nn.relu(lw.nn.matmul(x, lw.const(W))))


def compiled(extent, **more):
    return lw.compile(product(), TARGET, shapes={"x": (extent, 16)}, jobs=1, **more)


def rows(count):
    return RNG.standard_normal((count, 16)).astype(np.float32)


def check(engine, count):
    x = rows(count)
    (y,) = engine(x)
    np.testing.assert_allclose(y, np.maximum(x @ W, 0), rtol=1e-5, atol=1e-5)


BOUNDS = lw.dim("n", min=1, max=32, multiple_of=8)


def test_runs_within_the_bounds_give_what_numpy_gives():
    engine = lw.Engine(compiled(BOUNDS))
    for count in (8, 16, 24, 32):
        check(engine, count)


@pytest.mark.parametrize(
    ("count", "message"),
    [
        (0, "n should be at least 8 for the bounds that it was compiled for, found 0"),
        (12, "n should be a multiple of 8, found n = 12"),
        (40, "n should be at most 32, found n = 40"),
    ],
)
def test_a_run_outside_of_the_bounds_is_refused(count, message):
    engine = lw.Engine(compiled(BOUNDS))
    with pytest.raises(lw.RuntimeArgumentError, match=message):
        engine(rows(count))
    check(engine, 16)  # and the engine stays usable


def test_bounds_of_one_side_and_of_one_number():
    engine = lw.Engine(compiled(lw.dim("n", min=3)))
    check(engine, 1000)
    with pytest.raises(lw.RuntimeArgumentError, match="n should be at least 3"):
        engine(rows(2))
    assert compiled(lw.dim("n", min=9, max=16, multiple_of=16)).inputs[0].shape == (16, 16)
    assert compiled(lw.dim("n")).model.bounds == ()


def loop_ir(extent):
    x = lw.var("x", (te.var("b"),))
    function = lw.Function([x], lw.nn.relu(x))
    (made,) = lw.compile(function, TARGET, shapes={"x": (extent,)}, jobs=1).functions
    return made.loop_ir


def test_a_dimension_that_is_a_multiple_of_the_vector_needs_no_tail():
    assert "if " in loop_ir(lw.dim("n", max=4096))
    assert "if " not in loop_ir(lw.dim("n", max=4096, multiple_of=256))


def test_the_simplifier_knows_the_bounds():
    n = Dimension("n", INDEX, 3, 32)
    assert prove(n >= 3)
    assert prove(n * 2 <= 64)
    assert simplify(minimum(n, 40)) is n
    assert not prove(n >= 4)
    assert not prove(n <= 31)


def symbols(extent):
    return {function.symbol for function in compiled(extent).functions}


def test_functions_share_code_where_the_bounds_mean_the_same_for_it():
    """What one that is larger, or a multiple, leaves out, others need; how large it gets makes no other loops."""
    plain = symbols(lw.dim("n", max=64))
    assert plain == symbols(lw.dim("n", max=8)) == symbols(None)
    assert plain.isdisjoint(symbols(lw.dim("n", min=16)))
    assert plain.isdisjoint(symbols(lw.dim("n", multiple_of=8)))


def test_memory_is_taken_once_for_the_largest_runs():
    x = lw.var("x", (te.var("b"), 16))
    made = lw.nn.softmax(lw.nn.matmul(lw.nn.matmul(x, lw.const(W)), lw.const(np.ascontiguousarray(W.T))))
    engine = lw.Engine(lw.compile(lw.Function([x], made), TARGET, shapes={"x": (BOUNDS, 16)}, jobs=1))
    at_most = engine.planned_memory().arena
    assert at_most == engine.planned_memory({"x": (8, 16)}).arena == engine.planned_memory({"x": (32, 16)}).arena
    engine(rows(8))
    first = [executor.arena_bytes for executor in engine._ready().executors]
    engine(rows(32))
    assert [executor.arena_bytes for executor in engine._ready().executors] == first
    assert sum(first) == at_most


def test_a_library_file_keeps_the_bounds(tmp_path):
    compiled(BOUNDS).save(tmp_path / "m.lwlib")
    engine = lw.Engine(lw.load(tmp_path / "m.lwlib"))
    assert str(engine.inputs) == "x: float32[n, 16] (n: 8 to 32, a multiple of 8)"
    check(engine, 24)
    with pytest.raises(lw.RuntimeArgumentError, match="n should be at most 32"):
        engine(rows(64))


def test_explanations_tell_the_bounds():
    library = compiled(BOUNDS)
    told = lw.explain(library), lw.explain(product(), TARGET, shapes={"x": (BOUNDS, 16)})
    assert all("\nn: 8 to 32, a multiple of 8\n" in str(each) for each in told)
    assert told[0].to_json()["bounds"] == [{"dim": "n", "low": 8, "high": 32, "unit": 8}]


def test_inputs_share_a_dimension_of_one_name():
    x, y = lw.var("x", (te.var("a"), 4)), lw.var("y", (te.var("b"), 4))
    shared = {"x": (lw.dim("n", max=8), 4), "y": (lw.dim("n", max=8), 4)}
    engine = lw.Engine(lw.compile(lw.Function([x, y], x + y), TARGET, shapes=shared, jobs=1))
    ones = np.ones((8, 4), np.float32)
    assert engine.inputs["x"].shape == engine.inputs["y"].shape == ("n", 4)
    np.testing.assert_array_equal(engine([ones, ones])[0], 2 * ones)
    with pytest.raises(lw.RuntimeArgumentError, match="should have extent 8"):
        engine([ones, ones[:7]])


@pytest.mark.parametrize("other", [lw.dim("m", max=6), lw.dim("m", max=6, multiple_of=2), None])
def test_dimensions_that_meet_keep_the_bounds_of_both(other):
    x, y = lw.var("x", (te.var("a"), 4)), lw.var("y", (te.var("b"), 4))
    shapes = {"x": (lw.dim("n", min=2, max=8), 4), "y": (other, 4)}
    engine = lw.Engine(lw.compile(lw.Function([x, y], x + y), TARGET, shapes=shapes, jobs=1))
    for count, fits in ((4, True), (1, False), (7, other is None), (9, False)):
        ones = np.ones((count, 4), np.float32)
        if fits:
            np.testing.assert_array_equal(engine([ones, ones])[0], 2 * ones)
        else:
            with pytest.raises(lw.RuntimeArgumentError, match="should be"):
                engine([ones, ones])


MODEL = """<ir_version: 8, opset_import: ["" : 17]>
    net (float[batch, 4, height, width] x, float[batch] s) => (float[batch, half, wide] y) <int64[1] two = {2}> {
        m = ReduceMean <axes = [1], keepdims = 0> (x)
        p = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (x)
        q = ReduceMean <axes = [1], keepdims = 0> (p)
        one = Constant <value = int64[2] {1, 2}> ()
        t = Unsqueeze (s, one)
        y = Add (q, t)
    }"""


def test_a_model_with_bounds_of_its_image_and_its_batch():
    model = onnx.parser.parse_model(MODEL)
    shapes = {
        "x": (lw.dim("n", min=1, max=4), 4, lw.dim("h", max=64, multiple_of=8), lw.dim("w", min=8, multiple_of=4))
    }
    library = lw.compile(model, TARGET, shapes=shapes, jobs=1)
    assert library.inputs["s"].shape == ("n",)
    engine = lw.Engine(library)
    x, s = RNG.standard_normal((3, 4, 16, 12)).astype(np.float32), np.arange(3, dtype=np.float32)
    (y,) = engine([x, s])
    expected = x.reshape(3, 4, 8, 2, 6, 2).max(axis=(3, 5)).mean(axis=1) + s[:, None, None]
    np.testing.assert_allclose(y, expected, rtol=1e-5, atol=1e-6)
    with pytest.raises(lw.RuntimeArgumentError, match="w should be a multiple of 4"):
        engine([np.ascontiguousarray(x[..., :10]), s])
    with pytest.raises(lw.RuntimeArgumentError, match="n should be at most 4"):
        engine([np.repeat(x, 2, axis=0), np.repeat(s, 2)])


def test_bounds_of_extents_that_a_model_computes_with_are_checked_where_the_run_computes_others():
    """A model of several stages checks its bounds in native code too."""
    model = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["" : 17]>
        net (float[m] x) => (int64[1, k] y) { y = NonZero (x) }""")
    engine = lw.Engine(lw.compile(model, TARGET, shapes={"x": (lw.dim("m", min=2, max=8, multiple_of=2),)}, jobs=1))
    np.testing.assert_array_equal(engine(np.array([0, 1, 0, 2], np.float32))[0], [[1, 3]])
    for count, message in ((10, "m should be at most 8"), (3, "m should be a multiple of 2"), (0, "at least 2")):
        with pytest.raises(lw.RuntimeArgumentError, match=message):
            engine(np.ones(count, np.float32))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"name": ""}, "a dimension has a name"),
        ({"name": 3}, "a dimension has a name"),
        ({"name": "n", "min": 5, "max": 4}, "no extent is within the bounds 5 to 4"),
        (
            {"name": "n", "min": 9, "max": 15, "multiple_of": 8},
            "no extent is within the bounds 9 to 15, a multiple of 8",
        ),
        ({"name": "n", "min": -1}, "no extent is within"),
        ({"name": "n", "max": 2.5}, "max of a dimension is a whole number, found 2.5"),
        ({"name": "n", "min": True}, "min of a dimension is a whole number, found True"),
        ({"name": "n", "multiple_of": 0}, "multiple_of is a number from 1 on, found 0"),
    ],
)
def test_bounds_that_make_no_sense_are_refused(arguments, message):
    with pytest.raises(lw.ModelError, match=message):
        lw.dim(**arguments)


def test_bounds_that_do_not_fit_the_model_are_refused():
    twice = {"x": (lw.dim("n", max=4), lw.dim("n", max=5))}
    with pytest.raises(lw.ModelError, match=r"one dimension two bounds: n: 0 to 4, and n: 0 to 5"):
        lw.compile(product(), TARGET, shapes=twice)
    fixed = onnx.parser.parse_model('<ir_version: 8, opset_import: ["" : 17]> net (float[3] x) => (float[3] y) '
                                    "{ y = Relu (x) }")  # fmt: skip
    with pytest.raises(lw.ModelError, match="declared as 3 is given bounds"):
        lw.compile(fixed, TARGET, shapes={"x": (lw.dim("n", max=4),)})
    with pytest.raises(lw.ModelError, match=r"declared as .* contradicts"):
        lw.compile(product(), TARGET, shapes={"x": (4, lw.dim("n", max=4))})


def test_the_command_line_takes_bounds(tmp_path, capsys):
    path, library = tmp_path / "m.onnx", tmp_path / "m.lwlib"
    onnx.save(onnx.parser.parse_model(MODEL), path)
    shape = "x=n:1..4,4,h:..64:8,w:8..:4"
    assert main(["compile", str(path), "-o", str(library), "--shape", shape, "--target", TARGET]) == 0
    assert "(n: 1 to 4; h: 0 to 64, a multiple of 8; w: 8 or more, a multiple of 4)" in capsys.readouterr().out
    assert lw.load(library).inputs["x"].shape == ("n", 4, "h", "w")
    assert main(["run", str(path), "--shape", shape]) == 1
    assert "x has a dimension with bounds, n: 1 to 4" in capsys.readouterr().err
    for wrong in ("x=n:4..1,4,8,8", "x=n:,4,8,8", "x=n:1..x,4,8,8"):
        command = [sys.executable, "-m", "loopwright", "compile", path, "-o", library, "--shape", wrong]
        run = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
        assert run.returncode == 2
        assert wrong in run.stderr


@needed_tools.needs("gcc", package="gcc")
def test_exported_code_refuses_runs_outside_of_the_bounds(tmp_path):
    files = lw.compile(product(), "x86-64", shapes={"x": (BOUNDS, 16)}, jobs=1).export(tmp_path)
    shared = tmp_path / "model.so"
    subprocess.run(["gcc", "-shared", files.code, "-o", shared, "-lm", "-pthread"], check=True)
    library = ctypes.CDLL(str(shared))
    library.model_message.restype = ctypes.c_char_p
    context = ctypes.c_void_p()
    assert library.model_create(ctypes.byref(context), 1) == 0
    x, y = np.ones((40, 16), np.float32), np.empty((40, 8), np.float32)
    at = [array.ctypes.data_as(ctypes.c_void_p) for array in (x, y)]
    messages = {
        n: library.model_message(library.model_run(context, *at, ctypes.c_int64(n))) for n in (8, 32, 0, 12, 40)
    }
    library.model_destroy(context)
    assert messages[8] == messages[32] == b"no error"
    np.testing.assert_allclose(y[:32], np.maximum(x[:32] @ W, 0), rtol=1e-5, atol=1e-5)
    for count, told in ((0, b"at least 8"), (12, b"a multiple of 8"), (40, b"at most 32")):
        assert told in messages[count]


@needed_tools.needs("gcc", package="gcc")
def test_exported_code_has_its_memory_when_the_context_is_made(tmp_path):
    """With all dimensions bounded; a program that counts allocations has none in its runs."""
    x = lw.var("x", (te.var("b"), 16))
    twice = lw.nn.softmax(lw.nn.matmul(lw.nn.relu(lw.nn.matmul(x, lw.const(W))), lw.const(W.T)))
    files = lw.compile(lw.Function([x], twice), "x86-64", shapes={"x": (BOUNDS, 16)}, jobs=1).export(
        tmp_path, name="net"
    )
    source = tmp_path / "main.c"
    source.write_text(COUNTING)
    program = tmp_path / "main"
    command = ["gcc", "-std=c11", source, files.code, "-o", program, "-lm", "-pthread", "-Wl,--wrap=aligned_alloc"]
    subprocess.run(command, check=True)
    done = subprocess.run([program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "0\n")


COUNTING = r"""
#include "net.h"
#include <stdio.h>
#include <stdlib.h>

static int allocations;
void *__real_aligned_alloc(size_t alignment, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size) {
    allocations++;
    return __real_aligned_alloc(alignment, size);
}

int main(void) {
    static float x[32 * 16], y[32 * 16];
    net_context *net;
    if (NET_ARENA_BYTES < 32 * 8 * 4 || net_create(&net, 1) != NET_OK || allocations < 2) return 1;
    allocations = 0;
    for (int64_t n = 8; n <= 32; n += 8)
        if (net_run(net, x, y, n) != NET_OK) return 2;
    printf("%d\n", allocations);
    net_destroy(net);
    return 0;
}
"""

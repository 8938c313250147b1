"""Mistakes in making and calling engines: each is named, and nothing runs."""

import numpy as np
import pytest

import loopwright as lw


@pytest.fixture(scope="module")
def library():
    x = lw.var("x", (1, 3))
    return lw.compile(lw.Function((x,), lw.nn.relu(x)), jobs=1)


def test_an_engine_needs_a_library(library):
    for value in (library.model, "model.onnx", None):
        with pytest.raises(
            lw.RuntimeArgumentError, match=r"lw\.compile or lw\.load gives, not a (CompiledM|str|NoneT)"
        ):
            lw.Engine(value)


@pytest.fixture(scope="module")
def sums():
    a, b = lw.var("a", (2,)), lw.var("b", (2,))
    return lw.compile(lw.Function((a, b), lw.nn.add(a, b), name="adder", output_names=("sum",)), jobs=1)


TWO = np.ones(2, np.float32)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (np.ones((2, 2), np.float32), "adder takes a list .* or a mapping .* for the inputs a, b, found .* ndarray"),
        (None, "adder takes a list .* for the inputs a, b, found a value of type NoneType"),
        ("ab", "adder takes a list .* for the inputs a, b, found a value of type str"),
        ({TWO.ndim, 2}, "adder takes a list .* found a value of type set"),
        ([], "adder takes 2 inputs, a, b, found 0$"),
        ([TWO], "adder takes 2 inputs, a, b, found 1$"),
        ((TWO, TWO, TWO), "adder takes 2 inputs, a, b, found 3$"),
        ([1.0, 2.0, 3.0], "adder takes 2 inputs, a, b, found 3; .* numpy.array makes an array of numbers"),
        ([[1.0, 2.0], TWO], "adder: input a should be a numpy array, .* found list; numpy.asarray makes an array"),
        ([1.0, TWO], "adder: input a should be a numpy array, .* found float"),
        ([np.float32(1), TWO], "adder: input a should be a numpy array, .* found float32"),
        ([np.array(1, np.float32), TWO], r"adder: input a should have shape \(2,\), found \(\)"),
        ([TWO, TWO.astype(np.float64)], "adder: input b should have dtype float32, found float64; convert it"),
        ([TWO, np.array([None, None])], "adder: input b should have dtype float32, found object"),
        ([TWO, TWO.astype(">f4")], "adder: input b should have dtype float32, found >f4"),
        ({"a": TWO}, "adder takes the inputs a, b; missing: b$"),
        ({"a": TWO, "b": TWO, "c": TWO}, "adder takes the inputs a, b; unknown: c$"),
        ({0: TWO, "b": TWO}, "adder takes the inputs a, b; missing: a; unknown: 0$"),
        ([{"a": TWO}, TWO], "adder: input a should be a numpy array, .* found dict"),
    ],
)
def test_inputs_that_do_not_fit_are_told_with_the_name_of_the_model(sums, given, message):
    engine = lw.Engine(sums)
    for call in (engine, engine.submit, engine.bind, engine.values, engine.time_steps):
        with pytest.raises(lw.RuntimeArgumentError, match=message):
            call(given)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([1.0, 2.0, 3.0], "model takes 1 input, x, found 3; a list is the inputs in order: numpy.array makes"),
        ([[1.0, 2.0, 3.0]], r"model: input x should be a numpy array, .* found list"),
        (np.ones(3, np.float32), r"model: input x should have shape \(1, 3\), found \(3,\)"),
        (np.float32(3), "model: input x should be a numpy array, .* found float32"),
        ("x", "model: input x should be a numpy array, .* found str"),
        (memoryview(np.ones((1, 3))), "model: input x should be a numpy array, .* found memoryview"),
        (None, "model: input x should be a numpy array, .* found NoneType"),
        ((np.ones((1, 3), np.float32),) * 2, "model takes 1 input, x, found 2$"),
    ],
)
def test_what_stands_for_the_only_input_is_checked_as_that_input(library, given, message):
    with pytest.raises(lw.RuntimeArgumentError, match=message):
        lw.Engine(library)(given)


def test_names_that_there_are_not_are_told_with_those_that_there_are(sums):
    engine = lw.Engine(sums)
    with pytest.raises(lw.RuntimeArgumentError, match="there is no tensor 'c'; there are a, b"):
        engine.inputs["c"]
    with pytest.raises(lw.RuntimeArgumentError, match="there is no output 'total'; the outputs are sum"):
        engine([TWO, TWO])["total"]
    with pytest.raises(lw.RuntimeArgumentError, match="adder has no input 'c'; its inputs are a, b"):
        engine.set_input("c", TWO)


def test_outputs_are_asked_for_by_name_or_number(library):
    engine = lw.Engine(library).init()
    engine.set_input(0, np.ones((1, 3), np.float32))
    engine.run()
    for index in ("y", -1, 1):
        with pytest.raises(lw.RuntimeArgumentError, match=f"model has no output {index!r}; its outputs are output0"):
            engine.get_output(index)


def test_phases_out_of_order_say_what_to_call(library):
    engine = lw.Engine(library)
    for request in (engine, engine.request()):
        with pytest.raises(lw.RuntimeArgumentError, match=r"has no outputs yet: call run first"):
            request.get_output(0)
        with pytest.raises(lw.RuntimeArgumentError, match=r"input x is not set: call set_input before run"):
            request.run()
        request.set_input("x", np.ones((1, 3), np.float32))
        with pytest.raises(lw.RuntimeArgumentError, match=r"is not initialised: call engine\.init\(\) before run"):
            request.run()


def test_buffers_for_outputs_that_do_not_fit(library):
    engine = lw.Engine(library)
    x = np.ones((1, 3), np.float32)
    locked = np.empty((1, 3), np.float32)
    locked.flags.writeable = False
    wide = np.empty((1, 6), np.float32)
    for out, message in (
        (
            [np.empty((1, 3))],
            r"should have dtype float32, found float64; make it by numpy\.empty\(\(1, 3\), 'float32'\)",
        ),
        ([np.empty((3, 1), np.float32)], r"should have shape \(1, 3\), found \(3, 1\)"),
        ([wide[:, ::2]], "the buffer of output output0 is not contiguous"),
        ([locked], "the buffer of output output0 is read-only"),
        ([x], "output output0 shares memory with that of input x"),
        ([], "model gives 1 output, output0, found 0 buffers"),
        ({"y": x}, "gives the outputs output0; missing: output0; unknown: y"),
        (x, "the buffer of output output0 shares memory with that of input x"),
        ("y", "the buffer of output output0 should be a numpy array"),
    ):
        with pytest.raises(lw.RuntimeArgumentError, match=message):
            engine([x], out=out)


def test_misaligned_arrays_are_told_what_helps(library):
    engine = lw.Engine(library)
    x = np.frombuffer(bytearray(13), np.uint8)[1:].view(np.float32).reshape(1, 3)
    assert x.flags.c_contiguous
    assert np.ascontiguousarray(x) is x  # so that this advice would be none
    told = r"misaligned: its address, 0x[0-9a-f]+, is no multiple of 4 bytes; numpy\."
    with pytest.raises(lw.RuntimeArgumentError, match=rf"input x is {told}array makes a copy that is aligned"):
        engine([x])
    with pytest.raises(lw.RuntimeArgumentError, match=rf"output output0 is {told}empty makes one that is aligned"):
        engine([np.ones((1, 3), np.float32)], out=[x])
    engine([np.array(x)], out=[np.empty((1, 3), np.float32)])


def test_settings_of_executors_are_checked(library):
    for executors in (0, -1, True, 1.5, "2", [], [1]):
        with pytest.raises(lw.RuntimeArgumentError, match="executors should be a positive whole number, or a list of"):
            lw.Engine(library, executors=executors)
    with pytest.raises(lw.RuntimeArgumentError, match="cores 4095 are not among those that this process may use"):
        lw.ExecutorConfig(cores=(4095,))
    with pytest.raises(lw.RuntimeArgumentError, match="cores should be a list of the numbers of cpus, found 1"):
        lw.ExecutorConfig(cores=1)
    x = np.ones((1, 3), np.float32)
    for call in (lambda: lw.Engine(library, threads=0), lambda: lw.Engine(library)([x], threads=0)):
        with pytest.raises(lw.RuntimeArgumentError, match="threads should be a whole number from 1 to"):
            call()


def test_a_system_that_keeps_no_threads_on_cores_is_told(monkeypatch):
    monkeypatch.delattr("os.sched_setaffinity")
    with pytest.raises(lw.RuntimeArgumentError, match="this system cannot keep threads on cores: leave cores out"):
        lw.ExecutorConfig(cores=(0,))


def test_the_memory_of_open_dimensions_needs_shapes():
    x = lw.var("x", (lw.te.var("n"), 3))
    engine = lw.Engine(lw.compile(lw.Function((x,), lw.nn.relu(x)), jobs=1))
    with pytest.raises(lw.RuntimeArgumentError, match=r"depends on the shape of input x: float32\[n, 3\]: give it"):
        engine.planned_memory()
    with pytest.raises(lw.RuntimeArgumentError, match=r"input x should have shape \(n, 3\), found \(2, 4\)"):
        engine.planned_memory({"x": (2, 4)})
    with pytest.raises(lw.RuntimeArgumentError, match="has no input z"):
        engine.planned_memory({"z": (2, 4)})

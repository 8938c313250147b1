"""Models that plain code serves while they are compiled: what it answers, when it is replaced, and what waits."""

import gc
import os
import pickle
import signal
import threading
import time
from types import SimpleNamespace

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

import loopwright as lw
from loopwright.api import tiered

RNG = np.random.default_rng(0)
X = RNG.standard_normal((2, 3, 9, 8)).astype(np.float32)
W = RNG.standard_normal((4, 3, 3, 3)).astype(np.float32)


@pytest.fixture(autouse=True)
def own_code_alone(monkeypatch):
    """What other tests have registered in this process is none of these models' business."""
    monkeypatch.setattr(tiered, "is_any_foreign", lambda: False)


def network():
    """A convolution, a rectifier, an average over pixels, and a product."""
    x = lw.var("x", X.shape)
    h = lw.nn.relu(lw.nn.conv2d(x, lw.const(W), padding=(1, 1, 1, 1)))
    rows = lw.nn.mean(h, (2, 3))
    return lw.Function([x], lw.nn.dense(rows, lw.const(RNG.standard_normal((5, 4)).astype(np.float32))), "network")


@pytest.fixture
def held(monkeypatch):
    """Compilations that go on when ``release()`` is called, in a thread; or fail, with the ``error`` that is set."""
    state = SimpleNamespace(gate=threading.Event(), error=None)

    def compile_when_told(process, whole):
        tiered._end(process)
        state.gate.wait(60)
        if state.error is not None:
            raise state.error
        return whole()

    monkeypatch.setattr(tiered, "_compiled_by", compile_when_told)
    state.release = state.gate.set
    yield state
    state.release()


def test_plain_code_answers_until_the_compiled_code_does(held):
    function = network()
    library = lw.compile(function, tiered=True, jobs=1)
    engine = lw.Engine(library)
    assert not library.is_compiled
    assert "plain code serves it" in repr(library)
    assert "not loaded" in repr(engine)
    first = engine({"x": X})
    wanted = lw.Engine(lw.compile(function, jobs=1))({"x": X})
    np.testing.assert_allclose(first["output0"], wanted[0], rtol=1e-5, atol=1e-5)
    assert library._repr_html_() is None
    assert engine._repr_html_() is None
    held.release()
    assert library.compilation.result(60).functions
    assert library.is_compiled
    np.testing.assert_array_equal(engine({"x": X})[0], wanted[0])  # the code that is compiled otherwise, bit by bit
    assert "executor" in repr(engine)
    assert "network" in repr(library)
    assert "network" in library._repr_html_()
    assert "network" in engine._repr_html_()
    assert pickle.loads(pickle.dumps(library)).functions


def test_a_failed_compilation_leaves_the_plain_code_serving(held, tmp_path):
    held.error = lw.OutOfMemoryError("there is no memory")
    library = lw.compile(network(), tiered=True, jobs=1)
    engine = lw.Engine(library)
    first = engine([X])
    held.release()
    assert isinstance(library.compilation.exception(60), lw.OutOfMemoryError)
    np.testing.assert_array_equal(engine([X])[0], first[0])
    assert "which failed" in repr(library)
    with pytest.raises(lw.OutOfMemoryError, match="no memory"):
        library.save(tmp_path / "network.lwlib")
    with pytest.raises(lw.OutOfMemoryError, match="no memory"):
        engine.profile([X])


def test_phases_requests_buffers_and_threads_are_served(held):
    library = lw.compile(network(), tiered=True, jobs=1)
    engine = lw.Engine(library)
    with pytest.raises(lw.RuntimeArgumentError, match="not initialised"):
        engine.set_input(0, X) or engine.run()
    engine.init()
    wanted = engine([X])[0]
    engine.set_input("x", X)
    engine.run()
    np.testing.assert_array_equal(engine.get_output(), wanted)
    request = engine.request()
    request.set_input(0, X)
    request.run()
    np.testing.assert_array_equal(request.get_output(0), wanted)
    buffer = np.zeros_like(wanted)
    assert engine([X], out=[buffer])[0] is buffer
    np.testing.assert_array_equal(buffer, wanted)
    futures = [engine.submit([X]) for _ in range(4)]
    assert all((future.result()[0] == wanted).all() for future in futures)
    with pytest.raises(lw.RuntimeArgumentError, match="should have shape"):
        engine([X[:1]])
    with pytest.raises(lw.RuntimeArgumentError, match="shares memory"):
        engine([X], out=[X.reshape(-1)[:10].reshape(2, 5)])
    held.release()
    library.compilation.result(60)
    engine.set_input("x", X)
    engine.run()
    np.testing.assert_allclose(engine.get_output(), wanted, rtol=1e-5, atol=1e-5)


def test_calls_from_several_threads_go_over_to_the_compiled_code(held):
    library = lw.compile(network(), tiered=True, jobs=1)
    engine = lw.Engine(library)
    wanted, found, stop = engine([X])[0], [], threading.Event()

    def call():
        while not stop.is_set():
            found.append(engine([X])[0])

    threads = [threading.Thread(target=call) for _ in range(3)]
    for thread in threads:
        thread.start()
    held.release()
    library.compilation.result(60)
    engine([X])
    stop.set()
    for thread in threads:
        thread.join()
    assert found
    for each in found:
        np.testing.assert_allclose(each, wanted, rtol=1e-5, atol=1e-5)


def test_open_dimensions_are_those_of_each_call(held):
    x, y = lw.var("x", (lw.te.var("n"), 6)), lw.var("y", (lw.te.var("n"), 6))
    n = x.type.shape[0]
    y = lw.var("y", (n, 6))
    library = lw.compile(lw.Function([x, y], lw.nn.softmax(lw.nn.add(x, y))), tiered=True, jobs=1)
    engine = lw.Engine(library)
    for rows in (1, 5, 0):
        a, b = (RNG.standard_normal((rows, 6)).astype(np.float32) for _ in range(2))
        exponents = np.exp(a + b)
        np.testing.assert_allclose(engine([a, b])[0], exponents / exponents.sum(-1, keepdims=True), rtol=1e-5)
    with pytest.raises(lw.RuntimeArgumentError, match="n = 3 from dimension 0 of input x"):
        engine([np.zeros((3, 6), np.float32), np.zeros((4, 6), np.float32)])


def test_outputs_are_nobodys_memory(held):
    weights = np.arange(6, dtype=np.float32)
    x = lw.var("x", (6,))
    outputs = lw.op.Tuple([x, lw.const(weights), lw.nn.reshape(x, (2, 3)), lw.nn.transpose(lw.nn.reshape(x, (2, 3)))])
    engine = lw.Engine(lw.compile(lw.Function([x], outputs), tiered=True, jobs=1))
    values = np.arange(6, dtype=np.float32)
    given = engine([values])
    for output in given:
        assert output.flags.c_contiguous
        output[...] = -1
    np.testing.assert_array_equal(engine([values])[1], weights)
    np.testing.assert_array_equal(values, np.arange(6))


def test_what_numpy_cannot_run_waits(held):
    x = lw.var("x", (2, 8))
    library = lw.compile(lw.Function([x], lw.nn.topk(x, 3)[0]), tiered=True, jobs=1)
    assert "its calls wait" in repr(library)
    held.release()
    found = lw.Engine(library)([np.arange(16, dtype=np.float32).reshape(2, 8)])
    np.testing.assert_array_equal(found[0], [[7, 6, 5], [15, 14, 13]])


def test_strict_precision_gives_the_same_bits_in_both(held):
    function = network()
    library = lw.compile(function, tiered=True, precision="strict", jobs=1)
    held.release()
    found = lw.Engine(library)([X])[0]
    np.testing.assert_array_equal(found, lw.Engine(lw.compile(function, precision="strict", jobs=1))([X])[0])


def onnx_network():
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["h"], pads=[1, 1, 1, 1], group=1),
        helper.make_node("Erf", ["h"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "small",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, X.shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, (2, 4, 9, 8))],
        [numpy_helper.from_array(W, "w")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.mark.parametrize("form", ["path", "bytes", "proto"])
def test_another_process_compiles_models_in_all_forms(form, tmp_path):
    model = onnx_network()
    path = tmp_path / "small.onnx"
    path.write_bytes(model.SerializeToString())
    given = {"path": path, "bytes": path.read_bytes(), "proto": model}[form]
    library = lw.compile(given, tiered=True, jobs=1)
    engine = lw.Engine(library)
    first = engine({"x": X})["y"]
    compiled = library.compilation.result(120)
    assert compiled.model.functions
    assert library.timings is None
    wanted = lw.Engine(lw.compile(given, jobs=1))({"x": X})["y"]
    np.testing.assert_array_equal(engine({"x": X})["y"], wanted)
    np.testing.assert_allclose(first, wanted, rtol=1e-5, atol=1e-6)
    library.save(tmp_path / "small.lwlib")
    np.testing.assert_array_equal(lw.Engine(lw.load(tmp_path / "small.lwlib"))({"x": X})["y"], wanted)


def test_what_goes_wrong_in_the_other_process_is_told(tmp_path):
    """It lacks what it is asked to do: the model's file is gone when it looks."""
    started = threading.Event()
    path = tmp_path / "small.onnx"
    path.write_bytes(onnx_network().SerializeToString())
    original = tiered._compiled_by

    def late(process, whole):
        path.unlink()
        started.set()
        return original(process, whole)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tiered, "_compiled_by", late)
        library = lw.compile(path, tiered=True, jobs=1)
        assert started.wait(60)
        assert isinstance(library.compilation.exception(120), lw.ModelError)
    assert lw.Engine(library)({"x": X})["y"].shape == (2, 4, 9, 8)


def processes(monkeypatch):
    found = []
    original = tiered._start

    def start():
        found.append(original())
        return found[-1]

    monkeypatch.setattr(tiered, "_start", start)
    return found


def test_a_process_that_is_killed_is_an_error_of_the_compilation_alone(monkeypatch):
    found = processes(monkeypatch)
    library = lw.compile(network(), tiered=True, jobs=1)
    os.kill(found[0].pid, signal.SIGKILL)
    assert isinstance(library.compilation.exception(60), lw.OutOfMemoryError | lw.InternalError)
    assert lw.Engine(library)([X])[0].shape == (2, 5)


def test_a_library_that_nobody_holds_ends_its_compilation(monkeypatch):
    found = processes(monkeypatch)
    library = lw.compile(network(), tiered=True, jobs=1)
    del library
    gc.collect()
    limit = time.monotonic() + 60
    while found[0].poll() is None and time.monotonic() < limit:
        time.sleep(0.01)
    assert found[0].poll() is not None


def test_a_model_that_is_refused_is_refused_at_once(monkeypatch, tmp_path):
    found = processes(monkeypatch)
    path = tmp_path / "no.onnx"
    path.write_bytes(b"no model")
    with pytest.raises(lw.ModelError):
        lw.compile(path, tiered=True)
    assert found[0].poll() is not None
    with pytest.raises(lw.RuntimeArgumentError, match="tiered should be True or False"):
        lw.compile(network(), tiered="yes")
    with pytest.raises(lw.RuntimeArgumentError, match="jobs should be"):
        lw.compile(network(), tiered=True, jobs=0)


def test_a_thread_compiles_where_operators_of_others_are_registered(monkeypatch):
    monkeypatch.setattr(tiered, "is_any_foreign", lambda: True)
    monkeypatch.setattr(tiered, "_start", pytest.fail)
    function = network()
    library = lw.compile(function, tiered=True, jobs=1)
    first = lw.Engine(library)([X])[0]
    assert library.compilation.result(120).functions
    np.testing.assert_allclose(lw.Engine(library)([X])[0], first, rtol=1e-5, atol=1e-5)


def test_other_libraries_are_their_own_compilation():
    library = lw.compile(network(), jobs=1)
    assert library.is_compiled
    assert library.compilation.result() is library

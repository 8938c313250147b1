"""Packed functions: the registry, and graphs and ONNX models that call them."""

import ctypes
import threading

import numpy as np
import pytest
from onnx import TensorProto, helper

import loopwright as lw

X = np.arange(8, dtype=np.float32).reshape(2, 4) - 3


@pytest.fixture
def registered():
    """Registers functions for one test."""
    made = []

    def register(name, function):
        made.append(name)
        return lw.register_func(name, function, override=True)

    yield register
    from loopwright.runtime.functions import packed_functions

    for name in made:
        packed_functions._functions.pop(name, None)


def scale(x, y, factor=2.0):
    y[...] = x * factor


def scaled_model(*shape, **options):
    """relu(scale(x + x))."""
    x = lw.var("x", shape)
    made = lw.nn.extern("test.scale", lw.nn.add(x, x), options=options)
    return lw.compile(lw.Function([x], lw.nn.relu(made)), jobs=1)


def test_functions_are_found_by_their_names(registered):
    assert registered("test.scale", scale) is scale
    assert lw.get_func("test.scale") is scale
    assert "test.scale" in lw.list_funcs()
    assert list(lw.list_funcs()) == sorted(lw.list_funcs())


def test_a_graph_calls_a_function_with_its_options(registered):
    registered("test.scale", scale)
    library = scaled_model(2, 4, factor=3.0)
    np.testing.assert_array_equal(lw.Engine(library)([X])[0], np.maximum(X * 6, 0))
    assert "→ test.scale (10): a packed function, looked up by engines" in str(lw.explain(library))
    assert len(lw.Engine(library).time_steps([X])) == 3


def test_symbolic_shapes_reach_the_function(registered):
    seen = []
    registered("test.scale", lambda x, y: (seen.append(x.shape), scale(x, y)))
    engine = lw.Engine(scaled_model(lw.te.var("n"), 4))
    for n in (3, 1, 0):
        engine([np.ones((n, 4), np.float32)])
    assert seen == [(3, 4), (1, 4), (0, 4)]


def test_a_result_may_be_of_another_shape_and_dtype(registered):
    def count(x, same, weights, y):
        assert x.ctypes.data == same.ctypes.data
        y[...] = (x > 0).sum(axis=1) + weights

    registered("test.count", count)
    x = lw.var("x", (2, 4))
    call = lw.nn.extern("test.count", x, x, lw.const(np.array([1, 2])), shape=(2,), dtype="int64")
    (found,) = lw.Engine(lw.compile(lw.Function([x], call), jobs=1))([X])
    np.testing.assert_array_equal(found, np.array([1, 6]))
    assert found.dtype == np.int64


def test_calls_on_constants_are_left_to_the_engine(registered):
    w = lw.const(np.ones((2, 4), np.float32))
    x = lw.var("x", (2, 4))
    library = lw.compile(lw.Function([x], lw.nn.add(x, lw.nn.extern("test.scale", w))), jobs=1)
    registered("test.scale", scale)
    np.testing.assert_array_equal(lw.Engine(library)([X])[0], X + 2)


def test_libraries_keep_the_name_and_find_the_function_when_they_are_loaded(registered, tmp_path):
    scaled_model(2, 4).save(tmp_path / "scaled.lwlib")
    engine = lw.Engine(lw.load(tmp_path / "scaled.lwlib"))
    with pytest.raises(lw.TargetError, match=r"the operator extern calls the function 'test\.scale', which is not reg"):
        engine.init()
    registered("test.scale", scale)
    np.testing.assert_array_equal(engine([X])[0], np.maximum(X * 4, 0))


def test_an_onnx_model_calls_a_function_by_a_node_of_our_domain(registered):
    seen = {}

    def function(x, y, factor, mode, taps):
        seen.update(mode=mode, taps=taps)
        y[...] = x.sum() * factor

    registered("test.sum", function)
    options = {"function": "test.sum", "shape": [2], "dtype": TensorProto.DOUBLE}
    node = helper.make_node(
        "Extern", ["x"], ["y"], domain="loopwright", **options, name="total", factor=2, mode="fast", taps=[1, 2]
    )
    values = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 4])]
    results = [helper.make_tensor_value_info("y", TensorProto.DOUBLE, [2])]
    graph = helper.make_graph([node], "g", values, results)
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid("loopwright", 1)]
    library = lw.compile(helper.make_model(graph, opset_imports=opsets), jobs=1)
    np.testing.assert_array_equal(lw.Engine(library)([X])[0], np.full(2, 2 * X.sum(), np.float64))
    assert seen == {"mode": "fast", "taps": [1, 2]}
    node.attribute[[a.name for a in node.attribute].index("function")].s = b"test.other"
    graph = helper.make_graph([node], "g", values, results)
    engine = lw.Engine(lw.compile(helper.make_model(graph, opset_imports=opsets), jobs=1))
    with pytest.raises(lw.TargetError, match=r"extern \(node total\) calls the function 'test\.other', which is not"):
        engine.init()


def test_an_error_in_the_function_is_the_cause_of_ours_and_the_engine_goes_on(registered):
    broken = ValueError("no scale")

    def fail(x, y):
        if x[0, 0] > 0:
            raise broken
        scale(x, y)

    registered("test.scale", fail)
    engine = lw.Engine(scaled_model(2, 4))
    for _ in range(2):
        with pytest.raises(lw.KernelError, match="fused_extern: ValueError: no scale") as raised:
            engine([np.ones((2, 4), np.float32)])
        assert raised.value.__cause__ is broken
        np.testing.assert_array_equal(engine([X])[0], np.maximum(X * 4, 0))


def test_what_ends_a_program_is_not_wrapped(registered):
    def leave(x, y):
        raise KeyboardInterrupt

    registered("test.scale", leave)
    with pytest.raises(KeyboardInterrupt):
        lw.Engine(scaled_model(2, 4))([X])


def test_inputs_of_a_function_are_read_only(registered):
    def write(x, y):
        x[...] = 0

    registered("test.scale", write)
    with pytest.raises(lw.KernelError, match="read-only"):
        lw.Engine(scaled_model(2, 4))([X])


def test_errors_of_several_threads_stay_apart(registered):
    def name_the_thread(x, y):
        raise LookupError(str(threading.get_ident()))

    registered("test.scale", name_the_thread)
    engine = lw.Engine(scaled_model(2, 4), executors=3)
    found = []

    def work():
        for _ in range(50):
            try:
                engine([X])
            except lw.KernelError as error:
                found.append(str(error.__cause__) == str(threading.get_ident()))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [True] * 200


def test_a_function_of_ctypes_is_called_with_the_arguments_of_an_entry(registered):
    kind = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p)

    def entry(context, args):
        x, y = (ctypes.c_int64 * 2).from_address(args)
        ctypes.memmove(y, x, 32)
        return 0 if ctypes.c_float.from_address(x).value < 0 else 7

    registered("test.scale", kind(entry))
    engine = lw.Engine(scaled_model(2, 4))
    np.testing.assert_array_equal(engine([X])[0], np.maximum(X * 2, 0))
    with pytest.raises(lw.KernelError, match="fused_extern: the native function returned the error code 7"):
        engine([-X])


def test_an_engine_may_run_inside_of_a_function(registered):
    x = lw.var("x", (2, 4))
    inner = lw.Engine(lw.compile(lw.Function([x], lw.nn.negative(x)), jobs=1))
    registered("test.scale", lambda x, y: inner([x], out=[y]))
    np.testing.assert_array_equal(lw.Engine(scaled_model(2, 4))([X])[0], np.maximum(-2 * X, 0))


def test_an_engine_that_waits_for_itself_is_an_error(registered):
    engine = lw.Engine(scaled_model(2, 4))
    registered("test.scale", lambda x, y: engine([X], out=[y]))
    with pytest.raises(
        lw.KernelError, match=r"calls model, of which it could wait for ever: .* the only executor: give"
    ):
        engine([X])


@pytest.mark.parametrize("look", ["bind", "time_steps", "values"])
def test_an_engine_that_is_looked_at_by_what_it_runs_is_an_error_too(registered, look):
    def itself(x, y):
        made = getattr(engine, look)([X])
        if look == "bind":
            made()

    registered("test.scale", itself)
    engine = lw.Engine(scaled_model(2, 4)).init()
    with pytest.raises(lw.KernelError, match="could wait for ever"):
        engine([X])


def test_an_interrupt_on_the_way_into_a_function_is_not_lost(registered, monkeypatch):
    """ctypes drops what is raised before the function's own ``try``, and goes on."""
    from loopwright.runtime.functions.host_call import HostCall

    registered("test.scale", scale)
    engine = lw.Engine(scaled_model(2, 4)).init()
    (host,) = engine._executors.executors[0].hosts
    monkeypatch.setattr(HostCall, "_arrays", lambda self, args: ([X], [np.empty_like(X)]))
    monkeypatch.setattr(host, "completed", lambda thread: 0)  # as if it had not come to its end
    with pytest.raises(KeyboardInterrupt):
        engine([X])


def test_stages_of_a_model_say_where_there_is_no_code(registered):
    x = lw.var("x", (2, 4))
    model = lw.Function([x], lw.nn.relu(lw.nn.extern("test.scale", x)))
    for stage in ("te", "loop", "llvm", "asm"):
        texts = {text.name: text.text for text in lw.dump(model, stage)}
        assert "packed function" in texts["fused_extern"]
        assert "packed function" not in texts["fused_relu"]

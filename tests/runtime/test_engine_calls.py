"""Ways to give inputs and to take outputs: by position, by name, or by itself where there is one only."""

import asyncio
import copy
import pickle

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import loopwright as lw
from loopwright import onnx_backend, te

X = np.arange(6, dtype=np.float32).reshape(2, 3)


@pytest.fixture(scope="module")
def library():
    """One input of an open batch; its negative, and its sums."""
    x = lw.var("x", (te.var("batch"), 3))
    results = lw.op.Tuple((lw.nn.negative(x), lw.nn.sum(x, 1)))
    return lw.compile(lw.Function([x], results, "ends", ("negative", "total")), jobs=1)


@pytest.fixture
def engine(library):
    return lw.Engine(library, threads=1)


def check(outputs):
    assert isinstance(outputs, list)
    np.testing.assert_array_equal(outputs[0], -X)
    np.testing.assert_array_equal(outputs["total"], X.sum(1))


class Exporter:
    """An array that is known by DLPack only."""

    def __dlpack__(self, **options):
        return X.__dlpack__(**options)

    def __dlpack_device__(self):
        return X.__dlpack_device__()


@pytest.mark.parametrize(
    "given", [X, Exporter(), [X], (X,), {"x": X}], ids=["array", "dlpack", "list", "tuple", "dict"]
)
def test_every_call_takes_an_input_by_itself_in_order_or_by_name(engine, given):
    check(engine(given))
    check(engine.submit(given).result())
    check(asyncio.run(engine.run_async(given)))
    check(engine.bind(given)())
    assert engine.time_steps(given)
    np.testing.assert_array_equal(engine(given, threads=1)[0], -X)


def test_a_list_is_always_the_inputs_in_order():
    x = lw.var("x", (1,))
    engine = lw.Engine(lw.compile(lw.Function([x], lw.nn.negative(x)), jobs=1))
    np.testing.assert_array_equal(engine([X[0, 1:2]])[0], -X[0, 1:2])
    with pytest.raises(lw.RuntimeArgumentError, match="takes 1 input, x, found 3"):
        engine([X[0, 1:2]] * 3)


def test_an_input_without_axes_is_an_array_by_itself():
    x = lw.var("x", ())
    engine = lw.Engine(lw.compile(lw.Function([x], lw.nn.negative(x)), jobs=1))
    assert engine(np.array(2, np.float32))["output0"] == -2


def test_a_buffer_by_itself_is_that_of_the_only_output():
    x = lw.var("x", (3,))
    engine = lw.Engine(lw.compile(lw.Function([x], lw.nn.negative(x)), jobs=1))
    y = np.empty(3, np.float32)
    assert engine(X[0], out=y)["output0"] is y
    np.testing.assert_array_equal(y, -X[0])


def test_outputs_answer_their_names_and_stay_a_list(engine):
    outputs = engine(X)
    negative, total = outputs
    assert outputs["negative"] is negative
    assert outputs[-1] is outputs["total"] is total
    assert type(outputs[:1]) is list
    assert outputs.keys() == ["negative", "total"]
    assert "total" in outputs
    assert "x" not in outputs
    assert dict(outputs)["total"] is total
    for copied in (copy.copy(outputs), pickle.loads(pickle.dumps(outputs))):
        check(copied)


def test_outputs_in_buffers_answer_their_names(engine):
    buffers = {"negative": np.empty_like(X), "total": np.empty(2, np.float32)}
    outputs = engine(X, out=buffers)
    assert all(outputs[name] is buffer for name, buffer in buffers.items())


def test_a_request_takes_and_gives_by_name_and_position(engine):
    request = engine.init().request()
    request.set_input("x", X)
    request.run()
    assert request.get_output("total") is request.get_output(1)
    request.set_input(np.int64(0), X)


def test_inputs_and_outputs_are_described_in_order_and_by_name(library, engine, tmp_path):
    library.save(tmp_path / "ends.lwlib")
    loaded = lw.load(tmp_path / "ends.lwlib")
    for described in (library, loaded, engine, engine.request(), engine.bind(X), lw.Engine(loaded)):
        assert str(described.inputs) == "x: float32[batch, 3]"
        assert str(described.outputs) == "negative: float32[batch, 3]\ntotal:    float32[batch]"
        assert repr(described.outputs) == "(negative: float32[batch, 3], total: float32[batch])"
        assert described.inputs["x"] is described.inputs[0]
        assert described.inputs["x"].shape == ("batch", 3)
        assert described.outputs["total"].dtype == "float32"
        assert described.outputs.names == ("negative", "total")


def test_a_model_without_inputs_says_so():
    engine = lw.Engine(lw.compile(lw.Function([], lw.nn.full((2,), 3.0)), jobs=1))
    assert str(engine.inputs) == "none"
    np.testing.assert_array_equal(engine([])[0], [3, 3])


def onnx_model(graph_name):
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", 3]) for name in "xy"]
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], graph_name, ends[:1], ends[1:])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.mark.parametrize(
    ("graph_name", "called"),
    [
        ("digits", "digits"),
        ("main_graph", "net-3"),
        ("", "net-3"),
        ("two\nlines", "two lines"),
        ("é" * 99, "é" * 79 + "…"),
    ],
    ids=["graph", "exporter", "none", "lines", "long"],
)
def test_a_model_goes_by_the_name_of_its_graph_or_of_its_file(tmp_path, graph_name, called):
    onnx.save(onnx_model(graph_name), tmp_path / "net-3.onnx")
    compiled = lw.compile(tmp_path / "net-3.onnx", jobs=1)
    compiled.save(tmp_path / "net.lwlib")
    for library in (compiled, lw.load(tmp_path / "net.lwlib")):
        assert library.model.name == called
        engine = lw.Engine(library)
        assert called[:9] in repr(engine)
        np.testing.assert_array_equal(engine(-X)["y"], 0 * X)
        with pytest.raises(lw.RuntimeArgumentError, match=f"^{called} takes 1 input, x, found 2"):
            engine([X, X])


def test_a_model_that_says_no_name_is_called_model():
    assert lw.from_onnx(onnx_model("")).name == "model"
    assert lw.from_onnx(onnx_model("digits").SerializeToString()).name == "digits"


def test_the_backend_takes_an_input_by_itself_in_order_or_by_name():
    prepared = onnx_backend.prepare(onnx_model("digits"))
    for given in (X, [X], (X,), {"x": X}):
        np.testing.assert_array_equal(prepared.run(given)["y"], X)
    for given in ([X, X], {"z": X}, {"x": X, 0: X}):
        with pytest.raises(lw.RuntimeArgumentError, match=r"digits takes .* input"):
            prepared.run(given)


def test_arrays_that_were_unpickled_are_let_through_as_others(engine, monkeypatch):
    """Their dtype is an object of their own."""
    given = pickle.loads(pickle.dumps(X))
    assert given.dtype is not X.dtype
    check(engine([given]))
    monkeypatch.setattr(type(engine._signature), "input_array", None)  # what looks closer at an array
    check(engine([given]))


def test_shapes_are_checked_after_runs_on_others():
    """A run remembers the shapes that it found right; they are those of its own inputs."""
    n = lw.te.var("n")
    x, y = lw.var("x", (n, 4)), lw.var("y", (n, 4))
    engine = lw.Engine(lw.compile(lw.Function([x, y], x + y), jobs=1))
    for rows in (3, 3, 5, 3):
        a = np.full((rows, 4), rows, np.float32)
        np.testing.assert_array_equal(engine([a, a])[0], a + a)
    three, five = np.ones((3, 4), np.float32), np.ones((5, 4), np.float32)
    with pytest.raises(lw.RuntimeArgumentError, match="n = 3 from dimension 0 of input x"):
        engine([three, five])
    with pytest.raises(lw.RuntimeArgumentError, match=r"should have shape \(n, 4\), found \(3, 5\)"):
        engine([np.ones((3, 5), np.float32), three])
    with pytest.raises(lw.RuntimeArgumentError, match="not contiguous"):
        engine([np.ones((4, 3), np.float32).T, three])
    with pytest.raises(lw.RuntimeArgumentError, match="float64"):
        engine([np.ones((3, 4)), three])

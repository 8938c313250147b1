"""``engine.compare``: values at fusion boundaries against references of each kind, in whatever layout they are held."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import loopwright as lw
from loopwright.runtime.measure import onnx_reference


def normal(*shape):
    rng = np.random.default_rng(sum(shape))
    return (rng.standard_normal(shape) / np.sqrt(np.prod(shape[1:]))).astype(np.float32)


X = normal(1, 16, 12, 12)


def network():
    """Convolutions with batch norm, a residual, a concatenation and a product: held in blocks between."""
    weights = {
        "w1": normal(32, 16, 3, 3),
        "w2": normal(32, 32, 3, 3),
        "w3": normal(64, 10),
        "scale": np.linspace(0.5, 1.5, 32, dtype=np.float32),
        "shift": normal(32),
        "mean": normal(32),
        "variance": np.linspace(0.5, 1.5, 32, dtype=np.float32),
    }
    nodes = [
        helper.make_node("Conv", ["x", "w1"], ["c1"], name="first", pads=[1, 1, 1, 1]),
        helper.make_node("BatchNormalization", ["c1", "scale", "shift", "mean", "variance"], ["n1"], name="norm"),
        helper.make_node("Relu", ["n1"], ["r1"], name="relu1"),
        helper.make_node("Conv", ["r1", "w2"], ["c2"], name="second", pads=[1, 1, 1, 1]),
        helper.make_node("Add", ["c2", "r1"], ["sum"], name="residual"),
        helper.make_node("Concat", ["sum", "r1"], ["both"], name="concat", axis=1),
        helper.make_node("GlobalAveragePool", ["both"], ["mean_of"], name="mean"),
        helper.make_node("Flatten", ["mean_of"], ["flat"], name="flatten"),
        helper.make_node("MatMul", ["flat", "w3"], ["y"], name="product"),
    ]
    graph = helper.make_graph(
        nodes,
        "network",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 16, 12, 12])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 10])],
        [numpy_helper.from_array(value, name) for name, value in weights.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "network.onnx"
    onnx.save(network(), path)
    return path


@pytest.fixture(scope="module")
def engine(path):
    return lw.Engine(lw.compile(path, target="x86-64-v3", jobs=1), threads=1)


def test_all_values_agree_with_the_model_it_was_compiled_from(engine):
    result = engine.compare([X])
    assert result.first is None
    assert {"r1", "sum", "y"} <= {d.value for d in result.differences}
    assert all(d.largest <= 1e-5 and d.lost == 0 for d in result.differences)
    assert "all within" in str(result)


def test_the_evaluator_of_the_onnx_package_serves_where_onnxruntime_is_not(engine, path, monkeypatch):
    monkeypatch.setattr(onnx_reference, "onnxruntime_installed", lambda: False)
    assert engine.compare({"x": X}, reference=path).first is None


def test_values_are_in_the_layout_of_the_model(engine):
    values = engine.values([X])
    assert values["r1"].shape == (1, 32, 12, 12)
    np.testing.assert_array_equal(values["y"], engine([X])[0])


def test_the_first_function_that_leaves_the_tolerance_is_named(engine):
    def wrong_from_the_sum_on(inputs):
        values = engine.values(inputs)
        values["sum"][0, 5, 7, 3] += 1.0
        values["y"] += 1.0
        return values

    result = engine.compare([X], reference=wrong_from_the_sum_on)
    assert result.first.value == "sum"
    assert result.first.place == (0, 5, 7, 3)
    assert result.first.theirs - result.first.ours == pytest.approx(1.0)
    assert "residual" in result.first.nodes
    assert result.first.mean == pytest.approx(result.first.largest / (32 * 12 * 12), rel=0.01)
    assert "the first: sum [1, 32, 12, 12], by fused_" in str(result)


def test_values_that_are_not_finite_on_one_side_are_lost(engine):
    def broken(inputs):
        values = engine.values(inputs)
        values["y"][0, 1:3] = np.nan, np.inf
        return {"y": values["y"]}

    result = engine.compare([X], reference=broken)
    assert result.first.value == "y"
    assert result.first.lost == 2
    assert result.first.largest == np.inf
    assert len(result.unknown) == len(engine.library.model.steps) - 1


def test_another_library_of_the_model_is_a_reference(engine):
    other = lw.compile(network(), target="x86-64", jobs=1, precision="strict")
    assert engine.compare([X], reference=other).first is None


def test_a_saved_library_keeps_the_names_of_its_values(engine, path, tmp_path):
    engine.library.save(tmp_path / "network.lwlib")
    loaded = lw.Engine(lw.load(tmp_path / "network.lwlib"), threads=1)
    assert loaded.compare([X], reference=network()).first is None
    with pytest.raises(lw.ModelError, match="does not know the file that it was compiled from"):
        loaded.compare([X])


def test_models_of_any_batch_are_compared_too():
    graph = helper.make_graph(
        [helper.make_node("Relu", ["x"], ["r"]), helper.make_node("Softmax", ["r"], ["y"])],
        "rows",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 8])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 8])],
    )
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    engine = lw.Engine(lw.compile(proto, shapes={"x": (None, 8)}, jobs=1), threads=1)
    result = engine.compare([normal(5, 8)], reference=proto)
    assert result.first is None
    assert result.differences[-1].shape == (5, 8)


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        (lambda inputs: {"z": np.zeros(3)}, "no value in common"),
        (lambda inputs: {"y": np.zeros(3)}, r"y has shape \(1, 10\), but \(3,\) in the reference"),
    ],
)
def test_references_that_are_of_another_model_are_errors(engine, reference, message):
    with pytest.raises(lw.ModelError, match=message):
        engine.compare([X], reference=reference)


def test_references_of_another_kind_are_errors(engine, tmp_path):
    with pytest.raises(lw.RuntimeArgumentError, match="not a int"):
        engine.compare([X], reference=3)
    with pytest.raises(lw.RuntimeArgumentError, match="values by name, as a mapping, but gave a list"):
        engine.compare([X], reference=lambda inputs: [X])
    (tmp_path / "bad.onnx").write_bytes(b"\x93garbage")
    with pytest.raises(lw.ModelError, match="the reference cannot be read"):
        engine.compare([X], reference=tmp_path / "bad.onnx")

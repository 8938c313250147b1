"""The nine networks that ship inside the onnx package: with random weights against onnxruntime where it is installed,
else onnx's reference evaluator, and as they are against their stored outputs.
"""

import importlib.util
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, numpy_helper
from onnx.backend.test.loader import load_model_tests

import loopwright as lw

QUICK = {"squeezenet", "shufflenet"}
LARGE = {"bvlc_alexnet", "vgg19", "zfnet512"}  # hundreds of MB of weights


def light_models():
    """The module that the examples use."""
    path = Path(__file__).resolve().parents[2] / "examples" / "support" / "light_models.py"
    spec = importlib.util.spec_from_file_location("light_models", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


LIGHT = light_models()
TOLERANCES = {case.name.removeprefix("test_"): (case.rtol, case.atol) for case in load_model_tests(kind="real")}


def each_model(quick):
    params = [pytest.param(n, marks=[] if n in quick else pytest.mark.slow) for n in LIGHT.names()]
    return pytest.mark.parametrize("name", params)


def fed(model):
    """Name and shape of the one input."""
    stored = {initializer.name for initializer in model.graph.initializer}
    (info,) = (i for i in model.graph.input if i.name not in stored)
    return info.name, tuple(d.dim_value for d in info.type.tensor_type.shape.dim)


def random_case(name):
    """The model with random weights, its feed, and its outputs by the oracle."""
    model = LIGHT.with_random_weights(name)
    key, shape = fed(model)
    feeds = {key: np.random.default_rng(1).standard_normal(shape, dtype=np.float32)}
    if importlib.util.find_spec("onnxruntime") is None:
        from onnx.reference import ReferenceEvaluator

        return model, feeds, ReferenceEvaluator(model).run(None, feeds)
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3  # it warns of weights that a model lists as inputs
    session = onnxruntime.InferenceSession(model.SerializeToString(), options)
    return model, feeds, session.run(None, feeds)


def test_all_nine_are_there():
    assert len(LIGHT.names()) == 9
    assert set(LIGHT.names()) == set(TOLERANCES)


@each_model(set(LIGHT.names()) - LARGE)
def test_random_weights_are_random(name):
    model = LIGHT.with_random_weights(name)
    assert not [node for node in model.graph.node if node.op_type == "ConstantOfShape"]
    read = {i for node in model.graph.node for i in node.input}
    weights = {i.name: numpy_helper.to_array(i) for i in model.graph.initializer if i.name in read}
    floats = [w for w in weights.values() if w.dtype == np.float32]
    assert floats
    for weight in floats:
        part = weight.ravel()[:1000]
        assert len(np.unique(part)) > 0.99 * part.size


def check_worth_comparing(name, model, outputs):
    """The tensor before the softmax is there, and eight others; none is constant, mostly zero, huge or not finite."""
    assert len(outputs) == len({o.name for o in model.graph.output}) >= 9
    final = LIGHT.with_random_weights(name, intermediates=0).graph.output
    assert [o.name for o in final] == [model.graph.output[0].name]
    assert not any(node.op_type == "Softmax" and model.graph.output[0].name in node.output for node in model.graph.node)
    for value in outputs:
        assert np.isfinite(value).all()
        assert 1e-2 < value.std() < 1e4
        assert (value == 0).mean() < 0.8
        assert len(np.unique(value)) > value.size * 0.1
        if value.ndim == 4 and value.shape[-1] > 1:
            assert (value.std((0, 2, 3)) > 0).mean() > 0.5  # of the channels; a ReLU may put out some


@each_model(QUICK)
def test_with_random_weights(name):
    model, feeds, expected = random_case(name)
    check_worth_comparing(name, model, expected)
    found = lw.Engine(lw.compile(model))(feeds)
    for info, a, b in zip(model.graph.output, found, expected, strict=True):
        assert a.dtype == b.dtype
        assert a.shape == b.shape
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-4 * abs(b).max(), err_msg=info.name)


@each_model({"squeezenet"})
def test_as_they_are(name):
    """Their weights are all one number, their outputs nearly so: this is the suite's own test, no proof of much. Scores
    of 1e10 are magnified by softmax, so that only the products of the definitions keep them equal."""
    model = onnx.load(LIGHT.FOLDER / f"light_{name}.onnx")
    data, shape = fed(model)
    n = int(np.prod(shape))
    engine = lw.Engine(lw.compile(model, arithmetic="direct"))
    outputs = engine({data: (np.arange(n).reshape(shape) / n).astype(np.float32)})
    stored = LIGHT.FOLDER / f"light_{name}_output_0.pb"
    wanted = numpy_helper.to_array(TensorProto.FromString(stored.read_bytes()))
    rtol, atol = TOLERANCES[name]
    assert len(outputs) == 1
    assert outputs[0].dtype == wanted.dtype
    assert outputs[0].shape == wanted.shape
    np.testing.assert_allclose(outputs[0], wanted, rtol=rtol, atol=atol)

"""Col2Im whose image and windows a run chooses, against onnx's reference."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

import loopwright as lw


def test_an_image_and_windows_of_the_run():
    node = helper.make_node(
        "Col2Im", ["x", "image", "block"], ["y"], strides=[2, 1], pads=[1, 0, 0, 1], dilations=[1, 2]
    )
    shapes = {"x": (TensorProto.FLOAT, [1, "r", "w"]), "image": (TensorProto.INT64, [2])}
    shapes["block"] = shapes["image"]
    inputs = [helper.make_tensor_value_info(name, *kind) for name, kind in shapes.items()]
    graph = helper.make_graph([node], "g", inputs, [onnx.ValueInfoProto(name="y")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    engine, reference = lw.Engine(lw.compile(model, jobs=1, progress=False)), ReferenceEvaluator(model)
    for image, block, windows, channels in (((5, 6), (3, 2), 10, 2), ((4, 4), (2, 2), 6, 1)):
        x = np.random.default_rng(0).normal(size=(1, channels * block[0] * block[1], windows)).astype(np.float32)
        fed = {"x": x, "image": np.array(image), "block": np.array(block)}
        (found,) = engine(fed)
        np.testing.assert_allclose(found, reference.run(None, fed)[0], rtol=1e-5)
    with pytest.raises(lw.RuntimeArgumentError, match="do not fit x"):
        engine({**fed, "image": np.array([9, 9])})


def test_known_windows_of_an_open_number_of_channels():
    node = helper.make_node("Col2Im", ["x", "image", "block"], ["y"], pads=[0, 1, 0, 1])
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", "rows", "w"])
    known = [helper.make_tensor("image", 7, [2], [4, 5]), helper.make_tensor("block", 7, [2], [1, 3])]
    graph = helper.make_graph([node], "g", [x], [onnx.ValueInfoProto(name="y")], known)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    engine, reference = lw.Engine(lw.compile(model, jobs=1, progress=False)), ReferenceEvaluator(model)
    for batch, channels in ((1, 1), (2, 3)):
        given = np.random.default_rng(0).normal(size=(batch, 3 * channels, 20)).astype(np.float32)
        np.testing.assert_allclose(engine([given])[0], reference.run(None, {"x": given})[0], rtol=1e-5, atol=1e-6)
    with pytest.raises(lw.RuntimeArgumentError, match="do not fit x"):
        engine([np.zeros((1, 4, 20), np.float32)])

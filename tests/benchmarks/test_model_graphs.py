"""The graphs of ViT, BERT, MobileNets and ResNet-18: small ones by onnx's reference evaluator, and their sizes."""

import model_graphs
import models
import numpy as np
import onnx
import pytest
from cases import work_of
from onnx import numpy_helper
from onnx.reference import ReferenceEvaluator

SMALL = model_graphs.Transformer(layers=2, width=32, heads=4, hidden=64)
FEW_BLOCKS = (
    model_graphs.Inverted(3, 16, 16),
    model_graphs.Inverted(5, 24, 24, squeezed=True, hard_swish=True, stride=2),
)
GRAPHS = {
    "vit": lambda: model_graphs.vit(SMALL, image=32, patch=8, classes=10),
    "bert": lambda: model_graphs.bert(SMALL, tokens=16, words=100),
    "mobilenet_v2": lambda: model_graphs.mobilenet_v2(((1, 16, 1, 1), (2, 24, 2, 2)), image=32, last=64, classes=10),
    "mobilenet_v3": lambda: model_graphs.mobilenet_v3(FEW_BLOCKS, image=32, last=64, classes=10),
}
OUTPUTS = {"vit": (1, 10), "bert": (1, 32), "mobilenet_v2": (1, 10), "mobilenet_v3": (1, 10)}


@pytest.mark.parametrize("name", GRAPHS)
def test_a_small_graph_gives_what_its_kind_does(name):
    model = GRAPHS[name]()
    onnx.checker.check_model(model, full_check=True)
    (output,) = ReferenceEvaluator(model).run(None, model_graphs.feeds(model, words=100))
    assert output.shape == OUTPUTS[name]
    assert tuple(d.dim_value for d in model.graph.output[0].type.tensor_type.shape.dim) == OUTPUTS[name]
    assert np.isfinite(output).all()
    assert 0.05 < output.std() < 20


def test_padding_does_not_reach_the_other_tokens():
    model = GRAPHS["bert"]()
    feeds = model_graphs.feeds(model, words=100)
    run = ReferenceEvaluator(model).run
    (before,) = run(None, feeds)
    padding = feeds["attention_mask"] == 0
    assert padding.any()
    feeds["input_ids"] = np.where(padding, feeds["input_ids"] + 1, feeds["input_ids"]) % 100
    (after,) = run(None, feeds)
    np.testing.assert_allclose(after, before, rtol=0, atol=1e-5)


def test_mobilenet_v2_is_as_large_as_published():
    """3,504,872 parameters, of which folding batch normalisation saves one for each of 17,056 channels."""
    model = model_graphs.mobilenet_v2()
    weights = [numpy_helper.to_array(i) for i in model.graph.initializer]
    assert sum(w.size for w in weights if w.ndim) == 3_504_872 - 17_056
    assert work_of(model).operations == pytest.approx(2 * 301e6, rel=0.01)


def test_mobilenet_v3_is_as_large_as_published():
    """5,483,032 parameters, of which folding batch normalisation saves one for each of 12,200 channels."""
    model = model_graphs.mobilenet_v3()
    weights = [numpy_helper.to_array(i) for i in model.graph.initializer]
    assert sum(w.size for w in weights if w.ndim) == 5_483_032 - 12_200
    assert work_of(model).operations == pytest.approx(2 * 217e6, rel=0.03)


def test_resnet18_is_as_large_as_published():
    """11,689,512 parameters, of which folding batch normalisation saves one for each of 4,800 channels."""
    model = model_graphs.resnet18()
    weights = [numpy_helper.to_array(i) for i in model.graph.initializer]
    assert sum(w.size for w in weights if w.dtype == np.float32) == 11_689_512 - 4_800
    assert work_of(model).operations == pytest.approx(2 * 1_814e6, rel=0.01)


def test_twelve_models_are_compared_and_weights_are_no_inputs(tmp_path):
    assert len(models.all_models()) == 12
    (squeezenet,) = (m for m in models.all_models() if m.name == "squeezenet")
    work = squeezenet.write(tmp_path)
    model = onnx.load(tmp_path / "model.onnx")
    assert [i.name for i in model.graph.input] == list(np.load(tmp_path / "inputs.npz").files)
    assert work.operations == pytest.approx(2 * 349e6, rel=0.01)
    assert work.read > 4 * 1.2e6

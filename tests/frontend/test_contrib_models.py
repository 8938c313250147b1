"""Models as onnxruntime's tools write them back, with the open dimensions that they came with, against onnxruntime."""

import needed_tools
import numpy as np
import onnx
import pytest
from contrib_cases import in_onnxruntime

import loopwright as lw

needed_tools.module("torch", package="bench")

from ort_models import LEVELS, export, optimized, quantized  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")  # of the exporter and the quantiser

FORMS = {
    ("encoder", "optimized"): {"BiasGelu", "FusedMatMul"},
    ("encoder", "dynamic"): {"DynamicQuantizeMatMul"},
    ("encoder", "QOperator"): {"QLinearAdd"},
    ("network", "optimized"): {"FusedConv"},
    ("network", "dynamic"): {"DynamicQuantizeMatMul"},
    ("network", "QOperator"): {"QGemm", "QLinearLeakyRelu"},
}
"""Operators of onnxruntime that are in each."""


@pytest.mark.parametrize(("kind", "form"), FORMS, ids=[f"{kind}-{form}" for kind, form in FORMS])
def test_a_model_that_onnxruntime_wrote_gives_what_it_gives_there(kind, form, tmp_path):
    feeds = export(kind, tmp_path / "plain.onnx")
    path = tmp_path / "plain.onnx"
    if form != "optimized":
        path = quantized(form, path, tmp_path / "quantized.onnx", feeds)
    model = onnx.load(optimized(path, tmp_path / "optimized.onnx"))
    found = {node.op_type for node in model.graph.node if node.domain == "com.microsoft"}
    assert found >= FORMS[kind, form]
    engine = lw.Engine(lw.compile(model, jobs=1))
    for batch, length in ((2, 7), (1, 3), (3, 11)):
        given = feeds(batch, length)
        (y,), (wanted,) = engine(given), in_onnxruntime(model, given)
        np.testing.assert_allclose(y, wanted, rtol=1e-4, atol=1e-4 * np.abs(wanted).max())


def test_a_layout_for_one_processor_is_refused_with_what_to_do(tmp_path):
    export("network", tmp_path / "plain.onnx")
    path = optimized(tmp_path / "plain.onnx", tmp_path / "all.onnx", LEVELS.ORT_ENABLE_ALL)
    with pytest.raises(lw.ModelError, match="it lays out channels for one processor: save the model with"):
        lw.from_onnx(path)

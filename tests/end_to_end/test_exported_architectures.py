"""Transformers as they are exported, with open dimensions: one compilation serves all shapes, as onnxruntime does."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from needed_tools import module

import loopwright as lw

EXTRA = "architectures"
EXPORTER = Path(__file__).parents[1] / "support" / "exported_architectures.py"
NAMES = (
    *("bert", "roberta", "distilbert", "modernbert", "electra", "mpnet", "deberta", "t5 encoder"),
    *("gpt2", "llama", "vit", "swin", "dinov2", "segformer", "wav2vec2"),
)
SETTINGS = (
    {"batch": 2, "tokens": 8, "past": 5, "height": 64, "width": 64, "samples": 8000},
    {"batch": 1, "tokens": 1, "past": 1, "height": 64, "width": 128, "samples": 4321},
    {"batch": 3, "tokens": 17, "past": 0, "height": 128, "width": 64, "samples": 5000},
    {"batch": 1, "tokens": 33, "past": 64, "height": 192, "width": 128, "samples": 16000},
    {"batch": 2, "tokens": 1, "past": 40, "height": 64, "width": 192, "samples": 3001},
)
pytestmark = pytest.mark.slow


def inputs_of(session, setting):
    """Inputs of this setting, drawn for it."""
    rng = np.random.default_rng(setting["tokens"])
    numbers = setting | {"past + tokens": setting["past"] + setting["tokens"]}
    drawn = {}
    for spec in session.get_inputs():
        shape = [numbers.get(extent, extent) for extent in spec.shape]
        if "float" in spec.type:
            drawn[spec.name] = rng.standard_normal(shape).astype(np.float32)
        else:
            drawn[spec.name] = np.ones(shape, np.int64) if "mask" in spec.name else rng.integers(3, 100, shape)
    return drawn


@pytest.mark.parametrize("name", NAMES)
def test_all_shapes_of_one_compilation(tmp_path, name):
    for package in ("torch", "transformers"):
        module(package, EXTRA)
    runtime = module("onnxruntime", EXTRA)
    path = tmp_path / "model.onnx"
    subprocess.run([sys.executable, EXPORTER, name, path], check=True, capture_output=True, timeout=600)
    lw.compile(path).save(tmp_path / "model.lwlib")
    engine = lw.Engine(lw.load(tmp_path / "model.lwlib"))
    session = runtime.InferenceSession(path, providers=["CPUExecutionProvider"])
    for setting in SETTINGS:
        given = inputs_of(session, setting)
        wanted = session.run(None, given)
        found = engine(given)
        for a, b in zip(found, wanted, strict=True):
            np.testing.assert_allclose(a, b, rtol=0, atol=2e-5 * max(1.0, np.abs(b).max(initial=0)))

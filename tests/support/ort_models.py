"""Small models with seeded weights, as exporters write them, and as onnxruntime's tools write them back."""

import numpy as np
import onnxruntime
import torch
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, quantize_dynamic, quantize_static

LEVELS = onnxruntime.GraphOptimizationLevel
WIDTH, HEADS = 32, 4


class Encoder(torch.nn.Module):
    """An encoder of BERT's form, of tokens and a mask."""

    def __init__(self):
        super().__init__()
        self.words, self.places = torch.nn.Embedding(100, WIDTH), torch.nn.Embedding(24, WIDTH)
        self.norm, self.after = torch.nn.LayerNorm(WIDTH), torch.nn.LayerNorm(WIDTH)
        self.projections = torch.nn.ModuleList(torch.nn.Linear(WIDTH, WIDTH) for _ in range(4))
        self.wide, self.narrow = torch.nn.Linear(WIDTH, 2 * WIDTH), torch.nn.Linear(2 * WIDTH, WIDTH)

    def forward(self, tokens, mask):
        batch, length = tokens.shape
        x = self.norm(self.words(tokens) + self.places.weight[:length])
        query, key, value = (p(x).view(batch, length, HEADS, -1).transpose(1, 2) for p in self.projections[:3])
        scores = query @ key.transpose(2, 3) / (WIDTH / HEADS) ** 0.5
        weights = torch.softmax(scores + (1.0 - mask[:, None, None].float()) * -10000.0, -1)
        mixed = (weights @ value).transpose(1, 2).reshape(batch, length, WIDTH)
        x = self.after(x + self.projections[3](mixed))
        return x + self.narrow(torch.nn.functional.gelu(self.wide(x)))


def network():
    """A small convolutional network."""
    n = torch.nn
    return n.Sequential(
        *(n.Conv2d(3, 8, 3, padding=1), n.BatchNorm2d(8), n.ReLU(), n.MaxPool2d(2)),
        *(n.Conv2d(8, 16, 3, padding=1), n.LeakyReLU(0.1), n.AdaptiveAvgPool2d(1), n.Flatten(), n.Linear(16, 10)),
    )


def export(kind, path):
    """Write a model with open dimensions, and give what is fed to it, for a batch and a length."""
    torch.manual_seed(0)
    if kind == "encoder":
        feeds, model, names = _tokens, Encoder(), ["tokens", "mask"]
        open_axes = {0: "batch", 1: "length"}
    else:
        feeds, model, names = _images, network(), ["x"]
        open_axes = {0: "batch"}
    example = tuple(torch.from_numpy(x) for x in feeds(2, 7).values())
    named = {"input_names": names, "output_names": ["y"], "dynamic_axes": dict.fromkeys((*names, "y"), open_axes)}
    torch.onnx.export(model.eval(), example, str(path), **named, opset_version=17, dynamo=False)
    return feeds


def _tokens(batch, length):
    rng = np.random.default_rng([batch, length])
    mask = np.ones((batch, length), np.int64)
    mask[-1, length - 2 :] = 0
    return {"tokens": rng.integers(0, 100, (batch, length)), "mask": mask}


def _images(batch, length):
    return {"x": np.random.default_rng([batch, length]).standard_normal((batch, 3, 16, 16), np.float32)}


class _Calibration(CalibrationDataReader):
    def __init__(self, feeds):
        self.batches = iter([feeds(2, 7), feeds(1, 9)])

    def get_next(self):
        return next(self.batches, None)


def optimized(source, target, level=LEVELS.ORT_ENABLE_EXTENDED):
    """Write the model that onnxruntime's optimizer makes of another."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level, options.optimized_model_filepath = level, str(target)
    options.log_severity_level = 4
    onnxruntime.InferenceSession(str(source), options, providers=["CPUExecutionProvider"])
    return target


def quantized(how, source, target, feeds):
    """Write the model that onnxruntime's quantiser makes of another, with weights of 7 bits: with those of 8, what
    onnxruntime gives depends on the processor, as it may add pairs of products in int16, and saturate."""
    if how == "dynamic":
        quantize_dynamic(source, target, reduce_range=True)
    else:
        calibration = _Calibration(feeds)
        quantize_static(source, target, calibration, quant_format=QuantFormat[how], reduce_range=True)
    return target

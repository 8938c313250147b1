"""Quantized models beside onnxruntime, and beside their own float32: ``python benchmarks/quantized.py``.

onnxruntime's quantiser makes them, of the graphs of ``model_graphs.py``: QDQ with unsigned and with signed activations,
by tensor and by channel; dynamically; and its converter makes float16. Without an instruction for four products of
bytes, onnxruntime adds pairs of products of unsigned by signed bytes in int16, and saturates; of signed activations it
is exact. Times are those of the thread, in turns, one thread each. The errors are the largest and the mean distance of
the first result from onnxruntime's without optimization.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import model_graphs
import numpy as np
import onnx
import onnxruntime
from model_graphs import Transformer
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_dynamic, quantize_static
from onnxruntime.transformers.float16 import convert_float_to_float16

import loopwright as lw

WORDS = 5_000
MODELS: Mapping[str, Callable[[], onnx.ModelProto]] = {
    "resnet18": model_graphs.resnet18,
    "mobilenet_v2": model_graphs.mobilenet_v2,
    "mobilenet_v3": model_graphs.mobilenet_v3,
    "vit-tiny": lambda: model_graphs.vit(Transformer(12, 192, 3, 768)),
    "bert-small": lambda: model_graphs.bert(Transformer(4, 512, 8, 2048), words=WORDS),
}
FORMS = ("float32", "u8s8", "u8s8 by channel", "s8s8", "dynamic", "float16")
LEVELS = onnxruntime.GraphOptimizationLevel


class Calibration(CalibrationDataReader):
    """Three inputs of a model."""

    def __init__(self, model: onnx.ModelProto) -> None:
        self._feeds: Iterator[Mapping[str, np.ndarray]] = iter(
            [model_graphs.feeds(model, WORDS, seed) for seed in (2, 3, 4)]
        )

    def get_next(self) -> Mapping[str, np.ndarray] | None:
        return next(self._feeds, None)


def write(model: onnx.ModelProto, form: str, folder: Path) -> Path:
    """The file of a form of a model."""
    plain, made = folder / "plain.onnx", folder / "made.onnx"
    onnx.save(model, plain)
    if form == "float32":
        return plain
    if form == "float16":
        onnx.save(convert_float_to_float16(model, keep_io_types=True), made)
    elif form == "dynamic":
        quantize_dynamic(plain, made, weight_type=QuantType.QInt8)
    else:
        quantize_static(
            plain,
            made,
            Calibration(model),
            quant_format=QuantFormat.QDQ,
            per_channel="channel" in form,
            activation_type=QuantType.QInt8 if form == "s8s8" else QuantType.QUInt8,
            weight_type=QuantType.QInt8,
        )
    return made


def session(path: Path, level: LEVELS) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.graph_optimization_level = level
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def distance(a: np.ndarray, b: np.ndarray) -> str:
    apart = np.abs(a.astype(np.float64) - b)
    return f"{apart.max():.2g}, {apart.mean():.2g}"


def measure(name: str, forms: list[str], rounds: int) -> None:
    """Print a line for each form of a model."""
    model = MODELS[name]()
    feeds = model_graphs.feeds(model, WORDS)
    calls: dict[str, Callable[[], object]] = {}
    errors = {}
    for form in forms:
        with tempfile.TemporaryDirectory() as folder:
            path = write(model, form, Path(folder))
            arithmetic = "direct" if form == "float32" else "fast"
            engine = lw.Engine(lw.compile(path, arithmetic=arithmetic), threads=1)
            optimized, plain = (session(path, level) for level in (LEVELS.ORT_ENABLE_ALL, LEVELS.ORT_DISABLE_ALL))
        wanted = plain.run(None, feeds)[0]
        errors[form] = distance(engine(feeds)[0], wanted), distance(optimized.run(None, feeds)[0], wanted)
        calls[form] = lambda engine=engine: engine(feeds)
        calls[f"onnxruntime {form}"] = lambda optimized=optimized: optimized.run(None, feeds)
    times: dict[str, list[float]] = {label: [] for label in calls}
    for _ in range(rounds):
        for label, call in calls.items():
            call()
            start = time.thread_time()
            call()
            times[label].append(time.thread_time() - start)
    medians = {label: statistics.median(found) for label, found in times.items()}
    for form in forms:
        own, peer = medians[form], medians[f"onnxruntime {form}"]
        beside = f", {medians['float32'] / own:.2f}× our float32" if "float32" in forms else ""
        print(f"{name} {form}: {own * 1e3:.2f} ms, {peer / own:.2f}× onnxruntime{beside}; ", end="")
        print(f"errors {errors[form][0]} (onnxruntime {errors[form][1]})", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", choices=MODELS, nargs="*", default=list(MODELS))
    parser.add_argument("--form", choices=FORMS, nargs="*", default=list(FORMS))
    parser.add_argument("--rounds", type=int, default=15, help="turns of each contender")
    options = parser.parse_args()
    for name in options.model:
        measure(name, options.form, options.rounds)


if __name__ == "__main__":
    main()

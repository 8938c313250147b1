"""Quantized models beside onnxruntime and OpenVINO, and our own float32: ``python benchmarks/quantized.py``.

onnxruntime's quantiser makes them, of the graphs of ``model_graphs.py``: QDQ with unsigned and with signed activations,
by tensor and by channel; dynamically; and its converter makes float16. Without an instruction for four products of
bytes, onnxruntime adds pairs of products of unsigned by signed bytes in int16, and saturates; of signed activations it
is exact. Times are the shortest of the processor, in turns in one process, one thread each; float32 is measured with
the default arithmetic and with direct products. The errors are the largest and the mean distance of the first result
from onnxruntime's without optimization.
"""

from __future__ import annotations

import argparse
import math
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import model_graphs
import numpy as np
import onnx
import onnxruntime
from model_graphs import Transformer
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_dynamic, quantize_static
from onnxruntime.transformers.float16 import convert_float_to_float16

import loopwright as lw
from loopwright.runtime.contenders.peers import (
    LIBRARY,
    OURS,
    prepare_loopwright,
    prepare_onnxruntime,
    prepare_openvino,
)

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


def onnxruntime_session(path: Path, level: LEVELS) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.graph_optimization_level = level
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def distance(a: np.ndarray, b: np.ndarray) -> str:
    apart = np.abs(a.astype(np.float64) - b)
    return f"{apart.max():.2g}, {apart.mean():.2g}"


Calls = dict[str, Callable[[], object]]


def prepare(model: onnx.ModelProto, form: str, feeds: Mapping[str, np.ndarray]) -> tuple[Calls, str]:
    """The contenders for a form of a model, and how far the first two are from what no optimization gives."""
    with tempfile.TemporaryDirectory() as folder:
        path = write(model, form, Path(folder))
        library, library_path = lw.compile(path), Path(folder) / LIBRARY
        library.save(library_path)
        calls: Calls = {
            OURS: prepare_loopwright(library_path, feeds, 1),
            "onnxruntime": prepare_onnxruntime(path, feeds, 1),
            "openvino": prepare_openvino(path, feeds, 1),
        }
        if form == "float32":
            direct = lw.Engine(lw.compile(path, arithmetic="direct"), threads=1)
            calls["direct"] = direct.bind(feeds)
        wanted = onnxruntime_session(path, LEVELS.ORT_DISABLE_ALL).run(None, dict(feeds))[0]
    own, peer = (distance(calls[name]()[0], wanted) for name in (OURS, "onnxruntime"))
    return calls, f"{own} (onnxruntime {peer})"


def shortest(calls: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """The shortest time of the processor that a call takes, of calls in turns; all threads of the process count, since
    OpenVINO computes in one of its own."""
    times = dict.fromkeys(calls, math.inf)
    for _ in range(rounds):
        for label, call in calls.items():
            call()
            start = time.process_time()
            call()
            times[label] = min(times[label], time.process_time() - start)
    return times


def measure(name: str, forms: Sequence[str], rounds: int) -> None:
    """Print a line for each form of a model."""
    model = MODELS[name]()
    feeds = model_graphs.feeds(model, WORDS)
    prepared = {form: prepare(model, form, feeds) for form in forms}
    calls = {f"{form} {who}": call for form, (found, _) in prepared.items() for who, call in found.items()}
    times = shortest(calls, rounds)
    for form in forms:
        own = times[f"{form} {OURS}"]
        peers = ", ".join(f"{times[f'{form} {peer}'] / own:.2f}× {peer}" for peer in ("onnxruntime", "openvino"))
        beside = [f"{times[f'float32 {who}'] / own:.2f}×" for who in (OURS, "direct") if f"float32 {who}" in times]
        more = f"; {' and '.join(beside)} our float32, direct" if beside and form != "float32" else ""
        print(f"{name} {form}: {own * 1e3:.2f} ms, {peers}{more}; errors {prepared[form][1]}", flush=True)


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

"""What a benchmark case is: a small ONNX graph, the data for it, and the bar that the issue of its kind has."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from zlib import crc32

import numpy as np
import onnx
from onnx import ModelProto, helper, numpy_helper

OPSET = 20


@dataclass(frozen=True)
class Bar:
    """What to reach: the best peer's time over ours, and the share of the roofline where it is given.

    With ``either``, one of them is enough, the share where the data lies in memory. ``gain``: how much faster than the
    case of ours that stands ``against`` it. ``apart``: the most that a peer's outputs may differ, as a part of the
    largest value of the tensor.
    """

    ratio: float = 1.0
    share: float | None = None
    either: bool = False
    gain: float | None = None
    apart: float = 1e-4


@dataclass(frozen=True)
class Case:
    """One measurement. ``inputs``, ``weights`` and ``nodes`` are in the text format of the onnx package, such as
    ``float[1,64,56,56] x`` and ``y = Relu (x)``; weights are constants of the model. ``ranges``: the whole numbers from
    low to below high that a tensor holds; else floats are normal, and whole numbers as large as 8 bits hold.

    ``open_axes``: the axes of inputs whose extents contenders are told with the inputs only; axis 2 is called ``n2``.

    ``overhead`` names a case, of calling nearly nothing, whose time in the same rounds is taken off. ``against`` names
    another of our cases, than which this one is to be faster.
    """

    group: str
    name: str
    inputs: str
    nodes: str
    weights: str = ""
    output: str = "y"
    bar: Bar = Bar()
    ranges: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    constants: Mapping[str, object] = field(default_factory=dict)
    overhead: str | None = None
    against: str | None = None
    opset: int = OPSET
    open_axes: Mapping[str, Sequence[int]] = field(default_factory=dict)

    @property
    def full_name(self) -> str:
        return f"{self.group} {self.name}"

    def model(self) -> ModelProto:
        """The checked model, with shapes inferred and seeded weights."""
        declared = ", ".join(part for part in (self.inputs, self.weights) if part)
        heading = f'<ir_version: 10, opset_import: ["" : {self.opset}]>'
        model = onnx.parser.parse_model(f"{heading} g ({declared}) => (float[1] {self.output}) {{ {self.nodes} }}")
        for name, value in self.constants.items():
            model.graph.initializer.append(numpy_helper.from_array(np.asarray(value), name))
        model.graph.output[0].CopyFrom(onnx.ValueInfoProto(name=self.output))
        model = onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True)
        onnx.checker.check_model(model)
        weights = set(re.findall(r"\] (\w+)", self.weights))
        for info in [i for i in model.graph.input if i.name in weights]:
            model.graph.initializer.append(numpy_helper.from_array(self._values(info, weight=True), info.name))
            model.graph.input.remove(info)
        return model

    def feeds(self, model: ModelProto) -> dict[str, np.ndarray]:
        """Seeded inputs."""
        return {info.name: self._values(info, weight=False) for info in model.graph.input}

    def write(self, folder: Path) -> Work:
        """Leave model and inputs there, as contenders read them, and say what the work is."""
        model = self.model()
        write(folder, self._opened(model), self.feeds(model))
        return self.work(model)

    def work(self, model: ModelProto) -> Work:
        """What its model must do at least."""
        return work_of(model)

    def _opened(self, model: ModelProto) -> ModelProto:
        """The model with its open axes by name, and without the shapes that were inferred from the others."""
        if not self.open_axes:
            return model
        opened = ModelProto()
        opened.CopyFrom(model)
        del opened.graph.value_info[:]
        for output in opened.graph.output:
            output.type.tensor_type.ClearField("shape")
        for info in opened.graph.input:
            for axis in self.open_axes.get(info.name, ()):
                info.type.tensor_type.shape.dim[axis].dim_param = f"n{axis}"
        return onnx.shape_inference.infer_shapes(opened, check_type=True, strict_mode=True)

    def _values(self, info: onnx.ValueInfoProto, weight: bool) -> np.ndarray:
        rng = np.random.default_rng(crc32(f"{self.full_name} {info.name}".encode()))
        kind = helper.tensor_dtype_to_np_dtype(info.type.tensor_type.elem_type)
        shape = shape_of(info)
        if kind.kind in "iu":
            low, high = self.ranges.get(info.name, (np.iinfo(np.int8).min if kind.kind == "i" else 0, 128))
            return rng.integers(low, high, shape, kind)
        values = rng.standard_normal(shape, np.float32)
        if info.name.startswith("variance"):
            values = 0.5 + abs(values)
        elif weight and len(shape) > 1:  # He: results stay as large as inputs
            values *= np.sqrt(2 / max(1, np.prod(shape) / max(shape[0], shape[-1])), dtype=np.float32)
        return values.astype(kind)


def write(folder: Path, model: ModelProto, feeds: Mapping[str, np.ndarray]) -> None:
    """What ``contender.prepare`` reads."""
    onnx.save(model, folder / "model.onnx")
    np.savez(folder / "inputs.npz", **feeds)


def shape_of(info: onnx.ValueInfoProto) -> tuple[int, ...]:
    return tuple(d.dim_value for d in info.type.tensor_type.shape.dim)


@dataclass(frozen=True)
class Work:
    """What a model must do at least: floating-point (or whole-number) operations, and the bytes it reads and writes."""

    operations: int
    read: int
    written: int


def work_of(model: ModelProto) -> Work:
    """Multiplications and additions count, as the definition has them; of bytes only inputs, constants and outputs."""
    graph = model.graph
    infos = {i.name: i for i in (*graph.input, *graph.value_info, *graph.output)}
    shapes = {name: shape_of(info) for name, info in infos.items()}
    shapes |= {i.name: tuple(i.dims) for i in graph.initializer}
    operations = sum(_operations(node, shapes) for node in graph.node)
    read = sum(_bytes(infos[i.name]) for i in graph.input) + sum(len(i.raw_data) for i in graph.initializer)
    if [node.op_type for node in graph.node] == ["Gather"]:
        read = _bytes_gathered(graph.node[0], shapes)
    return Work(operations, read, sum(_bytes(o) for o in graph.output))


def _operations(node: onnx.NodeProto, shapes: Mapping[str, tuple[int, ...]]) -> int:
    def size(name: str) -> int:
        return int(np.prod(shapes[name], dtype=np.int64))

    match node.op_type, list(node.input):
        case "MatMul" | "MatMulInteger", [a, *_]:
            return 2 * size(node.output[0]) * shapes[a][-1]
        case "Gemm", [a, *_]:
            transposed = any(attribute.name == "transA" and attribute.i for attribute in node.attribute)
            return 2 * size(node.output[0]) * shapes[a][0 if transposed else 1]
        case "Conv" | "ConvInteger", [_, w, *_]:
            return 2 * size(node.output[0]) * size(w) // shapes[w][0]
        case "ConvTranspose", [x, w, *_]:
            return 2 * size(x) * size(w) // shapes[w][0]
        case "LSTM" | "GRU" | "RNN", [x, w, r, *_]:
            return 2 * size(x) // shapes[x][2] * (size(w) + size(r)) // shapes[w][0]
        case "Attention", [q, k, *_]:
            return 4 * size(q) * shapes[k][-2]
        case _:
            return 0


def _bytes(info: onnx.ValueInfoProto) -> int:
    kind = helper.tensor_dtype_to_np_dtype(info.type.tensor_type.elem_type)
    return int(np.prod(shape_of(info), dtype=np.int64)) * kind.itemsize


def _bytes_gathered(node: onnx.NodeProto, shapes: Mapping[str, tuple[int, ...]]) -> int:
    """Only the rows that are asked for are read, and their numbers."""
    return 4 * int(np.prod(shapes[node.output[0]])) + 8 * int(np.prod(shapes[node.input[1]]))


def dims(*extents: int, kind: str = "float") -> str:
    """A type as the text format has it: ``float[1,64]``."""
    return f"{kind}[{','.join(map(str, extents))}]"

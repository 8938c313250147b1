"""A ViT, a BERT, a MobileNetV2, a MobileNetV3 and a ResNet-18 as an exporter writes them, with seeded weights.

Linear layers are MatMul and Add, attention is MatMul, Softmax and Transposes, GELU is spelt with Erf; batch
normalisation has been folded into convolutions, as exporters do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import onnx
from onnx import ModelProto, TensorProto, helper, numpy_helper

OPSET = 17
MASKED = -10_000.0
"""What BERT adds to the scores of tokens that are padding."""


class Builder:
    """Collects nodes and weights. Mutable: each method adds to the graph, and gives the name of a value."""

    def __init__(self, seed: int) -> None:
        self._rng = np.random.default_rng(seed)
        self._nodes: list[onnx.NodeProto] = []
        self._weights: list[TensorProto] = []

    def node(self, operator: str, *inputs: str, **attributes: object) -> str:
        name = f"{operator.lower()}_{len(self._nodes)}"
        self._nodes.append(helper.make_node(operator, inputs, [name], name, **attributes))
        return name

    def constant(self, value: object, dtype: type[np.generic] = np.float32) -> str:
        name = f"constant_{len(self._weights)}"
        self._weights.append(numpy_helper.from_array(np.asarray(value, dtype), name))
        return name

    def shape(self, *extents: int) -> str:
        return self.constant(extents, np.int64)

    def normal(self, *shape: int, deviation: float) -> str:
        return self.constant(self._rng.standard_normal(shape, np.float32) * np.float32(deviation))

    def linear(self, x: str, inputs: int, outputs: int, gain: float = 1.0) -> str:
        weight = self.normal(inputs, outputs, deviation=np.sqrt(gain / inputs))
        return self.node("Add", self.normal(outputs, deviation=0.1), self.node("MatMul", x, weight))

    def layer_norm(self, x: str, width: int, epsilon: float) -> str:
        scale = self.constant(self._rng.uniform(0.65, 1.25, width))
        bias = self.normal(width, deviation=0.1)
        return self.node("LayerNormalization", x, scale, bias, axis=-1, epsilon=epsilon)

    def gelu(self, x: str) -> str:
        raised = self.node("Erf", self.node("Div", x, self.constant(np.sqrt(2))))
        twice = self.node("Mul", x, self.node("Add", raised, self.constant(1.0)))
        return self.node("Mul", twice, self.constant(0.5))

    def convolution(self, x: str, inputs: int, outputs: int, kernel: int, stride: int = 1, group: int = 1) -> str:
        pads = [kernel // 2] * 4 if kernel % 2 else [0] * 4
        weight = self.normal(
            outputs, inputs // group, kernel, kernel, deviation=np.sqrt(2 * group / (inputs * kernel**2))
        )
        return self.node(
            "Conv",
            x,
            weight,
            self.normal(outputs, deviation=0.1),
            dilations=[1, 1],
            group=group,
            kernel_shape=[kernel] * 2,
            pads=pads,
            strides=[stride] * 2,
        )

    def model(self, name: str, inputs: Sequence[onnx.ValueInfoProto], output: str) -> ModelProto:
        """The checked model, with the shapes of all values."""
        out = helper.make_tensor_value_info(output, TensorProto.FLOAT, None)
        graph = helper.make_graph(self._nodes, name, inputs, [out], self._weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=8)
        model = onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True, data_prop=True)
        onnx.checker.check_model(model)
        return model


@dataclass(frozen=True)
class Transformer:
    """Sizes; the defaults are those of ViT-B/16 and BERT-base."""

    layers: int = 12
    width: int = 768
    heads: int = 12
    hidden: int = 3072

    @property
    def depth(self) -> int:
        return self.width // self.heads


def vit(size: Transformer = Transformer(), image: int = 224, patch: int = 16, classes: int = 1000) -> ModelProto:
    """A vision transformer: patches, a class token, pre-normalised blocks whose q, k and v come from one product."""
    b = Builder(seed=1)
    side, width = image // patch, size.width
    patches = b.convolution("image", 3, width, patch, stride=patch)
    rows = b.node("Transpose", b.node("Reshape", patches, b.shape(1, width, side**2)), perm=[0, 2, 1])
    tokens = side**2 + 1
    x = b.node("Concat", b.normal(1, 1, width, deviation=1.0), rows, axis=1)
    x = b.node("Add", x, b.normal(1, tokens, width, deviation=0.5))
    for _ in range(size.layers):
        x = b.node("Add", x, _joint_attention(b, b.layer_norm(x, width, 1e-6), size, tokens))
        wide = b.gelu(b.linear(b.layer_norm(x, width, 1e-6), width, size.hidden, gain=2.0))
        x = b.node("Add", x, b.linear(wide, size.hidden, width))
    first = b.node("Gather", b.layer_norm(x, width, 1e-6), b.constant(0, np.int64), axis=1)
    weight = b.normal(classes, width, deviation=np.sqrt(1 / width))
    logits = b.node("Gemm", first, weight, b.normal(classes, deviation=0.1), transB=1)
    shape = (1, 3, image, image)
    return b.model("vit", [helper.make_tensor_value_info("image", TensorProto.FLOAT, shape)], logits)


def _joint_attention(b: Builder, x: str, size: Transformer, tokens: int) -> str:
    joint = b.node("Reshape", b.linear(x, size.width, 3 * size.width), b.shape(1, tokens, 3, size.heads, size.depth))
    parts = b.node("Transpose", joint, perm=[2, 0, 3, 1, 4])
    q, k, v = (b.node("Gather", parts, b.constant(index, np.int64), axis=0) for index in range(3))
    scaled = b.node("Mul", q, b.constant(size.depth**-0.5))
    scores = b.node("MatMul", scaled, b.node("Transpose", k, perm=[0, 1, 3, 2]))
    return _mixed(b, b.node("Softmax", scores, axis=-1), v, size, tokens)


def _mixed(b: Builder, weights: str, v: str, size: Transformer, tokens: int) -> str:
    """The values mixed by the heads, side by side again, through the layer at the end of attention."""
    rows = b.node("Transpose", b.node("MatMul", weights, v), perm=[0, 2, 1, 3])
    return b.linear(b.node("Reshape", rows, b.shape(1, tokens, size.width)), size.width, size.width)


def bert(size: Transformer = Transformer(), tokens: int = 128, words: int = 30_522) -> ModelProto:
    """A BERT encoder with its pooler: three embeddings, a mask, post-normalised blocks."""
    b = Builder(seed=2)
    width = size.width
    flags = b.node("Cast", b.node("Unsqueeze", "attention_mask", b.shape(1, 2)), to=TensorProto.FLOAT)
    mask = b.node("Mul", b.node("Sub", b.constant(1.0), flags), b.constant(MASKED))
    embedded = b.node("Gather", b.normal(words, width, deviation=1.0), "input_ids")
    embedded = b.node("Add", embedded, b.node("Gather", b.normal(2, width, deviation=0.5), "token_type_ids"))
    x = b.layer_norm(b.node("Add", embedded, b.normal(1, tokens, width, deviation=0.5)), width, 1e-12)
    for _ in range(size.layers):
        x = b.layer_norm(b.node("Add", _masked_attention(b, x, mask, size, tokens), x), width, 1e-12)
        wide = b.gelu(b.linear(x, width, size.hidden, gain=2.0))
        x = b.layer_norm(b.node("Add", b.linear(wide, size.hidden, width), x), width, 1e-12)
    first = b.node("Gather", x, b.constant(0, np.int64), axis=1)
    weight = b.normal(width, width, deviation=np.sqrt(1 / width))
    pooled = b.node("Tanh", b.node("Gemm", first, weight, b.normal(width, deviation=0.1), transB=1))
    names = ("input_ids", "attention_mask", "token_type_ids")
    inputs = [helper.make_tensor_value_info(name, TensorProto.INT64, (1, tokens)) for name in names]
    return b.model("bert", inputs, pooled)


def _masked_attention(b: Builder, x: str, mask: str, size: Transformer, tokens: int) -> str:
    def heads(order: Sequence[int]) -> str:
        rows = b.node("Reshape", b.linear(x, size.width, size.width), b.shape(1, tokens, size.heads, size.depth))
        return b.node("Transpose", rows, perm=order)

    q, k, v = heads((0, 2, 1, 3)), heads((0, 2, 3, 1)), heads((0, 2, 1, 3))
    scores = b.node("Div", b.node("MatMul", q, k), b.constant(np.sqrt(size.depth)))
    return _mixed(b, b.node("Softmax", b.node("Add", scores, mask), axis=-1), v, size, tokens)


BLOCKS = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))
"""MobileNetV2's: expansion, channels, repeats, stride of the first."""


def mobilenet_v2(
    blocks: Sequence[tuple[int, int, int, int]] = BLOCKS, image: int = 224, last: int = 1280, classes: int = 1000
) -> ModelProto:
    """Inverted residuals with linear bottlenecks, ReLU6 as Clip."""
    b = Builder(seed=3)
    low, high = b.constant(0.0), b.constant(6.0)

    def clipped(*arguments: object, **named: int) -> str:
        return b.node("Clip", b.convolution(*arguments, **named), low, high)

    x, channels = clipped("image", 3, 32, 3, stride=2), 32
    for expansion, outputs, repeats, first_stride in blocks:
        for repeat in range(repeats):
            stride = first_stride if repeat == 0 else 1
            wide = channels * expansion
            y = clipped(x, channels, wide, 1) if expansion > 1 else x
            y = b.convolution(clipped(y, wide, wide, 3, stride=stride, group=wide), wide, outputs, 1)
            x, channels = (b.node("Add", x, y) if stride == 1 and channels == outputs else y), outputs
    x = b.node("Flatten", b.node("GlobalAveragePool", clipped(x, channels, last, 1)), axis=1)
    weight = b.normal(classes, last, deviation=np.sqrt(1 / last))
    logits = b.node("Gemm", x, weight, b.normal(classes, deviation=0.1), transB=1)
    shape = (1, 3, image, image)
    return b.model("mobilenet_v2", [helper.make_tensor_value_info("image", TensorProto.FLOAT, shape)], logits)


@dataclass(frozen=True)
class Inverted:
    """A block of MobileNetV3: its window, the channels inside and behind it, and what it has."""

    window: int
    wide: int
    outputs: int
    squeezed: bool = False
    hard_swish: bool = False
    stride: int = 1


LARGE = (
    Inverted(3, 16, 16),
    Inverted(3, 64, 24, stride=2),
    Inverted(3, 72, 24),
    Inverted(5, 72, 40, squeezed=True, stride=2),
    *[Inverted(5, 120, 40, squeezed=True)] * 2,
    Inverted(3, 240, 80, hard_swish=True, stride=2),
    Inverted(3, 200, 80, hard_swish=True),
    *[Inverted(3, 184, 80, hard_swish=True)] * 2,
    Inverted(3, 480, 112, squeezed=True, hard_swish=True),
    Inverted(3, 672, 112, squeezed=True, hard_swish=True),
    Inverted(5, 672, 160, squeezed=True, hard_swish=True, stride=2),
    *[Inverted(5, 960, 160, squeezed=True, hard_swish=True)] * 2,
)
"""MobileNetV3-Large's blocks."""


def mobilenet_v3(
    blocks: Sequence[Inverted] = LARGE, image: int = 224, last: int = 1280, classes: int = 1000
) -> ModelProto:
    """Inverted residuals, some of which scale their channels by what the means of all of them say."""
    b = Builder(seed=5)

    def squeezed(x: str, channels: int) -> str:
        few = (channels // 4 + 7) // 8 * 8
        y = b.node("Relu", b.convolution(b.node("GlobalAveragePool", x), channels, few, 1))
        return b.node("Mul", b.node("HardSigmoid", b.convolution(y, few, channels, 1), alpha=1 / 6), x)

    x, channels = b.node("HardSwish", b.convolution("image", 3, 16, 3, stride=2)), 16
    for block in blocks:
        activation = "HardSwish" if block.hard_swish else "Relu"
        y = x
        if block.wide != channels:
            y = b.node(activation, b.convolution(y, channels, block.wide, 1))
        y = b.convolution(y, block.wide, block.wide, block.window, stride=block.stride, group=block.wide)
        y = b.node(activation, y)
        y = b.convolution(squeezed(y, block.wide) if block.squeezed else y, block.wide, block.outputs, 1)
        kept = block.stride == 1 and channels == block.outputs
        x, channels = (b.node("Add", x, y) if kept else y), block.outputs
    x = b.node("HardSwish", b.convolution(x, channels, 6 * channels, 1))
    x = b.node("Flatten", b.node("GlobalAveragePool", x), axis=1)
    hidden = b.normal(last, 6 * channels, deviation=np.sqrt(2 / (6 * channels)))
    x = b.node("HardSwish", b.node("Gemm", x, hidden, b.normal(last, deviation=0.1), transB=1))
    weight = b.normal(classes, last, deviation=np.sqrt(1 / last))
    logits = b.node("Gemm", x, weight, b.normal(classes, deviation=0.1), transB=1)
    shape = (1, 3, image, image)
    return b.model("mobilenet_v3", [helper.make_tensor_value_info("image", TensorProto.FLOAT, shape)], logits)


STAGES = ((64, 1), (64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), (512, 1))
"""ResNet-18's blocks: channels, stride of the first."""


def resnet18(image: int = 224, classes: int = 1000) -> ModelProto:
    """Residual blocks of two convolutions each."""
    b = Builder(seed=4)
    x, channels = b.node("Relu", b.convolution("image", 3, 64, 7, stride=2)), 64
    x = b.node("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    for outputs, stride in STAGES:
        y = b.node("Relu", b.convolution(x, channels, outputs, 3, stride=stride))
        y = b.convolution(y, outputs, outputs, 3)
        short = x if channels == outputs else b.convolution(x, channels, outputs, 1, stride=stride)
        x, channels = b.node("Relu", b.node("Add", y, short)), outputs
    x = b.node("Flatten", b.node("GlobalAveragePool", x), axis=1)
    weight = b.normal(classes, channels, deviation=np.sqrt(1 / channels))
    logits = b.node("Gemm", x, weight, b.normal(classes, deviation=0.1), transB=1)
    shape = (1, 3, image, image)
    return b.model("resnet18", [helper.make_tensor_value_info("image", TensorProto.FLOAT, shape)], logits)


def feeds(model: ModelProto, words: int = 30_522, seed: int = 1) -> dict[str, np.ndarray]:
    """Inputs of a model: images are normal; of BERT's tokens the last quarter is padding."""
    rng = np.random.default_rng(seed)
    stored = {initializer.name for initializer in model.graph.initializer}
    found = {}
    for info in (i for i in model.graph.input if i.name not in stored):
        shape = tuple(d.dim_value for d in info.type.tensor_type.shape.dim)
        match info.name:
            case "input_ids":
                found[info.name] = rng.integers(0, words, shape)
            case "attention_mask":
                found[info.name] = (np.arange(shape[1]) < 3 * shape[1] // 4).astype(np.int64)[None]
            case "token_type_ids":
                found[info.name] = (np.arange(shape[1]) >= shape[1] // 2).astype(np.int64)[None]
            case _:
                found[info.name] = rng.standard_normal(shape, np.float32)
    return found

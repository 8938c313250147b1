"""Convolutions: those of five networks, read from their graphs, the other kinds, and those of open images."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import onnx

from .case import Bar, Case, dims, shape_of

LIGHT = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
NETWORKS = {
    "conv-resnet50": "resnet50",
    "conv-vgg19": "vgg19",
    "conv-squeezenet": "squeezenet",
    "conv-inception": "inception_v1",
    "conv-densenet": "densenet121",
}
WINOGRAD_BARS = ((28, 2.5), (14, 1.6), (7, 1.1))
"""A 3×3 convolution of stride 1 on an image so large, with 32 channels or more, and how much faster it is to be."""


@dataclass(frozen=True)
class Layer:
    """Shapes of input and weight (of the transposed: as ONNX has it), and attributes in the order of their names."""

    x: tuple[int, ...]
    w: tuple[int, ...]
    attributes: tuple[tuple[str, tuple[int, ...] | int], ...] = ()
    transposed: bool = False

    @property
    def name(self) -> str:
        """``3×3 64→128 56² /2``: stride, groups and dilation where they are not 1."""
        image = "×".join(map(str, self.x[2:]))
        if len(self.x) > 3 and len(set(self.x[2:])) == 1:
            image = f"{self.x[2]}{'²³'[len(self.x) - 4]}"
        marks = {"strides": "/", "group": "g", "dilations": "d"}
        kept = (f"{marks[k]}{v if isinstance(v, int) else v[0]}" for k, v in self.attributes if k in marks)
        return " ".join(("×".join(map(str, self.w[2:])), f"{self.x[1]}→{self.channels}", image, *kept))

    @property
    def channels(self) -> int:
        return self.w[1] if self.transposed else self.w[0]

    def case(self, group: str) -> Case:
        settings = ", ".join(f"{k}={v if isinstance(v, int) else list(v)}" for k, v in self.attributes)
        operator = "ConvTranspose" if self.transposed else "Conv"
        nodes = f"y = {operator} <{settings}> (x, w, b)" if settings else f"y = {operator} (x, w, b)"
        weights = f"{dims(*self.w)} w, {dims(self.channels)} b"
        return Case(group, self.name, f"{dims(*self.x)} x", nodes, weights, bar=self._bar())

    def _bar(self) -> Bar:
        plain = not self.transposed and {key for key, _ in self.attributes} <= {"pads"}
        if plain and self.w[2:] == (3, 3) and min(self.w[:2]) >= 32:
            return Bar(next((ratio for least, ratio in WINOGRAD_BARS if min(self.x[2:]) >= least), 1.0))
        return Bar(1.0, 0.92 if self.w[2:] == (1, 1) else None)


def layers(network: str) -> list[Layer]:
    """The distinct convolutions of one of the onnx package's light models, in its order."""
    model = onnx.shape_inference.infer_shapes(onnx.load(LIGHT / f"light_{network}.onnx"))
    shapes = {i.name: shape_of(i) for i in (*model.graph.input, *model.graph.value_info)}
    shapes |= {i.name: tuple(i.dims) for i in model.graph.initializer}
    found = (
        Layer(shapes[node.input[0]], shapes[node.input[1]], _attributes(node))
        for node in model.graph.node
        if node.op_type == "Conv"
    )
    return list(dict.fromkeys(found))


def _attributes(node: onnx.NodeProto) -> tuple[tuple[str, tuple[int, ...] | int], ...]:
    """Those that are not at their defaults."""
    values = {a.name: tuple(a.ints) or a.i for a in node.attribute if a.name != "kernel_shape"}
    defaults = {"pads": {0}, "strides": {1}, "dilations": {1}, "group": {1}}
    return tuple(
        (key, value)
        for key, value in sorted(values.items())
        if key not in defaults or set(value if isinstance(value, tuple) else [value]) != defaults[key]
    )


def _same(kernel: int, spatial: int = 2) -> tuple[str, tuple[int, ...]]:
    return "pads", (kernel // 2,) * (2 * spatial)


def _depthwise() -> Iterator[Layer]:
    for kernel in (3, 5, 7):
        for channels, image, stride in ((32, 112, 1), (96, 112, 2), (144, 56, 1), (384, 14, 1), (960, 7, 1)):
            strides = (("strides", (stride, stride)),) if stride > 1 else ()
            attributes = (("group", channels), _same(kernel), *strides)
            yield Layer((1, channels, image, image), (channels, 1, kernel, kernel), attributes)


OTHERS = {
    "conv-grouped": [
        Layer((1, 128, 56, 56), (128, 4, 3, 3), (("group", 32), _same(3))),
        Layer((1, 256, 28, 28), (256, 8, 3, 3), (("group", 32), _same(3))),
        Layer((1, 240, 28, 28), (240, 80, 1, 1), (("group", 3),)),
        Layer((1, 96, 27, 27), (256, 48, 5, 5), (("group", 2), _same(5))),
    ],
    "conv-dilated": [
        Layer((1, 256, 28, 28), (256, 256, 3, 3), (("dilations", (2, 2)), ("pads", (2, 2, 2, 2)))),
        Layer((1, 64, 56, 56), (64, 64, 3, 3), (("dilations", (4, 4)), ("pads", (4, 4, 4, 4)))),
        Layer((1, 960, 14, 14), (256, 960, 3, 3), (("dilations", (12, 12)), ("pads", (12, 12, 12, 12)))),
    ],
    "conv-transposed": [
        Layer((1, 256, 14, 14), (256, 128, 2, 2), (("strides", (2, 2)),), transposed=True),
        Layer((1, 128, 28, 28), (128, 64, 4, 4), (("pads", (1, 1, 1, 1)), ("strides", (2, 2))), transposed=True),
        Layer((1, 64, 56, 56), (64, 32, 3, 3), (("pads", (1, 1, 1, 1)),), transposed=True),
    ],
    "conv-1d": [
        Layer((1, 64, 1024), (128, 64, 3), (_same(3, 1),)),
        Layer((1, 80, 3000), (384, 80, 3), (_same(3, 1),)),
        Layer((1, 512, 256), (512, 512, 5), (_same(5, 1),)),
        Layer((1, 1, 576), (258, 1, 256), (("strides", (128,)),)),
        Layer((1, 1, 480000), (402, 1, 400), (("pads", (200, 200)), ("strides", (160,)))),
    ],
    "conv-3d": [
        Layer((1, 3, 16, 112, 112), (64, 3, 3, 7, 7), (("pads", (1, 3, 3, 1, 3, 3)), ("strides", (1, 2, 2)))),
        Layer((1, 64, 8, 28, 28), (64, 64, 3, 3, 3), (_same(3, 3),)),
    ],
    "conv-first": [
        Layer((1, 3, 224, 224), (32, 3, 3, 3), (_same(3), ("strides", (2, 2)))),
        Layer((1, 3, 224, 224), (64, 3, 3, 3), (_same(3),)),
        Layer((1, 3, 224, 224), (96, 3, 11, 11), (("strides", (4, 4)),)),
        Layer((1, 3, 224, 224), (768, 3, 16, 16), (("strides", (16, 16)),)),
    ],
}


def cases() -> Iterator[Case]:
    """A layer that several networks have stands with the first."""
    seen: set[Layer] = set()
    for group, network in NETWORKS.items():
        own = [layer for layer in layers(network) if layer not in seen]
        seen.update(own)
        yield from (layer.case(group) for layer in own)
    yield from (layer.case("conv-depthwise") for layer in _depthwise())
    for group, others in OTHERS.items():
        yield from (layer.case(group) for layer in others)
    yield from _open()


def _open() -> Iterator[Case]:
    """Layers of networks whose height and width only a run knows: as usual, as none is chosen, and small."""
    for channels, filters, attributes in (
        (64, (64, 64, 3, 3), (_same(3),)),
        (64, (128, 64, 3, 3), (_same(3), ("strides", (2, 2)))),
        (256, (64, 256, 1, 1), ()),
        (96, (96, 1, 3, 3), (("group", 96), _same(3))),
        (96, (96, 1, 5, 5), (("group", 96), _same(5), ("strides", (2, 2)))),
        (3, (32, 3, 3, 3), (_same(3), ("strides", (2, 2)))),
    ):
        for image in ((56, 56), (57, 45), (7, 7)):
            yield replace(Layer((1, channels, *image), filters, attributes).case("conv-open"), open_axes={"x": [2, 3]})

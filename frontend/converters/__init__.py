"""Converters of ONNX operators, by family. Importing this package enters all of them in the table."""

from . import (
    attention,
    convolution,
    creation,
    elementwise,
    extern,
    indexing,
    linear,
    normalization,
    quantization,
    reduction,
    resize,
    shape,
    softmax,
)

__all__ = [
    "attention",
    "convolution",
    "creation",
    "elementwise",
    "extern",
    "indexing",
    "linear",
    "normalization",
    "quantization",
    "reduction",
    "resize",
    "shape",
    "softmax",
]

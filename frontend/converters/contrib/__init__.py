"""Converters of onnxruntime's own operators, by family: its optimizer, its quantiser and its exporters write them."""

from . import activations, embedding, normalization, products

__all__ = ["activations", "embedding", "normalization", "products"]

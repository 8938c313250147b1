"""Converters of onnxruntime's own operators, by family: its optimizer, its quantiser and its exporters write them."""

from . import activations, embedding, integer_products, normalization, products, quantized, standard

__all__ = ["activations", "embedding", "integer_products", "normalization", "products", "quantized", "standard"]

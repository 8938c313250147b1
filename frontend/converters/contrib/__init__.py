"""Converters of onnxruntime's own operators, by family: its optimizer, its quantiser and its exporters write them."""

from . import (
    activations,
    attention,
    embedding,
    experts,
    grouped_query,
    integer_products,
    inverse,
    low_bits,
    normalization,
    products,
    quantized,
    recurrent,
    rotary,
    standard,
    states,
    tokens,
)

__all__ = [
    "activations",
    "attention",
    "embedding",
    "experts",
    "grouped_query",
    "integer_products",
    "inverse",
    "low_bits",
    "normalization",
    "products",
    "quantized",
    "recurrent",
    "rotary",
    "standard",
    "states",
    "tokens",
]

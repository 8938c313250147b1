"""Discrete Fourier transforms, of any length in n log n."""

from ...definition.op_group import OpGroup
from . import complex_product, dft, fft, frames, open_fft

GROUP = OpGroup.SIGNALS

__all__ = ["complex_product", "dft", "fft", "frames", "open_fft"]

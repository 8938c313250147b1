"""Random calls of transforms of signals."""

import numpy as np
from draw import Case, Input

from loopwright.ops import nn

LENGTHS = (1, 2, 3, 7, 12, 40, 64, 65, 81, 98, 121, 130, 200, 256)
"""Of prime factors up to 13."""


def pairs(z):
    return np.stack([z.real, z.imag], axis=-1)


def complex_of(x):
    return x[..., 0] + 1j * x[..., 1] if x.shape[-1] == 2 else x[..., 0]


def draw_fft(d):
    kind, length, inverse = d.one("float32", "float64"), d.one(*LENGTHS), d.chance()
    bins = d.one(length, length // 2 + 1, d.int(1, length))
    transform = np.fft.ifft if inverse else np.fft.fft
    shape = (*d.shape(1, 2, empty=True), length, d.one(1, 2))
    return Case(
        lambda x: nn.fft(x, bins, inverse),
        lambda x: pairs(transform(complex_of(x))[..., :bins]).astype(x.dtype),
        (Input(shape, kind, outliers="large"),),
        lambda x: x.sum((-2, -1), keepdims=True),
    )


def draw_frames(d):
    length, step, components = d.int(1, 20), d.int(1, 20), d.int(1, 3)
    extent = length + d.int(0, 60)

    def oracle(x):
        return np.lib.stride_tricks.sliding_window_view(x, length, 1)[:, ::step].swapaxes(2, 3)

    return Case(lambda x: nn.frames(x, length, step), oracle, (Input((d.int(0, 3), extent, components), d.kind()),))


def draw_complex_multiply(d):
    kind, extent, components = d.one("float32", "float64"), d.int(0, 40), d.one(1, 2)
    shapes = ((*d.shape(0, 2, empty=True), extent, components), (extent, 2))
    return Case(
        nn.complex_multiply,
        lambda x, y: pairs(complex_of(x) * complex_of(y)),
        tuple(Input(shape, kind, outliers="large") for shape in shapes),
        lambda x, y: x.sum(-1, keepdims=True) * y.sum(-1, keepdims=True),
    )


DRAWS = {"nn.fft": draw_fft, "nn.frames": draw_frames, "complex_multiply": draw_complex_multiply}

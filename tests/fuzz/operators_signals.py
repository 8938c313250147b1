"""Random calls of transforms of signals."""

import numpy as np
from draw import Case, Input

from loopwright.graph.node import Constant
from loopwright.ops import nn
from loopwright.ops.families.fourier.open_fft import OPEN_FFT, OpenFftAttrs

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


def draw_open_fft(d):
    kind, onesided, inverse = d.one("float32", "float64"), d.chance(), d.chance()
    length, components = d.int(1, 90), d.one(1, 2)
    is_smooth = 210**6 % length == 0
    longer = length if is_smooth else d.one(*(n for n in (192, 200, 210, 225, 256) if n >= 2 * length - 1))

    def tables(count, turns):
        return pairs(np.exp(-2j * np.pi * turns(np.arange(count)))).T.astype(kind)

    def oracle(x):
        z = (np.fft.ifft if inverse else np.fft.fft)(complex_of(x), axis=1)
        return pairs(z[:, : length // 2 + 1] if onesided else z).astype(x.dtype)

    roots = Constant(tables(longer, lambda k: k / longer))
    chirp = Constant(tables(length, lambda k: k * k / (2 * length)))
    return Case(
        lambda x: OPEN_FFT(x, roots, chirp, attrs=OpenFftAttrs(onesided, inverse)),
        oracle,
        (Input((d.int(0, 3), length, d.int(0, 3), components), kind, outliers="large"),),
        lambda x: x.sum((1, 3), keepdims=True),
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


DRAWS = {
    "nn.fft": draw_fft,
    "nn.open_fft": draw_open_fft,
    "nn.frames": draw_frames,
    "complex_multiply": draw_complex_multiply,
}

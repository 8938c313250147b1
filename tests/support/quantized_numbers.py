"""Quantized numbers for tests: nodes of graphs, and the real numbers that they stand for, in float64."""

import numpy as np

import loopwright as lw

nn = lw.nn
SIGNS = [("uint8", "int8"), ("uint8", "uint8"), ("int8", "int8"), ("int8", "uint8")]


class Numbers:
    """Quantized numbers of a seed: nodes of a graph, and the real numbers that they stand for."""

    def __init__(self, seed=0):
        self.rng = np.random.default_rng(seed)

    def bytes(self, shape, kind):
        limits = np.iinfo(kind)
        values = self.rng.integers(limits.min, limits.max, shape, kind, endpoint=True)
        values.reshape(-1)[: min(4, values.size)] = [limits.min, limits.max, limits.min, limits.max][: values.size]
        return values

    def activations(self, shape, kind, scale=0.02):
        """A parameter of bytes, what is dequantized of it, its array and its real numbers."""
        value, zero = self.bytes(shape, kind), self.zero(kind)
        x = lw.var("x", shape, kind)
        return x, dequantized(x, scale, zero), value, real(value, scale, zero)

    def weights(self, shape, kind, axis=None, symmetric=True):
        """A dequantized constant and its real numbers; scales and zero points of all or of places on an axis."""
        value = self.bytes(shape, kind)
        middle = 128 if kind == "uint8" else 0
        if axis is None:
            scale, zero = np.float32(0.011), np.asarray(middle if symmetric else self.zero(kind), kind)
        else:
            each = [1] * len(shape)
            each[axis] = shape[axis]
            scale = self.rng.uniform(0.005, 0.02, each).astype(np.float32)
            zero = np.full(each, middle, kind) if symmetric else self.bytes(each, kind)
        return dequantized(lw.const(value), scale, zero), real(value, scale, zero)

    def zero(self, kind):
        return np.asarray(self.rng.integers(np.iinfo(kind).min, np.iinfo(kind).max), kind)


def dequantized(x, scale, zero):
    return nn.dequantize(x, lw.const(np.asarray(scale, np.float32)), lw.const(np.asarray(zero)))


def real(value, scale, zero):
    return (value.astype(np.float64) - np.asarray(zero, np.float64)) * np.asarray(scale, np.float32).astype(np.float64)


def quantized(x, scale, zero):
    zero = np.asarray(zero)
    return nn.quantize(x, lw.const(np.asarray(scale, np.float32)), lw.const(zero), str(zero.dtype))


def steps(y, scale, zero):
    """Real numbers as QuantizeLinear has them, in float64."""
    limits = np.iinfo(np.asarray(zero).dtype)
    return np.clip(np.rint(y / np.float64(np.float32(scale))) + float(zero), limits.min, limits.max)


def check(found, y, scale, zero):
    """At most one step from the definition, and equal nearly everywhere."""
    wanted = steps(y, scale, zero)
    assert found.dtype == np.asarray(zero).dtype
    apart = np.abs(found.astype(np.float64) - wanted)
    assert apart.max(initial=0) <= 1
    assert np.mean(apart > 0) <= max(1e-3, 1.5 / apart.size)

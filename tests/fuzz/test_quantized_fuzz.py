"""Random chains of quantized operators: each is within a step of its definition in float64, of the bytes that were
found before it, and nearly all elements are equal."""

import numpy as np
import pytest
import windows
from quantized_numbers import SIGNS, check, dequantized, quantized, real

import loopwright as lw
from loopwright.graph import Tuple

nn = lw.nn
TARGETS = [lw.resolve_target(name) for name in ("x86-64-v3", "x86-64")]
SEEDS = 8


class Chain:
    """A graph that grows by quantized values; each has its node and what it is in float64 of those before. Mutable."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.values, self.wanted, self.at = [], [], []

    def one(self, *options):
        return options[int(self.rng.integers(len(options)))]

    def parameters(self, kind, low=-6.0, high=2.0):
        """A scale, over some orders of magnitude, and a zero point, often at an end."""
        limits = np.iinfo(kind)
        zero = self.one(limits.min, limits.max, 0, int(self.rng.integers(limits.min, limits.max + 1)))
        return np.float32(10.0 ** self.rng.uniform(low, high)), np.asarray(zero, kind)

    def bytes(self, shape, kind):
        limits = np.iinfo(kind)
        values = [limits.min, limits.max, *self.rng.integers(limits.min, limits.max, 20)]
        return self.rng.choice(values, shape).astype(kind)

    def start(self):
        shape, kind = self.one((1, 8, 9, 7), (2, 3, 6, 11), (1, 12, 5, 5)), self.one("uint8", "int8")
        self.input = self.bytes(shape, kind)
        self.variable = lw.var("x", shape, kind)
        self.values.append(self.variable)
        self.wanted.append(None)
        self.at.append(self.parameters(kind))

    def read(self, number):
        return dequantized(self.values[number], *self.at[number])

    def add(self, node, oracle):
        """Quantize a node by a scale that suits the numbers it has, or saturates most of them."""
        real_numbers = oracle(lambda number: real(self.sample(number), *self.at[number]))
        largest = float(np.abs(real_numbers).max()) or 1.0
        kind = self.one("uint8", "int8")
        _, zero = self.parameters(kind)
        scale = np.float32(largest * self.one(1 / 100, 1 / 250, 1 / 2000, 1 / 20))
        self.values.append(quantized(node, scale, zero))
        self.wanted.append(oracle)
        self.at.append((scale, zero))

    def sample(self, number):
        """Bytes of a value, for the size of what is made of it."""
        shape = self.values[number].type.static_shape
        return self.bytes(shape, self.at[number][1].dtype)

    def weights(self, shape):
        """Bytes that are dequantized, each filter by its own scale or all by one."""
        kind = self.one(*SIGNS)[1]
        value = self.bytes(shape, kind)
        each = (shape[0], *(1,) * (len(shape) - 1)) if self.rng.random() < 0.5 else ()
        scale = (10.0 ** self.rng.uniform(-4, 1) * self.rng.uniform(0.1, 2, each)).astype(np.float32)
        zero = np.full(each, self.one(0, 128, 100) if kind == "uint8" else self.one(0, -3), kind)
        return dequantized(lw.const(value), scale, zero), real(value, scale, zero)

    def convolution(self, number):
        channels, *extents = self.sample(number).shape[1:]
        groups = self.one(*(g for g in (1, 2, channels) if channels % g == 0))
        window = [int(self.rng.integers(1, min(3, e) + 1)) for e in extents]
        filters = groups * int(self.rng.integers(1, 5))
        stride, pads = int(self.rng.integers(1, 3)), [int(self.rng.integers(0, w)) for w in (*window, *window)]
        w, rw = self.weights((filters, channels // groups, *window))
        made = nn.conv(self.read(number), w, strides=stride, padding=pads, groups=groups)
        follow, oracle = self.follower()
        self.add(
            follow(made),
            lambda of: oracle(windows.conv(of(number), rw, (stride,) * 2, pads, (1, 1), groups)),
        )

    def follower(self):
        """What may stand between a sum and its quantization."""
        bias = self.rng.uniform(-1, 1)
        return self.one(
            (lambda y: y, lambda y: y),
            (nn.relu, lambda y: np.maximum(y, 0)),
            (lambda y: nn.clip(y, -0.5, 6.0), lambda y: np.clip(y, -0.5, 6.0)),
            (lambda y: nn.add(y, lw.const(np.asarray(bias, np.float32))), lambda y: y + np.float64(np.float32(bias))),
            (nn.hard_swish, lambda y: y * np.clip(y / 6 + 0.5, 0, 1)),
        )

    def sum(self, number):
        self.add(nn.add(self.read(number), self.read(number)), lambda of: of(number) + of(number))

    def product(self, number):
        shape = self.sample(number).shape
        w, rw = self.weights((5, shape[-1]))
        self.add(nn.dense(self.read(number), w, transposed=True), lambda of: of(number) @ rw.T)

    def grow(self):
        steps = self.convolution, self.convolution, self.sum, self.product
        self.one(*steps)(len(self.values) - 1 if self.rng.random() < 0.8 else int(self.rng.integers(len(self.values))))


@pytest.mark.parametrize("seed", range(SEEDS))
def test_each_operator_is_within_a_step_of_its_definition(seed):
    chain = Chain(seed)
    chain.start()
    for _ in range(4):
        chain.grow()
    shown = chain.values[1:]
    library = lw.compile(lw.Function([chain.variable], Tuple(tuple(shown))), target=TARGETS[seed % 2], jobs=1)
    found = [chain.input, *lw.Engine(library, threads=1)([chain.input])]
    for number in range(1, len(found)):
        wanted = chain.wanted[number](lambda n: real(found[n], *chain.at[n]))
        check(found[number], wanted, *chain.at[number])

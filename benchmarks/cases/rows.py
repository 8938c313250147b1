"""Normalisation and activation: softmax, layer and batch normalisation, GELU and its like, chains of operations.

The bar: faster than the best peer by a fifth, or as fast as memory where the data lies there.
"""

from __future__ import annotations

from collections.abc import Iterator

from .case import Bar, Case, dims

BAR = Bar(1.2, 0.85, either=True)
ROWS = ((64, 1000), (128, 768), (1536, 128), (4096, 4096))
IMAGES = ((1, 64, 56, 56), (1, 512, 28, 28), (8, 64, 224, 224))
SCALED = {(1, 128, 14, 14): (128, 1, 1), (1, 64, 56, 56): (64, 1, 1), (1, 56, 56, 64): (64,), (1000, 100): (1000, 1)}
"""Shapes, with those of a scale and an offset that are broadcast: a channel, first and last, and a row."""
FLAT = (2**14, 2**18, 2**24)

SOFTMAX = {"softmax": "y = Softmax <axis=-1> (x)", "log-softmax": "y = LogSoftmax <axis=-1> (x)"}
ACTIVATIONS = {
    "gelu": "y = Gelu (x)",
    "gelu-tanh": 'y = Gelu <approximate="tanh"> (x)',
    "silu": "s = Sigmoid (x) y = Mul (x, s)",
    "sigmoid": "y = Sigmoid (x)",
    "tanh": "y = Tanh (x)",
    "exp": "y = Exp (x)",
    "log": "a = Abs (x) y = Log (a)",
    "erf": "y = Erf (x)",
    "sin": "y = Sin (x)",
}
CHAINS = {
    2: "a = Mul (x, x) y = Exp (a)",
    3: "a = Neg (x) b = Exp (a) y = Mul (b, z)",
    4: "a = Mul (x, z) b = Tanh (a) c = Add (b, x) y = Relu (c)",
    6: "a = Mul (x, x) b = Neg (a) c = Exp (b) d = Mul (c, z) e = Add (d, x) y = Tanh (e)",
    8: "a = Abs (x) b = Sqrt (a) c = Mul (b, z) d = Sub (c, x) e = Tanh (d) f = Add (e, z) g = Mul (f, f) y = Relu (g)",
}


def cases() -> Iterator[Case]:
    for n, m in ROWS:
        rows = f"{dims(n, m)} x"
        for group, nodes in SOFTMAX.items():
            yield Case(group, f"{n}×{m}", rows, nodes, bar=BAR)
        nodes = "y = LayerNormalization <axis=-1> (x, scale, bias)"
        yield Case("layer-norm", f"{n}×{m}", rows, nodes, f"{dims(m)} scale, {dims(m)} bias", bar=BAR)
        nodes = "y = RMSNormalization <axis=-1> (x, scale)"
        yield Case("rms-norm", f"{n}×{m}", rows, nodes, f"{dims(m)} scale", bar=BAR, opset=23)
    for shape in IMAGES:
        name = "×".join(map(str, shape))
        parameters = ", ".join(f"{dims(shape[1])} {p}" for p in ("scale", "bias", "mean", "variance"))
        nodes = "y = BatchNormalization (x, scale, bias, mean, variance)"
        yield Case("batch-norm", name, f"{dims(*shape)} x", nodes, parameters, bar=BAR)
    for shape, small in SCALED.items():
        weights = f"{dims(*small)} scale, {dims(*small)} bias"
        nodes = "a = Mul (x, scale) b = Add (a, bias) y = Relu (b)"
        yield Case("scale-shift-relu", "×".join(map(str, shape)), f"{dims(*shape)} x", nodes, weights, bar=BAR)
    for extent in FLAT:
        for group, nodes in ACTIVATIONS.items():
            yield Case(group, f"{extent}", f"{dims(extent)} x", nodes, bar=BAR)
        for length, nodes in CHAINS.items():
            inputs = f"{dims(extent)} x, {dims(extent)} z" if "z" in nodes else f"{dims(extent)} x"
            yield Case("chain", f"of {length}, {extent}", inputs, nodes, bar=BAR)

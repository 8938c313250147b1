"""The network whose exports are tested, its sizes, which the C program is told, and an input."""

import numpy as np

import loopwright as lw
from loopwright.graph.node import Tuple

ROWS, COLUMNS, WIDTH, DEPTH = 6, 160, 192, 8
SIZES = [f"-D{name}={globals()[name]}" for name in ("ROWS", "COLUMNS", "WIDTH", "DEPTH")]
X = np.random.default_rng(4).normal(size=(ROWS, COLUMNS)).astype(np.float32)


def network(rows=ROWS):
    """Two outputs, products by two constants, intermediates between, and parallel loops; and what X should give."""
    rng = np.random.default_rng(5)
    w, v = (rng.normal(size=shape).astype(np.float32) for shape in ((COLUMNS, WIDTH), (WIDTH, DEPTH)))
    x = lw.var("x.1", (rows, COLUMNS))
    hidden = lw.nn.relu(lw.nn.matmul(x, lw.const(w)))
    results = Tuple((lw.nn.softmax(hidden), lw.nn.matmul(hidden, lw.const(v))))
    numbers = np.maximum(X.astype(np.float64) @ w, 0)
    powers = np.exp(numbers - numbers.max(axis=1, keepdims=True))
    return lw.Function([x], results, "net"), [powers / powers.sum(axis=1, keepdims=True), numbers @ v]


def in_a_row(outputs):
    """As the C program writes them."""
    return np.concatenate([y.ravel() for y in outputs])

"""A tactic from outside: numpy's product of matrices, which engines may take for ``nn.matmul`` instead of their own.

It is chosen where it was measured to be quicker, and the measurements are kept for the next time.
"""

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import loopwright as lw


class NumpyProduct(lw.AbstractTactic):
    """C = A · B for matrices of floats."""

    def supports(self, attrs: Mapping[str, Any], types: Sequence[lw.TensorSpec]) -> bool:
        a, b, c = types
        return len(a.shape) == len(b.shape) == 2 and c.dtype.is_float and c.dtype.bits >= 32

    def enqueue(self, args: Sequence[NDArray[Any]]) -> None:
        a, b, c = args
        np.matmul(a, b, out=c)


registry = lw.TacticRegistry()
registry.register("nn.matmul", "matmul.numpy", NumpyProduct)

a, b = lw.var("a", (96, 64)), lw.var("b", (64, 80))
library = lw.compile(lw.Function([a, b], lw.nn.matmul(a, b)))
rng = np.random.default_rng(0)
inputs = [rng.standard_normal(shape, dtype="float32") for shape in ((96, 64), (64, 80))]

with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "records.jsonl"
    engine = lw.Engine(library, tactics=registry).init(select="measure", records=path)
    np.testing.assert_allclose(engine(inputs)[0], inputs[0] @ inputs[1], rtol=1e-4, atol=1e-4)
    for record in lw.TuningRecords.load(path):
        print(f"{record.implementation}: {record.cost * 1e6:.0f} µs")
    print("chosen by measuring:", *engine.tactics.values())
    again = lw.Engine(library, tactics=registry).init(records=path)
    print("chosen by record:   ", *again.tactics.values())

preferring = lw.Engine(library, tactics=registry, executors=[lw.ExecutorConfig(tactics=("matmul.numpy",))]).init()
np.testing.assert_allclose(preferring(inputs)[0], inputs[0] @ inputs[1], rtol=1e-4, atol=1e-4)
print("chosen by setting:  ", *preferring.tactics.values())

"""A layer of a network by our own kernels, and by scipy's BLAS, which a target asks for by ``-libs=cblas``.

The strategy of nn.dense offers both; for a target with BLAS its implementation has the higher priority. What follows
the product is fused behind the call in one case, and into the kernel in the other.
"""

from importlib.util import find_spec

import numpy as np

import loopwright as lw

ROWS, TERMS, COLUMNS = 256, 512, 384


def layer() -> tuple[lw.Function, np.ndarray, np.ndarray]:
    """relu(x · wᵀ + b), its input, and what numpy makes of it."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((ROWS, TERMS), dtype=np.float32)
    w = rng.standard_normal((COLUMNS, TERMS), dtype=np.float32)
    b = rng.standard_normal(COLUMNS, dtype=np.float32)
    var = lw.var("x", x.shape)
    made = lw.nn.relu(lw.nn.add(lw.nn.dense(var, lw.const(w)), lw.const(b)))
    return lw.Function([var], made), x, np.maximum(x.astype(np.float64) @ w.T + b, 0)


def main() -> None:
    if find_spec("scipy") is None:
        print("this example needs scipy, whose BLAS it calls: pip install 'loopwright[blas]'")
        return
    function, x, wanted = layer()
    for target in ("native", "llvm -mcpu=native -libs=cblas"):
        library = lw.compile(function, target=target)
        engine = lw.Engine(library, threads=1)
        (y,) = engine([x])
        error = np.abs(y - wanted).max() / np.abs(wanted).max()
        (seconds,) = engine.time_steps([x])
        (compiled,) = library.functions
        speed = 2 * ROWS * TERMS * COLUMNS / seconds / 1e9
        print(f"{target}\n  {compiled.choices[0].implementation}: {compiled.choices[0].reason}")
        print(f"  {seconds * 1e3:.2f} ms, {speed:.0f} GFLOP/s on one thread, error {error:.0e} of the maximum")
        assert error < 1e-5


if __name__ == "__main__":
    main()

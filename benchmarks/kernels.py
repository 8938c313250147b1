"""Kernels of ours beside numpy's: ``python benchmarks/kernels.py [--size 512] [--rounds 9] [--threads 1 2]``.

The figures are ratios of medians, and the fraction of the fma peak measured in the same run.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from rounds import Contender, alternate, serve

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"


def contender(name: str, size: int, threads: int) -> None:
    """What to call, and how many floating-point operations a call does."""
    import numpy as np

    if name == "numpy":
        a, b = np.random.default_rng(0).standard_normal((2, size, size), dtype=np.float32)
        c = np.empty_like(a)
        serve(lambda: np.matmul(a, b, out=c), 2 * size**3)
        return

    import loopwright as lw

    sys.path.insert(0, str(EXAMPLES))
    from fast_matmul import matmul_schedule, peak_kernel

    target = lw.resolve_target("native")
    if name == "peak":
        kernel, operations = peak_kernel(target)
        x = np.zeros(target.lanes("float32"), np.float32)
        serve(kernel.bind(x, np.empty(kernel.func.outputs[0].shape[0], np.float32), threads=1), operations)
        return
    schedule, args = matmul_schedule(size, size, size, target)
    kernel = lw.build(schedule, args, target=target, name="matmul")
    a, b = np.random.default_rng(0).standard_normal((2, size, size), dtype=np.float32)
    c = np.empty_like(a)
    kernel(a, b, c)
    np.testing.assert_allclose(c, a @ b, rtol=1e-3, atol=1e-2)
    serve(kernel.bind(a, b, c, threads=threads), 2 * size**3)


def compare(size: int, threads: int, rounds: int, seed: int) -> None:
    arguments = ["--size", str(size), "--threads", str(threads)]
    names = ["loopwright", "numpy", "peak"]
    contenders = {name: Contender(__file__, ["--contender", name, *arguments], threads) for name in names}
    alternate(contenders, rounds, seed)
    rates = {name: c.operations / c.median for name, c in contenders.items()}
    peak = rates.pop("peak") * threads
    print(
        f"matmul {size}³, {threads} thread(s): "
        + ", ".join(f"{name} {rate / 1e9:.1f} GFLOP/s ({rate / peak:.0%} of peak)" for name, rate in rates.items())
        + f", ratio {rates['loopwright'] / rates['numpy']:.2f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", type=int, nargs="+", default=[512])
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--contender", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.contender:
        contender(options.contender, options.size[0], options.threads[0])
        return
    for size in options.size:
        for threads in options.threads:
            compare(size, threads, options.rounds, options.seed)


if __name__ == "__main__":
    main()

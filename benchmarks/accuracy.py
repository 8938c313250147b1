"""Measure the error of unary math intrinsics in float32 over all 2³² arguments, as docs/accuracy.md states it.

``python benchmarks/accuracy.py exp tanh --stride 16 --target x86-64`` takes every 16th bit pattern; without names, all
functions; stride 1 is exhaustive, a few minutes a function. References are numpy's float64 functions (scipy's erf),
whose own error does not show.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator

import numpy as np
from elementwise import compile_map
from scipy import special
from ulps import EXACT, errors

from loopwright.ir.dtype import dtype

CHUNK = 1 << 17
"""What is computed at a time, so that it stays in cache."""


def measure(name: str, target: str, stride: int, between: tuple[float, float] | None = None) -> tuple[float, float]:
    """The largest error in ulp, and where; of all arguments, or of those whose size is in an interval.

    Results that are the exact value rounded are off by at most half an ulp; only others are measured.
    """
    exact = special.erf if name == "erf" else EXACT[name]
    run = compile_map(name, dtype("float32x16"), target)
    worst, where = 0.5, 0.0
    for first in _firsts(CHUNK * stride, between):
        x = np.arange(first, first + CHUNK * stride, stride, dtype=np.uint64).astype(np.uint32).view(np.float32)
        got = run(x)
        with np.errstate(all="ignore"):
            true = exact(x.astype(np.float64))
            differ = got.view(np.uint32) != true.astype(np.float32).view(np.uint32)
        if not differ.any():
            continue
        distance = errors(got[differ], true[differ])
        at = int(np.argmax(distance))
        if distance[at] > worst:
            worst, where = float(distance[at]), float(x[differ][at])
    return worst, where


def _firsts(step: int, between: tuple[float, float] | None) -> Iterator[int]:
    """The bit patterns that chunks begin with."""
    if between is None:
        yield from range(0, 1 << 32, step)
        return
    low, high = (int(np.float32(edge).view(np.uint32)) for edge in between)
    for sign in (0, 1 << 31):
        yield from range(sign + low, sign + high, step)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="functions; all unary ones if none is given")
    parser.add_argument("--target", default="native")
    parser.add_argument("--stride", type=int, default=1, help="a power of two; 1 takes every float32")
    parser.add_argument("--between", type=float, nargs=2, help="only arguments of sizes from here to there")
    options = parser.parse_args()
    print(f"float32, target {options.target}, every {options.stride}. bit pattern")
    print("| function | largest error (ulp) | at |\n|---|---|---|")
    for name in options.names or [n for n in EXACT if n != "pow"]:
        begin = time.perf_counter()
        worst, where = measure(name, options.target, options.stride, options.between)
        print(f"| {name} | {worst:.3f} | {where!r} |   ({time.perf_counter() - begin:.0f} s)", flush=True)


if __name__ == "__main__":
    main()

"""Measure the error of math intrinsics in float32 over all 2³² arguments, as docs/accuracy.md states it.

``python benchmarks/accuracy.py exp tanh --stride 16 --target x86-64`` takes every 16th bit pattern; without names, all
functions of one argument; stride 1 is exhaustive, a few minutes a function. ``pow`` takes all x for each of some
exponents, ``--exponents 1 5 12`` of the 16 (a few minutes each), and ``--pairs`` seeded pairs, a million in about
a second. References are numpy's float64 functions (scipy's erf), whose own error does not show.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from elementwise import compile_map
from scipy import special
from ulps import EXACT, Array, errors

from loopwright.base.dtype import dtype

CHUNK = 1 << 17
"""What is computed at a time, so that it stays in cache."""


EXPONENTS = (0.5, -0.5, 1 / 3, 2.0, 3.0, -1.0, -2.0, 1.5, 0.1, 2.2, 1 / 2.4, 7.0, -7.3, 31.0, 100.7, 1e-3)
"""Those of roots, powers, gamma curves and normalisation, and some large and small ones."""

Arguments = tuple[Array, ...]


@dataclass(slots=True)
class Worst:
    """The largest error so far, in ulp, and the arguments that have it. Grows.

    Results that are the exact value rounded are off by at most half an ulp; only others are measured.
    """

    name: str
    target: str
    error: float = 0.5
    where: tuple[float, ...] = ()
    run: Callable[..., Array] = field(init=False)

    def __post_init__(self) -> None:
        self.run = compile_map(self.name, dtype("float32x16"), self.target)

    def take(self, arguments: Arguments) -> None:
        exact = special.erf if self.name == "erf" else EXACT[self.name]
        got = self.run(*arguments)
        with np.errstate(all="ignore"):
            true = exact(*(a.astype(np.float64) for a in arguments))
            differ = got.view(np.uint32) != true.astype(np.float32).view(np.uint32)
        if not differ.any():
            return
        distance = errors(got[differ], true[differ])
        at = int(np.argmax(distance))
        if distance[at] > self.error:
            self.error, self.where = float(distance[at]), tuple(float(a[differ][at]) for a in arguments)


def measure(name: str, target: str, stride: int, between: tuple[float, float] | None = None) -> Worst:
    """Of all arguments, or of those whose size is in an interval."""
    worst = Worst(name, target)
    for x in _floats(stride, between):
        worst.take((x,))
    return worst


def measure_powers(target: str, stride: int, exponent: float) -> Worst:
    """Of all x to the power of one exponent."""
    worst = Worst("pow", target)
    y = np.full(CHUNK, exponent, np.float32)
    for x in _floats(stride, None):
        worst.take((x, y))
    return worst


def measure_pairs(target: str, count: int, seed: int = 0) -> Worst:
    """Of seeded pairs: in each chunk an eighth of any bit patterns, the others with results of all exponents."""
    worst = Worst("pow", target)
    random = np.random.default_rng(seed)
    for _ in range(-(-count // CHUNK)):
        x, y = random.integers(0, 1 << 32, (2, CHUNK), np.uint32).view(np.float32)
        with np.errstate(all="ignore"):
            reached = random.uniform(-152, 129, CHUNK) / np.log2(np.abs(x).astype(np.float64))
            worst.take((x, np.where(np.arange(CHUNK) % 8 == 0, y, reached.astype(np.float32))))
    return worst


def _floats(stride: int, between: tuple[float, float] | None) -> Iterator[Array]:
    """Chunks of float32 by their bit patterns."""
    for first in _firsts(CHUNK * stride, between):
        yield np.arange(first, first + CHUNK * stride, stride, dtype=np.uint64).astype(np.uint32).view(np.float32)


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
    parser.add_argument("names", nargs="*", help="functions; all of one argument if none is given")
    parser.add_argument("--target", default="native")
    parser.add_argument("--stride", type=int, default=1, help="a power of two; 1 takes every float32")
    parser.add_argument("--between", type=float, nargs=2, help="only arguments of sizes from here to there")
    parser.add_argument("--exponents", type=int, nargs="*", metavar="N", help="of pow, from 0 to 15; all by default")
    parser.add_argument("--pairs", type=int, default=10**9, help="of pow; default: 10⁹")
    options = parser.parse_args()
    print(f"float32, target {options.target}, every {options.stride}. bit pattern")
    print("| function | largest error (ulp) | at |\n|---|---|---|")
    for title, work in _works(options):
        begin = time.perf_counter()
        worst = work()
        print(f"| {title} | {worst.error:.3f} | {worst.where} |   ({time.perf_counter() - begin:.0f} s)", flush=True)


def _works(options: argparse.Namespace) -> Iterator[tuple[str, Callable[[], Worst]]]:
    """What is measured, line by line of the table."""
    target, stride = options.target, options.stride
    for name in options.names or [n for n in EXACT if n != "pow"]:
        if name != "pow":
            yield name, partial(measure, name, target, stride, options.between)
            continue
        for n in range(len(EXPONENTS)) if options.exponents is None else options.exponents:
            yield f"pow to {np.float32(EXPONENTS[n])}", partial(measure_powers, target, stride, EXPONENTS[n])
        if options.pairs:
            yield f"pow, {options.pairs} pairs", partial(measure_pairs, target, options.pairs)


if __name__ == "__main__":
    main()

"""What the machine can do, measured by kernels of ours that do nothing else: fma peak, and bandwidth by footprint.

A kernel's roofline is the time it needs for its operations at the peak, or for its bytes at the bandwidth of the memory
that holds them, whichever is longer: for data that stays in a cache between calls, that of the cache.
"""

from __future__ import annotations

import sys
import timeit
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import loopwright as lw
from loopwright import te
from loopwright.base.aligned import aligned

sys.path.append(str(Path(__file__).resolve().parent.parent / "examples"))
from fast_matmul import peak_kernel

from loopwright.runtime.contenders.rounds import Facts, Run, serve

PLACES = {"L2": 2**20, "L3": 2**24, "memory": 2**28}
"""The most bytes of a footprint that stays in the place between calls; each thread has an L2 of its own. The kernels
that measure a cache touch half of that."""
STREAMS = (2, 8)
"""How many places are read at once where memory is measured, whichever is faster: fetching ahead stands still at the
end of each page, and goes on at the others meanwhile, but not every processor follows many."""
TRIALS = 5
"""Calls by which the number of places is chosen."""


@dataclass(frozen=True)
class Roof:
    """What bounds a piece of work: ``request`` names the measurement that gives the rate, of which it needs ``amount``
    (operations or bytes)."""

    request: str
    amount: int

    @property
    def place(self) -> str:
        """``fma`` for what computes, else where its data stays between calls."""
        return self.request.partition(" ")[2] or "fma"


def roof_of(rates: Mapping[str, float], operations: int, read: int, written: int, threads: int) -> Roof:
    """By ``rates``, operations or bytes a second by request, which of them takes the work longest."""
    place = next((p for p, most in PLACES.items() if read + written <= most * (threads if p == "L2" else 1)), "memory")
    memory = Roof(f"{'copy' if 4 * written > read else 'read'} {place}", read + written)
    compute = Roof("peak", operations)
    return max(compute, memory, key=lambda roof: roof.amount / rates[roof.request])


def read_kernel(target: lw.Target, count: int, threads: int, streams: int) -> lw.Kernel:
    """Adds up ``count`` floats in a part a thread, so many streams of each at once. There are sums enough to hide how
    long an addition takes."""
    lanes, sums = target.lanes("float32"), 16
    width = lanes * sums // streams
    X = te.placeholder((threads, streams, count // threads // streams // width, width), "float32", name="X")
    r = te.reduce_axis((0, X.shape[2]), name="r")
    S = te.compute((threads, streams, width), lambda t, stream, j: te.sum(X[t, stream, r, j], axis=r), name="S")
    s = lw.create_schedule(S)
    t, stream, j = s[S].op.axis
    jo, ji = s[S].split(j, factor=lanes)
    s[S].reorder(t, r, stream, jo, ji)
    s[S].vectorize(ji)
    s[S].unroll(jo)
    s[S].unroll(stream)
    s[S].parallel(t)
    return lw.build(s, [X, S], target=target, name="read_bandwidth")


def copy_kernel(target: lw.Target, count: int, threads: int, streams: int) -> lw.Kernel:
    """Writes as many floats as it reads, so many streams of each thread's part at once."""
    lanes, unrolled = target.lanes("float32"), 8
    X = te.placeholder((threads, streams, count // threads // streams), "float32", name="X")
    Y = te.compute(X.shape, lambda *i: X[i] * 2.0, name="Y")
    s = lw.create_schedule(Y)
    part, stream, inner = Y.op.axis
    rest, lane = s[Y].split(inner, factor=lanes)
    rest, step = s[Y].split(rest, factor=unrolled // streams)
    s[Y].reorder(part, rest, stream, step, lane)
    s[Y].vectorize(lane)
    s[Y].unroll(step)
    s[Y].unroll(stream)
    s[Y].parallel(part)
    return lw.build(s, [X, Y], target=target, name="copy_bandwidth")


def _peak(target: lw.Target, threads: int) -> tuple[Run, Facts]:
    kernel, operations = peak_kernel(target, threads=threads)
    x = np.zeros(target.lanes("float32"), np.float32)
    out = np.empty(kernel.func.outputs[0].shape, np.float32)
    return kernel.bind(x, out, threads=threads), {"work": operations}


def _bandwidth(build: Callable[[lw.Target, int, int, int], lw.Kernel], place: str, threads: int) -> tuple[Run, Facts]:
    footprint = PLACES[place] // 2 * (threads if place == "L2" else 1)
    count = footprint // 4 // (2 if build is copy_kernel else 1)

    def bound(streams: int) -> tuple[Run, int]:
        kernel = build(lw.resolve_target("native"), count, threads, streams)
        arrays = [aligned(np.ones(buffer.shape, np.float32)) for buffer in kernel.func.buffers]
        return kernel.bind(*arrays, threads=threads), sum(a.nbytes for a in arrays)

    runs = [bound(streams) for streams in (STREAMS if place == "memory" else (1,))]
    run, work = min(runs, key=lambda found: min(timeit.repeat(found[0], repeat=TRIALS, number=1)))
    return run, {"work": work}


def _prepare(request: str, threads: int) -> tuple[Run, Facts]:
    kind, _, place = request.partition(" ")
    if kind == "peak":
        return _peak(lw.resolve_target("native"), threads)
    return _bandwidth({"read": read_kernel, "copy": copy_kernel}[kind], place, threads)


REQUESTS: Sequence[str] = ("peak", *(f"{kind} {place}" for kind in ("read", "copy") for place in PLACES))


if __name__ == "__main__":
    serve(lambda request: _prepare(request, int(sys.argv[1])))

"""Stencils of images beside numba and Halide: ``python benchmarks/stencils.py [case …] [--rounds 9] [--threads 1]``.

A case is a stencil with a border, such as ``blur-edge``; images of float32 have 2160 × 3840 pixels, between 0 and 1 in
steps of 8 bits. ``by hand`` is our
schedule in strips of rows, ``by default`` ``lw.default_schedule``. Each contender is a process of its own, and its
result must agree with ours. The last column is the best peer's time over our best one.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
from loopwright.runtime.contenders.rounds import Contender, Facts, Refused, Run, alternate, ended, serve

SHAPE = (2160, 3840)
BORDERS = ("constant", "edge", "reflect", "wrap")
CASES = ("blur-edge", "sharpen-edge", "harris-edge", "bilateral-edge", *(f"jacobi-{border}" for border in BORDERS))
CONTENDERS = {
    "by hand": ("ours", "hand"),
    "by default": ("ours", "default"),
    "numba": ("numba_loops", ""),
    "halide": ("halide_funcs", ""),
}
TOLERANCE = 1e-4
SAMPLES = 1009
"""Every so many-th pixel, and those of the corners, are compared."""


def contender(name: str, threads: int, case: str) -> tuple[Run, Facts]:
    module, kind = CONTENDERS[name]
    stencil, border = case.split("-")
    image = (np.random.default_rng(0).integers(0, 257, SHAPE) / 256).astype(np.float32)
    result = np.empty_like(image)
    prepare = importlib.import_module(f"stencil_peers.{module}").prepare
    run = prepare(stencil, border, image, result, threads, kind)
    run()
    seen = np.concatenate([result.ravel()[::SAMPLES], result[:3, :3].ravel(), result[-3:, -3:].ravel()])
    return run, {"sample": seen.astype(float).tolist()}


def measure(case: str, rounds: int, threads: int) -> None:
    contenders = {
        name: Contender([sys.executable, __file__, "--contender", name, "--threads", str(threads)], threads)
        for name in CONTENDERS
    }
    with ended(contenders.values()):
        samples = {}
        for name, each in list(contenders.items()):
            try:
                samples[name] = np.array(each.load(case)["sample"])
            except Refused as reason:
                print(f"{case}: {name} left out: {reason}")
                del contenders[name]
        scale = np.abs(samples["by hand"]).max()
        for name, sample in samples.items():
            if np.abs(sample - samples["by hand"]).max() > TOLERANCE * scale:
                print(f"{case}: {name} computes something else")
                contenders.pop(name)
        for name, reason in alternate(contenders, rounds, measure=lambda each: each.measure(1)).items():
            print(f"{case}: {name} left out: {reason}")
            contenders.pop(name)
        times = {name: each.median for name, each in contenders.items()}
    ours = min(time for name, time in times.items() if name.startswith("by "))
    peers = [time for name, time in times.items() if not name.startswith("by ")]
    ratio = f"{min(peers) / ours:6.2f}" if peers else "     –"
    print(f"{case:16}", *(f"{name} {times[name] * 1e3:7.1f} ms " for name in times), ratio, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("case", nargs="*", default=[], help=f"some of {', '.join(CASES)}")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--contender", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.contender:
        serve(lambda case: contender(options.contender, options.threads, case))
        return
    for case in options.case or CASES:
        measure(case, options.rounds, options.threads)


if __name__ == "__main__":
    main()

"""What it costs that extents are open: ``python benchmarks/open_extents.py [--only conv "pooling*"]``.

Each kernel of ``kernels.py`` is compiled twice: with its shapes, and with those axes open that models leave open, as
height and width of images, lengths of sequences, rows. Both run on the same data, rounds alternate, each in a process;
onnxruntime stands beside them with the open ones. A line a case, then the geometric mean of each group: the time with
open extents by that with known ones, of medians.
"""

from __future__ import annotations

import argparse
import math
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from cases import Case, chosen_cases
from cases.case import shape_of
from comparison import contender_command, installed
from results import OURS

from loopwright.runtime.contenders.rounds import Contender, Refused, alternate, ended

FIXED, OPEN, PEER = "fixed", "open", "onnxruntime"
IMAGES = ("conv", "pooling", "resize", "lrn", "batch-norm", "scale-shift", "roi", "concat")
ROWS = (
    "matmul",
    "matvec",
    "int8-matmul",
    "bf16",
    "few-bits",
    "trees",
    "softmax",
    "log-softmax",
    "layer-norm",
    "rms-norm",
)
LENGTHS = {"attention": 2, "dft": 1, "stft": 1, "lstm": 0, "gru": 0, "rnn": 0}
SLOWER, LATER = 1.3, 1e-6
"""A case is too slow that takes more than so many times as long, and so many seconds more."""


def opened(case: Case) -> Case:
    """The case with the axes open that models leave open; all axes, where its group tells none."""
    shapes = {info.name: shape_of(info) for info in case.model().graph.input}
    first = next(iter(shapes))
    axes: dict[str, Sequence[int]]
    length = next((axis for group, axis in LENGTHS.items() if case.group.startswith(group)), None)
    if case.group.startswith(IMAGES):
        axes = {name: range(2, len(shape)) for name, shape in shapes.items() if len(shape) > 2}
    elif length is not None:
        axes = {name: [length] for name, shape in shapes.items() if len(shape) == len(shapes[first])}
    elif case.group.startswith(ROWS):
        axes = {name: [0] for name in (shapes if case.group == "matmul-batched" else [first])}
    else:
        axes = {first: range(len(shapes[first]))}
    return replace(case, open_axes=axes)


def measure(case: Case, options: argparse.Namespace) -> tuple[float, float] | None:
    """Print a line; the seconds with known extents, and with open ones."""
    commands = {kind: contender_command(OURS, options.threads) for kind in (FIXED, OPEN)}
    commands |= {peer: contender_command(peer, options.threads) for peer in installed([PEER])}
    contenders = {kind: Contender(command, options.threads) for kind, command in commands.items()}
    with tempfile.TemporaryDirectory() as known, tempfile.TemporaryDirectory() as unknown, ended(contenders.values()):
        case.write(Path(known))
        opened(case).write(Path(unknown))
        try:
            for kind, contender in contenders.items():
                contender.load(known if kind == FIXED else unknown)
        except Refused as reason:
            print(f"{case.full_name}: {reason}", flush=True)
            return None
        if refused := alternate(contenders, options.rounds, options.seed):
            print(f"{case.full_name}: {refused}", flush=True)
            return None
    times = {kind: contender.median for kind, contender in contenders.items()}
    beside = f", {times[PEER] / times[OPEN]:5.2f} times as fast as {PEER}" if PEER in times else ""
    print(
        f"{case.full_name:45} known {1e6 * times[FIXED]:9.1f} µs, open {1e6 * times[OPEN]:9.1f} µs: "
        f"{times[OPEN] / times[FIXED]:5.2f}{beside}",
        flush=True,
    )
    return times[FIXED], times[OPEN]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="*", default=[], metavar="CASE", help="parts of names, or patterns")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    found: dict[str, list[tuple[float, float]]] = {}
    for case in chosen_cases(options.only):
        if not case.open_axes and (times := measure(case, options)) is not None:
            found.setdefault(case.group, []).append(times)
    for group, of_group in found.items():
        ratios = [unknown / known for known, unknown in of_group]
        mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
        slow = sum(unknown > SLOWER * known + LATER for known, unknown in of_group)
        print(f"{group:24} {len(ratios):3} cases: {mean:.2f}, at most {max(ratios):.2f}; too slow: {slow}")


if __name__ == "__main__":
    main()

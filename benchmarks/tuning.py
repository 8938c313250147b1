"""What tuning gains: ``python benchmarks/tuning.py models [model …]``, ``… computes [compute …]``, ``… transfer […]``.

``models`` tunes those of ``models.py`` for ``--minutes`` each, by ``loopwright tune``, and measures them tuned beside
untuned, onnxruntime and OpenVINO; with ``--target x86-64-v3`` beside untuned alone, since others use all that the
processor has. ``computes`` tunes those of ``te_computes.py`` by ``--measurements`` measurements, and by ``--most``
with another seed; beside those stand the schedules that are chosen without measuring, and by default. ``transfer``
tunes them by a tenth of the measurements, with records of extents that are an eighth larger, and of ``x86-64-v3``, to
begin with, for each of ``--seeds``; beside those stands what all measurements find from nothing. Each contender is a
process of its own, rounds alternate, and ratios are of medians: times as fast as untuned, and as ``most``.
"""

from __future__ import annotations

import argparse
import inspect
import json
import math
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

sys.path.insert(0, str(Path(__file__).parent))
from comparison import contender_command, difference, installed
from models import all_models
from results import OURS
from te_case import Array
from te_computes import CASES

import loopwright as lw
from loopwright import te
from loopwright.runtime.contenders.contender import prepared
from loopwright.runtime.contenders.rounds import Contender, Facts, Refused, Run, alternate, ended, load_all, serve

NATIVE = "native"
RECORDS, PEERS = "tuned.jsonl", ("onnxruntime", "openvino")
TUNED = "tuned"
LEVEL = "x86-64-v3"
Times: TypeAlias = Mapping[str, float]
CASE_WIDTH, APART = 18, 1e-3


def model_contender(folder: str, options: argparse.Namespace) -> tuple[Run, Facts]:
    """Ours, with records or without."""
    path = Path(folder)
    records = path / RECORDS if options.contender == TUNED else None

    def prepare(model: Path, inputs: Mapping[str, Array], threads: int) -> Run:
        library = lw.compile(str(model), options.target, records=records, progress=False)
        return lw.Engine(library, threads=threads).bind(inputs)

    return prepared(options.contender, prepare, path / "model.onnx", path, options.threads)


def tune_model(folder: Path, options: argparse.Namespace) -> Mapping[str, object]:
    """The report of ``loopwright tune``, which leaves records in the folder."""
    command = [sys.executable, "-m", "loopwright", "tune", str(folder / "model.onnx"), "--json"]
    command += ["--records", str(folder / RECORDS), "--minutes", str(options.minutes), "--target", options.target]
    command += ["--threads", str(options.threads), "--seed", str(options.seed)]
    made = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True)
    report: Mapping[str, object] = json.loads(made.stdout)
    return report


def measure_model(name: str, write: Callable[[Path], object], options: argparse.Namespace) -> float | None:
    """Tune, and print a line; how many times as fast as untuned."""
    own = [sys.executable, __file__, "models", "--threads", str(options.threads), "--target", options.target]
    commands = {kind: [*own, "--contender", kind] for kind in (OURS, TUNED)}
    if options.target == NATIVE:
        commands |= {peer: contender_command(peer, options.threads) for peer in installed(PEERS)}
    contenders = {kind: Contender(command, options.threads) for kind, command in commands.items()}
    with tempfile.TemporaryDirectory() as temporary, ended(contenders.values()):
        folder = Path(temporary)
        write(folder)
        report = tune_model(folder, options)
        ready, refused = load_all(contenders, temporary)
        if refused := {**refused, **alternate(ready, options.rounds, options.seed)}:
            print(f"{name:{CASE_WIDTH}} left out: {refused}", flush=True)
        if not {OURS, TUNED} <= ready.keys() - refused.keys():
            return None
        apart = difference(folder, TUNED)
    times = {kind: each.median for kind, each in ready.items() if kind not in refused}
    gain = times[OURS] / times[TUNED]
    beside = "".join(f", {times[peer] / times[TUNED]:.2f} as {peer}" for peer in PEERS if peer in times)
    wrong = f"; the results differ by {apart:.0e}" if apart > APART else ""
    print(
        f"{name:{CASE_WIDTH}} tuned {1e3 * times[TUNED]:8.2f} ms, untuned {1e3 * times[OURS]:8.2f} ms: {gain:5.2f} "
        f"times as fast{beside}; tune says {report['gain']:.3f}, by {report['written']} records, of which "
        f"{report['taken_back']} were taken back, of {report['tries']} candidates{wrong}",
        flush=True,
    )
    return gain


def compute_contender(request: str, options: argparse.Namespace) -> tuple[Run, Facts]:
    """A compute by a trace in a file: ``request`` is the file, then the compute."""
    path, name = request.split()
    case = CASES[name]()
    schedule = lw.create_schedule(case.outputs)
    schedule.replay(lw.Trace.from_json(Path(path).read_text(encoding="utf-8")))
    kernel = lw.build(schedule, [*case.inputs, *case.outputs], target=options.target)
    return kernel.bind(*case.arrays(), *case.results(), threads=options.threads), {}


Made: TypeAlias = Iterator[tuple[str, lw.Schedule, float]]
"""Kinds of schedules, each with what it took in seconds."""


def tune(outputs: Sequence[te.Tensor], options: argparse.Namespace, **others: Any) -> lw.Schedule:
    """The schedule that measuring finds."""
    target = lw.resolve_target(options.target).with_threads(options.threads)
    given = {"target": target, "minutes": options.minutes, "threads": options.threads, "seed": options.seed, **others}
    return lw.tune_schedule(outputs, **given).schedule


def timed(makes: Mapping[str, Callable[[], lw.Schedule]]) -> Made:
    for kind, make in makes.items():
        start = time.perf_counter()
        yield kind, make(), time.perf_counter() - start


def schedules_of(name: str, options: argparse.Namespace) -> Made:
    """The schedules of a compute by default, by the model, and by measuring little and much."""
    outputs = CASES[name]().outputs
    target = lw.resolve_target(options.target).with_threads(options.threads)
    return timed(
        {
            "default": lambda: lw.default_schedule(outputs, target),
            "auto": lambda: lw.autoschedule(outputs, target),
            "tuned": lambda: tune(outputs, options, measurements=options.measurements),
            "most": lambda: tune(outputs, options, measurements=options.most, seed=options.seed + 1),
        }
    )


def transferred(name: str, options: argparse.Namespace, folder: str) -> Made:
    """The schedules of a compute by all measurements, and by a tenth of these with records of other shapes, and of
    another target."""
    case, (seed, measurements) = CASES[name], (options.seed, options.measurements)
    extents = [p.default for p in inspect.signature(case).parameters.values()]
    larger = case(*(extent + extent // 8 for extent in extents)).outputs
    starts = {"neighbour": (larger, options.target), LEVEL: (case().outputs, LEVEL)}
    files = {start: Path(folder) / f"{start}-{seed}.jsonl" for start in starts}
    for start, (outputs, target) in starts.items():
        of = lw.resolve_target(target).with_threads(options.threads)
        tune(outputs, options, measurements=measurements, records=files[start], target=of)

    def few(start: str) -> lw.Schedule:
        least = max(1, measurements // 10)
        return tune(case().outputs, options, measurements=least, records=files[start], seed=seed + 100)

    all_of_them = {"most": lambda: tune(case().outputs, options, measurements=measurements, seed=seed + 1)}
    return timed({**all_of_them, **{start: partial(few, start) for start in starts}})


def measured(name: str, made: Made, folder: str, options: argparse.Namespace) -> tuple[Times, Times] | None:
    """The seconds of a run by each schedule, and those that it took to find it; None where one is refused."""
    command = [sys.executable, __file__, "computes", "--threads", str(options.threads), "--target", options.target]
    contenders: dict[str, Contender] = {}
    took: dict[str, float] = {}
    with ended(contenders.values()):
        try:
            for kind, schedule, took[kind] in made:
                path = Path(folder) / f"{kind}.json"
                path.write_text(schedule.trace.to_json(), encoding="utf-8")
                contenders[kind] = Contender([*command, "--contender", kind], options.threads)
                contenders[kind].load(f"{path} {name}")
        except (Refused, lw.LoopwrightError) as reason:
            print(f"{name:{CASE_WIDTH}} left out: {reason}", flush=True)
            return None
        if refused := alternate(contenders, options.rounds, options.seed):
            print(f"{name:{CASE_WIDTH}} left out: {refused}", flush=True)
            return None
        return {kind: each.median for kind, each in contenders.items()}, took


def measure_compute(name: str, options: argparse.Namespace) -> tuple[float, float] | None:
    """Search, and print a line; how many times as fast the tuned schedule is as that without measuring, and as the
    best of all."""
    with tempfile.TemporaryDirectory() as folder:
        found = measured(name, schedules_of(name, options), folder, options)
    if found is None:
        return None
    times, took = found
    best = min(times.values())
    print(
        f"{name:{CASE_WIDTH}} {times_text(times)}: tuned {times['auto'] / times['tuned']:5.2f} times as fast as auto, "
        f"{best / times['tuned']:5.2f} as the best ({took['tuned']:.0f} s, {took['most']:.0f} s)",
        flush=True,
    )
    return times["auto"] / times["tuned"], best / times["tuned"]


def measure_transfer(name: str, options: argparse.Namespace) -> list[float]:
    """Search, and print a line for each seed; how many times as fast as the best a tenth of the measurements is."""
    parts = []
    for seed in range(options.seeds):
        options.seed = seed
        with tempfile.TemporaryDirectory() as folder:
            found = measured(name, transferred(name, options, folder), folder, options)
        if found is not None:
            times, _ = found
            own = {kind: times["most"] / seconds for kind, seconds in times.items() if kind != "most"}
            told = ", ".join(f"from {kind} {part:5.2f} as the best" for kind, part in own.items())
            print(f"{name:{CASE_WIDTH}} seed {seed}: {times_text(times)}: {told}", flush=True)
            parts += own.values()
    return parts


def times_text(times: Times) -> str:
    return ", ".join(f"{kind} {1e6 * seconds:9.1f} µs" for kind, seconds in times.items())


def print_mean(ratios: Sequence[float], of: str) -> None:
    if ratios:
        mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
        print(f"{len(ratios)} cases: {mean:.3f} times as fast as {of} (geometric mean), at least {min(ratios):.3f}")


def run_models(options: argparse.Namespace) -> None:
    chosen = [m for m in all_models() if not options.case or m.name in options.case]
    gains = [measure_model(model.name, model.write, options) for model in chosen]
    print_mean([gain for gain in gains if gain], "untuned")


def run_computes(options: argparse.Namespace) -> None:
    found = [pair for name in options.case or CASES if (pair := measure_compute(name, options)) is not None]
    print_mean([gain for gain, _ in found], "by the model")
    print_mean([part for _, part in found], "the best")


def run_transfers(options: argparse.Namespace) -> None:
    print_mean([part for name in options.case or CASES for part in measure_transfer(name, options)], "the best")


RUNS = {"models": run_models, "computes": run_computes, "transfer": run_transfers}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=list(RUNS))
    parser.add_argument("case", nargs="*", default=[], help="some of the models or computes (default: all)")
    parser.add_argument("--minutes", type=float, default=10.0, help="of each search, at the most (default: 10)")
    parser.add_argument("--target", default=NATIVE)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--measurements", type=int, default=64, help="of a compute (default: 64)")
    parser.add_argument("--most", type=int, default=1000, help="to compare with (default: 1000)")
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seeds", type=int, default=5, help="of a transfer (default: 5)")
    parser.add_argument("--contender", help=argparse.SUPPRESS)
    options = parser.parse_args()
    known = [model.name for model in all_models()] if options.what == "models" else CASES
    if unknown := [name for name in options.case if name not in known]:
        raise SystemExit(f"no case is called {unknown[0]!r}; there are {', '.join(known)}")
    if options.contender:
        contender = model_contender if options.what == "models" else compute_contender
        serve(lambda request: contender(request, options))
        return
    RUNS[options.what](options)


if __name__ == "__main__":
    main()

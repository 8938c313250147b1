"""What tuning gains: ``python benchmarks/tuning.py models [model …]`` and ``… computes [compute …]``.

``models`` tunes those of ``models.py`` for ``--minutes`` each, by ``loopwright tune``, and measures them tuned beside
untuned, onnxruntime and OpenVINO; with ``--target x86-64-v3`` beside untuned alone, since others use all that the
processor has. ``computes`` tunes those of ``te_computes.py`` by ``--measurements`` measurements, and by ``--most``
with another seed; beside those stand the schedules that are chosen without measuring, and by default. Each contender
is a process of its own, rounds alternate, and ratios are of medians: times as fast as untuned, and as ``most``.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from comparison import contender_command, difference, installed
from models import all_models
from results import OURS
from te_computes import CASES, Array

import loopwright as lw
from loopwright.runtime.contenders.contender import prepared
from loopwright.runtime.contenders.rounds import Contender, Facts, Refused, Run, alternate, ended, load_all, serve

NATIVE = "native"
RECORDS, PEERS = "tuned.jsonl", ("onnxruntime", "openvino")
TUNED = "tuned"
TRACES = ("default", "auto", "tuned", "most")
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


def schedules_of(name: str, options: argparse.Namespace) -> Iterator[tuple[str, lw.Schedule, float]]:
    """Each kind of schedule, and the seconds it took."""
    outputs = CASES[name]().outputs
    target = lw.resolve_target(options.target).with_threads(options.threads)

    def tuned(measurements: int, seed: int) -> lw.Schedule:
        minutes = options.minutes
        return lw.tune_schedule(
            outputs, target, measurements=measurements, minutes=minutes, threads=options.threads, seed=seed
        ).schedule

    makes: dict[str, Callable[[], lw.Schedule]] = {
        "default": lambda: lw.default_schedule(outputs, target),
        "auto": lambda: lw.autoschedule(outputs, target),
        "tuned": lambda: tuned(options.measurements, options.seed),
        "most": lambda: tuned(options.most, options.seed + 1),
    }
    for kind in TRACES:
        start = time.perf_counter()
        yield kind, makes[kind](), time.perf_counter() - start


def measure_compute(name: str, options: argparse.Namespace) -> tuple[float, float] | None:
    """Search, and print a line; how many times as fast the tuned schedule is as that without measuring, and as the
    best of all."""
    command = [sys.executable, __file__, "computes", "--threads", str(options.threads), "--target", options.target]
    contenders = {kind: Contender([*command, "--contender", kind], options.threads) for kind in TRACES}
    with tempfile.TemporaryDirectory() as folder, ended(contenders.values()):
        took: dict[str, float] = {}
        try:
            for kind, schedule, took[kind] in schedules_of(name, options):
                path = Path(folder) / f"{kind}.json"
                path.write_text(schedule.trace.to_json(), encoding="utf-8")
                contenders[kind].load(f"{path} {name}")
        except (Refused, lw.LoopwrightError) as reason:
            print(f"{name:{CASE_WIDTH}} left out: {reason}", flush=True)
            return None
        if refused := alternate(contenders, options.rounds, options.seed):
            print(f"{name:{CASE_WIDTH}} left out: {refused}", flush=True)
            return None
        times = {kind: each.median for kind, each in contenders.items()}
    best = min(times.values())
    parts = ", ".join(f"{kind} {1e6 * t:9.1f} µs" for kind, t in times.items())
    print(
        f"{name:{CASE_WIDTH}} {parts}: tuned {times['auto'] / times['tuned']:5.2f} times as fast as auto, "
        f"{best / times['tuned']:5.2f} as the best ({took['tuned']:.0f} s, {took['most']:.0f} s)",
        flush=True,
    )
    return times["auto"] / times["tuned"], best / times["tuned"]


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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["models", "computes"])
    parser.add_argument("case", nargs="*", default=[], help="some of the models or computes (default: all)")
    parser.add_argument("--minutes", type=float, default=10.0, help="of each search, at the most (default: 10)")
    parser.add_argument("--target", default=NATIVE)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--measurements", type=int, default=64, help="of a compute (default: 64)")
    parser.add_argument("--most", type=int, default=1000, help="to compare with (default: 1000)")
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--contender", help=argparse.SUPPRESS)
    options = parser.parse_args()
    known = CASES if options.what == "computes" else [model.name for model in all_models()]
    if unknown := [name for name in options.case if name not in known]:
        raise SystemExit(f"no case is called {unknown[0]!r}; there are {', '.join(known)}")
    if options.contender:
        contender = model_contender if options.what == "models" else compute_contender
        serve(lambda request: contender(request, options))
        return
    run_models(options) if options.what == "models" else run_computes(options)


if __name__ == "__main__":
    main()

"""Kernels of ours beside those of every installed peer, on the same data: ``python benchmarks/kernels.py``.

``--only conv-resnet50 "matmul 512*"`` chooses cases, ``--list`` names them. A case with one number of threads takes
about 3 seconds, all of them about 40 minutes: ``--json FILE`` collects the results of several runs, of which
``--resume`` leaves out what is there and ``--minutes`` ends one in time. ``--compile`` only fills our cache.
"""

from __future__ import annotations

import argparse
import importlib.util
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
from cases import Case, chosen_cases, work_of
from contender import NAMES
from report import append_history, print_results, row, svg_chart
from results import OURS, Record, Result
from rich.console import Console
from roofline import REQUESTS, roof_of
from rounds import Contender, Refused, alternate, ended

HERE = Path(__file__).resolve().parent
LEAST_LEFT = 0.05
"""A peer's kernel that takes less than this part of the overhead of a call cannot be told from it."""


def measured_rates(roofline: Contender, rounds: int) -> dict[str, float]:
    """Operations and bytes a second, by what the contender is asked to load."""
    rates = {}
    for request in REQUESTS:
        work = roofline.load(request)["work"]
        alternate({request: roofline}, rounds)
        rates[request] = work / roofline.median
    return rates


class Comparison:
    """The contenders with one number of threads. Mutable: their processes, and what is left of ``overheads``."""

    def __init__(self, names: Sequence[str], threads: int, rounds: int, calls: int, precision: str) -> None:
        script = str(HERE / "contender.py")
        self.threads, self.rounds, self.calls = threads, rounds, calls
        self.contenders = {n: Contender(script, [n, str(threads), precision], threads) for n in names}
        self.roofline = Contender(str(HERE / "roofline.py"), [str(threads)], threads)
        self.rates: dict[str, float] = {}
        self._overheads: dict[str, Mapping[str, float]] = {}

    def measure(self, case: Case, seed: int = 0) -> Result:
        """All contenders on one case, alternating with the kernel that measures what bounds it."""
        with tempfile.TemporaryDirectory() as folder:
            work = work_of(case.write(Path(folder)))
            ready, refused = self._load(folder)
            errors = {n: difference(Path(folder), n) for n in ready if n != OURS and OURS in ready}
        roof = roof_of(self.rates, work.operations, work.read, work.written, self.threads)
        amount = self.roofline.load(roof.request)["work"]
        alternate({**ready, "": self.roofline}, self.rounds, seed, self.calls)
        seconds = self._without_overhead(case, {n: contender.median for n, contender in ready.items()}, refused)
        roof_seconds = roof.amount / (amount / self.roofline.median)
        return Result(
            case.group,
            case.name,
            self.threads,
            seconds,
            refused,
            errors,
            work.operations,
            work.read + work.written,
            roof.place,
            roof_seconds,
            case.bar,
        )

    def _load(self, folder: str) -> tuple[dict[str, Contender], dict[str, str]]:
        ready, refused = {}, {}
        for name, contender in self.contenders.items():
            try:
                contender.load(folder)
                ready[name] = contender
            except Refused as reason:
                refused[name] = str(reason)
        return ready, refused

    def _without_overhead(self, case: Case, seconds: Mapping[str, float], refused: dict[str, str]) -> dict[str, float]:
        """What is left of a call when one of the same operator on next to nothing is taken off."""
        self._overheads[case.full_name] = seconds
        if case.overhead is None:
            return dict(seconds)
        taken = self._overheads[case.overhead]
        left = {name: s - taken[name] for name, s in seconds.items() if name in taken}
        for name, rest in list(left.items()):
            if rest < LEAST_LEFT * taken[name] and name != OURS:
                refused[name] = "its time is lost in the overhead of its calls"
                del left[name]
        return left | {OURS: max(left[OURS], 1e-9)} if OURS in left else left


def difference(folder: Path, name: str) -> float:
    """How far a peer's outputs are from ours, the most, as a part of our largest value."""
    worst = 0.0
    with np.load(folder / f"{OURS}.npz") as ours, np.load(folder / f"{name}.npz") as theirs:
        for key in ours.files:
            a, b = (np.asarray(x[key], np.float64) for x in (ours, theirs))
            if a.shape != b.shape:
                return float("inf")
            worst = max(worst, float(abs(a - b).max() / max(abs(a).max(), 1e-30)))
    return worst


def installed(names: Sequence[str]) -> Iterator[str]:
    """Those whose library is here; the others are said."""
    for name in names:
        if importlib.util.find_spec(name) is None:
            Console(stderr=True).print(f"{name} is not installed: left out")
        else:
            yield name


def compile_only(cases: Sequence[Case], precision: str) -> None:
    """Ours alone, unmeasured, so that a run after it finds all kernels in the cache."""
    contender = Contender(str(HERE / "contender.py"), [OURS, "1", precision])
    with ended([contender]), tempfile.TemporaryDirectory() as folder:
        for case in cases:
            case.write(Path(folder))
            try:
                facts = contender.load(folder)
                print(f"{case.full_name}: {facts['prepare_seconds']:.2f} s", flush=True)
            except Refused as reason:
                print(f"{case.full_name}: {reason}", flush=True)


def run(options: argparse.Namespace, cases: Sequence[Case], names: Sequence[str], record: Record) -> list[Result]:
    """Measure the cases, each noted as soon as it is done."""
    done: list[Result] = []
    end = time.monotonic() + 60 * options.minutes
    for threads in options.threads:
        due = _due(cases, threads, record) if options.resume else cases
        if not due:
            continue
        comparison = Comparison(names, threads, options.rounds, options.calls, options.precision)
        with ended([*comparison.contenders.values(), comparison.roofline]):
            comparison.rates = measured_rates(comparison.roofline, options.rounds)
            record.note_rates(threads, comparison.rates)
            for case in due:
                if time.monotonic() > end:
                    print(f"{options.minutes:g} minutes are over; --resume goes on")
                    return done
                result = comparison.measure(case, options.seed)
                done.append(result)
                record.add(result)
                print("  ".join(part for part in row(result) if part), flush=True)
    return done


def _due(cases: Sequence[Case], threads: int, record: Record) -> list[Case]:
    """The cases that the record does not have, and those whose time is taken off theirs."""
    missing = [case for case in cases if (case.group, case.name, threads) not in record.results]
    needed = {case.overhead for case in missing}
    return [case for case in cases if case in missing or case.full_name in needed]


def parser(description: str) -> argparse.ArgumentParser:
    """The options that ``models.py`` has as well."""
    made = argparse.ArgumentParser(description=description)
    made.add_argument(
        "--only", nargs="+", default=[], metavar="PATTERN", help="cases whose name contains or matches it"
    )
    made.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    made.add_argument("--peers", nargs="+", choices=NAMES[1:], help="default: all that are installed")
    made.add_argument("--rounds", type=int, default=7)
    made.add_argument("--calls", type=int, default=10, help="calls a round, at least")
    made.add_argument("--precision", choices=["standard", "strict"], default="standard")
    made.add_argument("--seed", type=int, default=0, help="of the order in the rounds")
    made.add_argument("--json", type=Path, metavar="FILE", help="collect results here")
    made.add_argument("--resume", action="store_true", help="leave out what the file of --json has")
    made.add_argument("--minutes", type=float, default=float("inf"), help="begin no case after so long")
    made.add_argument("--history", type=Path, metavar="FILE", help="append to this CSV file")
    made.add_argument("--svg", type=Path, metavar="FILE", help="draw the ratios of all results collected")
    made.add_argument("--list", action="store_true", help="name the cases, and end")
    made.add_argument("--compile", action="store_true", help="fill our cache, and end")
    return made


def main() -> None:
    options = parser(__doc__.splitlines()[0]).parse_args()
    cases = chosen_cases(options.only)
    if not cases:
        raise SystemExit(f"no case is called like {' or '.join(options.only)}; --list names them")
    if options.list:
        print(*(case.full_name for case in cases), sep="\n")
        return
    if options.compile:
        compile_only(cases, options.precision)
        return
    names = list(installed([OURS, *(options.peers or NAMES[1:])]))
    record = Record(options.json, ["numpy", *names])
    results: list[Result] = []
    try:
        results = run(options, cases, names, record)
    except KeyboardInterrupt:
        print("interrupted; what was measured is kept")
    print_results(results or record.results.values(), "kernels")
    if options.history:
        append_history(options.history, record, results)
    if options.svg:
        options.svg.write_text(svg_chart(record.results.values(), "kernels: best peer's time ÷ ours"), encoding="utf-8")


if __name__ == "__main__":
    main()

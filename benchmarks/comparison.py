"""The contenders beside each other on one case after another: what ``kernels.py`` and ``models.py`` have in common.

Each alternates with the kernel of ours that measures what bounds the case, so that the roofline is of the same seconds.
"""

from __future__ import annotations

import argparse
import importlib.util
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Protocol

import numpy as np
from cases import Bar, Work
from report import append_history, print_results, row, svg_chart
from results import OURS, STRICT, Record, Result
from rich.console import Console
from roofline import REQUESTS, roof_of
from rounds import Contender, Refused, alternate, ended

HERE = Path(__file__).resolve().parent
NAMES = (OURS, "onnxruntime", "openvino", "torch", "numpy", "numba")
LEAST_LEFT = 0.05
"""A peer's kernel that takes less than this part of the overhead of a call cannot be told from it."""


class Measured(Protocol):
    """What a case must have, be it a kernel's or a model's."""

    @property
    def group(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def full_name(self) -> str: ...
    @property
    def bar(self) -> Bar: ...
    @property
    def overhead(self) -> str | None: ...
    @property
    def against(self) -> str | None: ...
    def write(self, folder: Path) -> Work: ...


def measured_rates(roofline: Contender, rounds: int) -> dict[str, float]:
    """Operations and bytes a second, by what the contender is asked to load."""
    rates = {}
    for request in REQUESTS:
        work = roofline.load(request)["work"]
        alternate({request: roofline}, rounds)
        rates[request] = work / roofline.median
    return rates


class Comparison:
    """The contenders with one number of threads. Mutable: their processes, and the times of calls measured so far."""

    def __init__(self, names: Sequence[str], threads: int, rounds: int, calls: int) -> None:
        script = str(HERE / "contender.py")
        self.threads, self.rounds, self.calls = threads, rounds, calls
        self.contenders = {n: Contender(script, [n, str(threads)], threads) for n in names}
        self.roofline = Contender(str(HERE / "roofline.py"), [str(threads)], threads)
        self.rates: dict[str, float] = {}
        self._calls: dict[str, Mapping[str, float]] = {}

    def measure(self, case: Measured, seed: int = 0) -> Result:
        """All contenders on one case."""
        with tempfile.TemporaryDirectory() as folder:
            work = case.write(Path(folder))
            ready, refused = self._load(folder)
            errors = {n: difference(Path(folder), n) for n in ready if n != OURS and OURS in ready}
        roof = roof_of(self.rates, work.operations, work.read, work.written, self.threads)
        amount = self.roofline.load(roof.request)["work"]
        refused |= alternate({**ready, "roofline": self.roofline}, self.rounds, seed, self.calls)
        medians = {n: contender.median for n, contender in ready.items() if n not in refused}
        seconds = self._without_overhead(case, medians, refused)
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
            self._gain(case, seconds),
        )

    def _load(self, folder: str) -> tuple[dict[str, Contender], dict[str, str]]:
        ready, refused = {}, {}
        for name, contender in self.contenders.items():
            try:
                contender.load(folder)
                ready[name] = contender
            except Refused as reason:
                refused[name] = str(reason).replace(folder, "")
        return ready, refused

    def _gain(self, case: Measured, seconds: Mapping[str, float]) -> float | None:
        other = self._calls.get(case.against or "", {})
        return other[OURS] / seconds[OURS] if OURS in other and OURS in seconds else None

    def _without_overhead(
        self, case: Measured, seconds: Mapping[str, float], refused: dict[str, str]
    ) -> dict[str, float]:
        """What is left of a call when one of the same operator on next to nothing is taken off."""
        self._calls[case.full_name] = seconds
        if case.overhead is None:
            return dict(seconds)
        taken = self._calls[case.overhead]
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
            apart = float(abs(a - b).max(initial=0.0) / max(abs(a).max(initial=0.0), 1e-30))
            worst = max(worst, float("inf") if np.isnan(apart) else apart)
    return worst


def installed(names: Sequence[str]) -> Iterator[str]:
    """Those whose library is here; the others are said."""
    for name in names:
        if name != STRICT and importlib.util.find_spec(name) is None:
            Console(stderr=True).print(f"{name} is not installed: left out")
        else:
            yield name


def measure_all(
    options: argparse.Namespace, cases: Sequence[Measured], names: Sequence[str], record: Record
) -> Iterator[Result]:
    """Measure the cases, each noted as soon as it is done."""
    end = time.monotonic() + 60 * options.minutes
    for threads in options.threads:
        due = _due(cases, threads, record) if options.resume else cases
        if not due:
            continue
        comparison = Comparison(names, threads, options.rounds, options.calls)
        with ended([*comparison.contenders.values(), comparison.roofline]):
            comparison.rates = measured_rates(comparison.roofline, options.rounds)
            record.note_rates(threads, comparison.rates)
            for case in due:
                if time.monotonic() > end:
                    print(f"{options.minutes:g} minutes are over; --resume goes on")
                    return
                result = comparison.measure(case, options.seed)
                record.add(result)
                print("  ".join(part for part in row(result) if part), flush=True)
                yield result


def _due(cases: Sequence[Measured], threads: int, record: Record) -> list[Measured]:
    """The cases that the record does not have, and those that these are compared with."""
    missing = [case for case in cases if (case.group, case.name, threads) not in record.results]
    needed = {name for case in missing for name in (case.overhead, case.against)}
    return [case for case in cases if case in missing or case.full_name in needed]


def option_parser(description: str) -> argparse.ArgumentParser:
    """The options that both commands have."""
    made = argparse.ArgumentParser(description=description)
    made.add_argument(
        "--only", nargs="+", default=[], metavar="PATTERN", help="cases whose name contains or matches it"
    )
    made.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    made.add_argument("--peers", nargs="+", choices=[*NAMES[1:], STRICT], help="default: all that are installed")
    made.add_argument("--rounds", type=int, default=7)
    made.add_argument("--calls", type=int, default=10, help="calls a round, at least")
    made.add_argument("--seed", type=int, default=0, help="of the order in the rounds")
    made.add_argument("--json", type=Path, metavar="FILE", help="collect results here")
    made.add_argument("--resume", action="store_true", help="leave out what the file of --json has")
    made.add_argument("--minutes", type=float, default=float("inf"), help="begin no case after so long")
    made.add_argument("--history", type=Path, metavar="FILE", help="append to this CSV file")
    made.add_argument("--svg", type=Path, metavar="FILE", help="draw the ratios of all results collected")
    made.add_argument("--list", action="store_true", help="name the cases, and end")
    return made


def compare(
    options: argparse.Namespace,
    cases: Sequence[Measured],
    peers: Sequence[str],
    title: str,
    packages: Sequence[str] = (),
) -> Record:
    """What both commands do with their cases: measure, report, and note where the options say so."""
    names = list(installed([OURS, *(options.peers or peers)]))
    record = Record(options.json, ["numpy", *names, *packages])
    results: list[Result] = []
    try:
        for result in measure_all(options, cases, names, record):
            results.append(result)  # noqa: PERF402  # one by one, for an interrupt to leave them
    except KeyboardInterrupt:
        print("interrupted; what was measured is kept")
    print_results(results or record.results.values(), title)
    if options.history:
        append_history(options.history, record, results)
    if options.svg:
        options.svg.write_text(
            svg_chart(record.results.values(), f"{title}: best peer's time ÷ ours"), encoding="utf-8"
        )
    return record

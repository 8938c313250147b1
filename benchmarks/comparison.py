"""The contenders beside each other on one case after another: what ``kernels.py`` and ``models.py`` have in common.

Each alternates with the kernel of ours that measures what bounds the case, so that the roofline is of the same seconds.
"""

from __future__ import annotations

import argparse
import importlib.util
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Protocol

import numpy as np
from cases import Bar, Work, chosen_cases
from report import append_history, print_results, row, svg_chart
from results import BESIDE, OURS, Record, Result
from rich.console import Console
from roofline import REQUESTS, roof_of

from loopwright.runtime.contenders.rounds import Contender, alternate, ended, load_all
from loopwright.runtime.contenders.stored_arrays import read_arrays
from loopwright.runtime.measure.closeness import distance

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


def contender_command(name: str, threads: int) -> list[str]:
    return [sys.executable, str(HERE / "contender.py"), name, str(threads)]


class Comparison:
    """The contenders with one number of threads; ``callers`` are the same once more, for what their calls take.

    Mutable: their processes, and our efforts so far: the time of each case, in operations that the peak does meanwhile.
    """

    def __init__(self, names: Sequence[str], threads: int, rounds: int, calls: int) -> None:
        self.threads, self.rounds, self.calls = threads, rounds, calls
        self.contenders, self.callers = (
            {n: Contender(contender_command(n, threads), threads) for n in names} for _ in range(2)
        )
        self.roofline = Contender([sys.executable, str(HERE / "roofline.py"), str(threads)], threads)
        self.rates: dict[str, float] = {}
        self._efforts: dict[str, float] = {}

    @property
    def processes(self) -> Sequence[Contender]:
        return [*self.contenders.values(), *self.callers.values(), self.roofline]

    def measure(self, case: Measured, seed: int = 0) -> Result:
        """All contenders on one case."""
        with tempfile.TemporaryDirectory() as folder:
            work = case.write(Path(folder))
            ready, refused = load_all(self.contenders, folder)
            refused = {name: reason.replace(folder, "") for name, reason in refused.items()}
            errors = {n: difference(Path(folder), n) for n in ready if n != OURS and OURS in ready}
            callers = self._load_callers(case, ready)
        roof = roof_of(self.rates, work.operations, work.read, work.written, self.threads)
        amount = self.roofline.load(roof.request)["work"]
        overheads = {f"{name} overhead": caller for name, caller in callers.items()}
        refused |= alternate({**ready, **overheads, "roofline": self.roofline}, self.rounds, seed, self._measure)
        roof_seconds = roof.amount / (amount / self.roofline.median)
        seconds = {n: contender.median for n, contender in ready.items() if n not in refused}
        if case.overhead is not None:
            seconds = without_overhead(seconds, ready, callers, roof_seconds, refused)
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
            self._gain(case, seconds, amount / self.roofline.median if roof.request == "peak" else None),
        )

    def _load_callers(self, case: Measured, ready: Mapping[str, Contender]) -> Mapping[str, Contender]:
        """Those that call next to nothing, by the same operator, if the case says what."""
        if case.overhead is None:
            return {}
        with tempfile.TemporaryDirectory() as folder:
            chosen_cases([case.overhead])[0].write(Path(folder))
            callers, _ = load_all({n: self.callers[n] for n in ready}, folder)
        return callers

    def _measure(self, contender: Contender) -> None:
        contender.measure(self.calls)

    def _gain(self, case: Measured, seconds: Mapping[str, float], peak: float | None) -> float | None:
        """How much faster ours is than the case it is against. That was measured at another time, when the machine may
        have been slower: what is compared is each one's time in operations that the peak did in the same rounds."""
        if OURS not in seconds or peak is None:
            return None
        self._efforts[case.full_name] = effort = seconds[OURS] * peak
        other = self._efforts.get(case.against or "")
        return other / effort if other is not None else None


def without_overhead(
    seconds: Mapping[str, float],
    ready: Mapping[str, Contender],
    callers: Mapping[str, Contender],
    roof_seconds: float,
    refused: dict[str, str],
) -> dict[str, float]:
    """What is left of calls when those on next to nothing, of the same rounds, are taken off; at least the roofline's
    time, since less is noise. Notes the peers of which hardly anything is left as refused."""
    left: dict[str, float] = {}
    for name in (n for n in seconds if n in callers and len(callers[n].seconds) == len(ready[n].seconds)):
        pairs = zip(ready[name].seconds, callers[name].seconds, strict=True)
        rest = statistics.median(whole - overhead for whole, overhead in pairs)
        if rest < LEAST_LEFT * callers[name].median and name != OURS:
            refused[name] = "its time is lost in the overhead of its calls"
        else:
            left[name] = max(rest, roof_seconds)
    return left


def difference(folder: Path, name: str) -> float:
    """How far a peer's outputs are from ours, the most, as a part of our largest finite value; infinities are equal."""
    ours, theirs = (read_arrays(folder / f"{who}.npz") for who in (OURS, name))
    pairs = ((theirs[key].astype(np.float64), ours[key].astype(np.float64)) for key in ours)  # integers may be rounded
    return max((distance(*pair) for pair in pairs), default=0.0)


def installed(names: Sequence[str]) -> Iterator[str]:
    """Those whose library is here; the others are said."""
    for name in names:
        if name not in BESIDE and importlib.util.find_spec(name) is None:
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
        with ended(comparison.processes):
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
    needed = {case.against for case in missing}
    return [case for case in cases if case in missing or case.full_name in needed]


def option_parser(description: str) -> argparse.ArgumentParser:
    """The options that both commands have."""
    made = argparse.ArgumentParser(description=description)
    made.add_argument(
        "--only", nargs="+", default=[], metavar="PATTERN", help="cases whose name contains or matches it"
    )
    made.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    made.add_argument("--peers", nargs="+", choices=[*NAMES[1:], *BESIDE], help="default: all that are installed")
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

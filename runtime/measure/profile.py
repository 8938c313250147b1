"""Where the time of a model goes: each fused function beside what the machine could do, and the call around them.

``measure_profile`` times; ``Profile`` is plain data, which prints as a table and gives JSON, a Chrome trace and a bar
chart.
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from html import escape
from typing import Any

from ...codegen.extents import evaluate
from ...codegen.model import CompiledModel, ModelStep
from ...ir.brief import BriefRepr, counted, one_line
from ...ir.quantities import seconds_text
from .machine_rates import MachineRates, measure_rates

ROUNDS = 5
_CALLS = 20
_CALL_SECONDS = 0.05
_BAR_HEIGHT, _BARS_LEFT, _LONGEST_BAR = 22, 380, 350
"""Pixels of the chart."""


@dataclass(frozen=True, slots=True, repr=False)
class StepProfile(BriefRepr):
    """One call of a fused function: ``nodes`` are those of the imported model that it computes. ``operations`` is 0
    where the definition does not tell them, ``roof_seconds`` the least time that the machine needs."""

    function: str
    symbol: str
    implementation: str
    nodes: tuple[str, ...]
    seconds: float
    operations: int
    traffic: int
    roof_seconds: float
    bound: str


@dataclass(frozen=True, slots=True, repr=False)
class FunctionProfile(BriefRepr):
    """All calls of one fused function: ``seconds``, ``operations`` and ``traffic`` (bytes) are those of all of them;
    ``share`` is their part of the time of all functions."""

    name: str
    symbol: str
    implementation: str
    nodes: tuple[str, ...]
    calls: int
    seconds: float
    share: float
    operations: int
    traffic: int
    roof_seconds: float
    bound: str

    @property
    def gflops(self) -> float:
        """Operations of the definition, in 10⁹ a second."""
        return self.operations / self.seconds / 1e9

    @property
    def gbps(self) -> float:
        """Bytes of inputs and outputs, each once, in 10⁹ a second."""
        return self.traffic / self.seconds / 1e9

    @property
    def roof_fraction(self) -> float:
        """What part of the time the machine needs at the least for those operations and bytes."""
        return self.roof_seconds / self.seconds


@dataclass(frozen=True, repr=False)
class Profile:
    """The profile of one model: ``call_seconds`` is what ``engine(inputs)`` takes, ``overhead_seconds`` the part of it
    spent on checks, new outputs and Python. The steps are measured one by one, so that their sum is not exactly the
    rest."""

    model: str
    threads: int
    call_seconds: float
    overhead_seconds: float
    rates: MachineRates
    steps: tuple[StepProfile, ...]

    def __repr__(self) -> str:
        counts = f"{counted(len(self.steps), 'step')}, {counted(self.threads, 'thread')}"
        return f"<Profile of {one_line(self.model, 80)}: {seconds_text(self.call_seconds)} a call, {counts}>"

    @cached_property
    def functions(self) -> tuple[FunctionProfile, ...]:
        """The functions, those first that take the longest."""
        total = sum(step.seconds for step in self.steps)
        groups: dict[str, list[StepProfile]] = {}
        for step in self.steps:
            groups.setdefault(step.symbol, []).append(step)
        made = (_together(steps, total) for steps in groups.values())
        return tuple(sorted(made, key=lambda function: -function.seconds))

    def _repr_html_(self) -> str:
        from .profile_html import profile_html  # it knows profiles

        return profile_html(self)

    def __str__(self) -> str:
        head = ("ms", "share", "GFLOP/s", "GB/s", "of roof", "calls", "function", "implementation", "nodes")
        rows = [head, *map(_row, self.functions)]
        widths = [max(len(row[k]) for row in rows) for k in range(6)]
        lines = (
            "  ".join([*(cell.rjust(w) for cell, w in zip(row, widths, strict=False)), "  ".join(row[6:])])
            for row in rows
        )
        kernels = sum(step.seconds for step in self.steps)
        peak = f"{self.rates.operations / 1e9:.0f} GFLOP/s"
        memory = ", ".join(f"{rate / 1e9:.1f} GB/s of {size >> 10} KiB" for size, rate in self.rates.bandwidths)
        return (
            f"{self.model}, {self.threads} thread{'s' * (self.threads > 1)}: a call takes "
            f"{seconds_text(self.call_seconds)}, {seconds_text(self.overhead_seconds)} of it around the kernels; "
            f"kernels one by one {seconds_text(kernels)}\nthe machine gives {peak}, reads {memory}\n\n"
            + "\n".join(lines)
        )

    def to_json(self) -> dict[str, Any]:
        """All numbers as JSON values; seconds, operations, bytes."""
        functions = [
            asdict(f) | {"gflops": f.gflops, "gbps": f.gbps, "roof_fraction": f.roof_fraction} for f in self.functions
        ]
        return {
            "model": self.model,
            "threads": self.threads,
            "call_seconds": self.call_seconds,
            "overhead_seconds": self.overhead_seconds,
            "rates": asdict(self.rates),
            "functions": functions,
            "steps": [asdict(step) for step in self.steps],
        }

    def chrome_trace(self) -> str:
        """JSON for ``chrome://tracing`` and Perfetto: the steps in order, end to end, after the call's overhead."""
        events = [_event("call overhead", "engine", 0.0, self.overhead_seconds, {})]
        begin = self.overhead_seconds
        for step in self.steps:
            facts = {
                "implementation": step.implementation,
                "nodes": ", ".join(step.nodes),
                "operations": step.operations,
                "bytes": step.traffic,
                "bound": step.bound,
                "fraction of roofline": step.roof_seconds / step.seconds,
            }
            events.append(_event(step.function, "kernel", begin, step.seconds, facts))
            begin += step.seconds
        return json.dumps({"traceEvents": events, "displayTimeUnit": "ms"}, indent=1)

    def svg(self) -> str:
        """A bar chart: a bar a function, as long as its time; the dark part is what the roofline asks for."""
        return _bar_chart(f"{self.model}, {self.threads} thread{'s' * (self.threads > 1)}", self.functions)


def measure_profile(
    model: CompiledModel,
    threads: int,
    dims: Mapping[str, int],
    tactics: Mapping[str, str],
    call: Callable[[], object],
    bound: Callable[[], object],
    time_steps: Callable[[], Sequence[float]],
) -> Profile:
    """Time a model. ``dims`` are its dimensions, ``tactics`` what serves functions that had a choice; ``call`` is a
    whole call, ``bound`` one whose inputs are checked and whose outputs are there; ``time_steps`` gives the seconds of
    each step by itself.

    All take turns, as the machine's speed drifts; medians count.
    """
    whole, inner, steps, rates = [], [], [], []
    for _ in range(ROUNDS):
        whole.append(_seconds(call))
        inner.append(_seconds(bound))
        steps.append(time_steps())
        rates.append(measure_rates(model.target, threads))
    seconds, best = statistics.median(whole), _median_rates(rates)
    medians = (statistics.median(times) for times in zip(*steps, strict=True))
    profiles = (_step(model, step, t, dims, tactics, best) for step, t in zip(model.steps, medians, strict=True))
    overhead = max(0.0, seconds - statistics.median(inner))
    return Profile(model.name, threads, seconds, overhead, best, tuple(profiles))


def _seconds(call: Callable[[], object]) -> float:
    """Of one call, the mean of several where it is short."""
    start = time.perf_counter()
    call()
    once = time.perf_counter() - start
    count = max(1, min(_CALLS, int(_CALL_SECONDS / max(once, 1e-6))))
    start = time.perf_counter()
    for _ in range(count):
        call()
    return (time.perf_counter() - start) / count


def _median_rates(measured: Sequence[MachineRates]) -> MachineRates:
    sizes = [size for size, _ in measured[0].bandwidths]
    bandwidths = (statistics.median(rates.bandwidths[k][1] for rates in measured) for k in range(len(sizes)))
    operations = statistics.median(rates.operations for rates in measured)
    return MachineRates(operations, tuple(zip(sizes, bandwidths, strict=True)))


def _step(
    model: CompiledModel,
    step: ModelStep,
    seconds: float,
    dims: Mapping[str, int],
    tactics: Mapping[str, str],
    rates: MachineRates,
) -> StepProfile:
    function = step.function
    known = model.dims_of(step, dims)
    operations, traffic = evaluate(function.operations, known), evaluate(function.traffic, known)
    return StepProfile(
        function.name,
        function.symbol,
        tactics.get(function.symbol, function.implementation),
        step.origin,
        seconds,
        operations,
        traffic,
        rates.least_seconds(operations, traffic),
        rates.bound(operations, traffic),
    )


def _together(steps: Sequence[StepProfile], total: float) -> FunctionProfile:
    first = steps[0]
    seconds = sum(step.seconds for step in steps)
    return FunctionProfile(
        first.function,
        first.symbol,
        first.implementation,
        tuple(node for step in steps for node in step.nodes),
        len(steps),
        seconds,
        seconds / total if total else 0.0,
        sum(step.operations for step in steps),
        sum(step.traffic for step in steps),
        sum(step.roof_seconds for step in steps),
        first.bound,
    )


def _row(function: FunctionProfile) -> tuple[str, ...]:
    nodes = ", ".join(function.nodes)
    return (
        f"{function.seconds * 1e3:.3f}",
        f"{function.share:.1%}",
        f"{function.gflops:.1f}",
        f"{function.gbps:.1f}",
        f"{function.roof_fraction:.0%} {function.bound}",
        str(function.calls),
        function.name,
        function.implementation,
        nodes if len(nodes) <= 60 else f"{nodes[:57]}…",
    )


def _event(name: str, category: str, begin: float, seconds: float, facts: Mapping[str, Any]) -> dict[str, Any]:
    """A complete event of the trace format: times are microseconds."""
    return {
        "name": name,
        "cat": category,
        "ph": "X",
        "ts": begin * 1e6,
        "dur": seconds * 1e6,
        "pid": 1,
        "tid": 1,
        "args": dict(facts),
    }


def _bar_chart(title: str, functions: Sequence[FunctionProfile]) -> str:
    longest = max((function.seconds for function in functions), default=0.0) or 1.0
    bars = (_bar(number, function, longest) for number, function in enumerate(functions, 1))
    return f"""<svg xmlns="http://www.w3.org/2000/svg" width="900" height="{_BAR_HEIGHT * (len(functions) + 2)}"
 font-family="sans-serif" font-size="12">
<rect width="100%" height="100%" fill="white"/>
<text x="8" y="16" font-weight="bold">{escape(title)}</text>
{"".join(bars)}</svg>
"""


def _bar(number: int, function: FunctionProfile, longest: float) -> str:
    y, length = _BAR_HEIGHT * number, _LONGEST_BAR * function.seconds / longest
    name = function.name if len(function.name) <= 48 else f"{function.name[:47]}…"
    hint = f"{function.name}: {function.implementation}; {', '.join(function.nodes)}"
    label = f"{function.seconds * 1e3:.2f} ms, {function.share:.0%}, {function.roof_fraction:.0%} of roof"
    rectangle = f'<rect x="{_BARS_LEFT}" y="{y + 3}" height="{_BAR_HEIGHT - 6}"'
    return f"""<g><title>{escape(hint)}</title>
<text x="{_BARS_LEFT - 8}" y="{y + 15}" text-anchor="end">{escape(name)}</text>
{rectangle} width="{length:.1f}" fill="#9ecae1"/>
{rectangle} width="{length * min(1.0, function.roof_fraction):.1f}" fill="#3182bd"/>
<text x="{_BARS_LEFT + length + 6:.1f}" y="{y + 15}" font-size="10">{escape(label)}</text></g>
"""

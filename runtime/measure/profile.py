"""Where the time of a model goes: each fused function beside what the machine could do, and the engine around them.

``measure_profile.py`` times; ``Profile`` is plain data, which prints as a table, and gives JSON, a Chrome trace and a
bar chart.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ...artifact.machine_rates import MachineRates
from ...base.brief import BriefRepr, one_line
from ...base.dataclass import dataclass
from ...base.quantities import bytes_text, count_text, digits, rate_text, seconds_text, shape_text, share_text
from .bar_chart import Bar, bar_chart

if TYPE_CHECKING:
    from rich.table import Table

OVERHEAD = "checks, new outputs, Python"
"""What the engine does around the functions."""
_DISTURBED = 1.1
"""Calls that take so many times as long as their parts were held up by something else."""
_NAME = 50
"""Characters of the model's name that the title has room for."""
_WIDE = 110
"""Columns from which on the table has the implementations."""


@dataclass(frozen=True, slots=True, repr=False)
class StepProfile(BriefRepr):
    """One call of a fused function: ``nodes`` are those of the imported model that it computes, ``shape`` is that of
    its last output, as the imported model has it. ``operations`` is 0 where the definition does not tell them,
    ``roof_seconds`` the least time that the machine needs."""

    function: str
    symbol: str
    implementation: str
    nodes: tuple[str, ...]
    shape: tuple[int, ...]
    seconds: float
    operations: int
    traffic: int
    roof_seconds: float
    bound: str


@dataclass(frozen=True, slots=True, repr=False)
class FunctionProfile(BriefRepr):
    """All calls of one fused function: ``seconds``, ``operations`` and ``traffic`` (bytes) are those of all of them;
    ``share`` is their part of the time of a call of the engine. ``shape`` is that of the last output of the first
    call."""

    name: str
    symbol: str
    implementation: str
    nodes: tuple[str, ...]
    shape: tuple[int, ...]
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
        return self._rate(self.operations) / 1e9

    @property
    def gbps(self) -> float:
        """The bytes of inputs and outputs, each counted once, in 10⁹ bytes a second."""
        return self._rate(self.traffic) / 1e9

    @property
    def roof_fraction(self) -> float:
        """What part of the time the machine needs at the least for those operations and bytes."""
        return self._rate(self.roof_seconds)

    def _rate(self, amount: float) -> float:
        return amount / self.seconds if self.seconds else 0.0

    @property
    def about(self) -> str:
        """Calls, output and nodes in a line: ``"2 calls, 1×64×56×56 of Conv_1, Relu_2, Conv_5, Relu_6"``."""
        calls = f"{count_text(self.calls, 'call')}, " if self.calls > 1 else ""
        nodes = ", ".join(dict.fromkeys(self.nodes))
        return f"{calls}{shape_text(self.shape)}{' of ' * bool(nodes)}{nodes}"


@dataclass(frozen=True, repr=False)
class Profile:
    """The profile of one model. ``overhead_seconds`` is what a call of the engine spends on checks, new outputs and
    Python, and ``steps`` what it spends in fused functions; ``call_seconds`` is their sum, a call undisturbed.
    ``measured_seconds`` is what the median call took beside all else that ran on the machine."""

    model: str
    threads: int
    measured_seconds: float
    overhead_seconds: float
    rates: MachineRates
    steps: tuple[StepProfile, ...]

    def __repr__(self) -> str:
        counts = f"{count_text(len(self.steps), 'step')}, {count_text(self.threads, 'thread')}"
        return f"<Profile of {one_line(self.model, 80)}: {seconds_text(self.call_seconds)} a call, {counts}>"

    @cached_property
    def call_seconds(self) -> float:
        """What ``engine(inputs)`` takes where nothing else runs."""
        return self.overhead_seconds + sum(step.seconds for step in self.steps)

    @cached_property
    def functions(self) -> tuple[FunctionProfile, ...]:
        """The functions, those first that take the longest."""
        groups: dict[str, list[StepProfile]] = {}
        for step in self.steps:
            groups.setdefault(step.symbol, []).append(step)
        made = (_together(steps, self.call_seconds) for steps in groups.values())
        return tuple(sorted(made, key=lambda function: -function.seconds))

    def _repr_html_(self) -> str:
        from .profile_html import profile_html  # it knows profiles

        return profile_html(self)

    @property
    def overhead_share(self) -> float:
        """The part of a call that is spent outside of functions; this and the shares of the functions make 1."""
        return self.overhead_seconds / self.call_seconds if self.call_seconds else 0.0

    @property
    def title(self) -> str:
        """What was measured: ``"main, 2 threads: 1.50 ms a call"``."""
        threads = count_text(self.threads, "thread")
        return f"{one_line(self.model, _NAME)}, {threads}: {seconds_text(self.call_seconds)} a call"

    def __str__(self) -> str:
        """A table as wide as the terminal that stdout is, and 80 columns where that is none."""
        from ...base.table import table_text, text_width

        memories = (f"{rate_text(rate, 'B/s')} of {bytes_text(size)}" for size, rate in self.rates.bandwidths)
        width = text_width()
        disturbed = self.measured_seconds > _DISTURBED * self.call_seconds
        lines = (
            self.title,
            *([f"(the median call took {seconds_text(self.measured_seconds)}, beside what else ran)"] * disturbed),
            f"the machine gives {rate_text(self.rates.operations, 'FLOP/s')},",
            f"and reads {', '.join(memories)}",
            "",
            table_text(self.table(width), width),
        )
        return "\n".join(lines)

    def table(self, width: int) -> Table:
        """A table that rich prints: a row a function, one for what the engine does around them, and their sum.
        Implementations are shown where the ``width`` has room for them."""
        from ...base.table import Name, lines_of, number_table

        table = number_table((), ("time", "share", "GFLOP/s", "GB/s", "roof"), ("bound",))
        table.add_column("function, output and nodes")
        if width >= _WIDE:
            table.add_column("implementation")
        for f in self.functions:
            rates = (digits(f.gflops), digits(f.gbps), share_text(f.roof_fraction), f.bound)
            names = (lines_of(f.name, f.about), Name(f.implementation))[: 1 + (width >= _WIDE)]
            table.add_row(seconds_text(f.seconds), share_text(f.share), *rates, *names)
        overhead = (seconds_text(self.overhead_seconds), share_text(self.overhead_share))
        table.add_row(*overhead, "", "", "", "", lines_of("engine", OVERHEAD), end_section=True)
        table.add_row(seconds_text(self.call_seconds), share_text(1.0), "", "", "", "", "a call")
        return table

    def to_json(self) -> dict[str, Any]:
        """All numbers as JSON values; seconds, operations, bytes."""
        functions = [
            asdict(f) | {"gflops": f.gflops, "gbps": f.gbps, "roof_fraction": f.roof_fraction} for f in self.functions
        ]
        return {
            "model": self.model,
            "threads": self.threads,
            "call_seconds": self.call_seconds,
            "measured_seconds": self.measured_seconds,
            "overhead_seconds": self.overhead_seconds,
            "overhead_share": self.overhead_share,
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
                "fraction of roofline": step.roof_seconds / step.seconds if step.seconds else 0.0,
            }
            events.append(_event(step.function, "kernel", begin, step.seconds, facts))
            begin += step.seconds
        return json.dumps({"traceEvents": events, "displayTimeUnit": "ms"}, indent=1)

    def svg(self) -> str:
        """A bar chart: a bar a function, as long as its time, and one for the engine's overhead; the dark part is what
        the roofline asks for."""
        bars = [_bar(function) for function in self.functions]
        label = f"{seconds_text(self.overhead_seconds)}, {share_text(self.overhead_share)}"
        return bar_chart(self.title, [*bars, Bar("engine", OVERHEAD, self.overhead_seconds, label)])


def _bar(function: FunctionProfile) -> Bar:
    shares = f"{share_text(function.share)}, {share_text(function.roof_fraction)} of roof"
    return Bar(
        function.name,
        function.about,
        function.seconds,
        f"{seconds_text(function.seconds)}, {shares}",
        dark=min(1.0, function.roof_fraction),
        hint=f"{function.name}: {function.implementation}; {', '.join(function.nodes)}",
    )


def _together(steps: Sequence[StepProfile], total: float) -> FunctionProfile:
    first = steps[0]
    seconds = sum(step.seconds for step in steps)
    return FunctionProfile(
        first.function,
        first.symbol,
        first.implementation,
        tuple(node for step in steps for node in step.nodes),
        first.shape,
        len(steps),
        seconds,
        seconds / total if total else 0.0,
        sum(step.operations for step in steps),
        sum(step.traffic for step in steps),
        sum(step.roof_seconds for step in steps),
        first.bound,
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

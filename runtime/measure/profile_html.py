"""The view of a profile in a notebook: a row for each function, with a bar as long as its share of the time."""

from __future__ import annotations

from ...ir.html.table import Column, facts, share_bar, table
from ...ir.html.view import view
from ...ir.quantities import bytes_text, count_text, digits, rate_text, seconds_text, share_text
from .profile import FunctionProfile, Profile

_COLUMNS = (
    Column("function"),
    Column("calls", numeric=True),
    Column("time", numeric=True),
    Column("share", numeric=True),
    Column("GFLOP/s", numeric=True),
    Column("GB/s", numeric=True),
    Column("roof", numeric=True),
    Column("bound"),
    Column("implementation"),
    Column("nodes"),
)


def profile_html(profile: Profile) -> str:
    """The functions, those first that take the longest, beside what the engine does around them."""
    memories = (f"{rate_text(rate, 'B/s')} of {bytes_text(size)}" for size, rate in profile.rates.bandwidths)
    known = {
        "a call": seconds_text(profile.call_seconds),
        "around the functions": f"{seconds_text(profile.overhead_seconds)}: checks, new outputs, Python",
        "the machine gives": rate_text(profile.rates.operations, "FLOP/s"),
        "and reads": ", ".join(memories),
    }
    title = f"Profile of {profile.model}, {count_text(profile.threads, 'thread')}"
    return view(title, facts(known), table(_COLUMNS, map(_row, profile.functions), "print(profile)"))


def _row(function: FunctionProfile) -> tuple[str, ...]:
    return (
        function.name,
        str(function.calls),
        seconds_text(function.seconds),
        share_bar(function.share),
        digits(function.gflops),
        digits(function.gbps),
        share_text(function.roof_fraction),
        function.bound,
        function.implementation,
        ", ".join(function.nodes),
    )

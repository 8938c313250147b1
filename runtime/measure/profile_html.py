"""The view of a profile in a notebook: a row for each function, with a bar as long as its share of the time."""

from __future__ import annotations

from ...base.html.markup import Markup, element, joined
from ...base.html.table import Column, facts, share_bar, shortened, table
from ...base.html.view import view
from ...base.quantities import bytes_text, digits, rate_text, seconds_text, share_text
from .profile import OVERHEAD, FunctionProfile, Profile

_COLUMNS = (
    Column("function, output and nodes"),
    Column("time", numeric=True),
    Column("share", numeric=True),
    Column("GFLOP/s", numeric=True),
    Column("GB/s", numeric=True),
    Column("roof", numeric=True),
    Column("bound"),
    Column("implementation"),
)


def profile_html(profile: Profile) -> str:
    """The functions, those first that take the longest, what the engine does around them, and a call, their sum."""
    memories = (f"{rate_text(rate, 'B/s')} of {bytes_text(size)}" for size, rate in profile.rates.bandwidths)
    machine = {
        "the machine gives": rate_text(profile.rates.operations, "FLOP/s"),
        "and reads": ", ".join(memories),
    }
    unknown = ("",) * 5
    overhead = (_named("engine", OVERHEAD), seconds_text(profile.overhead_seconds), share_bar(profile.overhead_share))
    call = ("a call", seconds_text(profile.call_seconds), share_text(1.0))
    rows = (*map(_row, profile.functions), (*overhead, *unknown), (*call, *unknown))
    return view(f"Profile of {profile.title}", facts(machine), table(_COLUMNS, rows, "print(profile)"))


def _row(function: FunctionProfile) -> tuple[str, ...]:
    return (
        _named(function.name, function.about),
        seconds_text(function.seconds),
        share_bar(function.share),
        digits(function.gflops),
        digits(function.gbps),
        share_text(function.roof_fraction),
        function.bound,
        function.implementation,
    )


def _named(name: str, about: str) -> Markup:
    """A name with a line below it that says more."""
    return joined((shortened(name), element("div", shortened(about), class_="lw-quiet")))

"""Rewrites of calls in tuning records: which operator in its place, and which layouts of its arguments, were fastest.

A *rewrite* is what layout candidates of a call have in common that differ in the layout of the result alone: Winograd's
transform of one size, a product by packed panels, Strassen's, blocked channels, or the call as it is. How fast one is
shows in the model, whose neighbouring calls have to go along.
"""

from __future__ import annotations

from dataclasses import replace

from ...artifact.records.workload import Workload
from ...graph.node import Call
from ...ops.definition.layout_rule import LayoutCandidate
from ..selection.records import Match
from ..selection.workload import workload_of
from ..settings import CompileSettings


def rewrite_name(candidate: LayoutCandidate) -> str:
    """The name of a rewrite, as ``nn.winograd_conv2d(NCHW16c, WinogradPlanes(size=4, width=32))``; arguments that stay
    as they are have a ``-``."""
    layouts = ", ".join("-" if layout is None else str(layout) for layout in candidate.arguments)
    return f"{'' if candidate.op is None else candidate.op.name}({layouts})"


def rewrite_workload(call: Call) -> Workload | None:
    """What the rewrite of a call is looked up by: its workload, as of an operator ``rewrite:…``; None for open
    extents."""
    workload = workload_of(call)
    return None if workload is None else replace(workload, op=f"rewrite:{workload.op}")


def recorded_rewrite(call: Call, settings: CompileSettings) -> str | None:
    """The rewrite that records name for a call on a target; None where they name none."""
    match = rewrite_match(call, settings)
    return None if match is None else match.record.implementation


def rewrite_match(call: Call, settings: CompileSettings) -> Match | None:
    """The record that names the rewrite of a call on a target, if there is one."""
    workload = rewrite_workload(call) if len(settings.records) else None
    return None if workload is None else settings.records.best(workload, settings.target)

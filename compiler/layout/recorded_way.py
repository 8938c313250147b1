"""Ways of calls in tuning records: which rewrite, and which layouts of its arguments, a model was fastest with.

A *way* is what layout candidates of a call have in common that differ in the layout of the result alone: Winograd's
transform of one size, a product by packed panels, Strassen's, blocked channels, or the call as it is. How fast one is
shows in the model, whose neighbouring calls have to go along.
"""

from __future__ import annotations

from dataclasses import replace

from ...artifact.records.workload import Workload
from ...graph.node import Call
from ...ops.definition.layout_rule import LayoutCandidate
from ..selection.workload import workload_of
from ..settings import CompileSettings


def way_of(candidate: LayoutCandidate) -> str:
    """The name of a way, as ``nn.winograd_conv2d(NCHW16c, WinogradPlanes(size=4, width=32))``; arguments that stay as
    they are have a ``-``."""
    held = ", ".join("-" if layout is None else str(layout) for layout in candidate.arguments)
    return f"{'' if candidate.op is None else candidate.op.name}({held})"


def way_workload(call: Call) -> Workload | None:
    """What the way of a call is looked up by: its workload, as of an operator ``way:…``; None for open extents."""
    workload = workload_of(call)
    return None if workload is None else replace(workload, op=f"way:{workload.op}")


def recorded_way(call: Call, settings: CompileSettings) -> str | None:
    """The way that records name for a call on a target; None where they name none."""
    workload = way_workload(call) if len(settings.records) else None
    match = None if workload is None else settings.records.best(workload, settings.target)
    return None if match is None else match.record.implementation

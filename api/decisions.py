"""``lw.decisions``: what the schedule of a call decides by name, for those who choose other values."""

from __future__ import annotations

from collections.abc import Mapping

from ..base.errors import RuntimeArgumentError, SelectionError
from ..base.target import Target
from ..codegen.host import resolve_target
from ..compiler.selection.select import candidates_of, select_implementation
from ..compiler.settings import CompileSettings
from ..graph.node import Call
from ..lowering.decisions import NONE_DECIDED, Decision, DecisionValue


def decisions(
    call: Call,
    target: str | Target | None = "native",
    implementation: str | None = None,
    decided: Mapping[str, DecisionValue] | None = None,
) -> tuple[Decision, ...]:
    """What the schedule of a call decides, in order: of each decision the name, the legal values, the default, the
    value, and whether another value may change the order of a sum.

    ``implementation`` is the name of one, by default of that which serves the call. ``decided`` are the values chosen
    so far; the legal values of later decisions go by them, so that one choice after the other is a walk through all
    schedules. ``TuningRecord.of`` takes what came of it. Raises ``SelectionError`` where there is no such
    implementation, and ``ScheduleError`` where that has no such decision.

    >>> import loopwright as lw
    >>> product = lw.nn.matmul(lw.var("a", (96, 256)), lw.var("b", (256, 128)))
    >>> for decision in lw.decisions(product, "x86-64-v3", decided={"rows": 5})[:3]:
    ...     print(decision)
    pack = True of False, True
    rows = 5 of 1, 2, 3, 4, 5, 6, 7, 8, …, 14, by default 12
    vectors = 1 of 1, 2
    """
    given: object = call
    if not isinstance(given, Call):
        raise RuntimeArgumentError(f"decisions takes a call of an operator, as lw.nn.relu(x) makes it, found {given!r}")
    settings = CompileSettings(resolve_target(target))
    if implementation is None:
        chosen = select_implementation(call, settings).chosen
    else:
        offered = {c.implementation.name: c.implementation for c in candidates_of(call, settings)}
        if implementation not in offered:
            names = ", ".join(offered)
            raise SelectionError(f"{call.op.name} has no implementation {implementation!r} here; there are {names}")
        chosen = offered[implementation]
    return chosen.decisions(call, settings.target, NONE_DECIDED if decided is None else decided)

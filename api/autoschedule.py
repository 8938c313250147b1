"""``lw.autoschedule``: a schedule that nobody wrote, chosen by an analytic model, for a target by its name."""

from __future__ import annotations

import os
from collections.abc import Sequence

from ..base.choices import check_count
from ..base.errors import RuntimeArgumentError
from ..base.garbage import rare_collections
from ..base.target import Target
from ..codegen.host import resolve_target
from ..compiler.selection.recorded_schedule import recorded_schedule
from ..compiler.selection.records import TuningRecords, records_from
from ..lowering.schedule import Schedule
from ..schedules.auto.candidates import Scheduling
from ..schedules.auto.rules.default_rules import RULES
from ..schedules.auto.search import search
from ..schedules.auto.sketch import ScheduleRule
from ..te.tensor import Tensor

CANDIDATES = 24


def autoschedule(
    outputs: Tensor | Sequence[Tensor],
    target: str | Target | None = "native",
    *,
    candidates: int = CANDIDATES,
    seed: int = 0,
    rules: Sequence[ScheduleRule] | None = None,
    reassociate: bool = True,
    records: TuningRecords | str | os.PathLike[str] | None = None,
) -> Schedule:
    """A schedule for any tensors, the best of ``candidates`` that rules make of public primitives, without measuring.

    The rules inline stages, compute them at loops of their readers, tile reductions for registers and caches, pack what
    these read, fold long ones in lanes and tasks, and share out the rest among threads. ``rules`` are others, by
    default those of ``lw.schedule_rules()``. All that they choose are decisions of the schedule, by name. An analytic
    model of a core predicts what the lowered loop nest of each candidate takes, and the best is given, which is never
    worse by the model than that of ``lw.default_schedule``. ``seed`` repeats the search.

    ``reassociate`` lets it fold sums in another order; builds with strict precision need it to be False. Where
    ``records``, a file of tuning records or ``lw.TuningRecords``, have a schedule of the same expression for the target
    or a close one, as ``lw.tune_schedule`` keeps them, that one is given, and nothing is searched. Raises
    ``ScheduleError`` where an output is not computed, ``RecordError`` for a file that cannot be read, and
    ``RuntimeArgumentError`` for other arguments that do not fit and for rules that raise errors of their own; a step
    that is refused only drops a candidate.

    >>> import loopwright as lw
    >>> from loopwright import te
    >>> A, B = te.placeholder((31, 50), name="A"), te.placeholder((40, 50), name="B")
    >>> r = te.reduce_axis((0, 50), name="r")
    >>> C = te.compute((31, 40), lambda i, j: te.sum(A[i, r] * B[j, r], axis=r), name="C")
    >>> schedule = lw.autoschedule(C, "x86-64-v3", candidates=8)
    >>> [decision.name for decision in schedule.decisions][:4]
    ['C.form', 'C.chains', 'C.loops', 'C.lanes']
    """
    tensors = (outputs,) if isinstance(outputs, Tensor) else outputs
    check_count(candidates, "candidates", 1)
    check_count(seed, "seed")
    of = Scheduling(tensors, resolve_target(target), checked_rules(rules), reassociate)
    known = records_from(records)
    with rare_collections():
        return recorded_schedule(of, known) or search(of, candidates, seed).schedule


def checked_rules(rules: object) -> Sequence[ScheduleRule]:
    """The rules that a user gives, by default ours. Raises ``RuntimeArgumentError`` for what are none."""
    if rules is None:
        return RULES
    if not isinstance(rules, Sequence) or not all(isinstance(rule, ScheduleRule) for rule in rules):
        raise RuntimeArgumentError(f"rules should be a sequence of lw.ScheduleRule, found {rules!r}")
    names = [(rule.phase, rule.name) for rule in rules]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise RuntimeArgumentError(f"two rules of the phase {twice[0]!r} are called {twice[1]!r}")
    return rules

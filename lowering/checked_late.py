"""The rules of a schedule, checked once behind its last step: for functions that make the schedules of a model, whose
steps nearly always keep them. What breaks a rule is found step by step, by making the schedule again."""

from __future__ import annotations

from collections.abc import Callable

from .rules.invariants import check_invariants
from .schedule import Schedule
from .step import rules_checked


def checked_late(make: Callable[[], Schedule]) -> Schedule:
    """The schedule that ``make`` gives, which keeps all rules.

    Where it does not, or where ``make`` fails, ``make`` is called again with the rules checked behind each step, so
    that it raises what it would have raised: the ``ScheduleError`` of the first step that breaks one. A rule that one
    step breaks and a later one restores is no fault.
    """
    try:
        with rules_checked(each_step=False):
            made = make()
        check_invariants(made.state, made.state)
    except Exception:  # of whatever kind: a step that broke a rule may be the cause of it
        with rules_checked(each_step=True):
            return make()
    return made

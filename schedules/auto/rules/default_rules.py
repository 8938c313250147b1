"""The rules that ``autoschedule`` goes by, in order: of those that apply the first is the default."""

from __future__ import annotations

from collections.abc import Sequence

from ..sketch import ScheduleRule
from .elements import ELEMENTS
from .fold import DOTS, FOLD_IN_LANES, FOLD_IN_TASKS
from .form import INLINE, KEEP, RECOMPUTE
from .general import GENERAL, STREAM
from .place import AT_READER, WHOLE
from .tile import TILE
from .turn import TURN

RULES: tuple[ScheduleRule, ...] = (
    INLINE,
    FOLD_IN_LANES,
    KEEP,
    RECOMPUTE,
    DOTS,
    FOLD_IN_TASKS,
    AT_READER,
    WHOLE,
    STREAM,
    TILE,
    TURN,
    ELEMENTS,
    GENERAL,
)


def schedule_rules() -> Sequence[ScheduleRule]:
    """The rules that ``lw.autoschedule`` goes by, to which others can be added: ``rules=[mine, *lw.schedule_rules()]``.

    >>> import loopwright as lw
    >>> [rule.name for rule in lw.schedule_rules() if rule.phase == "place"]
    ['at reader', 'whole']
    """
    return RULES

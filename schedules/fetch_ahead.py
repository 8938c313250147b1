"""Prefetches of schedules that serve any shape: a hint, asked for wherever the rules of ``prefetch`` allow it."""

from __future__ import annotations

import logging

from ..base.errors import ScheduleError
from ..lowering.schedule import LoopLike, StageLike, StageView
from ..lowering.step import rules_checked

_log = logging.getLogger("loopwright.schedule")


def fetch_ahead(stage: StageView, tensor: StageLike, loop: LoopLike, distance: int) -> bool:
    """``stage.prefetch(tensor, loop, distance)`` where that is legal; gives whether it is.

    What an iteration reads depends on extents and on what is fused: it may be more lines than a prefetch takes.
    """
    try:
        with rules_checked(each_step=True):
            stage.prefetch(tensor, loop, distance)
    except ScheduleError as error:
        _log.debug("left out a prefetch: %s", error)
        return False
    return True

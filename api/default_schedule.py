"""``lw.default_schedule``: a schedule from general rules, for a target by its name."""

from __future__ import annotations

from collections.abc import Sequence

from ..base.target import Target
from ..codegen.host import resolve_target
from ..lowering.schedule import Schedule
from ..schedules import default_schedule as general_rules
from ..te.tensor import Tensor


def default_schedule(
    outputs: Tensor | Sequence[Tensor], target: str | Target | None = None, reassociate: bool = True
) -> Schedule:
    """A schedule from general rules, vectorized and parallel, for tensors that nobody scheduled by hand.

    ``reassociate`` lets it fold long reductions in several lanes; builds with strict precision need it to be False.
    """
    return general_rules.default_schedule(outputs, resolve_target(target), reassociate)

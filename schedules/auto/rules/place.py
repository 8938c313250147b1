"""Where a stage is computed: whole, or as much of it at a time as an iteration of what reads it needs."""

from __future__ import annotations

from ....base.errors import ScheduleError
from ....lowering.recomputed import times_computed
from ....lowering.stage import At, Inlined, Root, Stage
from ....lowering.state import ScheduleState
from ..sketch import ScheduleRule, StageSketch

OVERLAP = 1.3
"""A stage whose elements are computed so often, or less, is computed at its reader's outermost loop by default."""


def readers_of(state: ScheduleState, stage: Stage) -> list[Stage]:
    """The stages whose loops read a stage, through inlined ones too."""
    found: list[Stage] = []
    for reader in state.consumers(stage):
        more = readers_of(state, reader) if isinstance(reader.place, Inlined) else [reader]
        found += [each for each in more if each not in found]
    return found


def places(at: StageSketch) -> tuple[str, list[str]]:
    """The stage in whose loops all readers are, and those of its loops that this one may be computed at, outermost
    first; none where there is no such stage."""
    state = at.schedule.state
    if at.name in state.outputs:
        return "", []
    limits: list[tuple[str, str | None]] = []
    for reader in readers_of(state, at.state):
        if not reader.is_compute:
            return "", []
        loop = None
        while isinstance(reader.place, At):
            loop, reader = reader.place.loop, state.stage(reader.place.stage)  # noqa: PLW2901  # up to the outermost
        if not isinstance(reader.place, Root) or not reader.is_compute:
            return "", []
        limits.append((reader.name, loop))
    homes = {name for name, _ in limits}
    if len(homes) != 1:
        return "", []
    home = state.stage(homes.pop())
    ends = [home.leaves.index(loop) for _, loop in limits if loop in home.leaves]
    inner = next((k for k, leaf in enumerate(home.leaves) if home.kind(leaf) in ("vectorized", "unrolled")), None)
    loops = home.leaves[:inner]
    return home.name, list(loops[: min(ends) + 1] if ends else loops)


def _may_be_placed(at: StageSketch) -> bool:
    return bool(places(at)[1])


def _compute_at_reader(at: StageSketch) -> None:
    """Compute the stage at a loop of its reader, or whole: the loop that is decided on, by its name."""
    home, loops = places(at)
    stage = at.schedule.state.stage(home)
    names = {f"{home}.{stage.loops[loop].name}": loop for loop in loops}
    default = next((name for name, loop in names.items() if _overlaps_little(at, home, loop)), "whole")
    chosen = at.decide("at", ["whole", *names], default)
    if chosen != "whole":
        at.stage.compute_at(home, names[chosen])


def _overlaps_little(at: StageSketch, home: str, loop: str) -> bool:
    trial = at.schedule.copy()
    try:
        trial[at.name].compute_at(home, loop)
        often = times_computed(trial.state, at.name)
    except ScheduleError:
        return False
    return often is not None and often <= OVERLAP


def _leave(at: StageSketch) -> None:
    """It is whole already."""


AT_READER = ScheduleRule("at reader", "place", _may_be_placed, _compute_at_reader)
WHOLE = ScheduleRule("whole", "place", lambda at: not _may_be_placed(at), _leave)

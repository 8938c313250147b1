"""A schedule made by rules: of each stage the rules that may be applied are a decision, and so are the numbers in them.

    for each stage, producers first:   its form: kept, inlined, a reduction folded apart
    for each that stays, readers first: its place: whole, or at a loop of what reads it; then its loops

With all decisions by their defaults it is a sketch in the sense of Ansor (Zheng et al., *Ansor: Generating
High-Performance Tensor Programs for Deep Learning*, 2020), whose numbers are filled in by general rules.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal, TypeAlias

from ...base.brief import BriefRepr
from ...base.dataclass import dataclass
from ...base.errors import RuntimeArgumentError
from ...base.foreign_errors import naming_code
from ...base.target import Target
from ...ir.constants import const_int
from ...ir.expr import Expr
from ...lowering.decisions import NONE_DECIDED, DecisionValue, V
from ...lowering.nest.regions import extents_of
from ...lowering.schedule import LoopView, Schedule, StageView, create_schedule
from ...lowering.stage import Inlined, Root, Stage
from ...te.tensor import ComputeOp, Tensor

Phase: TypeAlias = Literal["form", "place", "loops"]
PHASES: tuple[Phase, ...] = ("form", "place", "loops")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class StageSketch(BriefRepr):
    """A stage that a rule is asked about, by its ``name``, in the ``schedule`` so far, which the rule's steps continue.

    ``reassociate`` tells whether sums may be folded in another order.
    """

    schedule: Schedule
    name: str
    target: Target
    reassociate: bool

    @property
    def stage(self) -> StageView:
        """The stage, on which primitives are methods."""
        return self.schedule[self.name]

    @property
    def state(self) -> Stage:
        """What has become of the stage so far."""
        return self.schedule.state.stage(self.name)

    @property
    def op(self) -> ComputeOp:
        """What the stage computes."""
        return self.state.compute

    @property
    def bodies(self) -> tuple[Expr, ...]:
        """What is computed of each output, with the inlined stages put in."""
        return self.stage.bodies

    @property
    def lanes(self) -> int:
        """How many elements of each output a vector holds."""
        return min(self.target.lanes(tensor.dtype) for tensor in self.op.outputs)

    @property
    def is_whole(self) -> bool:
        """Whether the stage is computed whole, not in a loop of another."""
        return isinstance(self.state.place, Root)

    def extent(self, loop: LoopView) -> int | None:
        """The iterations of a loop that stands; None where they are open."""
        return const_int(extents_of(self.schedule.state, self.state)[loop.id])

    def decide(self, name: str, legal: Sequence[V], default: V, *, reorders_sum: bool = False) -> V:
        """Choose a value by the name of the stage and one of its own, as ``C.rows``: see ``Schedule.decide``."""
        return self.schedule.decide(f"{self.name}.{name}", legal, default, reorders_sum=reorders_sum)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ScheduleRule(BriefRepr):
    """What may be done to a stage in a phase of the sketch: ``"form"``, ``"place"`` or ``"loops"``.

    ``applies`` tells whether it may be tried on a stage, ``apply`` does it by primitives, and calls ``decide`` for each
    number that is free. Where several rules of a phase apply, the decision ``<stage>.<phase>`` has their names, and the
    first of them is the default. A step that is refused drops the candidate. A rule that makes stages while others have
    their loops schedules them itself.
    """

    name: str
    phase: Phase
    applies: Callable[[StageSketch], bool]
    apply: Callable[[StageSketch], None]

    def __post_init__(self) -> None:
        name: object = self.name
        functions: tuple[object, ...] = (self.applies, self.apply)
        if not isinstance(name, str) or not name:
            raise RuntimeArgumentError(f"a rule has a name, found {name!r}")
        if self.phase not in PHASES:
            phases = ", ".join(map(repr, PHASES))
            raise RuntimeArgumentError(
                f"the phase of the rule {name!r} should be one of {phases}, found {self.phase!r}"
            )
        if not all(map(callable, functions)):
            raise RuntimeArgumentError(f"applies and apply of the rule {name!r} should be functions of a StageSketch")


def make_sketch(
    outputs: Tensor | Sequence[Tensor],
    target: Target,
    rules: Sequence[ScheduleRule],
    reassociate: bool = True,
    decided: Mapping[str, DecisionValue] = NONE_DECIDED,
) -> Schedule:
    """The schedule that the rules make, with these values for its decisions. Raises ``ScheduleError`` where a step is
    illegal."""
    schedule = create_schedule(outputs, decided)
    formed: set[str] = set()
    while names := [s.name for s in schedule.state.stages if s.is_compute and s.name not in formed]:
        formed.add(names[0])
        sketch = StageSketch(schedule, names[0], target, reassociate)
        if sketch.is_whole and not sketch.op.ragged_axes:
            _choose(sketch, "form", rules)
    for name in reversed([s.name for s in schedule.state.stages if s.is_compute]):
        sketch = StageSketch(schedule, name, target, reassociate)
        if isinstance(sketch.state.place, Inlined):
            continue
        if sketch.is_whole:
            _choose(sketch, "place", rules)
        _choose(sketch, "loops", rules)
    return schedule


def _choose(sketch: StageSketch, phase: Phase, rules: Sequence[ScheduleRule]) -> None:
    """Apply the rule of a phase that is decided on, if any may be."""
    offered = {rule.name: rule for rule in rules if rule.phase == phase and _applies(rule, sketch)}
    if not offered:
        return
    names = list(offered)
    rule = offered[sketch.decide(phase, names, names[0]) if len(names) > 1 else names[0]]
    with naming_code(f"the rule {rule.name!r} on stage {sketch.name}", RuntimeArgumentError):
        rule.apply(sketch)


def _applies(rule: ScheduleRule, sketch: StageSketch) -> bool:
    with naming_code(f"the rule {rule.name!r} on stage {sketch.name}", RuntimeArgumentError):
        return bool(rule.applies(sketch))

"""Primitives that change the shape of a stage's loop nest: split, fuse, reorder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import ClassVar, get_args

from ...base.choices import is_one_of
from ...base.dataclass import dataclass
from ...base.errors import ScheduleError
from ...te.compute import MAX_EXTENT
from ..relations import FuseRelation, Relation, SplitRelation, Tail
from ..report import literal, schedule_error
from ..rules.annotations import check_vector_nesting
from ..rules.fold_order import check_fold_order
from ..rules.loops import require_no_accumulation, require_serial, require_unattached, stage_with_changeable_loops
from ..rules.placement import check_placements
from ..rules.ragged import refuse_ragged
from ..stage import Loop, Stage
from ..state import ScheduleState
from ..step import StageStep


def _with_loops(stage: Stage, made: Mapping[str, Loop], relation: Relation, leaves: tuple[str, ...]) -> Stage:
    return replace(
        stage,
        loops=MappingProxyType({**stage.loops, **made}),
        relations=(*stage.relations, relation),
        leaves=leaves,
    )


def _new_loop(stage: Stage, offset: int, name: str, reduce: bool) -> Loop:
    return Loop(f"{stage.name}#{len(stage.loops) + offset}", name, reduce)


@dataclass(frozen=True, slots=True, repr=False)
class Split(StageStep):
    """Split a loop in two, ``loop = outer * extent(inner) + inner``.

    Arguments: ``factor``, the extent of the inner loop, or ``nparts``, that of the outer: a positive integer.
    ``tail`` says what becomes of the last tile where the inner loops do not add up to the whole:

    - ``"guard"``: an ``if`` keeps the iterations beyond the end from running. Where that pays, lowering splits loops to
      get rid of it; in a vectorized loop what is left of it becomes a mask.
    - ``"mask"``: an ``if`` that stays where it is, so that there is one loop. In a vectorized loop it is the mask of
      loads and stores, in others a test in each iteration. Targets without masked memory operations (x86-64 before AVX)
      make a branch for each lane of it: take ``"peel"`` there.
    - ``"peel"``: a loop over the full tiles, without a condition, and one for what is left; there a vectorized loop is
      shorter where the extent is constant, else masked. If the outer loop is split again, what is left of that is cut
      off likewise. If it is fused, so that what is left lies all over the fused loop, each iteration of that chooses
      between the two by a test; if it is vectorized or unrolled, the condition stays. So it does where the tails of a
      stage would make more than 8 copies of loops.
    - ``"shift"``: the last tile begins earlier, so that it ends where the loop ends: all tiles are full, and some
      elements are computed twice. Where the whole loop is shorter than one tile, the tile is as short; if the extent is
      symbolic, a test chooses a masked tile.
    - ``"round_up"``: all tiles are full, the last one goes on beyond the end; ``RoundUp`` says what that asks of the
      stage, and what is computed there.

    Preconditions: the loop stands, is serial, and no stage is computed at it. For ``"shift"``, it runs over a spatial
    axis, no reduction loop stands outside the outer loop, and neither that nor an inner loop around it is parallel or
    vectorized: all this also of the loops that they become by later steps.

    Rewrite, with factor 4::

        for i in range(10):            for i_outer in range(3):
            B[i] = A[i]           →        for i_inner in range(4):
                                               if i_outer * 4 + i_inner < 10:
                                                   B[i_outer * 4 + i_inner] = A[i_outer * 4 + i_inner]

    Rewrite, with factor 4, tail "peel"::

        for i in range(10):            for i_outer in range(2):
            B[i] = A[i]           →        for i_inner in range(4):
                                               B[i_outer * 4 + i_inner] = A[i_outer * 4 + i_inner]
                                       for i_inner_1 in range(2):
                                           B[i_inner_1 + 8] = A[i_inner_1 + 8]

    Rewrite, with factor 4, tail "shift"::

        for i in range(10):            for i_outer in range(3):
            B[i] = A[i]           →        for i_inner in range(4):
                                               B[min(i_outer * 4, 6) + i_inner] = A[min(i_outer * 4, 6) + i_inner]
    """

    primitive: ClassVar[str] = "split"
    returns_loops: ClassVar[bool] = True

    loop: str
    factor: int | None = None
    nparts: int | None = None
    tail: Tail = "guard"

    def apply(self, state: ScheduleState) -> ScheduleState:
        stage = stage_with_changeable_loops(state, self.stage, (self.loop,))
        self._check_arguments(state)
        require_serial(state, stage, self.loop, "split")
        require_unattached(state, stage, self.loop, "split")
        require_no_accumulation(state, stage, self.loop)
        if self.tail == "round_up":
            refuse_ragged(state, stage, [self.loop], "round up")
        parent = stage.loops[self.loop]
        outer = _new_loop(stage, 0, f"{parent.name}_outer", parent.reduce)
        inner = _new_loop(stage, 1, f"{parent.name}_inner", parent.reduce)
        relation = SplitRelation(self.loop, outer.id, inner.id, self.factor, self.nparts, self.tail)
        at = stage.leaves.index(self.loop)
        leaves = (*stage.leaves[:at], outer.id, inner.id, *stage.leaves[at + 1 :])
        new = state.with_stage(_with_loops(stage, {outer.id: outer, inner.id: inner}, relation, leaves))
        check_placements(new, state, f"split loop {parent.name} of {stage.name}")
        return new

    def _check_arguments(self, state: ScheduleState) -> None:
        if not is_one_of(self.tail, Tail):
            raise ScheduleError(f"split has no tail {self.tail!r}; there are {', '.join(get_args(Tail))}")
        given = [(n, v) for n, v in (("factor", self.factor), ("nparts", self.nparts)) if v is not None]
        if len(given) != 1:
            raise ScheduleError("split takes either factor or nparts")
        name, value = given[0]
        if type(value) is not int or not 1 <= value <= MAX_EXTENT:
            raise schedule_error(
                state,
                f"split: {name} must be a positive integer, found {value!r}",
                f"Give {name} as an int between 1 and 2**47.",
                [self.loop],
            )


@dataclass(frozen=True, slots=True, repr=False)
class Fuse(StageStep):
    """Make one loop of two that stand directly inside each other, ``fused = outer * extent(inner) + inner``.

    Preconditions: both stand and are serial, the inner directly inside the outer, both over spatial axes or both over
    reduction axes, the extents the same for all elements, and no stage is computed at either.

    Rewrite::

        for i in range(3):             for i_j_fused in range(12):
            for j in range(4):    →        B[i_j_fused // 4, i_j_fused % 4] = …
                B[i, j] = …
    """

    primitive: ClassVar[str] = "fuse"
    returns_loops: ClassVar[bool] = True

    outer: str
    inner: str

    def apply(self, state: ScheduleState) -> ScheduleState:
        pair = (self.outer, self.inner)
        stage = stage_with_changeable_loops(state, self.stage, pair)
        for loop in pair:
            require_serial(state, stage, loop, "fuse")
            require_unattached(state, stage, loop, "fuse")
            require_no_accumulation(state, stage, loop)
        refuse_ragged(state, stage, pair, "fuse")
        outer, inner = (stage.loops[loop] for loop in pair)
        at = stage.leaves.index(self.outer)
        if stage.leaves[at + 1 : at + 2] != (self.inner,):
            raise schedule_error(
                state,
                f"cannot fuse {outer.name} and {inner.name} of {stage.name}: "
                f"{inner.name} is not directly inside {outer.name}",
                "Reorder the loops so that one stands directly inside the other; name the outer one first.",
                pair,
            )
        if outer.reduce != inner.reduce:
            raise schedule_error(
                state,
                f"cannot fuse {outer.name} and {inner.name} of {stage.name}: "
                "one runs over a reduction axis, the other does not",
                "Fuse loops of one kind; a fused loop is spatial or a reduction.",
                pair,
            )
        fused = _new_loop(stage, 0, f"{outer.name}_{inner.name}_fused", outer.reduce)
        leaves = (*stage.leaves[:at], fused.id, *stage.leaves[at + 2 :])
        relation = FuseRelation(self.outer, self.inner, fused.id)
        new = state.with_stage(_with_loops(stage, {fused.id: fused}, relation, leaves))
        check_placements(new, state, f"fuse loops {outer.name} and {inner.name} of {stage.name}")
        return new


@dataclass(frozen=True, slots=True, repr=False)
class Reorder(StageStep):
    """Put loops into the given order, outermost first, in the places that they hold together.

    Preconditions: all stand, no stage is computed at a loop whose enclosing loops would change, and no parallel loop
    comes to stand inside a vectorized one, no reduction loop outside a loop over tiles of which the last is shifted.
    Reordering reductions changes the order in which terms are folded: not with a reducer whose result depends on it but
    for rounding, nor in a build with strict precision.

    Rewrite, ``reorder(j, i)``::

        for i in range(3):             for j in range(4):
            for j in range(4):    →        for i in range(3):
                B[i, j] = …                    B[i, j] = …
    """

    primitive: ClassVar[str] = "reorder"
    spread: ClassVar[str] = "loops"

    loops: tuple[str, ...]

    def apply(self, state: ScheduleState) -> ScheduleState:
        stage = stage_with_changeable_loops(state, self.stage, self.loops)
        moved = iter(self.loops)
        chosen = set(self.loops)
        leaves = tuple(next(moved) if leaf in chosen else leaf for leaf in stage.leaves)
        for loop in stage.leaves:
            before = set(stage.leaves[: stage.leaves.index(loop) + 1])
            after = set(leaves[: leaves.index(loop) + 1])
            attached = state.attached(stage.name, loop)
            if attached and before != after:
                name = attached[0].name
                raise schedule_error(
                    state,
                    f"cannot reorder {stage.name}: {name} is computed at {stage.loops[loop].name}, "
                    "whose enclosing loops would change",
                    f"Reorder first, then place {name}: s[{literal(name)}].compute_root() before.",
                    [loop],
                )
        new = state.with_stage(replace(stage, leaves=leaves))
        check_vector_nesting(new, self.stage, state)
        check_fold_order(new, self.stage, state)
        return new

"""How the loops of a stage come from each other: a relation consumes loops that stood before it, and makes others.

    relation ::= SplitRelation(parent, outer, inner, factor | nparts, tail) | FuseRelation(outer, inner, fused)
               | RoundUpRelation(parent, rounded, factor | to) | FactorRelation(moved, loop, stage)
               | AccumulateRelation(fold, along, reverse)

Loops are named by their ids. Primitives append relations to a stage, in order of time.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from ..base.dataclass import dataclass

Tail: TypeAlias = Literal["guard", "mask", "peel", "shift", "round_up"]
"""What becomes of the last tile of a split that does not divide its loop; ``primitives.Split`` tells."""


@dataclass(frozen=True, slots=True)
class SplitRelation:
    """One loop became two: ``parent = outer * extent(inner) + inner``. Given is ``factor`` (extent of inner) or
    ``nparts`` (of outer)."""

    parent: str
    outer: str
    inner: str
    factor: int | None
    nparts: int | None
    tail: Tail = "guard"

    @property
    def consumed(self) -> tuple[str, ...]:
        """The loops that are no leaves any more since this relation makes others of them: here the one that was
        split."""
        return (self.parent,)

    @property
    def made(self) -> tuple[str, ...]:
        """The loops that stand after it: of the tiles, and in a tile."""
        return (self.outer, self.inner)


@dataclass(frozen=True, slots=True)
class FuseRelation:
    """Two loops became one: ``fused = outer * extent(inner) + inner``."""

    outer: str
    inner: str
    fused: str

    @property
    def consumed(self) -> tuple[str, ...]:
        """The loops that were fused, outer one first."""
        return (self.outer, self.inner)

    @property
    def made(self) -> tuple[str, ...]:
        """The loop that stands after it."""
        return (self.fused,)


@dataclass(frozen=True, slots=True)
class RoundUpRelation:
    """One loop became a longer one: ``parent = rounded``, which runs on to a multiple of ``factor``, or ``to`` an
    extent."""

    parent: str
    rounded: str
    factor: int | None
    to: int | None

    @property
    def consumed(self) -> tuple[str, ...]:
        """The loop that was rounded up."""
        return (self.parent,)

    @property
    def made(self) -> tuple[str, ...]:
        """The loop that stands after it."""
        return (self.rounded,)


@dataclass(frozen=True, slots=True)
class FactorRelation:
    """The reduction loops ``moved`` went to another stage; ``loop`` runs over an axis of that stage's results."""

    moved: tuple[str, ...]
    loop: str
    stage: str

    @property
    def consumed(self) -> tuple[str, ...]:
        """The reduction loops that went to another stage."""
        return self.moved

    @property
    def made(self) -> tuple[str, ...]:
        """The loop that stands after it."""
        return (self.loop,)


@dataclass(frozen=True, slots=True)
class AccumulateRelation:
    """The reduction loop ``fold`` stands no more: an iteration of ``along`` folds one term into what those before it
    have folded: the last one of its elements. In ``reverse`` the loop goes along its axis from the end."""

    fold: str
    along: str
    reverse: bool

    @property
    def consumed(self) -> tuple[str, ...]:
        """The reduction loop that no longer stands."""
        return (self.fold,)

    @property
    def made(self) -> tuple[str, ...]:
        """No loop stands in its place."""
        return ()


Relation: TypeAlias = SplitRelation | FuseRelation | RoundUpRelation | FactorRelation | AccumulateRelation

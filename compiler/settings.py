"""What a compilation goes by, besides the graph itself: one value that each of its stages hands to the next."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import field, replace
from typing import Literal, Self, TypeAlias

from ..artifact.options import CodegenOptions
from ..base.choices import check_flag, is_one_of
from ..base.dataclass import dataclass
from ..base.errors import RuntimeArgumentError
from ..base.target import Target
from ..graph.types import GivenShapes
from .fusion.partition import check_unfused
from .selection.records import NO_RECORDS, TuningRecords

Layouts: TypeAlias = Literal["plan", "keep"]
"""Whether a model's layouts are planned, or kept as they are."""


@dataclass(frozen=True, slots=True)
class CompileSettings:
    """``target`` is the machine that code is for, and ``options`` say how it is generated. ``records`` are the tuning
    records that implementations are chosen by. ``layouts`` says whether the layouts of values are planned.
    ``alternatives``: whether functions are also compiled by all other implementations that could serve, for engines to
    choose among. ``unfused`` are the names of operators whose calls are functions of their own. ``expect`` are shapes
    of inputs that leave dimensions open: those that layouts are planned for.

    Raises ``RuntimeArgumentError`` for other ``layouts``, for ``alternatives`` that are no flag and for ``unfused``
    that is no list of names, ``LoopwrightError`` for names that no operator has.
    """

    target: Target
    options: CodegenOptions = field(default_factory=CodegenOptions)
    records: TuningRecords = NO_RECORDS
    layouts: Layouts = "plan"
    alternatives: bool = False
    unfused: Collection[str] = ()
    expect: GivenShapes | None = None

    def __post_init__(self) -> None:
        check_unfused(self.unfused)
        if not is_one_of(self.layouts, Layouts):
            raise RuntimeArgumentError(f"layouts should be 'plan' or 'keep', found {self.layouts!r}")
        check_flag(self.alternatives, "alternatives")

    def with_records(self, records: TuningRecords) -> Self:
        """The same settings with other tuning records."""
        return replace(self, records=records)

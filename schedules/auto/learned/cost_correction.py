"""The analytic model corrected by what was measured: trees learn the logarithm of measured by predicted time.

Predictions of one compute are compared with each other only, so that what is the same for all of its schedules is left
out.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ....base.dataclass import dataclass
from ..candidates import ScheduleCandidate
from .boosted_trees import BoostedTrees, BoostingOptions, Floats

LEAST_ROWS = 7
"""Fewer measurements teach nothing."""
FEW = BoostingOptions(trees=60, depth=2, rate=0.15, least=2.0, shrink=1.0)
"""How trees grow on some tens of rows."""


@dataclass(frozen=True, slots=True, eq=False)
class CostCorrection:
    """``trees`` correct the prediction of the analytic model; None leaves it as it is."""

    trees: BoostedTrees | None = None

    @classmethod
    def learn(cls, measured: Sequence[ScheduleCandidate], seconds: Sequence[float]) -> CostCorrection:
        """What schedules of one compute teach, by their times in any unit."""
        if len(measured) < LEAST_ROWS:
            return cls()
        values, weights = training_values(seconds, [each.cost.cycles for each in measured])
        return cls(BoostedTrees.fit(_rows(measured), values, weights, FEW))

    def logarithms(self, candidates: Sequence[ScheduleCandidate]) -> Floats:
        """Logarithms to base 2 of what schedules are predicted to take, to be compared with each other."""
        cycles: Floats = np.log2([each.cost.cycles for each in candidates])
        return cycles if self.trees is None or not candidates else cycles + self.trees.predict(_rows(candidates))


def training_values(seconds: Sequence[float], cycles: Sequence[float]) -> tuple[Floats, Floats]:
    """What trees learn of schedules of one compute, and how much each counts: logarithms of the times by predictions,
    without their mean; the slow ones, which no search takes, count less."""
    logarithms = np.log2(np.asarray(seconds, np.float64))
    weights: Floats = 2.0 ** (-0.5 * (logarithms - logarithms.min()))
    values: Floats = logarithms - np.log2(np.asarray(cycles, np.float64))
    return values - np.average(values, weights=weights), weights


def _rows(candidates: Sequence[ScheduleCandidate]) -> Floats:
    return np.array([list(each.features.values()) for each in candidates], np.float64)

"""The features that trees correct a prediction by: those of the loop nest, then those of the trace."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from ....lowering.step import Step
from ..cost.predict import NestAnalysis
from .nest_features import nest_features
from .trace_features import trace_features

Features: TypeAlias = dict[str, float]
"""Numbers by their names, always the same names in the same order."""


def features_of(analysis: NestAnalysis, steps: Sequence[Step]) -> Features:
    """The features of a schedule, by what one thread does of its loop nest, and by its steps."""
    return {**nest_features(analysis), **trace_features(steps)}

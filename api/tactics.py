"""Tactics with the operators that they serve: a registry tells misspelt names from those of operators, all of which are
known once they are imported."""

from .. import ops
from ..runtime.tactics.tactic import AbstractTactic, TacticRegistry, tactics

__all__ = ["AbstractTactic", "TacticRegistry", "ops", "tactics"]

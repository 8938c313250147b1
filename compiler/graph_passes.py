"""The passes over a graph before it is fused, in order."""

from __future__ import annotations

from ..graph.node import Function
from .constraints import settle_dimensions
from .fold_constants import Evaluate, fold_constants
from .simplify_inference import simplify_inference


def run_graph_passes(function: Function, evaluate: Evaluate | None = None) -> Function:
    """The function that is fused. ``evaluate`` runs what depends on constants alone; without it that stays."""
    function = settle_dimensions(function)
    function = simplify_inference(function)
    return function if evaluate is None else fold_constants(function, evaluate)

"""The passes over a graph before it is fused, in order."""

from __future__ import annotations

from dataclasses import replace

from ...graph.node import Function
from ..layout.layout_planning import plan_layouts
from ..settings import CompileSettings
from ..symbols import leading_dimensions
from .average_first import average_first
from .constraints import settle_dimensions
from .convolve_transposed import convolve_transposed
from .flatten_tuples import flatten_tuples
from .fold_constants import Evaluate, fold_constants
from .fuse_attention import fuse_attention
from .share_constants import share_constants
from .simplify_inference import simplify_inference
from .split_elementwise import split_elementwise
from .split_products import split_products
from .widen_halves import widen_halves


def run_graph_passes(function: Function, settings: CompileSettings, evaluate: Evaluate | None = None) -> Function:
    """The function that is fused. ``evaluate`` runs what depends on constants alone; without it that stays."""
    options = settings.options
    function = settle_dimensions(flatten_tuples(function))
    if not function.batch and (batch := leading_dimensions(function.params)):
        function = replace(function, batch=batch)
    function = simplify_inference(function)
    function = widen_halves(function, options.precision)
    if evaluate is not None:
        function = fold_constants(function, evaluate)
    if not options.is_strict:
        function = convolve_transposed(fuse_attention(function))
    if not options.is_direct:
        function = average_first(function)
    function = share_constants(split_products(function))
    if settings.layouts == "plan":
        function = plan_layouts(function, settings).function
    return split_elementwise(function)

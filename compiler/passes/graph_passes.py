"""The passes over a graph before it is fused, in order."""

from __future__ import annotations

from dataclasses import replace

from ...base.timing import timed
from ...graph.node import Function
from ...graph.visit import rewrite_bodies
from ..layout.expected_extents import expected_extents
from ..layout.layout_planning import plan_layouts
from ..settings import CompileSettings
from ..symbols import Numbers, leading_dimensions
from .average_first import average_first
from .constraints import settle_dimensions
from .convolve_transposed import convolve_transposed
from .einsum_products import einsum_products
from .flatten_tuples import flatten_tuples
from .fold_constants import Evaluate, fold_constants
from .frame_signals import frame_signals
from .fuse_attention import fuse_attention
from .hoist_invariants import hoist_invariants
from .integer_products import integer_products
from .keep_few_bits import keep_few_bits
from .keep_states import keep_states
from .known_births import with_known_births
from .known_captures import known_captures
from .lift_constants import lift_constants
from .merge_scales import merge_scales
from .multiply_transposed import multiply_transposed
from .repeat_dequantize import repeat_dequantize
from .share_constants import share_constants
from .share_widened import share_widened
from .simplify_inference import simplify_inference
from .sink_dequantize import sink_dequantize
from .slice_known_columns import slice_known_columns
from .split_elementwise import split_elementwise
from .split_products import split_products
from .tabulate_bytes import tabulate_bytes
from .turn_weights import turn_weights
from .unsigned_bytes import unsigned_bytes
from .widen_halves import widen_halves
from .write_out_attention import write_out_attention


def run_graph_passes(
    function: Function,
    settings: CompileSettings,
    evaluate: Evaluate | None = None,
    around: Numbers | None = None,
) -> Function:
    """The function that is fused. ``evaluate`` runs what depends on constants alone; without it that stays. ``around``
    is what is expected of the dimensions of what the function is a body of, None where it is none."""
    options = settings.options
    is_body = around is not None
    function = timed(settle_dimensions, timed(flatten_tuples, function), is_body)
    if not function.batch and (batch := leading_dimensions(function.params)):
        function = replace(function, batch=batch)
    if function.states:
        function = timed(keep_states, function)
    expected = expected_extents(function, settings.expect, around or {})
    function = timed(hoist_invariants, function)
    if evaluate is not None:
        function = timed(known_captures, function, evaluate)
    function = _with_bodies_passed(function, settings, evaluate, expected.numbers)
    function = timed(simplify_inference, timed(turn_weights, timed(einsum_products, function)))
    function = timed(share_widened, timed(widen_halves, function, options.precision))
    if not options.is_strict:
        function = timed(unsigned_bytes, timed(sink_dequantize, function))
        function = timed(keep_few_bits, timed(integer_products, function))
        function = timed(repeat_dequantize, timed(merge_scales, function))
    if evaluate is not None:
        if not options.is_strict:
            function = timed(tabulate_bytes, function, settings.target)
        function = timed(fold_constants, function, evaluate)
        while (known := timed(with_known_births, function)) is not function:
            function = timed(fold_constants, timed(settle_dimensions, known, is_body), evaluate)
    if not options.is_strict:
        function = timed(frame_signals, timed(convolve_transposed, timed(fuse_attention, function)))
    if not options.is_direct:
        function = timed(average_first, function)
    function = timed(share_constants, timed(slice_known_columns, timed(split_products, function)))
    plans = settings.layouts == "plan"
    if plans:
        function = timed(write_out_attention, function, settings)
    function = timed(multiply_transposed, function)
    if plans:
        function = timed(plan_layouts, function, settings, around or {}).function
    function = timed(split_elementwise, function)
    lifted = timed(lift_constants, function)
    return function if lifted is function else timed(share_constants, lifted)


def _with_bodies_passed(
    function: Function, settings: CompileSettings, evaluate: Evaluate | None, expected: Numbers
) -> Function:
    """The function with the same passes run over the bodies of its calls, whose batch is the function's."""
    settings = replace(settings, expect=None)  # the names are those of the function's own inputs

    def passed(body: Function) -> Function:
        in_batch = replace(body, batch=function.batch, batch_size=function.batch_size)
        return replace(run_graph_passes(in_batch, settings, evaluate, expected), batch=(), batch_size=None)

    made = rewrite_bodies(function.body, passed)
    return function if made is function.body else replace(function, body=made)

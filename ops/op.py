"""What operators are made with outside of loopwright, and strategies for targets from outside: ``lw.op``.

*Types and nodes*: ``Type``, ``TensorType``, ``TupleType``, ``tensor_type``; ``Call``, ``Tuple``, ``TupleGet``.

*Operators*: ``register_op`` adds one, with an ``OpPattern`` and, if it has attributes, a subclass of ``Attrs`` whose
fields are made by ``attr``. ``get_op`` finds one by its name. Type relations use ``tensor_argument``, ``same_dtype``,
``broadcast_shapes``, ``normalize_axis`` and ``normalize_axes``; functions that make calls use ``axis_of``, ``axes_of``
and ``per_axis``. The rules of layouts and memory give ``LayoutCandidate`` of ``ValueLayout`` and ``Packed`` arguments,
``RunOfArgument`` and ``RunsOfResult``; ``same_layout`` and ``follow_axes`` are the usual ones of layouts. Where blocks
do not divide an axis, a ``ValueLayout`` has a ``Filling``.

*Strategies*: ``register_strategy`` adds a function that makes an ``OpStrategy`` for a call, under conditions that are
comparisons of extents, or made by ``clause`` and ``of_terms``. ``register_compute`` is enough for an operator with one
compute, and ``register_schedule`` gives that another schedule on some targets. ``inherited_strategy`` is what an
operator has without a target of one's own, which ``TargetKind`` describes.

*Schedules*: ``schedule_default``, those of patterns, and what one's own are built from: ``schedule_around``,
``schedule_stage`` and ``auto_inline_injective``. A compute that gives ``Stages`` hands its schedule the tensors on the
way to its result.

examples/custom_operator.py is an operator in one file, examples/outside_target a target; docs/strategies.md has both.
"""

from ..base.target_kind import TargetKind
from ..graph.node import Call, Tuple, TupleGet
from ..graph.types import TensorType, TupleType, Type, tensor_type
from ..schedules.around import auto_inline_injective, schedule_around
from ..schedules.default_schedule import schedule_stage
from ..te.tensor import Tensors
from .definition.arguments import axes_of, axis_of, per_axis
from .definition.attrs import Attrs, all_non_negative, all_positive, attr, one_of, optional, positive
from .definition.condition import Clause, clause, of_terms
from .definition.implementation import Stages, outputs_of, wrap_compute, wrap_schedule
from .definition.layout_rule import Filling, LayoutCandidate, Packed, ValueLayout, follow_axes, same_layout
from .definition.memory_view import RunOfArgument, RunsOfResult
from .definition.pattern_schedules import broadcast_schedule, injective_schedule, reduce_schedule, schedule_default
from .definition.registry import Op, OpPattern, get_op, register_op
from .definition.relations import broadcast_shapes, normalize_axes, normalize_axis, same_dtype, tensor_argument
from .definition.strategy import (
    OpStrategy,
    inherited_strategy,
    register_broadcast_schedule,
    register_compute,
    register_injective_schedule,
    register_reduce_schedule,
    register_schedule,
    register_strategy,
)

__all__ = [
    "Attrs",
    "Call",
    "Clause",
    "Filling",
    "LayoutCandidate",
    "Op",
    "OpPattern",
    "OpStrategy",
    "Packed",
    "RunOfArgument",
    "RunsOfResult",
    "Stages",
    "TargetKind",
    "TensorType",
    "Tensors",
    "Tuple",
    "TupleGet",
    "TupleType",
    "Type",
    "ValueLayout",
    "all_non_negative",
    "all_positive",
    "attr",
    "auto_inline_injective",
    "axes_of",
    "axis_of",
    "broadcast_schedule",
    "broadcast_shapes",
    "clause",
    "follow_axes",
    "get_op",
    "inherited_strategy",
    "injective_schedule",
    "normalize_axes",
    "normalize_axis",
    "of_terms",
    "one_of",
    "optional",
    "outputs_of",
    "per_axis",
    "positive",
    "reduce_schedule",
    "register_broadcast_schedule",
    "register_compute",
    "register_injective_schedule",
    "register_op",
    "register_reduce_schedule",
    "register_schedule",
    "register_strategy",
    "same_dtype",
    "same_layout",
    "schedule_around",
    "schedule_default",
    "schedule_stage",
    "tensor_argument",
    "tensor_type",
    "wrap_compute",
    "wrap_schedule",
]

"""``nn.resample``: one axis made anew, each element a weighted sum of a few of the old ones.

What resizing does to an axis. Unlike the gathers and products that it could be written as, it is computed once, not
again for each element that the next axis makes of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce
from operator import add

from ... import te
from ...base.dataclass import dataclass
from ...base.errors import TypeInferenceError
from ...base.target import Target
from ...graph.node import Call, Node
from ...graph.types import TensorType, Type
from ...ir.constants import const_int
from ...ir.expr import Expr
from ...te.tensor import Tensors
from ..definition.arguments import axis_of
from ..definition.attrs import Attrs, attr
from ..definition.cost import elements, moved
from ..definition.layout_rule import LayoutCandidate, ValueLayout
from ..definition.registry import OpPattern, register_op
from ..definition.relations import normalize_axis, tensor_argument
from ..definition.strategy import OpStrategy, register_strategy, schedule_default
from .gather import in_bounds

CYCLES_GATHERED = 1.5
"""What an element takes that is read alone, as along the last axis; measured."""


@dataclass(frozen=True)
class ResampleAttrs(Attrs):
    """The attributes of ``nn.resample``."""

    axis: int = attr("the axis that is made anew, 0 or more", 0)


def _relation(types: Sequence[Type], attrs: ResampleAttrs) -> Type:
    data, indices, weights = (tensor_argument(t, n) for t, n in zip(types, ("data", "indices", "weights"), strict=True))
    axis = normalize_axis(attrs.axis, data.ndim)
    if not indices.dtype.is_data_int:
        raise TypeInferenceError(f"indices must be integers, found {indices.dtype}")
    if weights.dtype is not data.dtype or not data.dtype.is_float:
        raise TypeInferenceError(f"data and weights must be of one float, found {data.dtype} and {weights.dtype}")
    places, factors = ([const_int(e) for e in t.shape] for t in (indices, weights))
    if len(places) == 2 and places[0] is None:
        raise TypeInferenceError(f"the first axis of indices, how many are summed, must be known, found {indices}")
    if len(places) != 2 or not places[0] or factors != places:
        raise TypeInferenceError(
            f"indices and weights must be of one shape [summands, elements], found {indices.shape} and {weights.shape}"
        )
    if const_int(data.shape[axis]) == 0:
        raise TypeInferenceError(f"axis {axis} of {data} is empty: there is nothing to read")
    return TensorType((*data.shape[:axis], indices.shape[1], *data.shape[axis + 1 :]), data.dtype)


def _compute(attrs: ResampleAttrs, inputs: Tensors, result: Type) -> te.Tensor:
    data, indices, weights = inputs
    axis, taps = attrs.axis, const_int(indices.shape[0]) or 1

    def element(*i: te.Axis) -> Expr:
        def term(tap: int) -> Expr:
            at = in_bounds(indices[tap, i[axis]], data.shape[axis])
            return data[(*i[:axis], at, *i[axis + 1 :])] * weights[tap, i[axis]]

        return reduce(add, map(term, range(taps)))

    return te.compute(tensor_argument(result, "result").shape, element, name="resample")


def _layout_rule(call: Call, given: ValueLayout | None, target: Target) -> Iterator[LayoutCandidate]:
    """The layout of the data, where the axis is not cut into blocks."""
    axis = None if given is None else given.moved_axis(call.attrs.axis)
    if given is not None and axis is not None:
        yield LayoutCandidate((given, None, None), ResampleAttrs(axis), given)


RESAMPLE = register_op(
    "nn.resample",
    "each element of an axis the sum of elements at indices, times weights",
    [
        ("data", "any shape"),
        ("indices", "[summands, elements]; negative ones count from the end, others are clamped"),
        ("weights", "as indices, of the dtype of data"),
    ],
    _relation,
    OpPattern.OUT_ELEMENTWISE_FUSABLE,
    ResampleAttrs,
    support_level=3,
    layout_rule=_layout_rule,
)


@register_strategy(RESAMPLE)
def _strategy(attrs: ResampleAttrs, inputs: Sequence[Type], result: Type, target: Target) -> OpStrategy:
    strategy = OpStrategy()
    indices = tensor_argument(inputs[1], "indices")
    is_last = attrs.axis == tensor_argument(result, "result").ndim - 1
    gathered = elements(result) * (const_int(indices.shape[0]) or 1) if is_last else 0
    cost = moved([*inputs, result]) + CYCLES_GATHERED * gathered
    strategy.add_implementation(_compute, schedule_default, "nn.resample.generic", cost=cost)
    return strategy


def resample(data: Node, indices: Node, weights: Node, axis: int) -> Call:
    """The axis of ``data`` made of weighted sums: element j is that of ``data[indices[k, j]] * weights[k, j]``."""
    return RESAMPLE(data, indices, weights, attrs=ResampleAttrs(axis_of("resample", data, axis, "data")))

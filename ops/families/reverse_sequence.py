"""reverse_sequence: the first elements along an axis in reverse, as many of each sample as its length says."""

from __future__ import annotations

from collections.abc import Sequence

from ... import te
from ...base.dataclass import dataclass
from ...base.errors import TypeInferenceError
from ...graph.node import Call, Node
from ...graph.types import Type
from ...ir.expr import Expr
from ...ir.makers import as_index
from ...te.tensor import Tensors
from ..definition.arguments import axis_of
from ..definition.attrs import Attrs, attr
from ..definition.op_group import OpGroup
from ..definition.registry import OpPattern, register_op
from ..definition.relations import normalize_axis, same_extent, tensor_argument
from ..definition.strategy import register_compute

GROUP = OpGroup.PARTS


@dataclass(frozen=True)
class ReverseSequenceAttrs(Attrs):
    """The attributes of ``reverse_sequence``."""

    time_axis: int = attr("the axis that is reversed, 0 or more", default=0)
    batch_axis: int = attr("the axis of the samples, 0 or more", default=1)


def _relation(types: Sequence[Type], attrs: ReverseSequenceAttrs) -> Type:
    x, lengths = tensor_argument(types[0], "x"), tensor_argument(types[1], "lengths")
    time, batch = normalize_axis(attrs.time_axis, x.ndim), normalize_axis(attrs.batch_axis, x.ndim)
    if time == batch:
        raise TypeInferenceError(f"the axis that is reversed, {time}, must not be that of the samples")
    if lengths.ndim != 1 or not lengths.dtype.is_data_int:
        raise TypeInferenceError(f"lengths must be integers, one for each sample, found {lengths}")
    same_extent(
        x.shape[batch], lengths.shape[0], f"axis {batch} of x has {x.shape[batch]} samples, lengths {lengths.shape[0]}"
    )
    return x


def _compute(attrs: ReverseSequenceAttrs, inputs: Tensors, result: Type) -> te.Tensor:
    x, lengths = inputs
    time, extent = attrs.time_axis, x.shape[attrs.time_axis]

    def element(*i: te.Axis) -> Expr:
        length = te.minimum(as_index(lengths[i[attrs.batch_axis]]), extent)
        at = te.select(i[time] < length, length - 1 - i[time], i[time])
        return x[(*i[:time], at, *i[time + 1 :])]

    return te.compute(x.shape, element, name="reverse_sequence")


REVERSE_SEQUENCE = register_op(
    "reverse_sequence",
    "the first elements along an axis in reverse, as many as the length of the sample; the others stay",
    [
        ("x", "rank 2 or more"),
        ("lengths", "integers, one for each sample; a length beyond the extent stands for all elements"),
    ],
    _relation,
    OpPattern.INJECTIVE,
    ReverseSequenceAttrs,
    support_level=3,
)
register_compute(REVERSE_SEQUENCE, _compute)


def reverse_sequence(x: Node, lengths: Node, time_axis: int = 0, batch_axis: int = 1) -> Call:
    """The first ``lengths[b]`` elements of sample b along ``time_axis`` in reverse; the others where they are."""
    axes = (axis_of("reverse_sequence", x, axis) for axis in (time_axis, batch_axis))
    return REVERSE_SEQUENCE(x, lengths, attrs=ReverseSequenceAttrs(*axes))

"""Segments: memory that grows while a loop runs, for what nobody knows the size of before.

A *handle*, two int64, says which segment it is, and how many bytes of it are used:

    segment()                 a handle of a segment of its own, nothing of which is used
    append(handle, values)    the handle behind which the elements of a vector stand, which may have moved the segment
    read(handle)              a vector of elements from the beginning of the segment

Handles are handed on as any tensor, by loops above all. ``append`` writes to memory that all handles of the segment
have in common, so that only the last one may be appended to, and what is read is a copy. No pass computes these calls
beforehand, or moves them out of a loop.

As operators of control flow these stand in no table: the compiler makes one native function of each call.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...base.dataclass import dataclass
from ...base.dtype import DType
from ...base.errors import TypeInferenceError
from ...graph.node import Call, Node
from ...graph.types import Type, tensor_type
from ...ir.expr import Expr
from ..definition.attrs import Attrs, attr
from ..definition.extent_formulas import FORMULAS, as_formulas, extent_of_formula
from ..definition.op_group import OpGroup
from ..definition.registry import Argument, Op, OpPattern
from ..definition.relations import tensor_argument

GROUP = OpGroup.CONTROL_FLOW
HANDLE = tensor_type((2,), "int64")


@dataclass(frozen=True)
class SegmentAttrs(Attrs):
    """Which segment of the model it is."""

    number: int = attr("the number of the segment, one for each that the model needs at a time")


@dataclass(frozen=True)
class ReadAttrs(Attrs):
    """What is read."""

    extent: int | str = attr(f"how many elements: {FORMULAS}")
    dtype: str = attr("the dtype of the elements")


def _segment_relation(types: Sequence[Type], attrs: SegmentAttrs) -> Type:
    return HANDLE


def _append_relation(types: Sequence[Type], attrs: Attrs | None) -> Type:
    _check_handle(types[0])
    values = tensor_argument(types[1], "values")
    if values.ndim != 1:
        raise TypeInferenceError(f"values should be a vector, found {values}")
    return HANDLE


def _read_relation(types: Sequence[Type], attrs: ReadAttrs) -> Type:
    _check_handle(types[0])
    return tensor_type((extent_of_formula(attrs.extent, types),), attrs.dtype)


def _check_handle(kind: Type) -> None:
    if kind is not HANDLE:
        raise TypeInferenceError(f"a handle of a segment should be a {HANDLE}, found a {kind}")


_HANDLE = "which segment, and how many bytes of it are used"
SEGMENT = Op(
    "segment", "memory that grows, nothing of which is used", (), SegmentAttrs, _segment_relation, OpPattern.OPAQUE
)
APPEND = Op(
    "append_to_segment",
    "elements behind what is used of a segment",
    (Argument("handle", _HANDLE), Argument("values", "a vector")),
    None,
    _append_relation,
    OpPattern.OPAQUE,
)
READ = Op(
    "read_segment",
    "elements from the beginning of a segment",
    (Argument("handle", f"{_HANDLE}; behind it tensors that formulas are over"),),
    ReadAttrs,
    _read_relation,
    OpPattern.OPAQUE,
    variadic=True,
)
SEGMENT_OPS = frozenset({SEGMENT, APPEND, READ})


def segment(number: int) -> Call:
    """A handle of the segment of that number, nothing of which is used."""
    return SEGMENT(attrs=SegmentAttrs(number))


def append_to_segment(handle: Node, values: Node) -> Call:
    """The handle behind which the elements of a vector stand."""
    return APPEND(handle, values)


def read_segment(handle: Node, extent: Expr, dtype: DType, of: Sequence[Node]) -> Call:
    """The first ``extent`` elements of a segment; dimensions in their number are those that the nodes ``of`` have."""
    (formula,), tellers = as_formulas([extent], of)
    return READ(handle, *tellers, attrs=ReadAttrs(formula, str(dtype)))

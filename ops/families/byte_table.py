"""byte_table: what a table gives for each byte, which is how any function of one byte can be computed.

Quantized models are full of such functions, as an activation between bytes that are dequantized and quantized again
(``compiler/passes/tabulate_bytes.py``). A target that permutes whole vectors of bytes looks up a vector at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ... import te
from ...base.errors import TypeInferenceError
from ...base.target import Target
from ...graph.node import Call, Node
from ...graph.types import TensorType, Type
from ...ir.constants import const_int
from ...ir.expr import Axis, Expr
from ...ir.makers import as_index
from ...te.tensor import Tensors
from ..definition.accumulate import is_byte
from ..definition.layout_rule import LayoutCandidate, ValueLayout
from ..definition.op_group import OpGroup
from ..definition.registry import OpPattern, register_op
from ..definition.relations import tensor_argument
from ..definition.strategy import register_compute

GROUP = OpGroup.ELEMENTWISE
ENTRIES = 256
"""How many values a byte has."""


def _relation(types: Sequence[Type], attrs: None) -> Type:
    x, table = tensor_argument(types[0], "x"), tensor_argument(types[1], "table")
    if not is_byte(x.dtype) or not is_byte(table.dtype):
        raise TypeInferenceError(f"x and table are of int8 or uint8, found {x.dtype} and {table.dtype}")
    if table.ndim != 1 or const_int(table.shape[0]) != ENTRIES:
        raise TypeInferenceError(f"table has an element for each of {ENTRIES} bytes, found {table}")
    return TensorType(x.shape, table.dtype)


def _compute(attrs: None, inputs: Tensors, result: Type) -> te.Tensor:
    x, table = inputs

    def element(*i: Axis) -> Expr:
        return table[as_index(te.cast(x[i], "uint8"))]

    return te.compute(x.shape, element, name="byte_table")


def _rule(call: Call, given: ValueLayout | None, target: Target) -> Iterable[LayoutCandidate]:
    """x and the result in one layout."""
    if given is not None and isinstance(call.type, TensorType) and call.type.ndim == given.primal.ndim:
        yield LayoutCandidate((given, None), call.attrs, given)


BYTE_TABLE = register_op(
    "byte_table",
    "the element of table at the eight bits of x, as a number from 0 to 255",
    [("x", "int8 or uint8"), ("table", "256 elements of int8 or uint8")],
    _relation,
    OpPattern.BROADCAST,
    support_level=3,
    layout_rule=_rule,
)
register_compute(BYTE_TABLE, _compute)


def byte_table(x: Node, table: Node) -> Call:
    """What ``table``, of 256 elements, has for each byte of ``x``; for an int8, 128 to 255 stand for -128 to -1."""
    return BYTE_TABLE(x, table)

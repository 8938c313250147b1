"""Whether a concatenation is computed before what moves or sums its elements, and not as that reads them: then each
element is chosen among all pieces, where lanes of a vector are of several. Written first, each piece is a copy.

The limits are measured: rows of 2 to 16 pieces of 1 to 32 elements, read by each kind of operator.
"""

from __future__ import annotations

import math

from ...graph.node import Call, tensor_of
from ...ir.constants import const_int
from ...ops.definition.registry import OpPattern, get_op, op_of
from ...ops.families.concatenate import CONCATENATE

TAKE, RESHAPE, TRANSPOSE = get_op("take"), get_op("reshape"), get_op("transpose")
FEW_ELEMENTS = 1024
"""A result of fewer is chosen in less time than the call of another function takes."""
FEW_PIECES, FEW_TURNED, FEW_SUMMED = 5, 7, 8
"""So many pieces are chosen among in less time than writing them takes; where what reads them is a transpose; where it
is a reduction, of pieces below ``SUMMED`` elements."""
SUMMED = 5
SHORT, LONG, VERY_LONG = 2, 16, 32
"""Elements of a piece in a row of the result: below the first, all lanes of a vector are of different pieces; from the
second on, an operator that keeps rows finds them in few of its vectors; from the third on, one that gathers does."""


def is_written_first(call: Call, reader: Call) -> bool:
    """Whether a call is a concatenation which takes less time in a function of its own than in that of ``reader``."""
    if call.op is not CONCATENATE or op_of(reader).pattern not in (OpPattern.INJECTIVE, OpPattern.COMM_REDUCE):
        return False
    if reader.op is CONCATENATE or _elements(call, 0) < FEW_ELEMENTS:
        return False
    pieces = len(call.args)
    length = _elements(call, call.attrs.axis) / pieces
    if reader.op is TAKE:
        return length < VERY_LONG
    if reader.op is TRANSPOSE:
        return pieces > FEW_TURNED
    if op_of(reader).pattern is OpPattern.COMM_REDUCE:
        return pieces > (FEW_SUMMED if length < SUMMED else FEW_PIECES)
    if reader.op is RESHAPE:
        return pieces > FEW_PIECES
    return length < SHORT or (pieces > FEW_PIECES and length < LONG)


def _elements(call: Call, axis: int) -> float:
    """How many elements the result has from an axis on; infinity where that is open."""
    return math.prod(const_int(extent) or math.inf for extent in tensor_of(call).shape[axis:])

"""What is written to memory before other operators read it, though one function could compute all of it.

A concatenation: as something else moves or sums its elements, each is chosen among all pieces, where lanes of a vector
are of several. Written first, each piece is a copy.
A transpose that turns rows: only its own schedule goes by tiles that are turned in registers; in another function's
each lane of a vector is read from another row.

The limits are measured: rows of 2 to 16 pieces of 1 to 32 elements, and transposes of 25,000 to 400,000 elements, read
by each kind of operator.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ...graph.node import Call, tensor_of
from ...ir.constants import const_int
from ...ir.expr import Expr
from ...ir.open_extents import LONG as LONG_EXTENT
from ...ops.definition.registry import OpPattern, get_op, op_of
from ...ops.families.concatenate import CONCATENATE

TAKE, RESHAPE, TRANSPOSE = get_op("take"), get_op("reshape"), get_op("transpose")
FEW_ELEMENTS = 1024
"""A result of fewer is computed as it is read, in less time than the call of another function takes."""
FEW_PIECES, FEW_TURNED, FEW_SUMMED = 5, 7, 8
"""So many pieces are chosen among in less time than writing them takes; where what reads them is a transpose; where it
is a reduction, of pieces below ``SUMMED`` elements."""
SUMMED = 5
SHORT, LONG, VERY_LONG = 2, 16, 32
"""Elements of a piece in a row of the result: below the first, all lanes of a vector are of different pieces; from the
second on, an operator that keeps rows finds them in few of its vectors; from the third on, one that gathers does."""


def why_written_first(call: Call, reader: Call) -> str | None:
    """Why a call takes less time in a function of its own than in that of ``reader``, in words; None if it does not."""
    moves = op_of(reader).pattern in (OpPattern.INJECTIVE, OpPattern.COMM_REDUCE)
    if not moves or _elements(tensor_of(call).shape) < FEW_ELEMENTS:
        return None
    if call.op is CONCATENATE and _is_chosen_slowly(call, reader):
        return f"{reader.op.name} would choose each element of {call.op.name} among {len(call.args)} pieces"
    if call.op is TRANSPOSE and _turns_rows(call):
        return f"{reader.op.name} would read each element of {call.op.name} from another row"
    return None


def _is_chosen_slowly(call: Call, reader: Call) -> bool:
    pieces = len(call.args)
    length = _elements(tensor_of(call).shape[call.attrs.axis :]) / pieces
    if reader.op is TAKE:
        return length < VERY_LONG
    if reader.op is TRANSPOSE:
        return pieces > FEW_TURNED
    if op_of(reader).pattern is OpPattern.COMM_REDUCE:
        return pieces > (FEW_SUMMED if length < SUMMED else FEW_PIECES)
    if reader.op is RESHAPE:
        return pieces > FEW_PIECES
    return reader.op is not CONCATENATE and (length < SHORT or (pieces > FEW_PIECES and length < LONG))


def _turns_rows(call: Call) -> bool:
    """Whether neighbours in the result are no neighbours in the argument."""
    shape = tensor_of(call.args[0]).shape
    order = [axis for axis in call.attrs.axes if const_int(shape[axis]) != 1]
    return bool(order) and order[-1] != max(order)


def _elements(shape: Sequence[Expr]) -> int:
    """How many elements a shape has; many for each extent that is open."""
    known = (const_int(extent) for extent in shape)
    return math.prod(LONG_EXTENT if extent is None else extent for extent in known)

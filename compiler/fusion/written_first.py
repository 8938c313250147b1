"""What is written to memory before other operators read it, though one function could compute all of it.

A concatenation: as something else moves or sums its elements, each is chosen among all pieces, where lanes of a vector
are of several. Written first, each piece is a copy.
A transpose that turns rows, or a change of layout that makes rows of blocks: only their own schedules go by tiles that
are turned in registers; in another function's each lane of a vector is read from another row.
Pixels that are interleaved out of channels: only their own schedule does that in registers.
All that moves or broadcasts elements, before a reshape that does not keep rows whole: each lane of a vector is divided
to find its row. Written first, the reshape needs no code. Where rows are open, what moves elements along axes that the
reshape makes a row of: a row of them is no run of an argument.

The limits are measured: rows of 2 to 16 pieces of 1 to 100 elements, transposes of 25,000 to 400,000 elements, and 14
movements of 150,000, read by each kind of operator.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ...graph.layout import Layout
from ...graph.node import Call, Node, tensor_of
from ...graph.types import TensorType
from ...ir.constants import ONE, const_int
from ...ir.expr import Expr
from ...ir.factors import quotient
from ...ir.open_extents import LONG as LONG_EXTENT
from ...ops.definition.registry import OpPattern, get_op, op_of
from ...ops.families.concatenate import CONCATENATE
from ...ops.families.layout_transform import LAYOUT_TRANSFORM
from ...ops.families.reshape import RESHAPE, groups_of_axes
from ...ops.families.space_depth import DEPTH_TO_SPACE, is_interleaved

TAKE, TRANSPOSE = get_op("take"), get_op("transpose")
FEW_ELEMENTS = 1024
"""A result of fewer is computed as it is read, in less time than the call of another function takes."""
FEW_PIECES, FEW_TURNED, FEW_SUMMED = 5, 7, 8
"""So many pieces are chosen among in less time than writing them takes; where what reads them is a transpose; where it
is a reduction, of pieces below ``SUMMED`` elements."""
SUMMED = 5
VECTOR = 16
"""Elements that a piece which is gathered from has some whole numbers of."""
SHORT, LONG, VERY_LONG = 2, 16, 32
"""Elements of a piece in a row of the result: below the first, all lanes of a vector are of different pieces; from the
second on, an operator that keeps rows finds them in few of its vectors; from the third on, one that gathers does."""


def why_written_first(call: Call, reader: Call) -> str | None:
    """Why a call takes less time in a function of its own than in that of ``reader``, in words; None if it does not."""
    moves = op_of(reader).pattern in (OpPattern.INJECTIVE, OpPattern.COMM_REDUCE)
    if not moves or not isinstance(call.type, TensorType) or _elements(call.type.shape) < FEW_ELEMENTS:
        return None
    if call.op is CONCATENATE and _is_chosen_slowly(call, reader):
        return f"{reader.op.name} would choose each element of {call.op.name} among {len(call.args)} pieces"
    if call.op is TRANSPOSE and _turns_rows(call):
        return f"{reader.op.name} would read each element of {call.op.name} from another row"
    if call.op is LAYOUT_TRANSFORM and _turns_blocks(call):
        return f"{reader.op.name} would read each element of {call.op.name} from another block"
    if call.op is DEPTH_TO_SPACE and is_interleaved(call.attrs):
        return f"{reader.op.name} would read each element of {call.op.name} from another channel"
    if reader.op is RESHAPE and _is_moved(call) and (_changes_rows(reader) or _joins_moved(call, reader)):
        return f"{reader.op.name} would divide the number of each element to find its row in {call.op.name}"
    return None


def _is_chosen_slowly(call: Call, reader: Call) -> bool:
    pieces = len(call.args)
    length = _elements(tensor_of(call).shape[call.attrs.axis :]) / pieces
    if reader.op is TAKE:
        return length < VERY_LONG or length % VECTOR != 0
    if reader.op is TRANSPOSE:
        return pieces > FEW_TURNED
    if op_of(reader).pattern is OpPattern.COMM_REDUCE:
        return pieces > (FEW_SUMMED if length < SUMMED else FEW_PIECES)
    if reader.op is RESHAPE:
        return pieces > FEW_PIECES
    return reader.op is not CONCATENATE and (length < SHORT or (pieces > FEW_PIECES and length < LONG))


def _changes_rows(reshape: Call) -> bool:
    """Whether the innermost axis, but for those of one element, becomes one of another extent; not where one is open:
    a reshape behind this one may give it back, as exporters write windows of open images."""
    ends = [_several(tensor_of(value).shape)[-1:] for value in (reshape.args[0], reshape)]
    before, after = (const_int(end[0]) if end else None for end in ends)
    return before is not None and after is not None and before != after


def _joins_moved(call: Call, reshape: Call) -> bool:
    """Whether a reshape makes rows of several axes, of which some are open, and a call moves or broadcasts elements
    along them. It does not where rows are cut: each part then lies in one of them."""
    before, made = tensor_of(reshape.args[0]).shape, tensor_of(reshape).shape
    joined = next((old for old, _ in reversed(groups_of_axes(before, made)) if _several(_at(before, old))), range(0))
    row = _several(_at(before, joined))
    if len(row) < 2 or None not in map(const_int, row) or tensor_of(call).ndim != len(before):
        return False
    if quotient(row[-1:], _several(made)[-1:]) is not None:
        return False
    if call.op is CONCATENATE:
        return call.attrs.axis in joined
    if call.op is TRANSPOSE:
        return any(call.attrs.axes[axis] != axis for axis in joined)
    rows = [_row_of(each, joined, len(before)) for each in call.args if isinstance(each.type, TensorType)]
    if op_of(call).pattern is OpPattern.INJECTIVE:  # what is moved comes first
        return any(not _are_equal(other, row) for other in rows[:1])
    return any(other and not _are_equal(other, row) for other in rows)


def _several(shape: Sequence[Expr]) -> list[Expr]:
    """The extents of more than one element."""
    return [extent for extent in shape if const_int(extent) != 1]


def _at(shape: Sequence[Expr], axes: range) -> Sequence[Expr]:
    return shape[axes.start : axes.stop]


def _row_of(argument: Node, axes: range, rank: int) -> Sequence[Expr]:
    """The extents of an argument, as it is broadcast to a rank, of some axes, but for those of one element."""
    shape = (*[ONE] * (rank - tensor_of(argument).ndim), *tensor_of(argument).shape)
    return _several(_at(shape, axes))


def _is_moved(call: Call) -> bool:
    """Whether elements of the result are not those of the arguments in order, nor where these lie already."""
    op = op_of(call)
    if op.pattern is OpPattern.INJECTIVE:
        return op.memory_view(call) is None
    shapes = [_several(tensor_of(argument).shape) for argument in call.args]
    whole = _several(tensor_of(call).shape)
    return op.pattern is OpPattern.BROADCAST and any(shape and not _are_equal(shape, whole) for shape in shapes)


def _are_equal(a: Sequence[Expr], b: Sequence[Expr]) -> bool:
    return len(a) == len(b) and all(x is y for x, y in zip(a, b, strict=True))


def _turns_rows(call: Call) -> bool:
    """Whether neighbours in the result are no neighbours in the argument."""
    shape = tensor_of(call.args[0]).shape
    order = [axis for axis in call.attrs.axes if const_int(shape[axis]) != 1]
    return bool(order) and order[-1] != max(order)


def _turns_blocks(call: Call) -> bool:
    """Whether neighbours in the result are no neighbours in the argument."""
    source, made = (Layout(text).axes[-1].name for text in (call.attrs.source, call.attrs.destination))
    return source != made


def _elements(shape: Sequence[Expr]) -> int:
    """How many elements a shape has; many for each extent that is open."""
    known = (const_int(extent) for extent in shape)
    return math.prod(LONG_EXTENT if extent is None else extent for extent in known)

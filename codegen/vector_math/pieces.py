"""Values of any number of lanes as pieces that fill a register."""

from __future__ import annotations

from collections.abc import Sequence

from llvmlite import ir as llvm_ir

from ..lanes import Float, Lanes, float_type
from ..types import shuffle

_I32 = llvm_ir.IntType(32)


def pieces(x: Float, width: int) -> list[llvm_ir.Value]:
    """The lanes in pieces of ``width``; the last one is filled up with the last lane."""
    return [_piece(x, first, width) for first in range(0, x.lanes.count, width)]


def _piece(x: Float, first: int, width: int) -> llvm_ir.Value:
    builder, count = x.lanes.builder, x.lanes.count
    if count == width:
        return x.value
    if count == 1:
        kind = llvm_ir.VectorType(float_type(x.bits), width)
        return builder.insert_element(llvm_ir.Constant(kind, llvm_ir.Undefined), x.value, _I32(0))
    return shuffle(builder, x.value, x.value, [min(first + k, count - 1) for k in range(width)])


def joined(lanes: Lanes, parts: Sequence[llvm_ir.Value], width: int) -> llvm_ir.Value:
    """The value whose ``pieces`` these are."""
    builder, count = lanes.builder, lanes.count
    if count == width:
        return parts[0]
    if count == 1:
        return builder.extract_element(parts[0], _I32(0))
    whole, size = list(parts), width
    while len(whole) > 1:
        if len(whole) % 2:
            whole.append(whole[-1])
        pairs = zip(whole[::2], whole[1::2], strict=True)
        whole = [shuffle(builder, a, b, range(2 * size)) for a, b in pairs]
        size *= 2
    return whole[0] if size == count else shuffle(builder, whole[0], whole[0], range(count))

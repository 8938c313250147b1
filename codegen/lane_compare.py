"""Comparisons of indices lane by lane, as masks of loops' ends are, in integers as narrow as the lanes of data.

Indices have 64 bits, twice as many as a lane of floats: a comparison of theirs takes two vectors, and more to put masks
together. Where lanes differ by known numbers, what they are compared with is one number, and near these or without
effect: it is brought near them as a scalar, and compared in narrow lanes. In which order the lanes come is then free.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from llvmlite import ir as llvm_ir

from ..base.target import Target
from ..ir.constants import ZERO
from ..ir.expr import Binary, Compare, Expr, Logical
from .facts import lane_offsets
from .types import I8, I32, I64, call_intrinsic, lanes_of, shuffle, splat

NARROWEST = 8
_BELOW, _ABOVE = ("<", "<="), (">", ">=")

Lanes = Sequence[int | None]
"""Which lane of a vector each lane of another one is; None for one that is off."""


class LaneMasks:
    """Emits comparisons of vectors of indices as masks of narrow lanes. ``value_of`` emits an expression."""

    def __init__(self, builder: llvm_ir.IRBuilder, target: Target, value_of: Callable[[Expr], llvm_ir.Value]) -> None:
        self._builder = builder
        self._target = target
        self._value_of = value_of

    def compare(self, node: Compare, lanes: Lanes | None = None) -> llvm_ir.Value | None:
        """The mask of a comparison of vectors of indices, or these lanes of it; None where it is no narrower so."""
        left, right = lane_offsets(node.a), lane_offsets(node.b)
        if left is None or right is None or node.op not in (*_BELOW, *_ABOVE):
            return None
        offsets = [a - b for a, b in zip(left[1], right[1], strict=True)]
        low, high = min(offsets) - 1, max(offsets) + 1
        never = high + 1 if node.op in _BELOW else low - 1
        wanted = offsets if lanes is None else [never if lane is None else offsets[lane] for lane in lanes]
        widest = I64.width if lanes is None and not self._closes_a_unit(len(wanted)) else I32.width
        bits = max(NARROWEST, min(widest, 1 << (self._target.vector_bits // len(wanted)).bit_length() - 1))
        if bits == I64.width or low <= -(1 << (bits - 1)) or high + 1 >= 1 << (bits - 1):
            return None
        difference = self._value_of(right[0] if left[0] is ZERO else Binary("-", right[0], left[0]))
        narrow = llvm_ir.IntType(bits)
        limit = self._builder.trunc(self._clamp(difference, low, high), narrow)
        constants = llvm_ir.Constant(llvm_ir.VectorType(narrow, len(wanted)), wanted)
        return self._builder.icmp_signed(node.op, constants, splat(self._builder, limit, len(wanted)))

    def _closes_a_unit(self, lanes: int) -> bool:
        """Whether so many lanes of 64 bits fill a vector of 512 bits, which those of 32 bits need not: while cores of
        Intel have one on its way, they multiply vectors of 256 bits by one unit of two."""
        return self._target.has("avx512vl") and lanes * I64.width == self._target.vector_bits

    def of_lanes(self, condition: Expr | None, mask: llvm_ir.Value, lanes: Lanes) -> llvm_ir.Value:
        """The chosen lanes of ``mask``, which is the value of the condition."""
        match condition:
            case Compare() if condition.a.dtype.is_index:
                some = self.compare(condition, lanes)
                if some is not None:
                    return some
            case Logical("and", a, b):
                return self._builder.and_(*(self.of_lanes(part, self._value_of(part), lanes) for part in (a, b)))
        # Vectors of bits are shuffled one by one, of bytes as a whole.
        off = lanes_of(mask)
        wide = self._builder.sext(mask, llvm_ir.VectorType(I8, off))
        none = splat(self._builder, llvm_ir.Constant(I8, 0), off)
        some = shuffle(self._builder, wide, none, [off if lane is None else lane for lane in lanes])
        return self._builder.icmp_signed("<", some, splat(self._builder, llvm_ir.Constant(I8, 0), len(lanes)))

    def _clamp(self, value: llvm_ir.Value, low: int, high: int) -> llvm_ir.Value:
        """The value, but no less than ``low``, nor more than ``high``."""
        for name, limit in (("smax", low), ("smin", high)):
            value = call_intrinsic(self._builder, name, [I64], I64, [value, llvm_ir.Constant(I64, limit)])
        return value

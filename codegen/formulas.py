"""LLVM IR that computes extents from dimensions, and notes where a number leaves 64 bits or is divided by 0."""

from __future__ import annotations

from collections.abc import Mapping

from llvmlite import ir as llvm_ir

from ..artifact.extents import Extent, Formula
from .lanes import external
from .types import I1, I64

_OVERFLOWING = {"+": "sadd", "-": "ssub", "*": "smul"}


class FormulaEmitter:
    """Emits at the builder's position, each formula once. Mutable: ``wrong`` is an i1, whether any went wrong yet."""

    def __init__(self, builder: llvm_ir.IRBuilder, dims: Mapping[str, llvm_ir.Value]) -> None:
        self._builder = builder
        self._known: dict[Extent, llvm_ir.Value] = {name: dims[name] for name in dims}
        self.wrong: llvm_ir.Value = llvm_ir.Constant(I1, 0)

    def copy(self) -> FormulaEmitter:
        """Another one, of what is known here: what it emits holds where the builder stands, and not here."""
        made = FormulaEmitter(self._builder, {})
        made._known, made.wrong = dict(self._known), self.wrong
        return made

    def name(self, dim: str, value: llvm_ir.Value) -> None:
        """Give a dimension its value from here on."""
        self._known[dim] = value

    def value(self, extent: Extent) -> llvm_ir.Value:
        """The value of an extent as an i64: a number, a dimension, or a formula, whose operations are emitted when it
        is first asked for."""
        if isinstance(extent, int):
            return llvm_ir.Constant(I64, extent)
        if extent not in self._known and isinstance(extent, Formula):
            left, right = (self.value(part) for part in extent.parts)
            self._known[extent] = self._apply(extent.op, left, right)
        return self._known[extent]

    def times(self, left: llvm_ir.Value, right: llvm_ir.Value) -> llvm_ir.Value:
        """A product of two numbers, where that is beyond 64 bits noted like others."""
        return self._apply("*", left, right)

    def _apply(self, op: str, left: llvm_ir.Value, right: llvm_ir.Value) -> llvm_ir.Value:
        builder = self._builder
        if op in _OVERFLOWING:
            kind = llvm_ir.LiteralStructType([I64, I1])
            name = f"llvm.{_OVERFLOWING[op]}.with.overflow.i64"
            pair = builder.call(external(builder.module, name, kind, [I64, I64]), [left, right])
            self._note(builder.extract_value(pair, 1))
            return builder.extract_value(pair, 0)
        if op in ("min", "max"):
            return builder.call(external(builder.module, f"llvm.s{op}.i64", I64, [I64, I64]), [left, right])
        return self._floor(op, left, right)

    def _floor(self, op: str, left: llvm_ir.Value, right: llvm_ir.Value) -> llvm_ir.Value:
        """``//`` and ``%``, rounded towards minus infinity. A divisor is taken for 1 where it is not positive, which no
        formula of a model means."""
        builder = self._builder
        zero, one = llvm_ir.Constant(I64, 0), llvm_ir.Constant(I64, 1)
        bad = builder.icmp_signed("<=", right, zero)
        self._note(bad)
        divisor = builder.select(bad, one, right)
        rest = builder.srem(left, divisor)
        negative = builder.icmp_signed("<", rest, zero)
        if op == "%":
            return builder.select(negative, builder.add(rest, divisor), rest)
        quotient = builder.sdiv(left, divisor)
        return builder.select(negative, builder.sub(quotient, one), quotient)

    def _note(self, wrong: llvm_ir.Value) -> None:
        self.wrong = self._builder.or_(self.wrong, wrong)

"""Expressions of the loop IR as LLVM instructions.

Each distinct node is emitted once in each scope that it dominates; what reads memory only once in each statement, since
the next statement may write. The order of emission follows the expression, so equal programs give equal text.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import assert_never

from llvmlite import ir as llvm_ir

from ..artifact.options import CodegenOptions
from ..base.errors import InternalError
from ..base.target import Target
from ..ir.constants import const_int, is_const
from ..ir.contents import reads_memory
from ..ir.expr import (
    Binary,
    Broadcast,
    Call,
    Cast,
    Compare,
    Const,
    Expr,
    IfThenElse,
    Let,
    Load,
    Logical,
    Ramp,
    Reduce,
    Select,
    TensorRead,
    Unary,
    Var,
)
from ..ir.intrinsics import INTRINSICS
from ..ir.narrow_casts import narrow_cast
from ..ir.visit import children
from . import floats, integers
from .casts import convert, narrow_small, widen_small
from .checks import Checks
from .contraction import Contraction, contraction
from .dot2 import dot2, pair
from .dot4 import dot4
from .facts import Division, IndexFacts
from .joined_bytes import JoinedBytes, joined_bytes
from .memory import MemoryEmitter
from .types import (
    call_intrinsic,
    constant,
    is_small_float,
    same_lanes,
    splat,
    value_type,
)
from .vector_math import emit_intrinsic

_FLOAT_OPS = {"+": "fadd", "-": "fsub", "*": "fmul", "/": "fdiv"}
_INT_OPS = {"+": "add", "-": "sub", "*": "mul", "&": "and_", "|": "or_", "^": "xor"}


class ExprEmitter:
    """Emits expressions at the builder's position. ``variables`` holds the value of each variable in scope."""

    def __init__(self, builder: llvm_ir.IRBuilder, target: Target, options: CodegenOptions) -> None:
        self.builder = builder
        self.target = target
        self.options = options
        self.facts = IndexFacts()
        self.variables: dict[Var, llvm_ir.Value] = {}
        self.memory = MemoryEmitter(builder, target, self.facts, self.value)
        self.checks: Checks | None = None
        self._index_flags = () if options.debug else ("nsw",)  # a debug build finds the overflown index out of bounds
        self._scopes: list[dict[Expr, llvm_ir.Value]] = [{}]
        self._reads: list[dict[Expr, llvm_ir.Value]] = [{}]

    @contextmanager
    def scope(self) -> Iterator[None]:
        """Code that need not dominate what follows: its values are forgotten at the end."""
        self._scopes.append({})
        self._reads.append({})
        try:
            yield
        finally:
            self._scopes.pop()
            self._reads.pop()

    def forget_reads(self) -> None:
        """Memory may have changed: nothing loaded so far is used again."""
        self._reads = [{} for _ in self._reads]

    def value(self, root: Expr) -> llvm_ir.Value:
        """The value of an expression; deep trees do not meet Python's recursion limit."""
        stack = [root]
        while stack:
            node = stack[-1]
            if self._known(node) is None:
                pending = [part for part in self._parts(node) if self._known(part) is None]
                if pending:
                    stack.extend(reversed(pending))
                    continue
                memo = self._reads if reads_memory(node) else self._scopes
                emitted = self._emit(node)
                memo[-1][node] = emitted
            stack.pop()
        found = self._known(root)
        assert found is not None
        return found

    def _known(self, node: Expr) -> llvm_ir.Value | None:
        if isinstance(node, Var):
            return self._variable(node)
        for memo in reversed(self._reads if reads_memory(node) else self._scopes):
            if node in memo:
                return memo[node]
        return None

    def _variable(self, var: Var) -> llvm_ir.Value:
        if var not in self.variables:
            raise InternalError(f"the variable {var.name} has no value where code for it is generated")
        return self.variables[var]

    def _parts(self, node: Expr) -> tuple[Expr, ...]:
        """The operands to emit before the node: not what is evaluated under a condition, nor vector indices."""
        match node:
            case IfThenElse(condition, _, _):
                return (condition,)
            case Let(_, value, _):
                return (value,)
            case Load(_, _, mask):
                return () if mask is None else (mask,)
            case Binary():
                if (words := self._joined(node)) is not None:
                    return () if words.mask is None else (words.mask,)
                if (call := self._summed_call(node)) is not None:
                    return (*call.args, _other(node, call))
                found = self._contraction(node)
                return (node.a, node.b) if found is None else (found.a, found.b, found.addend)
            case _:
                return children(node)  # type: ignore[return-value]

    def _emit(self, node: Expr) -> llvm_ir.Value:
        match node:
            case Var():
                return self._variable(node)
            case Const(number, kind):
                return constant(kind, number)
            case Cast(to, value) if to.is_narrow or value.dtype.is_narrow:
                return self.value(narrow_cast(to, value))
            case Cast(to, value):
                return convert(self.builder, self.target, self.value(value), value.dtype, to)
            case Unary():
                return self._unary(node)
            case Binary():
                return self._binary(node)
            case Compare():
                return self._compare(node)
            case Logical(op, a, b):
                return (self.builder.and_ if op == "and" else self.builder.or_)(self.value(a), self.value(b))
            case Select(condition, a, b):
                return self.builder.select(self.value(condition), self.value(a), self.value(b))
            case IfThenElse():
                return self._if_then_else(node)
            case Let():
                return self._let(node)
            case Call("arithmetic_fence", (value,), _):
                return self.value(value)
            case Call(name, args, _):
                values = [self.value(a) for a in args]
                if INTRINSICS[name].domain == "bits":
                    return self.builder.bitcast(values[0], value_type(node.dtype))
                if name == "dot4":
                    return dot4(self.builder, self.target, same_lanes(values[0], 0), *values)
                if name == "dot2":
                    return dot2(self.builder, self.target, self.options, None, *values)
                if name == "pair":
                    return pair(self.builder, *values)
                return emit_intrinsic(self.builder, name, values, args[0].dtype, self.target)
            case Load(buffer, indices, mask):
                where = None if mask is None or is_const(mask, 1) else self.value(mask)
                if self.checks is not None:
                    self.checks.access(node, where)
                return self.memory.load(buffer, indices, where, mask)
            case Ramp():
                return self._ramp(node)
            case Broadcast(value, lanes):
                return splat(self.builder, self.value(value), lanes)
            case TensorRead() | Reduce():
                raise InternalError(f"{type(node).__name__} reached code generation: {node}")
            case _:
                assert_never(node)

    def _unary(self, node: Unary) -> llvm_ir.Value:
        value, kind = self.value(node.a), node.dtype
        if node.op in ("not", "~"):
            return self.builder.xor(value, same_lanes(value, -1 if node.op == "~" else 1))
        if is_small_float(kind):
            return self.builder.xor(value, same_lanes(value, 1 << 15))
        if kind.is_float:
            return self.builder.fneg(value)
        return self.builder.sub(same_lanes(value, 0), value, flags=self._index_flags if kind.is_index else ())

    def _binary(self, node: Binary) -> llvm_ir.Value:
        if (words := self._joined(node)) is not None:
            return self.memory.load_words(words, None if words.mask is None else self.value(words.mask))
        if (call := self._summed_call(node)) is not None:
            return self._summed(call, _other(node, call))
        if (fma := self._contraction(node)) is not None:
            return self._fused(fma)
        a, b = self.value(node.a), self.value(node.b)
        if node.dtype.is_float:
            return self._float_binary(node, a, b)
        kind, op = node.dtype, node.op
        if op in ("min", "max"):
            return integers.min_max(self.builder, kind, op, a, b)
        if op in ("//", "%"):
            if self.checks is not None and kind.is_index:
                self.checks.divisor(node, b)
            signs = self.facts.non_negative(node.a), self.facts.non_negative(node.b)
            known = Division(const_int(node.b), *signs)
            return integers.floor_divide(self.builder, kind, a, b, known, modulo=op == "%")
        if op in ("<<", ">>"):
            return integers.shift(self.builder, kind, op, a, b, const_int(node.b))
        flags = self._index_flags if kind.is_index else ()
        return getattr(self.builder, _INT_OPS[op])(a, b, flags=flags)

    def _float_binary(self, node: Binary, a: llvm_ir.Value, b: llvm_ir.Value) -> llvm_ir.Value:
        kind, op = node.dtype, node.op
        if op == "/" and self.options.precision == "fast" and (inverse := floats.reciprocal(node.b)) is not None:
            op, b = "*", constant(kind, inverse)
        a, b = (widen_small(self.builder, self.target, v, kind) for v in (a, b))
        if op in ("min", "max"):
            not_nan = floats.never_nan(node.a), floats.never_nan(node.b)
            result = floats.min_max(self.builder, self.target, op, (a, b), not_nan)
        else:
            result = getattr(self.builder, _FLOAT_OPS[op])(a, b)
        return narrow_small(self.builder, self.target, result, kind)

    def _joined(self, node: Binary) -> JoinedBytes | None:
        """The words in memory that this joins of their bytes, which are loaded as they lie unless each access is
        checked."""
        words = joined_bytes(node, self.target) if self.checks is None else None
        return words if words is not None and self.memory.has_address(words.buffer) else None

    def _summed_call(self, node: Binary) -> Call | None:
        """The dot4, or unless precision is strict the dot2, that this sum goes on from its other operand."""
        taken = ("dot4",) if self.options.precision == "strict" else ("dot4", "dot2")
        calls = (side for side in (node.b, node.a) if isinstance(side, Call) and side.name in taken)
        return next(calls, None) if node.op == "+" else None

    def _contraction(self, node: Binary) -> Contraction | None:
        contracts = self.options.precision != "strict" and self.target.has_fma
        return contraction(node) if contracts else None

    def _summed(self, call: Call, start: Expr) -> llvm_ir.Value:
        x, y = (self.value(arg) for arg in call.args)
        if call.name == "dot2":
            return dot2(self.builder, self.target, self.options, self.value(start), x, y)
        return dot4(self.builder, self.target, self.value(start), x, y)

    def _fused(self, fma: Contraction) -> llvm_ir.Value:
        a, b, addend = self.value(fma.a), self.value(fma.b), self.value(fma.addend)
        a = self.builder.fneg(a) if fma.negate_a else a
        addend = self.builder.fneg(addend) if fma.negate_addend else addend
        return call_intrinsic(self.builder, "fma", [a.type], a.type, [a, b, addend])

    def _compare(self, node: Compare) -> llvm_ir.Value:
        if node.a.dtype.is_index and node.dtype.lanes > 1:
            mask = self.memory.masks.compare(node)
            if mask is not None:
                return mask
        a, b, kind = self.value(node.a), self.value(node.b), node.a.dtype
        if kind.is_float:
            a, b = (widen_small(self.builder, self.target, v, kind) for v in (a, b))
            compare = self.builder.fcmp_unordered if node.op == "!=" else self.builder.fcmp_ordered
        else:
            compare = self.builder.icmp_signed if kind.is_signed else self.builder.icmp_unsigned
        return compare(node.op, a, b)

    def _if_then_else(self, node: IfThenElse) -> llvm_ir.Value:
        condition = self.value(node.condition)
        after = self.builder.append_basic_block("if.value")
        incoming = []
        branch = self.builder.block
        blocks = [self.builder.append_basic_block(name) for name in ("if.then", "if.else")]
        for block, side in zip(blocks, (node.a, node.b), strict=True):
            self.builder.position_at_end(block)
            with self.scope():
                incoming.append((self.value(side), self.builder.block))
            self.builder.branch(after)
        self.builder.position_at_end(branch)
        self.builder.cbranch(condition, *blocks)
        self.builder.position_at_end(after)
        phi = self.builder.phi(value_type(node.dtype))
        for value, block in incoming:
            phi.add_incoming(value, block)
        return phi

    def _let(self, node: Let) -> llvm_ir.Value:
        self.bind(node.var, node.value)
        with self.scope():
            return self.value(node.body)

    def bind(self, var: Var, value: Expr) -> None:
        """Give a variable the value of an expression."""
        self.variables[var] = self.value(value)
        self.facts.learn(var, self.facts.of(value))

    def _ramp(self, node: Ramp) -> llvm_ir.Value:
        base, stride = self.value(node.base), self.value(node.stride)
        steps = llvm_ir.Constant(llvm_ir.VectorType(base.type, node.lanes), list(range(node.lanes)))
        flags = self._index_flags if node.dtype.is_index else ()
        if not is_const(node.stride, 1):
            steps = self.builder.mul(steps, splat(self.builder, stride, node.lanes), flags=flags)
        return self.builder.add(splat(self.builder, base, node.lanes), steps, flags=flags)


def _other(node: Binary, side: Expr) -> Expr:
    return node.a if side is node.b else node.b

"""Expressions of the loop IR, and of tensor expressions, as operations of arith, math, vector and scf.

Each distinct node is written once in each scope that it dominates, and again where the memory that it reads may have
changed meanwhile. ``loops.py`` and ``compiler/reports/linalg.py`` say how a read is written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import assert_never

from ...base.dtype import DType
from ...base.errors import MlirError
from ...ir.constants import const_int
from ...ir.expr import (
    Binary,
    Broadcast,
    Call,
    Cast,
    Compare,
    CompareOp,
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
from ...ir.narrow_casts import narrow_cast
from ...ir.visit import children
from ..contraction import Contraction, contraction
from ..facts import Division, IndexFacts, add, as_ramp
from .casts import convert, narrowed, widened
from .integers import floor_divide, min_max, shift
from .intrinsics import emit_intrinsic, fma
from .text import Value, Writer, type_of

_FLOAT_OPS = {"+": "addf", "-": "subf", "*": "mulf", "/": "divf", "min": "minimumf", "max": "maximumf"}
_INT_OPS = {"+": "addi", "-": "subi", "*": "muli", "&": "andi", "|": "ori", "^": "xori"}
_ORDER = {"<": "lt", "<=": "le", ">": "gt", ">=": "ge"}
_EQUALITY = {"==": "eq", "!=": "ne"}
_MIRRORED: dict[str, CompareOp] = {">": "<", ">=": "<="}

Read = Callable[[Load | TensorRead], Value]


class MlirExprEmitter:
    """Writes expressions as operations of MLIR. ``variables`` holds the value of each variable in scope; ``contract``
    lets sums take products in as fma. Mutable: what has been written in the scopes at hand."""

    def __init__(self, writer: Writer, read: Read, *, contract: bool) -> None:
        self.writer = writer
        self.facts = IndexFacts()
        self.variables: dict[Var, Value] = {}
        self._read = read
        self._contract = contract
        self._scopes: list[dict[Expr, tuple[Value, int]]] = [{}]  # values, and when they were written
        self._changed: dict[Var | None, int] = {None: 0}
        self._clock = 1
        self._read_from: dict[Expr, frozenset[Var]] = {}

    @contextmanager
    def scope(self) -> Iterator[None]:
        """A region: its values are not seen outside."""
        self._scopes.append({})
        try:
            yield
        finally:
            self._scopes.pop()

    def forget(self, data: Var | None = None) -> None:
        """The memory of this address (of all, if None) may have changed: what was read from it is not used again."""
        self._changed[data] = self._clock
        self._clock += 1

    def value(self, root: Expr) -> Value:
        """The value of an expression; deep trees do not meet Python's recursion limit."""
        stack = [root]
        while stack:
            node = stack[-1]
            if self._known(node) is None:
                pending = [part for part in self._parts(node) if self._known(part) is None]
                if pending:
                    stack.extend(reversed(pending))
                    continue
                self._scopes[-1][node] = self._emit(node), self._clock
            stack.pop()
        found = self._known(root)
        assert found is not None
        return found

    def _known(self, node: Expr) -> Value | None:
        if isinstance(node, Var):
            if node not in self.variables:
                raise MlirError(f"the variable {node.name} has no value where it is used")
            return self.variables[node]
        for memo in reversed(self._scopes):
            if node in memo:
                value, written = memo[node]
                return value if written > self._last_change(node) else None
        return None

    def _last_change(self, node: Expr) -> int:
        """The time at which memory that the expression reads was last stored to."""
        read = self._memory_of(node)
        return max(self._changed.get(data, 0) for data in (None, *read)) if read else 0

    def _memory_of(self, root: Expr) -> frozenset[Var]:
        """The addresses of the memory that an expression reads."""
        stack = [root]
        while stack:
            node = stack[-1]
            inner: list[Expr] = [] if node in self._read_from else list(children(node))  # type: ignore[arg-type]
            pending = [c for c in inner if c not in self._read_from]
            if pending:
                stack.extend(pending)
                continue
            if node not in self._read_from:
                own = frozenset((node.buffer.data,)) if isinstance(node, Load) else frozenset()
                self._read_from[node] = own.union(*(self._read_from[c] for c in inner))
            stack.pop()
        return self._read_from[root]

    def _parts(self, node: Expr) -> tuple[Expr, ...]:
        """The operands to write before the node: not what is evaluated under a condition, nor subscripts."""
        match node:
            case IfThenElse(condition, _, _):
                return (condition,)
            case Let(_, value, _):
                return (value,)
            case Load(_, _, mask):
                return () if mask is None else (mask,)
            case Ramp() | TensorRead() | Broadcast(Const(), _):
                return ()
            case Compare() if self._leading_lanes(node) is not None:
                return ()
            case Binary():
                found = self._contraction(node)
                return (node.a, node.b) if found is None else (found.a, found.b, found.addend)
            case _:
                return children(node)  # type: ignore[return-value]

    def _emit(self, node: Expr) -> Value:
        match node:
            case Var():
                return self.variables[node]
            case Const(number, kind):
                return self.writer.constant(kind, number)
            case Cast(to, value) if to.is_narrow or value.dtype.is_narrow:
                return self.value(narrow_cast(to, value))
            case Cast(to, value):
                return convert(self.writer, self.value(value), value.dtype, to)
            case Unary():
                return self._unary(node)
            case Binary():
                return self._binary(node)
            case Compare():
                return self._compare(node)
            case Logical(op, a, b):
                return self.writer.binary("arith.andi" if op == "and" else "arith.ori", self.value(a), self.value(b))
            case Select(condition, a, b):
                return self.writer.select(self.value(condition), self.value(a), self.value(b))
            case IfThenElse():
                return self._if_then_else(node)
            case Let(var, value, body):
                self.bind(var, value)
                with self.scope():
                    return self.value(body)
            case Call("arithmetic_fence", (value,), _):
                return self.value(value)
            case Call(name, args, result):
                return emit_intrinsic(self.writer, name, [self.value(a) for a in args], args[0].dtype, result)
            case Load() | TensorRead():
                return self._read(node)
            case Ramp():
                return self._ramp(node)
            case Broadcast(Const(number, _), _):
                return self.writer.constant(node.dtype, number)
            case Broadcast(value, _):
                return self.broadcast(self.value(value), node.dtype)
            case Reduce():
                raise MlirError(f"a reduction stands inside an expression: {node}")
            case _:
                assert_never(node)

    def broadcast(self, scalar: Value, to: DType) -> Value:
        """A vector of dtype ``to`` with a scalar in all its lanes."""
        return self.writer.convert("vector.broadcast", scalar, type_of(to))

    def bind(self, var: Var, value: Expr) -> None:
        """Give a variable the value of an expression."""
        self.variables[var] = self.value(value)
        self.facts.learn(var, self.facts.of(value))

    def _unary(self, node: Unary) -> Value:
        w, value, kind = self.writer, self.value(node.a), node.dtype
        match node.op:
            case "not":
                return w.binary("arith.xori", value, w.constant(kind, 1))
            case "~":
                return w.binary("arith.xori", value, w.constant(kind, -1))
            case "-" if kind.is_float:
                return w.unary("arith.negf", value)
            case "-":
                return w.binary("arith.subi", w.constant(kind, 0), value)

    def _binary(self, node: Binary) -> Value:
        if (found := self._contraction(node)) is not None:
            return self._fused(found, node.dtype.lanes)
        w, kind, op = self.writer, node.dtype, node.op
        a, b = self.value(node.a), self.value(node.b)
        if kind.is_float:
            made = w.binary(f"arith.{_FLOAT_OPS[op]}", widened(w, a, kind), widened(w, b, kind))
            return narrowed(w, made, kind)
        if op in ("min", "max"):
            return min_max(w, kind, op, a, b)
        if op in ("//", "%"):
            signs = self.facts.non_negative(node.a), self.facts.non_negative(node.b)
            return floor_divide(w, kind, a, b, Division(const_int(node.b), *signs), modulo=op == "%")
        if op in ("<<", ">>"):
            return shift(w, kind, op, a, b, const_int(node.b))
        return w.binary(f"arith.{_INT_OPS[op]}", a, b)

    def _contraction(self, node: Binary) -> Contraction | None:
        return contraction(node) if self._contract else None

    def _fused(self, found: Contraction, lanes: int) -> Value:
        w = self.writer
        x, y, other = self.value(found.a), self.value(found.b), self.value(found.addend)
        x = w.unary("arith.negf", x) if found.negate_a else x
        other = w.unary("arith.negf", other) if found.negate_addend else other
        if lanes == 1:
            return fma(w, x, y, other)
        return w.op(f"vector.fma {x.name}, {y.name}, {other.name} : {x.type}", x.type)

    def _compare(self, node: Compare) -> Value:
        w, kind, op = self.writer, node.a.dtype, node.op
        lanes = self._leading_lanes(node)
        if lanes is not None:
            return w.op(f"vector.create_mask {self.value(lanes).name} : {type_of(node.dtype)}", type_of(node.dtype))
        a, b = self.value(node.a), self.value(node.b)
        if kind.is_float:
            predicate = "une" if op == "!=" else f"o{(_ORDER | _EQUALITY)[op]}"
            return w.compare(f"arith.cmpf {predicate}", widened(w, a, kind), widened(w, b, kind), node.dtype)
        sign = "s" if kind.is_signed else "u"
        predicate = _EQUALITY[op] if op in _EQUALITY else f"{sign}{_ORDER[op]}"
        return w.compare(f"arith.cmpi {predicate}", a, b, node.dtype)

    def _leading_lanes(self, node: Compare) -> Expr | None:
        """How many lanes the comparison is true in, if these are always the first: of ``ramp(x, 1) < broadcast(n)``."""
        op, a, b = node.op, node.a, node.b
        if op in _MIRRORED:
            op, a, b = _MIRRORED[op], b, a
        if op not in ("<", "<=") or a.dtype.lanes == 1 or not a.dtype.is_index:
            return None
        rising, level = as_ramp(a), as_ramp(b)
        if rising is None or level is None or const_int(rising[1]) != 1 or const_int(level[1]) != 0:
            return None
        end = level[0] if op == "<" else add(level[0], Const(1, level[0].dtype))
        return end if const_int(rising[0]) == 0 else Binary("-", end, rising[0])

    def _if_then_else(self, node: IfThenElse) -> Value:
        w, kind = self.writer, type_of(node.dtype)
        condition = self.value(node.condition)
        name = w.name()
        with w.region(f"{name} = scf.if {condition.name} -> ({kind}) {{", "} else {"), self.scope():
            w.line(f"scf.yield {self.value(node.a).name} : {kind}")
        with w.region(""), self.scope():
            w.line(f"scf.yield {self.value(node.b).name} : {kind}")
        return Value(name, kind)

    def _ramp(self, node: Ramp) -> Value:
        w, kind = self.writer, node.dtype
        start, stride = const_int(node.base), const_int(node.stride)
        if start is not None and stride is not None:
            return w.steps(kind, start, stride)
        if stride is not None:
            steps = w.steps(kind, 0, stride)
        else:
            each = self.broadcast(self.value(node.stride), kind)
            steps = w.binary("arith.muli", w.steps(kind, 0, 1), each)
        return w.binary("arith.addi", self.broadcast(self.value(node.base), kind), steps)

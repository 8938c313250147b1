"""Programs as Python closures: each function is translated once, then run on frames of values.

An expression becomes a list of steps, one per distinct node in order of evaluation, each filling a slot of the frame:
shared parts are computed once, and no depth of nesting can exhaust Python's stack. What may stay unevaluated (the sides
of ``IfThenElse``) or be evaluated afresh (the body of ``Let``) is a list of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, assert_never

from ...base.dtype import DType
from ...base.errors import InterpretError
from ..buffer import Buffer
from ..build import buffer_strides
from ..expr import (
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
from ..expr_node import ExprNode
from ..faults import division_by_zero
from ..stmt import PrimFunc, Stmt, Store
from ..visit import children
from . import values
from .access import Access, Frame, Site

Step: TypeAlias = Callable[[Frame], Any]
Code: TypeAlias = list[tuple[int, Step]]


def run(code: Code, frame: Frame) -> None:
    """Carry out the steps in order: each reads what it needs from the frame, and its value goes into the slot beside
    it."""
    for slot, step in code:
        frame[slot] = step(frame)


class ExprCompiler:
    """Translates the expressions of one function. Mutable: hands out slots, and knows which loops are open."""

    def __init__(self, func: PrimFunc) -> None:
        self.func = func
        self.template: Frame = [None]  # what a new frame holds: the constants; slot 0 is for the race trackers
        self.loops: tuple[tuple[str, int], ...] = ()
        self._slots: dict[ExprNode, int] = {}
        self._memory: dict[Var, tuple[int, DType]] = {}
        self._sub_programs: dict[ExprNode, tuple[Code, int]] = {}  # of the current statement
        self._statement: Stmt = func.body

    def start(self, statement: Stmt) -> None:
        """What is compiled from here on belongs to this statement."""
        self._statement = statement
        self._sub_programs.clear()

    def bind(self, var: Var) -> int:
        """The slot of a variable; from here on it may be used."""
        return self._slot(var)

    def bind_memory(self, buffer: Buffer) -> int:
        """The slot of the memory behind a buffer, which takes the buffer's dtype."""
        slot = self._slot(buffer.data)
        self._memory.setdefault(buffer.data, (slot, buffer.dtype))
        return slot

    def slot_of(self, node: Expr) -> int:
        """The slot of a variable that is bound, or of an expression that a program has put there."""
        if node not in self._slots:
            raise self.bad(f"`{node}` is used, but not bound here")
        return self._slots[node]

    def memory_slot(self, buffer: Buffer) -> int:
        """The slot of the memory behind a buffer; raises ``InterpretError`` if there is none, or of another dtype."""
        if buffer.data not in self._memory:
            raise self.bad(f"{buffer.name} is used, but neither a parameter nor allocated here")
        slot, kind = self._memory[buffer.data]
        if kind is not buffer.dtype:
            raise self.bad(f"{buffer.name} views memory of {kind} as {buffer.dtype}, which is not supported")
        return slot

    def program(self, roots: Sequence[Expr]) -> tuple[Code, list[int]]:
        """Code that evaluates the expressions, and the slots that hold their values then."""
        code: Code = []
        done: set[ExprNode] = set()
        stack: list[tuple[Expr, bool]] = [(root, False) for root in reversed(roots)]
        while stack:
            node, ready = stack.pop()
            if node in done:
                continue
            if isinstance(node, (Var, Const)):
                self._leaf(node)
            elif ready:
                slot = self._slot(node)
                code.append((slot, self._step(node)))
            else:
                stack.append((node, True))
                stack.extend((child, False) for child in reversed(self._needed(node)))
                continue
            done.add(node)
        return code, [self._slots[root] for root in roots]

    def evaluator(self, root: Expr) -> Step:
        """A function from frame to the value of one expression."""
        code, (slot,) = self.program([root])
        if not code:
            return lambda frame: frame[slot]

        def evaluate(frame: Frame) -> Any:
            run(code, frame)
            return frame[slot]

        return evaluate

    def access(self, node: Load | Store) -> Access:
        """The access, its parts (see ``access_parts``) being in their slots already."""
        buffer = node.buffer
        strides = buffer_strides(buffer)
        dims = tuple(
            (self._slots[i], self._slots[e], self._slots[s])
            for i, e, s in zip(node.indices, buffer.shape, strides, strict=True)
        )
        mask = None if node.mask is None else self._slots[node.mask]
        value = node if isinstance(node, Load) else node.value
        memory, offset = self.memory_slot(buffer), self._slots[buffer.elem_offset]
        is_vector = value.dtype.lanes > buffer.dtype.lanes
        return Access(node, value.dtype, self.site(), memory, offset, dims, mask, is_vector)

    def site(self) -> Site:
        """The statement and the loops around it that are being translated, for messages of the code that is made."""
        return Site(self._statement, self.loops)

    def bad(self, message: str) -> InterpretError:
        """The error for a program that cannot be interpreted at all, which names the function."""
        return InterpretError(f"{self.func.name}: {message}")

    def _slot(self, node: ExprNode) -> int:
        slot = self._slots.get(node)
        if slot is None:
            slot = self._slots[node] = len(self.template)
            self.template.append(None)
        return slot

    def _leaf(self, node: Var | Const) -> None:
        if isinstance(node, Const):
            self.template[self._slot(node)] = values.constant(node)
        else:
            self.slot_of(node)

    def _needed(self, node: Expr) -> Sequence[Expr]:
        """What must have been evaluated before a node's own step."""
        match node:
            case IfThenElse(condition):
                return [condition]
            case Let(_, value):
                return [value]
            case Load():
                return access_parts(node)
            case _:
                return children(node)  # type: ignore[return-value]

    def _sub_program(self, root: Expr) -> tuple[Code, int]:
        found = self._sub_programs.get(root)
        if found is None:
            code, (slot,) = self.program([root])
            found = self._sub_programs[root] = code, slot
        return found

    def _step(self, node: Expr) -> Step:
        match node:
            case Binary(op, a, b):
                if op in ("//", "%") and node.dtype.is_index:
                    return self._index_division(node)
                return self._apply(values.binary_op(op, node.dtype), a, b)
            case Compare(op, a, b):
                return self._apply(values.COMPARE[op], a, b)
            case Logical(op, a, b):
                return self._apply(values.LOGICAL[op], a, b)
            case Unary(op, a):
                return self._apply(values.UNARY[op], a)
            case Cast(to, value):
                return self._apply(values.cast(to, value.dtype), value)
            case Select(condition, a, b):
                return self._apply(values.select(node.dtype, condition.dtype), condition, a, b)
            case Call(name, args):
                return self._apply(values.intrinsic(name, args[0].dtype), *args)
            case Ramp(base, stride):
                return self._apply(values.ramp(node.dtype), base, stride)
            case Broadcast(value):
                return self._apply(values.broadcast(node.dtype), value)
            case Load():
                return self.access(node).load
            case IfThenElse():
                return self._choice(node)
            case Let():
                return self._let(node)
            case TensorRead() | Reduce():
                raise self.bad(f"`{node}` belongs to tensor expressions: lower it first")
            case Var() | Const():
                raise AssertionError("leaves have no steps")
            case _:
                assert_never(node)

    def _apply(self, op: values.Op, *args: Expr) -> Step:
        slots = [self._slots[a] for a in args]
        match slots:
            case [a]:
                return lambda frame: op(frame[a])
            case [a, b]:
                return lambda frame: op(frame[a], frame[b])
            case _:
                return lambda frame: op(*[frame[slot] for slot in slots])

    def _index_division(self, node: Binary) -> Step:
        op, a, b, site = values.BINARY[node.op], self._slots[node.a], self._slots[node.b], self.site()
        scalar = node.dtype.lanes == 1

        def divide(frame: Frame) -> Any:
            if frame[b] == 0 if scalar else (frame[b] == 0).any():
                raise site.error(frame, division_by_zero(node))
            return op(frame[a], frame[b])

        return divide

    def _choice(self, node: IfThenElse) -> Step:
        condition = self._slots[node.condition]
        then_code, then_slot = self._sub_program(node.a)
        else_code, else_slot = self._sub_program(node.b)

        def choose(frame: Frame) -> Any:
            if frame[condition]:
                run(then_code, frame)
                return frame[then_slot]
            run(else_code, frame)
            return frame[else_slot]

        return choose

    def _let(self, node: Let) -> Step:
        value, var = self._slots[node.value], self.bind(node.var)
        code, body = self._sub_program(node.body)

        def let(frame: Frame) -> Any:
            frame[var] = frame[value]
            run(code, frame)
            return frame[body]

        return let


def access_parts(node: Load | Store) -> list[Expr]:
    """All expressions that an access depends on: those of its buffer, its indices, and its mask."""
    buffer = node.buffer
    parts = [*buffer.shape, *buffer_strides(buffer), buffer.elem_offset, *node.indices]
    return parts if node.mask is None else [*parts, node.mask]

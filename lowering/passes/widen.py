"""Widening of expressions from one iteration to a vector of iterations. Part of ``vectorize``.

Loads under a mask touch no memory in the lanes that are off. Values that are the same in all lanes stay scalar; where
these need memory, they must not be loaded unless some lane is active.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from ...base.dataclass import dataclass
from ...base.errors import InternalError, LoopwrightError
from ...ir.buffer import Buffer
from ...ir.build import compact_strides
from ...ir.constants import ONE, ZERO, const, const_int, is_const
from ...ir.contents import divisions_of, reads_memory
from ...ir.expr import (
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
from ...ir.facts import negate
from ...ir.interval import interval_of
from ...ir.makers import broadcast_to, logical_and
from ...ir.stmt import Stmt
from .certain_reads import certainly_reads
from .clamped_loads import clamped_load
from .folding import add, both, multiply, subtract
from .guards import conjuncts
from .masks import any_lane
from .private_buffers import find_varying, vector_element_buffers


class NestedVectorError(LoopwrightError):
    """An expression to be widened is a vector already. ``vectorize`` turns it into a ``ScheduleError``."""


@dataclass(slots=True)
class MaskUse:
    """Whether code under a mask has made a scalar access, which needs an active lane."""

    scalar_access: bool = False


class Widener:
    """Widens expressions of the body of one loop: call it with an expression and the mask it is evaluated under. The
    ``safe`` divisions have no divisor of 0, whatever the mask."""

    def __init__(self, body: Stmt, var: Var, value: Ramp, safe: frozenset[Binary] = frozenset()) -> None:
        self.lanes = value.lanes
        self._safe = safe
        self._var = var
        self._range = interval_of(value)
        self.varies = find_varying(body, var)
        self.vector_elements = vector_element_buffers(body, self.varies)
        self._values: dict[Var, Expr] = {var: value}
        self._views: dict[Buffer, Buffer] = {}
        self._active: dict[Expr, MaskUse] = {}
        self._memo: dict[tuple[Expr, Expr | None], Expr] = {}

    def __call__(self, value: Expr, mask: Expr | None) -> Expr:
        """The vector of the values of all lanes, or a scalar if these are the same. Lanes that are off: any value."""
        self._memo = {}
        return self._expr(value, mask)

    def assign(self, var: Var, value: Expr) -> None:
        """Let ``var`` have this value (a scalar, or one for each lane) from here on."""
        self._values[var] = value
        self.varies.add(var)

    def bind(self, var: Var, value: Expr) -> Var:
        """The variable to bind to a widened value: the same one if the value is still what it was bound to before."""
        if value.dtype is var.dtype:
            return var
        wide = Var(var.name, value.dtype)
        self.assign(var, wide)
        return wide

    @contextmanager
    def known_active(self, mask: Expr) -> Iterator[MaskUse]:
        """Within the block, some lane of the mask counts as true; the result tells whether that was made use of."""
        use = MaskUse()
        before = self._active
        self._active = {**before, mask: use}
        try:
            yield use
        finally:
            self._active = before

    def view(self, buffer: Buffer) -> Buffer:
        """The buffer that takes the place of another: private memory has room for all lanes."""
        if buffer.data not in self.varies.private:
            return buffer
        if buffer not in self._views:
            widened = replace(buffer, dtype=buffer.dtype.with_lanes(self.lanes))
            self._views[buffer] = widened if buffer.data in self.vector_elements else self._with_lane_axis(buffer)
        return self._views[buffer]

    def private_indices(self, buffer: Buffer, indices: tuple[Expr, ...]) -> tuple[Expr, ...]:
        """Indices into ``view(buffer)``, for private memory with a lane axis."""
        lane = Ramp(ZERO, ONE, self.lanes)
        if _is_flat(buffer):
            return (add(multiply(indices[0], const(self.lanes, indices[0].dtype.element)), lane),)
        return (*indices, lane)

    def _with_lane_axis(self, buffer: Buffer) -> Buffer:
        lanes = const(self.lanes, "index")
        if _is_flat(buffer):
            return replace(buffer, shape=(multiply(buffer.shape[0], lanes),))
        strides = buffer.strides if buffer.strides is not None else compact_strides(buffer.shape)
        return replace(
            buffer,
            shape=(*buffer.shape, lanes),
            strides=(*(multiply(s, lanes) for s in strides), ONE),
            elem_offset=multiply(buffer.elem_offset, lanes),
        )

    def alike_first(self, value: Expr) -> Expr:
        """A choice between a value and a constant by conditions of which some are the same in all lanes: chosen by
        these first, since that is a test, after which nothing is loaded. A masked load none of whose lanes is on may
        take some hundred cycles, where no memory is."""
        if not isinstance(value, IfThenElse) or not isinstance(value.b, Const):
            return value
        parts = list(conjuncts(value.condition))
        alike = [part for part in parts if not self.varies(part)]
        others = [part for part in parts if self.varies(part)]
        if not alike or not others:
            return value
        inner = IfThenElse(logical_and(others), value.a, value.b)
        return IfThenElse(logical_and(alike), inner, value.b)

    def _expr(self, value: Expr, mask: Expr | None) -> Expr:
        if not self.varies(value) and (mask is None or not self._may_fault(value)):
            return value
        key = (value, mask)
        if key not in self._memo:
            self._memo[key] = self._widen(value, mask)
        return self._memo[key]

    def _widen(self, value: Expr, mask: Expr | None) -> Expr:
        match value:
            case Var():
                return self._values[value]
            case Const():
                return value
            case Cast(to, inner):
                wide = self._expr(inner, mask)
                return Cast(to.with_lanes(wide.dtype.lanes), wide)
            case Unary(op, a):
                return Unary(op, self._expr(a, mask))
            case Binary():
                return self._binary(value, mask)
            case Compare(op, a, b):
                return Compare(op, *self._same_lanes(mask, a, b))
            case Logical(op, a, b):
                return Logical(op, *self._same_lanes(mask, a, b))
            case Select(condition, a, b):
                return _choice(self._expr(condition, mask), *self._same_lanes(mask, a, b))
            case IfThenElse():
                return self._if_then_else(value, mask)
            case Let():
                return self._let(value, mask)
            case Call(name, args, result):
                wide_args = self._same_lanes(mask, *args)
                return Call(name, wide_args, result.with_lanes(wide_args[0].dtype.lanes))
            case Load():
                return self._load(value, mask)
            case Ramp() | Broadcast():
                raise NestedVectorError(f"`{value}` is a vector already")
            case TensorRead() | Reduce():
                raise InternalError(f"{value} in a lowered function")

    def _same_lanes(self, mask: Expr | None, *values: Expr) -> tuple[Expr, ...]:
        wide = [self._expr(v, mask) for v in values]
        lanes = max(v.dtype.lanes for v in wide)
        return tuple(broadcast_to(v, lanes) for v in wide)

    def _binary(self, value: Binary, mask: Expr | None) -> Expr:
        a, b = self._expr(value.a, mask), self._expr(value.b, mask)
        if not value.dtype.is_float:
            match value.op:
                case "+":
                    return add(a, b)
                case "-":
                    return subtract(a, b)
                case "*":
                    return multiply(a, b)
        if mask is not None and self._may_divide_by_zero(value):
            b = self._safe_divisor(b, mask)
        lanes = max(a.dtype.lanes, b.dtype.lanes)
        return Binary(value.op, broadcast_to(a, lanes), broadcast_to(b, lanes))

    def _may_divide_by_zero(self, value: Binary) -> bool:
        divides = value.op in ("//", "%") and value.dtype.is_index
        return divides and not (isinstance(value.b, Const) and value.b.value != 0) and value not in self._safe

    def _may_fault(self, value: Expr) -> bool:
        """Whether evaluating the expression may touch memory that is not there, or divide an index by 0."""
        return reads_memory(value) or any(map(self._may_divide_by_zero, divisions_of(value)))

    def _safe_divisor(self, divisor: Expr, mask: Expr) -> Expr:
        """The divisor, but 1 in lanes that are off, which may have made it 0; one that is the same in all lanes stays
        so, and is not 0 where a lane is on."""
        if divisor.dtype.lanes == 1:
            is_safe = self._use_active(mask)
            return divisor if is_safe else Select(Compare("!=", divisor, ZERO), divisor, ONE)
        one = const(1, divisor.dtype.with_lanes(self.lanes))
        return Select(mask, broadcast_to(divisor, self.lanes), one)

    def _use_active(self, mask: Expr) -> bool:
        use = self._active.get(mask)
        if use is not None:
            use.scalar_access = True
        return use is not None

    def _if_then_else(self, value: IfThenElse, mask: Expr | None) -> Expr:
        condition = self._expr(value.condition, mask)
        if condition.dtype.lanes == 1:
            a, b = self._same_lanes(mask, value.a, value.b)
            return IfThenElse(condition, a, b)
        a = self._expr(value.a, both(mask, condition))
        b = self._expr(value.b, both(mask, negate(condition)))
        return Select(condition, broadcast_to(a, self.lanes), broadcast_to(b, self.lanes))

    def _let(self, value: Let, mask: Expr | None) -> Expr:
        bound = self._expr(value.value, mask)
        if bound.dtype is value.var.dtype:
            return Let(value.var, bound, self._expr(value.body, mask))
        outer, self._memo = self._memo, {}  # the same let may be widened again under another mask, to another variable
        var = self.bind(value.var, bound)
        body = self._expr(value.body, mask)
        self._memo = outer
        return Let(var, bound, body)

    def _load(self, value: Load, mask: Expr | None) -> Expr:
        buffer = value.buffer
        if buffer.data not in self.varies.private:
            choice = clamped_load(value, self._var, self._range, self.varies)
            if choice is not None:
                return self._expr(choice, mask)
        indices = tuple(self._expr(i, mask) for i in value.indices)
        if buffer.data in self.vector_elements:
            return Load(self.view(buffer), indices)
        if buffer.data in self.varies.private:
            indices = self.private_indices(buffer, indices)
        own = None if value.mask is None else self._expr(value.mask, mask)
        if all(i.dtype.lanes == 1 for i in indices) and (own is None or own.dtype.lanes == 1):
            return self._invariant_load(Load(buffer, indices, own), mask)
        if value.dtype.lanes != 1:
            raise NestedVectorError(f"`{value}` is a vector already")
        combined = both(mask, None if own is None else broadcast_to(own, self.lanes))
        return Load(self.view(buffer), _vector_indices(indices, self.lanes), combined)

    def _invariant_load(self, load: Load, mask: Expr | None) -> Expr:
        """A load that all lanes share; under a mask it must not happen unless some lane is active, or the element is
        there in any case, or the mask has read it."""
        if mask is None or _is_there(load) or self._use_active(mask) or certainly_reads(mask, load):
            return load
        active = any_lane(mask)
        if active is not None:
            return IfThenElse(active, load, const(0, load.dtype))
        if load.dtype.lanes != 1:
            raise NestedVectorError(f"`{load}` is a vector already")
        own = None if load.mask is None else broadcast_to(load.mask, self.lanes)
        return Load(load.buffer, _vector_indices(load.indices, self.lanes), both(mask, own))


def _is_there(load: Load) -> bool:
    """Whether what is read is of a tensor that has it for all open extents: as that of one element has its first."""
    ends = zip(map(const_int, load.indices), map(const_int, load.buffer.shape), strict=True)
    return all(at is not None and end is not None and 0 <= at < end for at, end in ends)


def _choice(condition: Expr, a: Expr, b: Expr) -> Expr:
    lanes = max(condition.dtype.lanes, a.dtype.lanes)
    return Select(condition, broadcast_to(a, lanes), broadcast_to(b, lanes))


def _vector_indices(indices: tuple[Expr, ...], lanes: int) -> tuple[Expr, ...]:
    """The indices, at least one of them a vector."""
    if any(i.dtype.lanes != 1 for i in indices):
        return indices
    return (*indices[:-1], broadcast_to(indices[-1], lanes))


def _is_flat(buffer: Buffer) -> bool:
    return buffer.ndim == 1 and buffer.strides is None and is_const(buffer.elem_offset, 0)

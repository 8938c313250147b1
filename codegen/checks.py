"""The checks of debug builds: accesses out of bounds, indices divided by 0.

``ExprEmitter`` and ``StmtEmitter`` ask for them before each access and division. Whoever fails first writes a record
into the caller's context, laid out as ``abi`` says: the number of a message, and the numbers to fill in there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import reduce
from typing import Protocol

from llvmlite import ir as llvm_ir

from ..ir.constants import const_int
from ..ir.expr import Binary, Const, Expr, Load, Var
from ..ir.extern import ExternFunction, Region
from ..ir.faults import at_place, division_by_zero, out_of_bounds, region_out_of_bounds
from ..ir.stmt import Seq, Stmt, Store
from .abi import MAX_RECORDED, RECORD, RECORDED
from .types import I1, I32, I64, call_intrinsic, lanes_of, same_lanes, splat


class Leave(Protocol):
    """Ends the function with a code if the condition holds, after ``record`` has emitted what comes before that."""

    def __call__(
        self, failed: llvm_ir.Value, code: llvm_ir.Value, record: Callable[[], None] | None = None
    ) -> None: ...


class Checks:
    """Emits the checks of one function. Mutable: knows the ``statement`` at hand, and the ``loops`` around it.

    ``value_of`` emits an expression, ``message_number`` gives the code of a message.
    """

    def __init__(
        self,
        builder: llvm_ir.IRBuilder,
        value_of: Callable[[Expr], llvm_ir.Value],
        message_number: Callable[[str], int],
        leave: Leave,
    ) -> None:
        self._builder = builder
        self._value_of = value_of
        self._message_number = message_number
        self._leave = leave
        self.loops: list[Var] = []
        self.statement: Stmt = Seq(())

    @contextmanager
    def inside(self, loop: Var) -> Iterator[None]:
        """What is emitted within the block runs for one value of a loop's variable."""
        self.loops.append(loop)
        yield
        self.loops.pop()

    def access(self, access: Load | Store, mask: llvm_ir.Value | None) -> None:
        """Fail if an index of the access, in a lane that the mask leaves on, is out of bounds."""
        if not access.indices:
            return
        indices = [self._value_of(i) for i in access.indices]
        lanes = max(map(lanes_of, indices))
        extents = [self._value_of(extent) for extent in access.buffer.shape]
        outside = [
            self._builder.icmp_unsigned(">=", index, splat(self._builder, extent, lanes_of(index)))
            for index, extent in zip(indices, extents, strict=True)
        ]
        failed = [self._where(o, mask, lanes) for o in outside]
        condition = self._any_lane(self._either(failed))
        self._fail_if(condition, lambda record: self._bounds_message(record, access, indices, extents, failed))

    def region(self, function: ExternFunction, region: Region) -> None:
        """Fail if a region that has elements leaves its buffer."""
        if not region.extents:
            return
        bounds = [(self._value_of(low), self._value_of(high)) for low, high in region.bounds]
        zero = llvm_ir.Constant(I64, 0)
        counts = [self._value_of(extent) for extent in region.extents]
        extents = [self._value_of(extent) for extent in region.buffer.shape]
        outside = [
            self._builder.or_(self._builder.icmp_signed("<", low, zero), self._builder.icmp_signed(">", high, extent))
            for (low, high), extent in zip(bounds, extents, strict=True)
        ]
        some = reduce(self._builder.and_, [self._builder.icmp_signed(">", count, zero) for count in counts])

        def message(record: _Record) -> str:
            found = [(record.number(low), record.number(high)) for low, high in bounds]
            dimension, limit = self._first_failed(outside, extents, None)
            which, bound = record.number(dimension), record.number(limit)
            shape = [record.number(extent) for extent in extents]
            return region_out_of_bounds(function, region, found, shape, which, bound)

        self._fail_if(self._builder.and_(some, self._either(outside)), message)

    def divisor(self, node: Binary, divisor: llvm_ir.Value) -> None:
        """Fail if some lane of an index divisor is 0."""
        if const_int(node.b):
            return
        zero = self._builder.icmp_unsigned("==", divisor, same_lanes(divisor, 0))
        self._fail_if(self._any_lane(zero), lambda record: division_by_zero(node))

    def _where(self, outside: llvm_ir.Value, mask: llvm_ir.Value | None, lanes: int) -> llvm_ir.Value:
        """Lane by lane, as many as the access has: whether an index is out of bounds and used."""
        wide = outside if lanes_of(outside) == lanes else splat(self._builder, outside, lanes)
        return wide if mask is None else self._builder.and_(wide, mask)

    def _either(self, conditions: Sequence[llvm_ir.Value]) -> llvm_ir.Value:
        return reduce(self._builder.or_, conditions)

    def _any_lane(self, condition: llvm_ir.Value) -> llvm_ir.Value:
        if lanes_of(condition) == 1:
            return condition
        bits = self._builder.bitcast(condition, llvm_ir.IntType(lanes_of(condition)))
        return self._builder.icmp_unsigned("!=", bits, same_lanes(bits, 0))

    def _bounds_message(
        self,
        record: _Record,
        access: Load | Store,
        indices: Sequence[llvm_ir.Value],
        extents: Sequence[llvm_ir.Value],
        failed: Sequence[llvm_ir.Value],
    ) -> str:
        lane = self._first_lane(failed)
        found = [
            str(index) if isinstance(index, Const) else record.number(self._lane(value, lane))
            for index, value in zip(access.indices, indices, strict=True)
        ]
        dimension, extent = self._first_failed(failed, extents, lane)
        which, limit = record.number(dimension), record.number(extent)
        in_lane = None if lane is None else record.number(lane)
        shape = [record.number(extent) for extent in extents]
        return out_of_bounds(access, found, shape, which, limit, in_lane)

    def _first_failed(
        self, failed: Sequence[llvm_ir.Value], extents: Sequence[llvm_ir.Value], lane: llvm_ir.Value | None
    ) -> tuple[llvm_ir.Value, llvm_ir.Value]:
        """The first dimension in which something failed, and its extent."""
        dimension: llvm_ir.Value = llvm_ir.Constant(I64, len(failed) - 1)
        extent = extents[-1]
        for k in range(len(failed) - 2, -1, -1):
            here = self._lane(failed[k], lane)
            dimension = self._builder.select(here, llvm_ir.Constant(I64, k), dimension)
            extent = self._builder.select(here, extents[k], extent)
        return dimension, extent

    def _first_lane(self, failed: Sequence[llvm_ir.Value]) -> llvm_ir.Value | None:
        """The number of the first lane in which something failed; None without lanes."""
        lanes = lanes_of(failed[0])
        if lanes == 1:
            return None
        width = llvm_ir.IntType(lanes)
        bits = self._builder.bitcast(self._either(failed), width)
        first = call_intrinsic(self._builder, "cttz", [width], width, [bits, llvm_ir.Constant(I1, 0)])
        if lanes == 64:
            return first
        return self._builder.zext(first, I64) if lanes < 64 else self._builder.trunc(first, I64)

    def _lane(self, value: llvm_ir.Value, lane: llvm_ir.Value | None) -> llvm_ir.Value:
        return value if lane is None or lanes_of(value) == 1 else self._builder.extract_element(value, lane)

    def _fail_if(self, failed: llvm_ir.Value, message: Callable[[_Record], str]) -> None:
        """Leave the function if the condition holds, with a record for the message, whose code stands there only."""

        def emit_record() -> None:
            record = _Record(self._builder)
            text = message(record)
            loops = self.loops[-record.places_left :] if record.places_left else []
            around = [(var.name, record.number(self._value_of(var))) for var in loops]
            record.emit(self._message_number(at_place(text, self.statement, around)))

        self._leave(failed, llvm_ir.Constant(I32, RECORDED), emit_record)


class _Record:
    """The numbers for one message, while it is made. Mutable."""

    def __init__(self, builder: llvm_ir.IRBuilder) -> None:
        self._builder = builder
        self._values: list[llvm_ir.Value] = []

    @property
    def places_left(self) -> int:
        return MAX_RECORDED - len(self._values)

    def number(self, value: llvm_ir.Value) -> str:
        """What stands in the message for an i64 known when the program runs; dots if there is no room."""
        if self.places_left == 0:
            return "…"
        self._values.append(value)
        return f"{{{len(self._values) - 1}}}"

    def emit(self, message_number: int) -> None:
        """Claim the record for this message, unless another thread has claimed it, and write the numbers."""
        claim = self._slot(RECORD)
        new = llvm_ir.Constant(I64, message_number)
        pair = self._builder.cmpxchg(claim, llvm_ir.Constant(I64, 0), new, "monotonic", "monotonic")
        with self._builder.if_then(self._builder.extract_value(pair, 1)):
            for k, value in enumerate(self._values):
                self._builder.store(value, self._slot(RECORD + 1 + k))

    def _slot(self, number: int) -> llvm_ir.Value:
        context = self._builder.function.args[0]
        return self._builder.gep(context, [llvm_ir.Constant(I64, number)], inbounds=True, source_etype=I64)

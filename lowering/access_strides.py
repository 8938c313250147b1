"""How reads move through memory as axes run: what decides which axes make good vector lanes, and which are one loop."""

from __future__ import annotations

from collections.abc import Sequence

from ..base.dtype import INDEX
from ..ir.constants import ONE, ZERO, const_int
from ..ir.contents import divides, free_vars
from ..ir.expr import Axis, Expr, TensorRead, Var
from ..ir.facts import NO_FACTS, Facts
from ..ir.linear import Linear, linear_of
from ..ir.simplify import simplify
from ..ir.visit import tensor_reads
from .passes.folding import add, multiply


def stride_along(read: TensorRead, var: Var) -> int | None:
    """How many elements a read moves when ``var`` grows by one; 0 if it stays; None where that is no number."""
    step = _step(_offset(read), var)
    return step.constant if step is not None and step.is_constant else None


def strides_along(bodies: tuple[Expr, ...], var: Var) -> list[int | None]:
    """The strides of all reads in some expressions."""
    return [stride_along(read, var) for body in bodies for read in tensor_reads(body)]


def move_alike(bodies: tuple[Expr, ...], axes: Sequence[Axis]) -> bool:
    """Whether each read stays where it is along all of these axes, or runs through memory as a row-major tensor of
    these extents does: it is the same to run over them in one loop."""
    facts = NO_FACTS
    for axis in axes:
        facts = facts.with_range(axis.var, axis.min, axis.extent)
    steps: list[tuple[Var, Linear]] = []
    row: Expr = ONE
    for axis in reversed(axes):
        if const_int(axis.extent) != 1:
            steps.append((axis.var, linear_of(row)))
        row = multiply(row, axis.extent)

    def alike(read: TensorRead) -> bool:
        offset = _offset(read, facts)
        found = [(_step(offset, var), step) for var, step in steps]
        return all(_same(own, step) for own, step in found) or all(_same(own, _NOTHING) for own, _ in found)

    return all(alike(read) for body in bodies for read in tensor_reads(body))


_NOTHING = Linear(INDEX)


def _same(a: Linear | None, b: Linear) -> bool:
    return a is not None and (difference := a.plus(b, -1)).is_constant and difference.constant == 0


def _offset(read: TensorRead, facts: Facts = NO_FACTS) -> Linear:
    """Where a read is in its tensor, counted in elements, row by row."""
    offset: Expr = ZERO
    for index, extent in zip(read.indices, read.tensor.shape, strict=True):
        offset = add(multiply(offset, extent), index)
    return linear_of(simplify(offset, facts) if divides(offset) else offset)


def _step(offset: Linear, var: Var) -> Linear | None:
    """How much an offset grows with a variable; None if that is not the same everywhere."""
    step = Linear(offset.kind)
    for term in offset.terms.values():
        others = tuple(factor for factor in term.factors if factor is not var)
        if len(term.factors) > len(others) + 1 or any(var in set(free_vars(factor)) for factor in others):
            return None
        if len(others) < len(term.factors):
            step.accumulate(term.coefficient, others)
    return step

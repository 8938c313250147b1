"""Reads that are certain to leave a tensor's bounds are refused when a compute is made, not met when it runs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias, cast

from ..base.errors import ExpressionError
from ..ir.constants import ONE, ZERO, const_int
from ..ir.contents import free_vars
from ..ir.expr import Binary, Const, Expr, IfThenElse, Reduce, TensorRead, Unary, Var
from ..ir.facts import NO_FACTS, Facts, prove
from ..ir.relax import Limits
from ..ir.visit import children, walk
from .tensor import ComputeOp, StateOp, Tensor

Path: TypeAlias = tuple[tuple[Expr, Facts], ...]
"""The conditions around a place, each with what is known where it is asked."""


def check_reads(op: ComputeOp) -> None:
    """Raise ``ExpressionError`` for a read in ``op`` that is provably out of bounds for some value of the axes."""
    axes = (*op.axis, *op.reduce_axis)
    if any(const_int(axis.extent) == 0 for axis in axes):
        return  # nothing is ever read
    facts = NO_FACTS
    for axis in op.axis:
        facts = facts.with_range(axis.var, axis.min, axis.extent)
    ends = {axis.var: (axis.min, axis.min + axis.extent - ONE) for axis in axes}
    ragged = {axis.var for axis in op.ragged_axes}
    limits: dict[Facts, Limits] = {}
    for read, known, path in reads_with_facts(op, facts):
        boxed = not path and ragged.isdisjoint(free_vars(read))
        if boxed and known not in limits:
            limits[known] = Limits.of(ends, known)
        problem = _problem(read, known, limits[known] if boxed else None)
        if problem is not None and is_reached(path):
            raise ExpressionError(f"{op.name} reads {read} out of bounds: {problem}; guard it with te.if_then_else")


def is_reached(path: Path) -> bool:
    """Whether none of the conditions is known to fail, as those of the padding of an empty tensor are. This may take
    long to tell."""
    return not any(prove(~condition, known) for condition, known in path)


def reads_with_facts(op: ComputeOp, facts: Facts) -> Iterator[tuple[TensorRead, Facts, Path]]:
    """The reads in the bodies of a compute, each with what is known where it is made, and the conditions around it.

    ``facts`` are of the axes, and hold everywhere; ranges of reduction axes are added where they are reduced over.
    """
    seen: dict[tuple[int, int], Facts] = {}  # the facts stay alive, so that ids stay theirs
    inside = facts
    for axis in op.reduce_axis:
        inside = inside.with_range(axis.var, axis.min, axis.extent)
    runs = not any(prove(axis.extent <= ZERO, facts) for axis in op.reduce_axis)
    stack: list[tuple[Expr, Facts, Path]] = [(body, inside, ()) for body in op.body if runs]
    stack += [(bound, facts, ()) for axis in op.reduce_axis for bound in (axis.min, axis.extent)]
    while stack:
        node, known, path = stack.pop()
        if (id(node), id(known)) in seen:
            continue
        seen[id(node), id(known)] = known
        match node:
            case IfThenElse(condition, a, b):
                stack.append((condition, known, path))
                stack += [
                    (e, known.with_condition(c), (*path, (c, known))) for c, e in ((condition, a), (~condition, b))
                ]
                continue
            case Reduce(_, sources, _, condition, _) if condition is not None:
                stack.append((condition, known, path))
                met, further = known.with_condition(condition), (*path, (condition, known))
                stack += [(source, met, further) for source in sources]
                continue
            case TensorRead():
                yield node, known, path
            case Reduce(_, sources):
                stack += [(source, known, path) for source in sources]
                continue
        stack += [(cast(Expr, child), known, path) for child in children(node)]


def _problem(read: TensorRead, facts: Facts, limits: Limits | None) -> str | None:
    """What is known to be out of bounds, if anything is. ``limits`` are the axes' limits where the read is
    unconditional: there, each combination of axes is met."""
    for dim, (index, extent) in enumerate(zip(read.indices, read.tensor.shape, strict=True)):
        if dim == 0 and isinstance(read.tensor, Tensor) and isinstance(read.tensor.op, StateOp):
            continue  # time, which the scan checks: it does not run for all values of the axis
        size = const_int(extent)
        if size is not None and facts.within(index, 0, size - 1):
            continue
        lows = highs = index
        if limits is not None and _attains_its_bounds(index):
            bounds = limits.relax(index)
            if bounds is not None:
                lows, highs = bounds
        if _is_certain(lows < ZERO, lows >= ZERO, facts) or _is_certain(highs >= extent, highs < extent, facts):
            reach = f"{lows}" if lows is highs else f"{lows} … {highs}"
            return f"index {dim} is {reach}, but the dimension has extent {extent}"
    return None


def _is_certain(claim: Expr, opposite: Expr, facts: Facts) -> bool:
    """Whether a claim is proved, and not only because the facts contradict each other: as those of a range that is
    empty for all elements, where nothing is read."""
    return prove(claim, facts) and not prove(opposite, facts)


def _attains_its_bounds(index: Expr) -> bool:
    """Whether the index is affine with each variable at most once, so that interval bounds are values it takes."""
    variables: set[Var] = set()
    for node in walk(index):
        match node:
            case Var():
                variables.add(node)
            case Const() | Unary("-") | Binary("+" | "-"):
                pass
            case Binary("*", a, b) if isinstance(a, Const) or isinstance(b, Const):
                pass
            case _:
                return False
    return _occurrences(index) == len(variables)


def _occurrences(index: Expr) -> int:
    if isinstance(index, Var):
        return 1
    return sum(_occurrences(cast(Expr, child)) for child in children(index))

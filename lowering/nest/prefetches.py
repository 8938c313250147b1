"""The statements that fetch into the cache what a later iteration of a loop reads or stores. Part of ``realize``."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from ...base.dtype import INDEX
from ...base.errors import LoopwrightError
from ...ir.buffer import Buffer
from ...ir.build import index_var
from ...ir.constants import ONE, ZERO, const, const_int
from ...ir.contents import divisions_of, reads_tensors, substitute, variables_of
from ...ir.expr import Expr, Var
from ...ir.facts import Facts, prove
from ...ir.makers import maximum, minimum
from ...ir.relax import Limits
from ...ir.simplify import simplify
from ...ir.stmt import For, PrefetchStmt, Stmt, seq
from ...ir.visit import tensor_reads
from ...te.tensor import Tensor
from ..passes.linear import difference
from ..stage import PrefetchAt, Stage
from ..state import ScheduleState, once
from .loops import ceildiv
from .stage_code import StageCode
from .storage import stored_at

CACHE_LINE = 64
"""Bytes that one prefetch fetches."""

MAX_PREFETCHES = 64
"""Most cache lines of a known number that an iteration may fetch."""
WRITTEN_OUT = 32
"""Prefetches of at most so many lines are no loop."""

Box = tuple[tuple[Expr, Expr], ...]
"""Per dimension of memory, the first and the last index."""


class UnknownReadsError(LoopwrightError):
    """What a prefetch of ``stage`` fetches cannot be told, or is too much; ``rules/invariants.py`` tells the user."""

    stage: str
    prefetch: PrefetchAt


def prefetch_statements(code: StageCode, stage: Stage, prefetch: PrefetchAt) -> Stmt:
    """Fetch the lines of all that the loops inside read, or store, when the loop is ``distance`` iterations further.

    Raises ``UnknownReadsError`` where that cannot be told.
    """
    try:
        return _statements(code, stage, prefetch)
    except UnknownReadsError as error:
        error.stage, error.prefetch = stage.name, prefetch
        raise


def _statements(code: StageCode, stage: Stage, prefetch: PrefetchAt) -> Stmt:
    fetched: list[Stmt] = []
    count = 0
    for tensor in code.state.stage(prefetch.tensor).tensors:
        for box in _boxes(code, stage, prefetch, tensor):
            stmt, lines = _fetch(code.buffers[tensor], box, to_write=tensor in stage.tensors)
            fetched.append(stmt)
            count += lines
    if count > MAX_PREFETCHES:
        raise UnknownReadsError(f"an iteration reads {count} cache lines of it, more than {MAX_PREFETCHES}")
    return seq(*fetched)


@once("bounds")
def _boxes_found(_: ScheduleState) -> dict[tuple[str, PrefetchAt, Tensor, str | None], list[Box]]:
    """What ``_boxes`` found, by stage, prefetch, tensor and the layout that is fetched from. A nest is checked where it
    gets a prefetch, and behind its last step, before it is made."""
    return {}


def _boxes(code: StageCode, stage: Stage, prefetch: PrefetchAt, tensor: Tensor) -> list[Box]:
    """The boxes that the accesses to a tensor reach over; those a constant apart are one."""
    found, layout = _boxes_found(code.state), code.state.stage(prefetch.tensor).layout
    key = stage.name, prefetch, tensor, layout.text if layout is not None else None
    if key not in found:
        found[key] = _boxes_reached(code, stage, prefetch, tensor)
    return found[key]


def _boxes_reached(code: StageCode, stage: Stage, prefetch: PrefetchAt, tensor: Tensor) -> list[Box]:
    known, loops, source = code.known, code.known.loops[stage.name], code.state.stage(prefetch.tensor)
    own = loops.vars[prefetch.loop]
    ahead = {own: own + prefetch.distance}
    at = stage.leaves.index(prefetch.loop) + 1
    facts = known.facts
    for leaf in stage.leaves[:at]:
        facts = facts.with_range(loops.vars[leaf], ZERO, loops.extents[leaf])
    varying: dict[Var, tuple[Expr, Expr]] = {}
    for leaf in stage.leaves[at:]:
        _, most = _bounds(substitute(loops.extents[leaf], ahead), own, Limits.of(varying, facts))
        varying[loops.vars[leaf]] = ZERO, simplify(most - ONE)
        facts = facts.with_range(loops.vars[leaf], ZERO, most)
    values = {var: substitute(value, ahead) for var, value in known.axis_values(stage).items()}
    lows = code.lows(tensor)
    limits = Limits.of(varying, facts)
    found: list[Box] = []
    for indices in _accesses(code, stage, tensor):
        local = tuple(substitute(i, values) - low for i, low in zip(indices, lows, strict=True))
        found = _joined(found, tuple(_bounds(i, own, limits) for i in stored_at(source, local)))
    _check_reach(found, [last + ONE for _, last in varying.values()], facts)
    return found


def _check_reach(boxes: Sequence[Box], inside: Sequence[Expr], facts: Facts) -> None:
    """Open extents of boxes have a bound, where those of the loops inside are known: a tile of pixels that may begin in
    one row and end in the next has all rows around it. Of known extents the lines are counted."""
    iterations = const_int(simplify(prod(inside, start=ONE)))
    if iterations is None:
        return
    reach = max(iterations, MAX_PREFETCHES)
    for extent in (simplify(high - low + ONE) for box in boxes for low, high in box):
        if const_int(extent) is None and not prove(extent <= reach, facts):
            raise UnknownReadsError(f"what {iterations} iterations inside access may be {extent} apart")


def _accesses(code: StageCode, stage: Stage, tensor: Tensor) -> list[tuple[Expr, ...]]:
    """Where an element is stored, if the stage computes the tensor; else where it is read."""
    if tensor in stage.tensors:
        return [tuple(axis.var for axis in stage.compute.axis)]
    reads = (r for body in code.known.bodies[stage.name] for r in tensor_reads(body))
    return [read.indices for read in reads if read.tensor is tensor]


def _bounds(value: Expr, own: Var, limits: Limits) -> tuple[Expr, Expr]:
    """The least and the largest value of an index or extent while the loops inside run."""
    if any(own in variables_of(division.b) for division in divisions_of(value)):
        raise UnknownReadsError(f"its index {value} divides by what may be 0 further on")
    bounds = limits.relax(value)
    if bounds is None or any(map(reads_tensors, (value, *bounds))):
        raise UnknownReadsError(f"its index {value} depends on what is in memory")
    if any(var in limits.ranges for e in bounds for var in variables_of(e)):
        raise UnknownReadsError(f"what its index {value} reaches over depends on loops inside")
    return bounds


def _joined(boxes: list[Box], box: Box) -> list[Box]:
    for k, other in enumerate(boxes):
        if all(
            difference(x, y) is not None for a, b in zip(box, other, strict=True) for x, y in zip(a, b, strict=True)
        ):
            hull = tuple(
                (simplify(minimum(a[0], b[0])), simplify(maximum(a[1], b[1]))) for a, b in zip(box, other, strict=True)
            )
            return [*boxes[:k], hull, *boxes[k + 1 :]]
    return [*boxes, box]


def _fetch(buffer: Buffer, box: Box, to_write: bool) -> tuple[Stmt, int]:
    """A prefetch for each line of each row, in loops where there are several, and how many these are if known.

    A few are written out: a loop of them in the innermost loop would cost more than they do.
    """
    line = max(1, CACHE_LINE // buffer.dtype.storage_bytes)
    indices: list[Expr] = []
    loops: list[tuple[Var, Expr]] = []
    count = 1
    for dim, (low, high) in enumerate(box):
        step = line if dim == len(box) - 1 else 1
        extent = ceildiv(simplify(high - low + ONE), const(step, INDEX))
        count *= const_int(extent) or 1
        if extent is ONE:
            indices.append(low)
            continue
        var = index_var(f"{buffer.name}_ahead")
        loops.append((var, extent))
        indices.append(low + var * step)
    stmt: Stmt = PrefetchStmt(buffer, tuple(indices), to_write)
    few = count <= WRITTEN_OUT and all(const_int(extent) is not None for _, extent in loops)
    for var, extent in reversed(loops):
        stmt = For(var, ZERO, extent, "unrolled" if few else "serial", stmt)
    return stmt, count

"""What a scan means for the stages of its cell: where they are computed, and whose memory they write.

The init, the update and the state of a scan have no memory of their own: they are the scan's outputs, at other steps.
The init is computed before the time loop, all that depends on the state inside of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from ...base.dataclass import dataclass
from ...base.errors import ScheduleError
from ...ir.constants import const_int
from ...ir.expr import Expr, TensorRead, Var
from ...ir.simplify import simplify
from ...ir.visit import tensor_reads
from ...te.tensor import ScanOp, StateOp, Tensor
from ..stage import At, Before, Place, Root, Stage
from ..state import ScheduleState


def shared_memory(state: ScheduleState) -> dict[Tensor, Tensor]:
    """The scan's output that each tensor is a part of, for tensors that are part of one."""
    return {
        part: output
        for scan in state.stages
        if isinstance(scan.op, ScanOp)
        for role in (scan.op.init, scan.op.update, scan.op.state)
        for part, output in zip(role, scan.tensors, strict=True)
    }


def scan_of(state: ScheduleState, stage: Stage) -> Stage | None:
    """The scan whose init, update or state a stage is."""
    owners = shared_memory(state)
    return next((state.stage_of(owners[t]) for t in stage.tensors if t in owners), None)


def starting_place(state: ScheduleState, stage: Stage) -> Place:
    """Where a stage that takes over work of this one begins: the time loop of the scan whose state it depends on, or
    the root."""
    for other in state.stages:
        if isinstance(other.op, StateOp) and other in _upstream(state, stage.tensors):
            return other.place
    return Root()


def place_scans(state: ScheduleState) -> ScheduleState:
    """Put the init of each scan before its time loop, and what depends on its state inside that loop.

    Raises ``ScheduleError`` where a stage outside of the scan depends on the state, or reads the init or the update.
    """
    _check_owners(state)
    for scan in state.stages:
        if isinstance(scan.op, ScanOp):
            state = _place_scan(state, scan, scan.op)
    for stage in state.stages:
        if isinstance(stage.op, StateOp) and isinstance(stage.place, Root):
            raise ScheduleError(f"{stage.name} is the state of a scan that is not computed here: name it as an output")
    return state


@dataclass(frozen=True, slots=True)
class Steps:
    """The steps that a stage of a cell is computed for: those up to ``back`` before that of ``scan``, along ``dim``."""

    scan: Stage
    dim: int
    back: int


def steps_of(state: ScheduleState, bodies: Mapping[str, Sequence[Expr]]) -> dict[str, Steps]:
    """The time steps that readers ask for of each stage that depends on the state of a scan; later ones do not exist
    yet.

    Bound inference must not widen them, as it may widen boxes of stages that can be computed anywhere.
    """
    found = {
        state.stage_of(update).name: Steps(scan, 0, 0)
        for scan in state.stages
        if isinstance(scan.op, ScanOp)
        for update in scan.op.update
    }
    if not found:
        return found
    for reader in reversed(state.stages):  # readers come after what they read
        if reader.name not in found or reader.name not in bodies:
            continue
        steps = found[reader.name]
        now = reader.compute.axis[steps.dim].var
        for read in (read for body in bodies[reader.name] for read in tensor_reads(body)):
            source = next(s for s in state.stages if read.tensor in s.tensors)
            if source.is_compute and isinstance(starting_place(state, source), At):
                dim, lag = _lag(read, now)
                known = found.get(source.name)
                found[source.name] = Steps(steps.scan, dim, max(steps.back + lag, 0 if known is None else known.back))
    return found


def _lag(read: TensorRead, now: Var) -> tuple[int, int]:
    """The dimension that is time, and how many steps the read goes back; scans are checked to have one."""
    lags = ((dim, const_int(simplify(now - index))) for dim, index in enumerate(read.indices))
    return next((dim, lag) for dim, lag in lags if lag is not None)


def _check_owners(state: ScheduleState) -> None:
    owners: dict[Tensor, str] = {}
    for scan in state.stages:
        if isinstance(scan.op, ScanOp):
            for part in (*scan.op.init, *scan.op.update, *scan.op.state):
                other = owners.setdefault(part, scan.name)
                if other != scan.name:
                    raise ScheduleError(f"{part.name} is part of two scans, {other} and {scan.name}: give each its own")


def _place_scan(state: ScheduleState, scan: Stage, op: ScanOp) -> ScheduleState:
    inits = [s for s in state.stages if any(t in op.init for t in s.tensors)]
    stepwise = [s for s in state.stages if any(t in op.state or t in op.update for t in s.tensors)]
    for stage in state.stages:
        if stage not in stepwise and stage is not scan and _reads_any(stage, stepwise):
            stepwise.append(stage)
    cell = _upstream(state, op.update)
    for stage in (*stepwise, *inits):
        if stage.name in state.outputs or (stage in stepwise and stage not in cell):
            raise ScheduleError(
                f"{stage.name} is computed step by step inside the scan {scan.name}, or reads what is, "
                f"but it is needed outside of it: use the output of the scan, {op.outputs[0]!r}"
            )
    for reader in state.stages:
        if reader is not scan and _reads_any(reader, inits):
            raise ScheduleError(f"{reader.name} reads the init of the scan {scan.name}: read {op.outputs[0]!r} instead")
    (time,) = scan.leaves
    return _with_place(_with_place(state, stepwise, At(scan.name, time)), inits, Before(scan.name))


def _reads_any(reader: Stage, stages: Iterable[Stage]) -> bool:
    return any(t in reader.op.inputs for s in stages for t in s.tensors)


def _upstream(state: ScheduleState, tensors: Iterable[Tensor]) -> set[Stage]:
    """The stages that compute these tensors, and all that those read; what is behind a scan is its own affair."""
    found: set[Stage] = set()
    todo = list(tensors)
    while todo:
        stage = state.stage_of(todo.pop())
        if stage not in found:
            found.add(stage)
            todo += () if isinstance(stage.op, ScanOp) else stage.op.inputs
    return found


def _with_place(state: ScheduleState, stages: Iterable[Stage], place: Place) -> ScheduleState:
    for stage in stages:
        state = state.with_stage(replace(stage, place=place))
    return state

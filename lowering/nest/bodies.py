"""What each stage computes once the inlined ones are put in where they are read, and who reads whom then."""

from __future__ import annotations

from collections import Counter

from ...ir.contents import substitute
from ...ir.expr import Expr, TensorRead, Var
from ...ir.visit import rewrite, tensor_reads
from ...te.tensor import ComputeOp, ExternOp, ScanOp, Tensor
from ..stage import Inlined
from ..state import ScheduleState, once
from .fences import fence_shared, fenced
from .nesting import Reads, reads_of


@once("bodies")
def inline_bodies(state: ScheduleState) -> dict[str, tuple[Expr, ...]]:
    """The bodies of all stages that are not inlined, with the inlined ones put in where they are read.

    Externs and scans have none, but an entry: what they read is ``op.inputs``. What several places read is fenced, so
    that all see one value (see ``fences.py``).
    """
    bodies: dict[str, tuple[Expr, ...]] = {}
    inlined: dict[Tensor, Expr] = {}
    places = _places_that_read(state)

    def put_in(node: object) -> Expr | None:
        if isinstance(node, TensorRead) and isinstance(node.tensor, Tensor) and node.tensor in inlined:
            axes = axes_of[node.tensor]
            return substitute(inlined[node.tensor], dict(zip(axes, node.indices, strict=True)))
        return None

    axes_of: dict[Tensor, tuple[Var, ...]] = {}
    for stage in state.stages:
        if not isinstance(stage.op, ComputeOp):
            if isinstance(stage.op, (ExternOp, ScanOp)):
                bodies[stage.name] = ()
            continue
        body = fence_shared(tuple(rewrite(expr, put_in) for expr in stage.op.body))
        if not isinstance(stage.place, Inlined):
            bodies[stage.name] = body
            continue
        for tensor, expr in zip(stage.tensors, body, strict=True):
            inlined[tensor] = fenced(expr) if places[tensor] > 1 else expr
            axes_of[tensor] = tuple(axis.var for axis in stage.op.axis)
    return bodies


def _places_that_read(state: ScheduleState) -> Counter[Tensor]:
    """How many reads of each tensor the bodies have."""
    found: Counter[Tensor] = Counter()
    for stage in state.stages:
        if isinstance(stage.op, ComputeOp):
            reads = dict.fromkeys(read for body in stage.op.body for read in tensor_reads(body))
            found.update(read.tensor for read in reads if isinstance(read.tensor, Tensor))
    return found


@once("bodies")
def who_reads(state: ScheduleState) -> Reads:
    """The stages that each stage reads once inlined ones are put in."""
    return reads_of(state, inline_bodies(state))

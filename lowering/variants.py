"""Several schedules of one function, chosen between at run time by conditions on its symbolic dimensions.

``if guard: nest elif guard: nest … else: nest``, made before the passes, so that they know the guard of each nest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ..base.dataclass import dataclass
from ..base.errors import InternalError
from ..base.target import Target
from ..base.timing import TimedStage
from ..ir.buffer import Buffer
from ..ir.expr import Expr, Load, Var
from ..ir.stmt import Allocate, CallExtern, If, PrefetchStmt, PrimFunc, Stmt, Store
from ..ir.visit import Node, rewrite, with_views
from ..te.tensor import Tensor
from .pipeline import lower, realized_function, run_passes
from .schedule import Schedule


@dataclass(frozen=True, slots=True, eq=False)
class Variant:
    """A schedule, its tensors that are arguments, and the condition under which it runs; None holds always."""

    guard: Expr | None
    schedule: Schedule
    args: tuple[Tensor, ...]


def lower_variants(variants: Sequence[Variant], name: str, target: Target, known: Expr | None = None) -> PrimFunc:
    """Lower to one function that runs the first variant whose guard holds; the last one, and no other, has no guard.

    ``known`` is what holds whenever the function is called: the passes go by it, unlike the schedules.
    The arguments of all variants have the same types in the same order. Errors are those of ``pipeline.lower``.
    """
    if not variants or [v for v in variants if v.guard is None] != [variants[-1]]:
        raise InternalError(f"{name}: the last variant must have no guard, and the others one each")
    if len(variants) == 1 and known is None:
        return lower(variants[0].schedule, variants[0].args, name, target)
    with TimedStage("realize"):
        functions = [realized_function(variant.schedule, variant.args, name) for variant in variants]
    last = functions[-1]
    body = last.body
    for variant, function in reversed(list(zip(variants[:-1], functions[:-1], strict=True))):
        assert variant.guard is not None
        memory = {a.data: b for a, b in zip(function.buffers, last.buffers, strict=True)}
        body = If(variant.guard, _on_buffers(function.body, memory), body)
    return run_passes(replace(last, body=body if known is None else If(known, body)), target)


def _on_buffers(body: Stmt, memory: Mapping[Var, Buffer]) -> Stmt:
    """The statement on the memory of other buffers; ``memory`` has them by the addresses of its own."""
    made: dict[Buffer, Buffer] = {}

    def moved(buffer: Buffer) -> Buffer:
        if buffer.data not in memory:
            return buffer
        return made.setdefault(buffer, replace(buffer, data=memory[buffer.data].data))

    def visit(node: Node) -> Node | None:
        match node:
            case Load(buffer, indices, mask) if (new := moved(buffer)) is not buffer:
                return Load(new, indices, mask)
            case Store(buffer, indices, value, mask, origin) if (new := moved(buffer)) is not buffer:
                return Store(new, indices, value, mask, origin)
            case PrefetchStmt(buffer, indices, to_write) if (new := moved(buffer)) is not buffer:
                return PrefetchStmt(new, indices, to_write)
            case CallExtern():
                return with_views(node, moved)
            case Allocate(buffer) if buffer.data in memory:
                raise InternalError(f"{buffer.name} is an argument, and allocated")
            case _:
                return None

    return rewrite(body, visit)

"""Statements over views, put onto the memory where they are used: what instantiates the code of an intrinsic."""

from __future__ import annotations

from collections.abc import Mapping

from ...base.dataclass import dataclass
from ...ir.buffer import Buffer
from ...ir.build import buffer_strides
from ...ir.expr import Expr, Load, Var
from ...ir.extern import Region
from ...ir.stmt import CallExtern, Stmt, Store
from ...ir.visit import Node, rewrite
from ..passes.copying import fresh_copy
from ..passes.folding import add, multiply


@dataclass(frozen=True, slots=True, eq=False)
class StridedView:
    """Where the elements of a view lie: in one-dimensional ``memory``, from ``offset`` on, at ``strides``."""

    memory: Buffer
    strides: tuple[Expr, ...]
    offset: Expr

    def position(self, indices: tuple[Expr, ...]) -> tuple[Expr, ...]:
        """The subscript of an element in the one-dimensional memory: the offset, and each index times its stride."""
        position = self.offset
        for index, stride in zip(indices, self.strides, strict=True):
            position = add(position, multiply(index, stride))
        return (position,)


def on_memory(stmt: Stmt, placements: Mapping[Buffer, StridedView]) -> Stmt:
    """A copy of the statement, its variables fresh, that accesses the memory in place of the views.

    Strides and offset of a view are variables, which the statement may use as values too.
    """
    values: dict[Var, Expr] = {}
    for view, placement in placements.items():
        own = (*buffer_strides(view), view.elem_offset)
        given = (*placement.strides, placement.offset)
        values.update((v, value) for v, value in zip(own, given, strict=True) if isinstance(v, Var))

    def visit(node: Node) -> Node | None:
        match node:
            case Var():
                return values.get(node)
            case Load(buffer, indices, mask) if (placement := placements.get(buffer)) is not None:
                return Load(placement.memory, placement.position(indices), mask)
            case Store(buffer, indices, value, mask) if (placement := placements.get(buffer)) is not None:
                return Store(placement.memory, placement.position(indices), value, mask)
            case CallExtern(function, args):
                return CallExtern(function, tuple(_placed(a, placements) if isinstance(a, Region) else a for a in args))
            case _:
                return None

    return rewrite(fresh_copy(stmt), visit)


def _placed(region: Region, placements: Mapping[Buffer, StridedView]) -> Region:
    placement = placements.get(region.buffer)
    if placement is None:
        return region
    strides = placement.strides if region.strides is None else region.strides
    return Region(placement.memory, placement.position(region.begin), region.extents, strides)

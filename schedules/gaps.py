"""Reads with gaps between the lanes, and copies in an order without gaps."""

from __future__ import annotations

import math

from ..ir.constants import const_int
from ..ir.contents import free_vars
from ..ir.expr import Binary, Const, TensorRead, Var
from ..ir.open_extents import LONG
from ..ir.visit import tensor_reads
from ..lowering.index_map import IndexMap
from ..lowering.loop_names import LoopView
from ..lowering.passes.linear import affine_in
from ..lowering.schedule import StageView
from ..te.tensor import ComputeOp, Tensor

COPIED_USES = 4
"""A tensor whose elements are used so often is worth copying into a better order."""


def with_last(rank: int, dimension: int, step: int) -> str:
    """The index map under which elements that are ``step`` apart in a dimension become neighbours."""
    names = [f"i{d}" for d in range(rank)]
    moved = names[dimension]
    phases = [f"{moved} % {step}", f"{moved} // {step}"] if step > 1 else [moved]
    others = names[:dimension] + names[dimension + 1 :]
    return f"lambda {', '.join(names)}: ({', '.join(others + phases)})"


def only_read(op: ComputeOp, tensor: Tensor) -> TensorRead | None:
    """The read of a tensor by a compute, where all of its reads are one; else None."""
    reads = {read for body in op.body for read in tensor_reads(body) if read.tensor is tensor}
    return reads.pop() if len(reads) == 1 else None


def moving_index(read: TensorRead, lanes: Var) -> tuple[int, int] | None:
    """The one index that moves with the lanes, and by how much a lane."""
    moving = [(d, affine_in(index, lanes)) for d, index in enumerate(read.indices) if lanes in set(free_vars(index))]
    if len(moving) != 1 or moving[0][1] is None or moving[0][1][0] < 1:
        return None
    return moving[0][0], moving[0][1][0]


def uses_of(op: ComputeOp, tensor: Tensor) -> float:
    """How often a compute reads an element of a tensor, on average."""
    reads = math.prod(const_int(axis.extent) or LONG for axis in (*op.axis, *op.reduce_axis))
    return reads / math.prod(const_int(extent) or LONG for extent in tensor.shape)


def loops_along_layout(stage: StageView, layout: IndexMap) -> tuple[list[LoopView], LoopView, int | None]:
    """The loops of a stage whose results lie in a layout, with the one innermost whose elements are neighbours there:
    the others in order, that one, and its extent, None if that is open.

    Of ``i // 16, j, i % 16`` these are the loops over blocks of i, over j, and within a block. Where what the layout
    has last is neither an index nor a digit of one, the loops stay as they are.
    """
    loops, axes = list(stage.loops), stage.computes[0].axis
    index, last = {parameter: k for k, parameter in enumerate(layout.parameters)}, layout.results[-1]
    match last:
        case Binary("//" | "%" as op, Var() as moved, Const(value=size)):
            k, size = index[moved], int(size)
            block, within = stage.split(loops[k], factor=size)
            loops[k], inner = (block, within) if op == "%" else (within, block)
            whole = const_int(axes[k].extent)
            extent = size if op == "%" else None if whole is None else -(-whole // size)
        case _:
            k = index[last] if isinstance(last, Var) else len(loops) - 1
            inner, extent = loops.pop(k), const_int(axes[k].extent)
    stage.reorder(*loops, inner)
    return loops, inner, extent

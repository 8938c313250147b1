"""How the vectors and scalars of a lowered program reach memory: contiguously, at a stride, or each lane for itself."""

from __future__ import annotations

from collections.abc import Iterator

from ...ir.buffer import Buffer
from ...ir.contents import free_vars
from ...ir.expr import Expr, Var
from ...ir.linear import linear_of
from ..facts import as_ramp, flat_index
from ..near_lanes import MAX_SHUFFLED_STRIDE, lanes_behind_mask, shuffled_lanes
from .lowered import PlacedStore


def costly_accesses(placed: PlacedStore) -> Iterator[str]:
    """What of a vector store's memory accesses is not one vector from or to adjacent elements."""
    for load in placed.loads:
        if load.dtype.lanes > 1 and load.buffer.dtype.lanes == 1:
            yield from _load_cost(load.buffer, load.indices, load.mask)
    store = placed.store
    if placed.lanes > 1 and not is_contiguous_store(placed):
        stride = _stride(store.buffer, store.indices)
        how = f"at a stride of {stride}" if stride else "at computed indices"
        yield f"scatter: the lanes go to {store.buffer.name} {how}"


def is_contiguous_store(placed: PlacedStore) -> bool:
    """Whether a vector store writes one vector of adjacent elements."""
    buffer = placed.store.buffer
    return buffer.dtype.lanes > 1 or _stride(buffer, placed.store.indices) in ("1", "-1")


def _load_cost(buffer: Buffer, indices: tuple[Expr, ...], mask: Expr | None) -> Iterator[str]:
    stride = _stride(buffer, indices)
    masked = mask is not None and lanes_behind_mask(buffer, flat_index(buffer, indices), mask) is None
    if stride == "" and shuffled_lanes(flat_index(buffer, indices), masked) is not None:
        yield f"shuffles: the lanes of {buffer.name} are put together from the vectors that have them"
    elif stride == "":
        yield f"gather: the lanes of {buffer.name} come from computed indices"
    elif stride.lstrip("-").isdigit() and abs(int(stride)) <= MAX_SHUFFLED_STRIDE:
        if abs(int(stride)) > 1:
            yield f"non-unit stride: {buffer.name} is read at a stride of {stride}, by several loads and shuffles"
    else:
        yield f"gather: the lanes of {buffer.name} come at a stride of {stride}"


def _stride(buffer: Buffer, indices: tuple[Expr, ...]) -> str:
    """The distance of neighbouring lanes in elements, as text; empty where it is not the same for all."""
    ramp = as_ramp(flat_index(buffer, indices))
    return "" if ramp is None else str(ramp[1])


def step_of(placed: PlacedStore, var: Var) -> int | None:
    """How many elements a scalar store moves from one iteration of a loop to the next; None if that is not constant."""
    index = flat_index(placed.store.buffer, placed.store.indices)
    if index.dtype.lanes != 1:
        return None
    step = 0
    for term in linear_of(index):
        if len(term.factors) == 1 and term.factors[0] is var:
            step = term.coefficient
        elif any(free is var for factor in term.factors for free in free_vars(factor)):
            return None
    return step

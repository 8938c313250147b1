"""Short hands that passes and tests use to make buffers and variables."""

from __future__ import annotations

from collections.abc import Sequence

from ..base.aligned import ARENA_ALIGNMENT
from ..base.dtype import HANDLE, INDEX, DType, dtype
from .buffer import Buffer, Scope
from .constants import const
from .expr import Binary, Const, Expr, ExprLike, Var
from .makers import as_index
from .scalar import eval_binary


def index_var(name: str) -> Var:
    """A fresh variable of dtype index."""
    return Var(name, INDEX)


def make_buffer(
    name: str,
    shape: Sequence[ExprLike],
    kind: str | DType,
    scope: Scope = "global",
    strides: Sequence[ExprLike] | None = None,
    elem_offset: ExprLike = 0,
    alignment: int | None = None,
    data: Var | None = None,
) -> Buffer:
    """A buffer with memory of its own, unless ``data`` makes it a view of another's.

    ``alignment`` (bytes) defaults to the dtype's natural one for ``global`` scope, which arguments may have, and to 64
    for memory that loopwright allocates.
    """
    element = dtype(kind)
    natural = element.element.storage_bytes
    if alignment is None:
        alignment = natural if scope == "global" else max(natural, ARENA_ALIGNMENT)
    return Buffer(
        name,
        element,
        tuple(as_index(extent) for extent in shape),
        data if data is not None else Var(name, HANDLE),
        None if strides is None else tuple(as_index(s) for s in strides),
        as_index(elem_offset),
        alignment,
        scope,
    )


def compact_strides(shape: Sequence[Expr]) -> tuple[Expr, ...]:
    """Row-major strides of a shape, in elements; products of constants are folded."""
    strides: list[Expr] = []
    step: Expr = const(1, INDEX)
    for extent in reversed(shape):
        strides.append(step)
        step = _times(step, extent)
    return tuple(reversed(strides))


def buffer_strides(buffer: Buffer) -> tuple[Expr, ...]:
    """The strides of a buffer in elements, compact ones spelled out."""
    return buffer.strides if buffer.strides is not None else compact_strides(buffer.shape)


def _times(a: Expr, b: Expr) -> Expr:

    match a, b:
        case Const(value=x), Const(value=y):
            return const(eval_binary("*", INDEX, x, y), INDEX)
        case Const(value=1), _:
            return b
        case _, Const(value=1):
            return a
        case _:
            return Binary("*", a, b)

"""The tensor intrinsics of tiles, registers that hold small matrices: ``ir/tiles.py`` says what these are.

A block of sums of products of bytes, in words of four, takes three of them, for a stage that sums in scope ``"tile"``::

    s[sums].tensorize(loop, dot4_tiles(block, "int8", signed_left))     set the block to zeros, and add a step to it
    s[copy].tensorize(loop, store_tiles(block))                         write it to memory

They are made when they are first asked for by their names.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache

import numpy as np
import numpy.typing as npt

from .. import te
from ..base.dtype import DType, dtype
from ..base.errors import ScheduleError
from ..ir.buffer import Buffer
from ..ir.constants import ZERO
from ..ir.expr import Axis, Expr
from ..ir.extern import ExternFunction, ExternParam, Region
from ..ir.makers import as_index
from ..ir.stmt import CallExtern, Stmt
from ..ir.tile_loops import joined
from ..ir.tiles import WORD_BYTES, TileBlock, TileCode
from .declare_intrinsic import make_intrinsic
from .tensor_intrinsic import TensorIntrinsic, intrinsic_named, register_intrinsic

_DOT4 = re.compile(r"tiles_(\d+)x(\d+)x(\d+)_dot4_(int8|uint8|int32)_(su|us)")
_STORE = re.compile(r"tiles_(\d+)x(\d+)x(\d+)_store")


def dot4_tiles(block: TileBlock, left: DType | str, signed_left: bool) -> str:
    """The name of the intrinsic that adds a step to a block of sums: C[i, j] += Σ dot4(A[i, k], B[k, j]) over words k.

    ``left`` is the dtype in which A lies in memory: int32, or int8 or uint8 for bytes [i, k, 4] of which words are
    joined. Its bytes are signed and those of B unsigned if ``signed_left``, else the other way round. Words of a row of
    A lie side by side, and so do those of a row of B.
    """
    return f"tiles_{block}_dot4_{left}_{'su' if signed_left else 'us'}"


def store_tiles(block: TileBlock) -> str:
    """The name of the intrinsic that copies a block of sums to memory, in which those of a row lie side by side."""
    return f"tiles_{block}_store"


def require_intrinsic(name: str) -> None:
    """See to it that there is an intrinsic of that name, declared or one of tiles.

    Raises ``ScheduleError`` where there is none.
    """
    dot4, store = (form.fullmatch(str(name)) for form in (_DOT4, _STORE))
    found = dot4 or store
    if found is None:
        intrinsic_named(name)
        return
    block = TileBlock(*(int(number) for number in found.groups()[:3]))
    if not block.exists:
        raise ScheduleError(f"there are no registers for tiles of {block}: see ir/tiles.py for their sizes")
    made = _store(name, block) if dot4 is None else _dot4(name, block, dtype(dot4[4]), dot4[5] == "su")
    register_intrinsic(made, override=True)


@cache
def _dot4(name: str, block: TileBlock, left: DType, signed_left: bool) -> TensorIntrinsic:
    in_bytes = str(left) != "int32"
    A = te.placeholder((block.rows, block.words, *([WORD_BYTES] if in_bytes else [])), left, "A")
    B = te.placeholder((block.words, block.columns), "int32", "B")
    k = te.reduce_axis((0, block.words), name="k")

    def element(i: Axis, j: Axis) -> Expr:
        a, b = joined(lambda byte: A[i, k, as_index(byte)]) if in_bytes else A[i, k], B[k, j]
        return te.sum(te.dot4(b, a) if signed_left else te.dot4(a, b), axis=k)

    C = te.compute((block.rows, block.columns), element, name="C")
    add = _function(
        name, TileCode("dot4", block, signed_left), ("update", "int32"), ("read", str(left)), ("read", "int32")
    )
    zero = _function(f"tiles_{block}_zero", TileCode("zero", block), ("write", "int32"))

    def update(first: Buffer, second: Buffer, c: Buffer) -> Stmt:
        return _call(add, c, *((second, first) if signed_left else (first, second)))  # as they appear in the compute

    return make_intrinsic(name, C, update, lambda c: _call(zero, c), {A: A.ndim - 1, B: 1, C: C.ndim})


@cache
def _store(name: str, block: TileBlock) -> TensorIntrinsic:
    A = te.placeholder((block.rows, block.columns), "int32", "A")
    B = te.compute(A.shape, lambda i, j: A[i, j], name="B")
    store = _function(name, TileCode("store", block), ("write", "int32"), ("read", "int32"))
    return make_intrinsic(name, B, lambda a, b: _call(store, b, a), compact={A: A.ndim, B: 1})


def _call(function: ExternFunction, *buffers: Buffer) -> Stmt:
    return CallExtern(function, tuple(Region(b, (ZERO,) * b.ndim, b.shape) for b in buffers))


def _function(symbol: str, code: TileCode, *params: tuple[str, str]) -> ExternFunction:
    references: dict[str, Callable[..., None]] = {
        "zero": _zero,
        "store": _copy,
        "dot4": _add_signed if code.signed_left else _add_unsigned,
    }
    made = tuple(ExternParam(passing, dtype(kind)) for passing, kind in params)  # type: ignore[arg-type]
    return ExternFunction(symbol, made, references[code.action], code)


# What the functions do, for the interpreter.

Array = npt.NDArray[np.generic]


def _zero(block: npt.NDArray[np.int32]) -> None:
    block[...] = 0


def _copy(memory: npt.NDArray[np.int32], block: npt.NDArray[np.int32]) -> None:
    memory[...] = block


def _add_unsigned(block: npt.NDArray[np.int32], left: Array, right: Array) -> None:
    _add(block, left, right, np.uint8, np.int8)


def _add_signed(block: npt.NDArray[np.int32], left: Array, right: Array) -> None:
    _add(block, left, right, np.int8, np.uint8)


def _add(
    block: npt.NDArray[np.int32], left: Array, right: Array, left_kind: type[np.generic], right_kind: type[np.generic]
) -> None:
    rows, columns = block.shape
    a = np.ascontiguousarray(left).view(left_kind).reshape(rows, -1).astype(np.int32)
    words = np.ascontiguousarray(right).view(right_kind).reshape(-1, columns, WORD_BYTES)
    b = words.transpose(0, 2, 1).reshape(-1, columns).astype(np.int32)
    with np.errstate(over="ignore"):
        block += a @ b

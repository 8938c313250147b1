"""The arrays that a caller passes, checked against the parameters of a function, and made into memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ...base.errors import RuntimeArgumentError
from ..buffer import Buffer
from ..expr import Expr, Var
from ..stmt import PrimFunc
from ..visit import memory_written, walk
from .compile import ExprCompiler
from .memory import Memory
from .run import memory_size

Array = npt.NDArray[Any]


def bind_arguments(func: PrimFunc, arrays: Sequence[object]) -> tuple[list[Memory], dict[Var, int]]:
    """Memory for each parameter buffer, and the symbolic dimensions. Raises ``RuntimeArgumentError``."""
    buffers = func.buffers
    if len(arrays) != len(buffers):
        names = ", ".join(b.name for b in buffers)
        raise RuntimeArgumentError(f"{func.name} takes {len(buffers)} arrays ({names}), not {len(arrays)}")
    checked = [_check_kind(func, b, a) for b, a in zip(buffers, arrays, strict=True)]
    dims = _solve(func, buffers, checked)
    _check_outputs(func, buffers, checked)
    return [_memory(func, b, a, dims) for b, a in zip(buffers, checked, strict=True)], dims


def _check_kind(func: PrimFunc, buffer: Buffer, array: object) -> Array:
    if not isinstance(array, np.ndarray):
        raise _bad(func, buffer, f"expected a numpy array, found a {type(array).__name__}")
    wanted = buffer.dtype.to_numpy()
    if array.dtype != wanted:
        raise _bad(func, buffer, f"expected dtype {wanted}, found {array.dtype}")
    rank = buffer.ndim + (buffer.dtype.lanes > 1)
    if array.ndim != rank:
        raise _bad(func, buffer, f"expected {rank} dimensions, found shape {array.shape}")
    if buffer.dtype.lanes > 1 and array.shape[-1] != buffer.dtype.lanes:
        raise _bad(func, buffer, f"expected {buffer.dtype.lanes} lanes in the last dimension, found {array.shape}")
    return array


def _element_strides(array: Array) -> tuple[int, ...]:
    return tuple(stride // array.itemsize for stride in array.strides)


def _solve(func: PrimFunc, buffers: Sequence[Buffer], arrays: Sequence[Array]) -> dict[Var, int]:
    """Symbolic dimensions from the extents and strides where they stand alone; then all of these are checked."""
    facts: list[tuple[Buffer, str, Expr, int, Array]] = []
    for buffer, array in zip(buffers, arrays, strict=True):
        facts += [(buffer, f"extent {k}", e, array.shape[k], array) for k, e in enumerate(buffer.shape)]
        if buffer.strides is not None:
            found = _element_strides(array)
            facts += [
                (buffer, f"stride {k}", s, found[k], array)
                for k, s in enumerate(buffer.strides)
                if array.shape[k] > 1 or isinstance(s, Var)
            ]
    dims: dict[Var, int] = {}
    for _, _, wanted, value, _ in facts:
        if isinstance(wanted, Var):
            dims.setdefault(wanted, value)
    for buffer, what, wanted, value, array in facts:
        expected = _evaluate(func, buffer, wanted, dims)
        if expected != value:
            known = ", ".join(f"{var.name} = {number}" for var, number in dims.items())
            text = f"{wanted} = {expected} ({known})" if dims else str(expected)
            raise _bad(func, buffer, f"{what} should be {text}, found {value}; the array has shape {array.shape}")
    return dims


def _evaluate(func: PrimFunc, buffer: Buffer, value: Expr, dims: Mapping[Var, int]) -> int:
    compiler = ExprCompiler(func)
    bound = [(compiler.bind(var), number) for var, number in dims.items()]
    for node in walk(value):
        if isinstance(node, Var) and node not in dims:
            raise _bad(func, buffer, f"no array determines {node.name}, of which {value} is made")
    evaluate = compiler.evaluator(value)
    frame = compiler.template.copy()
    for slot, number in bound:
        frame[slot] = number
    return int(evaluate(frame))


def _check_outputs(func: PrimFunc, buffers: Sequence[Buffer], arrays: Sequence[Array]) -> None:
    stored = memory_written(func.body) | {buffer.data for buffer in func.outputs}
    for buffer, array in zip(buffers, arrays, strict=True):
        if buffer.data not in stored:
            continue
        if not array.flags.writeable:
            raise _bad(func, buffer, "the array is read-only, but the function writes it")
        for other, other_array in zip(buffers, arrays, strict=True):
            if other is not buffer and np.shares_memory(array, other_array):
                raise _bad(func, buffer, f"the array overlaps the one of {other.name}, but the function writes it")


def _memory(func: PrimFunc, buffer: Buffer, array: Array, dims: Mapping[Var, int]) -> Memory:
    """The caller's own memory, flat."""
    offset = _evaluate(func, buffer, buffer.elem_offset, dims)
    if offset != 0:
        raise _bad(func, buffer, f"parameters start at element 0 of their memory, this one at {offset}")
    if buffer.dtype.lanes > 1 or buffer.strides is None:
        if not array.flags.c_contiguous:
            raise _bad(func, buffer, f"expected a C-contiguous array, found strides {_element_strides(array)}")
        flat = array.reshape(-1) if buffer.dtype.lanes == 1 else array.reshape(-1, buffer.dtype.lanes)
        return Memory(flat, None, 0, array.flags.writeable)
    strides = [_evaluate(func, buffer, s, dims) for s in buffer.strides]
    if any(stride < 0 for stride in strides):
        raise _bad(func, buffer, f"negative strides: {strides}")
    size = memory_size(list(array.shape), strides, 0)
    flat = np.lib.stride_tricks.as_strided(array, (size,), (array.itemsize,), writeable=array.flags.writeable)
    return Memory(flat, None, 0, array.flags.writeable)


def _bad(func: PrimFunc, buffer: Buffer, message: str) -> RuntimeArgumentError:
    return RuntimeArgumentError(f"{func.name}, argument {buffer.name}: {message}")

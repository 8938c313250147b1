"""numpy, whose matrix multiplications are OpenBLAS's: matmul, elementwise operations, reductions, moving data.

Results go into arrays that are kept, where its functions let us say so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

from .steps import Attributes, Make, steps


def prepare(path: Path, inputs: Mapping[str, np.ndarray], threads: int) -> Callable[[], list[np.ndarray]]:
    """The threads of OpenBLAS are said in the environment; all else has one. Raises ``LookupError`` for bfloat16, which
    is no dtype of numpy's own."""
    if any(array.dtype == ml_dtypes.bfloat16 for array in inputs.values()):
        raise LookupError("numpy has no bfloat16")
    return steps(path, inputs, TABLE, np.asarray)


def _into(function: Callable[..., np.ndarray], **fixed: Any) -> Callable[..., np.ndarray]:
    """The function, writing to the array that its first call gave."""
    out: np.ndarray | None = None

    def call(*arguments: np.ndarray) -> np.ndarray:
        nonlocal out
        out = function(*arguments, **fixed, **({} if out is None else {"out": out}))
        return out

    return call


def _plain(function: Callable[..., np.ndarray]) -> Make:
    return lambda attributes: _into(function)


def _reduce(function: Callable[..., np.ndarray]) -> Make:
    def make(attributes: Attributes) -> Callable[..., np.ndarray]:
        keep, made = bool(attributes.get("keepdims", 1)), {}

        def call(x: np.ndarray, axes: np.ndarray) -> np.ndarray:
            if not made:
                made["run"] = _into(function, axis=tuple(map(int, axes)), keepdims=keep)
            return made["run"](x)

        return call

    return make


def _copied(view: Callable[[np.ndarray], np.ndarray]) -> Callable[[np.ndarray], np.ndarray]:
    out: np.ndarray | None = None

    def call(x: np.ndarray) -> np.ndarray:
        nonlocal out
        if out is None:
            out = np.empty(view(x).shape, x.dtype)
        np.copyto(out, view(x))
        return out

    return call


def _gather(attributes: Attributes) -> Callable[..., np.ndarray]:
    return _into(lambda x, k, out=None: np.take(x, k, axis=attributes.get("axis", 0), out=out, mode="clip"))


def _concat(attributes: Attributes) -> Callable[..., np.ndarray]:
    return _into(lambda *xs, out=None: np.concatenate(xs, axis=attributes["axis"], out=out))


def _argmax(attributes: Attributes) -> Callable[..., np.ndarray]:
    return _into(np.argmax, axis=attributes["axis"], keepdims=bool(attributes.get("keepdims", 1)))


def _cumsum(attributes: Attributes) -> Callable[..., np.ndarray]:
    return _into(lambda x, axis, out=None: np.cumsum(x, int(axis), out=out))


def _transpose(attributes: Attributes) -> Callable[..., np.ndarray]:
    return _copied(lambda x: x.transpose(attributes["perm"]))


TABLE: dict[str, Make] = {
    "MatMul": _plain(np.matmul),
    "Add": _plain(np.add),
    "Sub": _plain(np.subtract),
    "Mul": _plain(np.multiply),
    "Div": _plain(np.divide),
    "Max": _plain(np.maximum),
    "Min": _plain(np.minimum),
    "Exp": _plain(np.exp),
    "Log": _plain(np.log),
    "Tanh": _plain(np.tanh),
    "Sin": _plain(np.sin),
    "Cos": _plain(np.cos),
    "Sqrt": _plain(np.sqrt),
    "Abs": _plain(np.abs),
    "Neg": _plain(np.negative),
    "Relu": lambda attributes: _into(lambda x, out=None: np.maximum(x, 0, out=out)),
    "ReduceSum": _reduce(np.sum),
    "ReduceMean": _reduce(np.mean),
    "ReduceMax": _reduce(np.max),
    "ArgMax": _argmax,
    "CumSum": _cumsum,
    "Transpose": _transpose,
    "Gather": _gather,
    "Concat": _concat,
}

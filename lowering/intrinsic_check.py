"""Whether the code of a tensor intrinsic does what its compute says: both are interpreted on random inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ..base.dataclass import dataclass
from ..base.dtype import INDEX, DType
from ..base.errors import InterpretError, ScheduleError
from ..ir.buffer import Buffer
from ..ir.build import make_buffer
from ..ir.constants import const, const_int
from ..ir.expr import Expr
from ..ir.interpret import interpret
from ..ir.stmt import PrimFunc, Stmt
from .nest.views import StridedView, on_memory

TRIALS = 4
TOLERANCE = 64
"""Roundings by which floats may differ, of the largest value at hand: code may fold terms in another order."""

Array: TypeAlias = npt.NDArray[Any]


@dataclass(frozen=True, slots=True, eq=False)
class _Trial:
    """Memory for each view, filled at random, and where in it the view's elements lie."""

    memories: tuple[Buffer, ...]
    placements: Mapping[Buffer, StridedView]
    arrays: tuple[Array, ...]
    positions: tuple[Array, ...]

    def run(self, name: str, stmt: Stmt) -> list[Array]:
        func = PrimFunc(name, self.memories, on_memory(stmt, self.placements), self.memories[-1:])
        arrays = [a.copy() for a in self.arrays]
        interpret(func)(*arrays)
        return arrays


def check_intrinsic(name: str, views: Sequence[Buffer], declared: Stmt, code: Stmt) -> None:
    """Raise ``ScheduleError`` with a counterexample unless the two statements over the views do the same.

    The output holds random values before, so that code that does not fold into them, or writes elsewhere, is found.
    """
    for seed in range(TRIALS):
        trial = _make_trial(np.random.default_rng(seed), views, compact=seed == 0)
        expected = trial.run(name, declared)[-1]
        try:
            found = trial.run(name, code)[-1]
        except InterpretError as error:
            raise ScheduleError(f"intrinsic {name}: its code fails where its compute does not: {error}") from error
        wrong = ~_close(views[-1].dtype, expected, found, trial.arrays)
        if wrong.any():
            raise ScheduleError(_counterexample(name, views, trial, int(np.argmax(wrong)), expected, found))


def _make_trial(rng: np.random.Generator, views: Sequence[Buffer], compact: bool) -> _Trial:
    memories, placements, arrays, positions = [], {}, [], []
    for view in views:
        shape = [const_int(extent) or 0 for extent in view.shape]
        strides = _strides(rng, shape, compact)
        offset = 0 if compact else int(rng.integers(0, 5))
        grid = np.indices(shape).reshape(len(shape), prod(shape))
        reached = offset + (grid * np.array(strides, int)[:, None]).sum(0)
        memory = make_buffer(view.name, (int(reached.max()) + 1 + int(not compact),), view.dtype)
        memories.append(memory)
        placements[view] = StridedView(memory, tuple(_index(s) for s in strides), _index(offset))
        arrays.append(_random(rng, view.dtype, const_int(memory.shape[0]) or 0))
        positions.append(reached)
    return _Trial(tuple(memories), placements, tuple(arrays), tuple(positions))


def _index(number: int) -> Expr:
    return const(number, INDEX)


def _strides(rng: np.random.Generator, shape: list[int], compact: bool) -> list[int]:
    """Strides at which no two elements meet: compact ones, or with padding and the dimensions in any order."""
    strides = [0] * len(shape)
    step = 1 if compact else int(rng.integers(1, 3))
    for dim in range(len(shape))[::-1] if compact else rng.permutation(len(shape)):
        strides[dim] = step
        step = step * shape[dim] + (0 if compact else int(rng.integers(0, 3)))
    return strides


def _random(rng: np.random.Generator, kind: DType, count: int) -> Array:
    limits = kind.int_range()
    if kind.is_bool:
        return rng.integers(0, 2, count).astype(bool)
    if limits is not None:
        return rng.integers(limits[0], limits[1], count, endpoint=True, dtype=kind.to_numpy())
    return rng.standard_normal(count).astype(kind.to_numpy())


def _close(kind: DType, expected: Array, found: Array, arrays: Sequence[Array]) -> Array:
    if not kind.is_float:
        return np.asarray(expected == found)
    a, b = expected.astype(np.float64), found.astype(np.float64)
    largest = max([1.0, *(float(np.max(np.abs(x.astype(np.float64)), initial=0)) for x in (*arrays, expected))])
    unit = 2.0 ** -{16: 8 if kind.kind == "bfloat" else 11, 32: 24, 64: 53}[kind.bits]
    return np.asarray((np.abs(a - b) <= TOLERANCE * unit * largest) | (np.isnan(a) & np.isnan(b)) | (a == b))


def _counterexample(name: str, views: Sequence[Buffer], trial: _Trial, at: int, expected: Array, found: Array) -> str:
    output = views[-1]
    where = np.flatnonzero(trial.positions[-1] == at)
    if not len(where):
        return (
            f"intrinsic {name}: its code writes outside of {output.name}, {at} elements into memory that holds "
            f"{trial.memories[-1]!r}"
        )
    shape = [const_int(extent) or 0 for extent in output.shape]
    index = ", ".join(map(str, np.unravel_index(int(where[0]), shape))) if shape else "()"
    values = [
        f"  {view.name} = {np.array2string(a[p].reshape([const_int(e) or 0 for e in view.shape]), threshold=64)}"
        for view, a, p in zip(views, trial.arrays, trial.positions, strict=True)
    ]
    return (
        f"intrinsic {name}: its code does not do what its compute says: {output.name}[{index}] should become "
        f"{expected[at]}, and becomes {found[at]}, for\n" + "\n".join(values)
    )

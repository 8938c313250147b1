"""Expressions on a grid: each becomes an array that numpy broadcasts over it.

What reads a tensor at affine indices is a view of its memory; at other indices it is gathered, each index where it
would leave the tensor being brought back to its border: only what a condition leaves out reads there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.lib.stride_tricks import as_strided

from ...base.dtype import DType
from ...ir.expr import (
    Binary,
    Call,
    Cast,
    Compare,
    Const,
    Expr,
    IfThenElse,
    Let,
    Logical,
    Select,
    TensorRead,
    Unary,
    Var,
)
from ...ir.interpret.values import BINARY, COMPARE, LOGICAL, UNARY
from ...ir.intrinsics import ARITHMETIC_FENCE, INTRINSICS, evaluate
from ...ir.linear import linear_of
from ...ir.rounding import round_to_float
from ..tensor import Tensor
from .grid import POINT, Array, Grid
from .unvectorized import UnvectorizedError

Value: TypeAlias = Any
"""An array on the grid, a scalar of numpy, or a Python int of dtype ``index``."""


_INDEX_RANGE = -(1 << 63), (1 << 63) - 1


class Values:
    """The values of expressions on a grid, each evaluated once. ``tensors`` are what they may read, and ``bound`` the
    values of variables that are no axes, such as dimensions. Mutable: it remembers values."""

    def __init__(self, grid: Grid, tensors: Mapping[Tensor, Array], bound: Mapping[Var, Value]) -> None:
        self._grid, self._tensors, self._bound = grid, tensors, bound
        self._known: dict[Expr, Value] = {}

    def of(self, e: Expr) -> Value:
        """The value of an expression."""
        if e not in self._known:
            self._known[e] = self._evaluated(e)
        return self._known[e]

    def _evaluated(self, e: Expr) -> Value:
        match e:
            case Const(value):
                return int(value) if e.dtype.is_index else e.dtype.to_numpy().type(value)
            case Var():
                return self._variable(e)
            case Binary(op, a, b):
                return _of_kind(e.dtype, BINARY[op](self.of(a), self.of(b)))
            case Compare(op, a, b):
                return COMPARE[op](self.of(a), self.of(b))
            case Logical(op, a, b):
                return LOGICAL[op](self.of(a), self.of(b))
            case Unary(op, a):
                return UNARY[op](self.of(a))
            case Cast(to, value):
                return cast(to, value.dtype, self.of(value))
            case Select(condition, a, b):
                return np.where(self.of(condition), self.of(a), self.of(b))
            case IfThenElse():
                return self._choice(e)
            case Let(var, value, body):
                self._known[var] = self.of(value)
                return self.of(body)
            case Call(name, args):
                return _intrinsic(name, args[0].dtype)(*map(self.of, args))
            case TensorRead(tensor, indices) if isinstance(tensor, Tensor):
                return self._read(tensor, indices)
        raise UnvectorizedError(f"{type(e).__name__} is not evaluated a whole tensor at a time")

    def _variable(self, var: Var) -> Value:
        position = self._grid.positions.get(var)
        if position is not None:
            return self._grid.numbers(position)
        if var not in self._bound:
            raise UnvectorizedError(f"nothing tells the value of {var.name}")
        return self._bound[var]

    def _choice(self, e: IfThenElse) -> Value:
        """A choice by a condition; of one that holds in a box, only what lies in it is evaluated."""
        condition = self.of(e.condition)
        if not np.ndim(condition):
            return self.of(e.a if condition else e.b)
        box = self._box(e.condition)
        if box is None:
            return np.where(condition, self.of(e.a), self.of(e.b))
        other = self.of(e.b)
        made: Array = np.empty(self._grid.shape, e.dtype.to_numpy())
        made[...] = other
        inside = self._grid.within(box)
        if inside.size:
            made[tuple(slice(*each) for each in box)] = Values(inside, self._tensors, self._bound).of(e.a)
        return made

    def _box(self, condition: Expr) -> list[tuple[int, int]] | None:
        """The range of each axis in which a condition holds, if that is a box, and all of it is told by single axes."""
        if self._local or np.ndim(self.of(condition)) != self._grid.ndim:
            return None
        box = [(0, count) for count in self._grid.shape]
        for clause in _clauses(condition):
            holds = np.asarray(self.of(clause))
            several = [position for position, count in enumerate(holds.shape) if count != 1]
            if len(several) > 1:
                return None
            (where,) = np.nonzero(holds.reshape(-1))
            low, high = (int(where[0]), int(where[-1]) + 1) if where.size else (0, 0)
            if high - low != where.size:
                return None
            for position in several:
                box[position] = max(box[position][0], low), min(box[position][1], high)
            if not several and not where.size:
                return [(0, 0)] * self._grid.ndim
        return [(low, max(low, high)) for low, high in box]

    @property
    def _local(self) -> bool:
        """Whether some variable has a value of its own at each point, which a part of the grid would lack."""
        return any(isinstance(e, Var) and e not in self._grid.positions for e in self._known if e not in self._bound)

    def _read(self, tensor: Tensor, indices: tuple[Expr, ...]) -> Array:
        array = self._tensors[tensor]
        if not self._grid.size:
            return np.empty(self._grid.shape, array.dtype)
        walks = [self._walk(index, extent) for index, extent in zip(indices, array.shape, strict=True)]
        return self._view(array, walks) if all(walks) else self._gathered(array, walks, indices)

    def _walk(self, index: Expr, extent: int) -> _Walk | None:
        """How an affine index moves; None for another one, or where it would leave its axis."""
        form = linear_of(index)
        begin = form.constant
        steps: dict[int, int] = {}
        for term in form.terms.values():
            coefficient, position = term.coefficient, None
            for factor in term.factors:
                if isinstance(factor, Var) and factor in self._grid.positions and position is None:
                    position = self._grid.positions[factor]
                elif np.ndim(value := self.of(factor)) or not isinstance(value, (int, np.integer)):
                    return None
                else:
                    coefficient *= int(value)
            if position is None:
                begin += coefficient
            else:
                steps[position] = steps.get(position, 0) + coefficient
        begin += sum(step * self._grid.begins[position] for position, step in steps.items())
        far = [step * (self._grid.shape[position] - 1) for position, step in steps.items()]
        low, high = (begin + sum(pick(each, 0) for each in far) for pick in (min, max))
        return _Walk(begin, steps) if low >= 0 and high < extent else None

    def _view(self, array: Array, walks: list[_Walk | None]) -> Array:
        """The elements where affine indices lead, at each point of the grid."""
        strides, shape = [0] * self._grid.ndim, [1] * self._grid.ndim
        for walk, stride in zip(walks, array.strides, strict=True):
            assert walk is not None
            for position, step in walk.steps.items():
                strides[position] += step * stride
                shape[position] = self._grid.shape[position]
        first = array[tuple(slice(walk.begin, None) for walk in walks if walk is not None)]
        if first.dtype.isbuiltin == 1:
            return as_strided(first, shape, strides, writeable=False)
        bits = first.view(f"u{first.itemsize}")  # numpy strides none of the types of ml_dtypes
        return as_strided(bits, shape, strides, writeable=False).view(first.dtype)

    def _gathered(self, array: Array, walks: list[_Walk | None], indices: tuple[Expr, ...]) -> Array:
        """The elements where any indices lead: gathered along those that are not affine, which gives an array whose
        other axes are walked."""
        loose = [axis for axis, walk in enumerate(walks) if walk is None]
        if not all(array.shape[axis] for axis in loose):  # there is nothing to be read, where no condition holds
            return np.zeros(self._grid.shape, array.dtype)
        kept = [axis for axis, walk in enumerate(walks) if walk is not None]
        numbers = [self.of(indices[axis]) for axis in loose]
        clipped = [np.clip(np.asarray(n), 0, array.shape[axis] - 1) for n, axis in zip(numbers, loose, strict=True)]
        spread = np.broadcast_arrays(*clipped, np.empty((1,) * self._grid.ndim, np.int8))[: len(loose)]
        got = array.transpose(*loose, *kept)[tuple(spread)]
        own: list[_Walk | None] = [
            _Walk(0, {position: 1} if count != 1 else {}) for position, count in enumerate(spread[0].shape)
        ]
        return self._view(got, own + [walks[axis] for axis in kept])


def number_of(e: Expr, bound: Mapping[Var, Value]) -> int:
    """The value of an integer that depends on no axis, such as an extent."""
    return int(Values(POINT, {}, bound).of(e))


class _Walk(NamedTuple):
    """How an index moves: where it begins, and its steps along axes of the grid."""

    begin: int
    steps: Mapping[int, int]


def _clauses(condition: Expr) -> list[Expr]:
    """What holds together if the condition does."""
    if isinstance(condition, Logical) and condition.op == "and":
        return _clauses(condition.a) + _clauses(condition.b)
    return [condition]


def _of_kind(kind: DType, value: Value) -> Value:
    """The value in its own dtype, which numpy widens in few places."""
    if kind.is_index or getattr(value, "dtype", None) == kind.to_numpy():
        return value
    return np.asarray(value).astype(kind.to_numpy())


def cast(to: DType, source: DType, value: Value) -> Value:
    """Conversion between element types: see the casts in the docstring of ``ir/expr.py``."""
    if to is source:
        return value
    if to.is_bool:
        return np.asarray(value) != 0
    if to.holds_floats:
        rounded = source.is_index or to.kind == "bfloat" or to.is_narrow
        return round_to_float(to)(value) if rounded else np.asarray(value).astype(to.to_numpy())
    kind = np.dtype(np.int64) if to.is_index else to.to_numpy()
    if not source.holds_floats:
        return np.asarray(value).astype(kind)
    return _truncated(np.asarray(value), to.int_range() or _INDEX_RANGE).astype(kind)


def _truncated(value: Array, bounds: tuple[int, int]) -> Array:
    """Floats to integers within these bounds: towards zero, saturating, NaN becomes 0."""
    low, high = bounds
    wide = np.nan_to_num(value.astype(np.float64), nan=0.0, posinf=np.inf, neginf=-np.inf)
    inside = (wide > low) & (wide < high)
    kind = np.dtype(np.int64 if low else np.uint64)
    made: Array = np.where(inside, wide, 0.0).astype(kind)
    return np.where(inside, made, np.where(wide <= low, kind.type(low), kind.type(high)))


def _intrinsic(name: str, kind: DType) -> Callable[..., Value]:
    """An intrinsic on arrays of dtype ``kind``: those of narrow floats in float64, as by their definition."""
    if name == ARITHMETIC_FENCE:
        return lambda value: value
    if kind.is_float and kind.bits >= 32 and INTRINSICS[name].domain == "float":
        wide: Callable[..., Value] = _OWN.get(name) or INTRINSICS[name].reference
        result = (INTRINSICS[name].result or kind).to_numpy()
        return lambda *args: np.asarray(wide(*args)).astype(result, copy=False)
    if kind.is_index:
        raise UnvectorizedError(f"{name} of indices is not evaluated a whole tensor at a time")
    return lambda *args: evaluate(name, kind, *np.broadcast_arrays(*args))


def _erf(x: Array) -> Array:
    """The error function by a rational function of t = 1 / (1 + |x| / 2) in an exponent, with an error of less than
    1.2e-7 (Press et al., "Numerical Recipes in C", 1992, section 6.2). The standard library's has no form for
    arrays."""
    size = np.abs(np.asarray(x, np.float64))
    t = 1.0 / (1.0 + 0.5 * size)
    power = np.polyval(_ERFC, t)
    made: Array = np.copysign(1.0 - t * np.exp(power - size * size), x)
    return made


_ERFC = (
    *(0.17087277, -0.82215223, 1.48851587, -1.13520398, 0.27886807),
    *(-0.18628806, 0.09678418, 0.37409196, 1.00002368, -1.26551223),
)
_OWN: Mapping[str, Callable[..., Value]] = {"erf": _erf}

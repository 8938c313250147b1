"""Whether the result of a reducer depends on the order in which terms are folded: its laws, tried on sample values.

Schedules that fold in another order than the definition's ask here. Trying proves nothing, but finds what matters:
averages of averages, differences, an "identity" that is not neutral, ties that the first one wins.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np

from ..ir.build import index_var, make_buffer
from ..ir.constants import ZERO
from ..ir.contents import substitute
from ..ir.expr import Combiner, Expr, Load, Var
from ..ir.interpret import interpret
from ..ir.makers import as_index
from ..ir.stmt import For, PrimFunc, Store, seq

SAMPLES = 48
ROUNDINGS = 64
"""By how many units in the last place two orders of folding floats may differ."""

Column: TypeAlias = np.ndarray[Any, Any]
Columns: TypeAlias = Sequence[Column]
"""Samples of tuples: one array for each output of the reducer."""


@lru_cache(maxsize=256)
def order_counterexample(combiner: Combiner) -> str | None:
    """Values for which ``(a ⊕ b) ⊕ c`` is not ``(a ⊕ c) ⊕ b``: then terms must be folded in the order given."""
    a, b, c = (_samples(combiner, seed) for seed in range(3))
    given = {"a": a, "b": b, "c": c}
    first, second = (_fold(combiner, _fold(combiner, a, x), y) for x, y in ((b, c), (c, b)))
    return _difference(given, {"(a ⊕ b) ⊕ c": first, "(a ⊕ c) ⊕ b": second})


@lru_cache(maxsize=256)
def factoring_counterexample(combiner: Combiner) -> str | None:
    """Values for which the reducer is not associative or not commutative, or its identity not neutral.

    Without these laws terms cannot be folded in groups, and the groups' results with each other.
    """
    a, b, c = (_samples(combiner, seed) for seed in range(3))
    given = {"a": a, "b": b, "c": c}
    ab, ba, bc = (_fold(combiner, x, y) for x, y in ((a, b), (b, a), (b, c)))
    grouped = {"(a ⊕ b) ⊕ c": _fold(combiner, ab, c), "a ⊕ (b ⊕ c)": _fold(combiner, a, bc)}
    neutral = _fold(combiner, _tabulate(combiner.identity, {}), a)
    return (
        _difference({"a": a, "b": b}, {"a ⊕ b": ab, "b ⊕ a": ba})
        or _difference(given, grouped)
        or _difference({"a": a}, {"identity ⊕ a": neutral, "a": a})
    )


def _samples(combiner: Combiner, seed: int) -> Columns:
    """A few small values, so that equal ones meet; no negative ones, which may mean nothing to the reducer."""
    rng = np.random.default_rng(seed)
    bounds = [(v.dtype, (0, 2) if v.dtype.is_bool else (1, 4)) for v in combiner.lhs]
    return [rng.integers(*bound, SAMPLES).astype(kind.to_numpy()) for kind, bound in bounds]


def _fold(combiner: Combiner, a: Columns, b: Columns) -> Columns:
    operands = zip((*combiner.lhs, *combiner.rhs), (*a, *b), strict=True)
    return _tabulate(combiner.results, dict(operands))


def _tabulate(values: Sequence[Expr], columns: Mapping[Var, Column]) -> Columns:
    """Expressions for each sample of the variables, by the interpreter."""
    i = index_var("i")
    given = {var: make_buffer(var.name, (SAMPLES,), var.dtype) for var in columns}
    made = [make_buffer(f"result{k}", (SAMPLES,), value.dtype) for k, value in enumerate(values)]
    loads: dict[Var, Expr] = {var: Load(buffer, (i,)) for var, buffer in given.items()}
    stores = seq(*(Store(b, (i,), substitute(value, loads)) for b, value in zip(made, values, strict=True)))
    loop = For(i, ZERO, as_index(SAMPLES), "serial", stores)
    results = [np.zeros(SAMPLES, value.dtype.to_numpy()) for value in values]
    interpret(PrimFunc("samples", (*given.values(), *made), loop, tuple(made)))(*columns.values(), *results)
    return results


def _difference(given: Mapping[str, Columns], results: Mapping[str, Columns]) -> str | None:
    """The first sample on which the two results differ by more than rounding, in words."""
    (left, xs), (right, ys) = results.items()
    same = np.logical_and.reduce([_close(x, y) for x, y in zip(xs, ys, strict=True)])
    if same.all():
        return None
    at = int(np.flatnonzero(~same)[0])
    values = ", ".join(f"{name} = {_row(columns, at)}" for name, columns in given.items())
    return f"for {values} it has {left} = {_row(xs, at)}, but {right} = {_row(ys, at)}"


def _close(x: Column, y: Column) -> Column:
    if x.dtype.kind in "biu":
        return np.asarray(x == y)
    tolerance = ROUNDINGS * _unit(x)
    return np.asarray(np.isclose(x.astype(float), y.astype(float), rtol=tolerance, atol=tolerance, equal_nan=True))


def _unit(x: Column) -> float:
    """The distance of 1.0 to the next larger float of that dtype."""
    one = np.ones((), x.dtype)
    return float(np.nextafter(one, one + one)) - 1.0


def _row(columns: Columns, at: int) -> str:
    values = [str(column[at]) for column in columns]
    return values[0] if len(values) == 1 else f"({', '.join(values)})"

"""Whether a candidate computes what the untuned code computes: on ordinary numbers, and on some with outliers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..artifact.extents import evaluate
from ..artifact.function import TensorSpec
from ..base.aligned import aligned
from ..base.brief import BriefRepr
from ..base.dataclass import dataclass
from ..runtime.arrays import Array
from ..runtime.measure.closeness import allowed_distance, distance
from .outcome import OutcomeKind

OUTLIERS, OUTLIER = 3, 1e3
"""How many elements of an input are outliers, and how large: so many times the others."""
_FULL_RANGE_BITS = 8
"""Integers of so many bits are data, and take any value; wider ones may be indices, and are 0 or 1."""


@dataclass(frozen=True, slots=True, eq=False)
class Check:
    """Inputs, and what is expected of them. ``ordinary`` are the results without the outliers, where the elements that
    no outlier reaches have to be as exact as those; None where that is not asked for."""

    inputs: Sequence[Array]
    expected: Sequence[Array]
    ordinary: Sequence[Array] | None


@dataclass(frozen=True, slots=True, repr=False)
class Fault(BriefRepr):
    """What is wrong with results."""

    kind: OutcomeKind
    text: str


def check_inputs(specs: Sequence[TensorSpec], seed: int) -> tuple[list[Array], list[Array]]:
    """Random arrays of these types, and the same with outliers in the first of floats."""
    rng = np.random.default_rng(seed)
    normal = [aligned(random_array(spec, rng)) for spec in specs]
    floats = [number for number, spec in enumerate(specs) if spec.dtype.is_float and normal[number].size]
    outliers = list(normal)
    for number in floats[:1]:
        changed = normal[number].copy()
        at = rng.integers(0, changed.size, min(OUTLIERS, changed.size))
        changed.reshape(-1)[at] = (changed.reshape(-1)[at].astype(np.float64) * OUTLIER).astype(changed.dtype)
        outliers[number] = aligned(changed)
    return normal, outliers


def random_array(spec: TensorSpec, rng: np.random.Generator) -> Array:
    """Standard normal floats; integers of 8 bits of any value, of more 0 or 1, as are bools."""
    shape = tuple(evaluate(extent, {}) for extent in spec.shape)
    kind = spec.dtype.to_numpy()
    if spec.dtype.is_float:
        return rng.standard_normal(shape).astype(kind)
    if kind.kind in "iu" and kind.itemsize * 8 <= _FULL_RANGE_BITS:
        info = np.iinfo(kind)
        return rng.integers(info.min, info.max, shape, dtype=kind, endpoint=True)
    return rng.integers(0, 2, shape).astype(kind)


def fault_of(check: Check, found: Sequence[Array]) -> Fault | None:
    """What is wrong with the results of a candidate; None if nothing is."""
    for number, (expected, got) in enumerate(zip(check.expected, found, strict=True)):
        if (lost := _lost(expected, got)) > 0:
            return Fault(OutcomeKind.NOT_FINITE, f"{lost} elements of output {number} are not finite, or lost to be so")
        if (error := distance(got, expected)) > (allowed := allowed_distance(expected)):
            return Fault(OutcomeKind.WRONG, f"output {number} is off by {error:.2g} of its largest, not {allowed:.2g}")
        if check.ordinary is not None and expected.dtype.kind not in "iub":
            usual = check.ordinary[number]
            untouched = usual == expected
            if distance(np.where(untouched, got, usual), usual) > allowed:
                return Fault(OutcomeKind.WRONG, f"outliers reach elements of output {number} that they should not")
    return None


def _lost(expected: Array, got: Array) -> int:
    """How many elements are finite on one side only."""
    if expected.dtype.kind in "iub":
        return 0
    return int(np.sum(np.isfinite(expected.astype(np.float64)) != np.isfinite(got.astype(np.float64))))

"""Where a compiled model leaves a reference: each value that both have, as the fused functions leave it, in order."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ...artifact.block import ModelStep, StepResult
from ...artifact.extents import evaluate
from ...artifact.model import CompiledModel
from ...base.brief import BriefRepr, one_line
from ...base.dataclass import dataclass
from ...base.errors import ModelError
from ...base.quantities import count_text, error_text
from ..arrays import Array

TOLERANCE = 1e-4
"""Of the largest magnitude in a value of the reference."""
NARROW_TOLERANCE = 3e-2
"""The same for floats of 16 bits: four roundings to bfloat16."""


@dataclass(frozen=True, slots=True, repr=False)
class Difference(BriefRepr):
    """How one value differs from the reference's. ``largest`` and ``mean`` are absolute errors relative to the largest
    magnitude in the reference, ``place`` is where the largest stands, with both values; ``lost`` counts the elements
    that are NaN or infinite on one side only, or of another sign there."""

    step: int
    function: str
    nodes: tuple[str, ...]
    value: str
    shape: tuple[int, ...]
    largest: float
    mean: float
    place: tuple[int, ...]
    ours: float
    theirs: float
    lost: int
    tolerance: float

    @property
    def within(self) -> bool:
        """Whether it is in the tolerance."""
        return self.largest <= self.tolerance

    def __str__(self) -> str:
        at = ", ".join(map(str, self.place))
        lost = f"; {self.lost} elements are not finite on one side" if self.lost else ""
        return (
            f"{self.value} {list(self.shape)}, by {self.function}: largest error {error_text(self.largest)}, mean "
            f"{error_text(self.mean)} of the largest magnitude; at [{at}] {self.ours:.7g}, in the reference "
            f"{self.theirs:.7g}{lost}"
        )


@dataclass(frozen=True, repr=False)
class Comparison:
    """All values compared, in the order in which they are computed. ``unknown`` are the functions none of whose outputs
    the reference has."""

    model: str
    differences: tuple[Difference, ...]
    unknown: tuple[str, ...]

    @property
    def first(self) -> Difference | None:
        """The first value that leaves the tolerance, if one does."""
        return next((difference for difference in self.differences if not difference.within), None)

    def __repr__(self) -> str:
        outside = sum(not difference.within for difference in self.differences)
        found = f"{outside} beyond the tolerance" if outside else "all within the tolerance"
        values = count_text(len(self.differences), "value")
        return f"<Comparison of {one_line(self.model, 80)}: {values}, {found}>"

    def __str__(self) -> str:
        unknown = f", {len(self.unknown)} functions have none" if self.unknown else ""
        counted = f"{self.model}: {len(self.differences)} values compared{unknown}; "
        if self.first is None:
            worst = max(self.differences, key=lambda difference: difference.largest, default=None)
            return f"{counted}all within the tolerance" + (f"\nthe furthest: {worst}" if worst else "")
        nodes = ", ".join(self.first.nodes)
        outside = sum(not difference.within for difference in self.differences)
        return f"{counted}{outside} beyond the tolerance\nthe first: {self.first}\nits nodes: {nodes}"


@dataclass(frozen=True, slots=True)
class SteppedRun:
    """A run of a model by steps: ``calls`` has a function for each, to be called in order, ``slots`` the addresses and
    dimensions that are the entry's arguments."""

    model: CompiledModel
    calls: Sequence[Callable[[], None]]
    slots: Sequence[int]


def tolerance_of(kind: np.dtype[Any]) -> float:
    """The tolerance for values of a dtype."""
    return TOLERANCE if kind.itemsize >= 4 else NARROW_TOLERANCE


def compare_steps(steps: SteppedRun, reference: Mapping[str, Array], tolerance: float | None) -> Comparison:
    """Run the steps, and compare what each leaves with the values of ``reference`` by name.

    Raises ``ModelError`` where nothing can be compared, or a value of the reference has another shape.
    """
    model = steps.model
    differences, unknown = [], []
    numbers = {name for name, value in reference.items() if np.asarray(value).dtype.kind not in "OUT"}
    for number, (step, call) in enumerate(zip(model.steps, steps.calls, strict=True)):
        call()
        name = model.function_of(step).name
        known = [result for result in step.results if result.name in numbers]
        if not known:
            unknown.append(name)
        for result in known:
            ours = _read(result, steps)
            theirs = np.asarray(reference[result.name])
            if ours.shape != theirs.shape:
                raise ModelError(
                    f"{result.name} has shape {ours.shape}, but {theirs.shape} in the reference: is it the same model?"
                )
            allowed = tolerance_of(ours.dtype) if tolerance is None else tolerance
            differences.append(_difference(number, step, name, result.name, ours, theirs, allowed))
    if not differences:
        raise ModelError(f"{model.name} and the reference have no value in common")
    return Comparison(model.name, tuple(differences), tuple(unknown))


def collect_steps(steps: SteppedRun) -> dict[str, Array]:
    """Run the steps; the values that they leave, by name."""
    found = {}
    for step, call in zip(steps.model.steps, steps.calls, strict=True):
        call()
        for result in step.results:
            found[result.name] = _read(result, steps)
    return found


def _read(result: StepResult, steps: SteppedRun) -> Array:
    """A copy of a value, in the layout of the imported model."""
    dims = steps.model.dims_in(steps.slots)
    held, shape = (tuple(evaluate(e, dims) for e in extents) for extents in (result.held, result.shape))
    kind = result.dtype.to_numpy()
    if 0 in shape:
        return np.empty(shape, kind)
    memory: Any = (ctypes.c_uint8 * (math.prod(held) * kind.itemsize)).from_address(steps.slots[result.slot])
    array: Array = np.frombuffer(memory, kind).reshape(held)
    if result.order is not None:
        array = array.transpose(result.order)
    return array.reshape(shape).copy()


def _difference(
    number: int, step: ModelStep, function: str, value: str, ours: Array, theirs: Array, tolerance: float
) -> Difference:
    a, b = ours.astype(np.float64), theirs.astype(np.float64)
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    finite = np.isfinite(a) & np.isfinite(b)
    scale = float(np.abs(b[np.isfinite(b)]).max(initial=0.0)) or 1.0
    with np.errstate(invalid="ignore"):
        error = np.where(same, 0.0, np.where(finite, np.abs(a - b) / scale, np.inf))
    place = tuple(int(k) for k in np.unravel_index(int(error.argmax()), error.shape)) if error.size else ()
    counted = error[same | finite]
    return Difference(
        step=number,
        function=function,
        nodes=step.origin,
        value=value,
        shape=ours.shape,
        largest=float(error.max(initial=0.0)),
        mean=float(counted.mean()) if counted.size else 0.0,
        place=place,
        ours=float(a[place]) if error.size else 0.0,
        theirs=float(b[place]) if error.size else 0.0,
        lost=int(np.count_nonzero(~(same | finite))),
        tolerance=tolerance,
    )

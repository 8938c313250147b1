"""Which extents of a model's inputs have to be given so that what stops it does not: found by giving them.

All open extents get usual numbers; of what no longer stops the model then, one dimension after another is opened again
as long as nothing of it comes back. So the advice holds what helps, and only that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from onnx import GraphProto

from ..base.dataclass import dataclass
from ..base.dimension_roles import role_of
from ..base.model_problem import ModelProblem, ProblemKind
from ..graph.types import GivenExtent, GivenShape
from .model_inputs import Shapes, fed_inputs
from .tensors import declared_extent
from .weight_extents import weight_extents

MOST_DIMENSIONS = 6
"""More open dimensions are given all together: to open one again takes an import."""

Numbers: TypeAlias = Mapping["_Dimension", int]


@dataclass(frozen=True, slots=True)
class _Dimension:
    """An open dimension: axes of an input, the first of those that have any that are declared by its name; and extents
    to try."""

    input: str
    axes: tuple[int, ...]
    rank: int
    extents: tuple[int, ...]


def with_cures(
    problems: Sequence[ModelProblem],
    graph: GraphProto,
    given: Shapes,
    left: Callable[[Mapping[str, GivenShape]], Sequence[ModelProblem]],
) -> list[ModelProblem]:
    """The problems, those with ``shapes`` that would not arise if they were given; and behind them what then shows
    itself, whatever the numbers. ``left`` gives the problems of a model for more shapes than ``given``."""
    curable = {_key(p) for p in problems if p.kind in (ProblemKind.VALUE, ProblemKind.NODE)}
    attempts = _attempts(_open_dimensions(graph, given)) if curable else []
    if not attempts:
        return list(problems)
    found = [left(_shapes(numbers, given)) for numbers in attempts]
    lasting = set.intersection(*(set(map(_key, each)) for each in found))
    known = {_key(p) for p in problems} | lasting
    tried = [(numbers, each, curable - set(map(_key, each))) for numbers, each in zip(attempts, found, strict=True)]
    useful = [each for each in tried if each[2] and set(map(_key, each[1])) <= known]
    if not useful:
        return list(problems)
    numbers, remaining, gone = useful[0]

    def suffices(fewer: Numbers) -> bool:
        keys = set(map(_key, left(_shapes(fewer, given))))
        return keys <= known and not keys & gone

    shapes = _shapes(_fewest(numbers, suffices), given)
    hidden = [p for p in remaining if _key(p) not in set(map(_key, problems))]
    return [replace(p, kind=ProblemKind.VALUE, shapes=shapes) if _key(p) in gone else p for p in problems] + hidden


def _key(problem: ModelProblem) -> tuple[str, ...]:
    return (problem.node, problem.operator) if problem.node else (problem.message,)


def _fewest(numbers: Numbers, suffices: Callable[[Numbers], bool]) -> Numbers:
    if len(numbers) > MOST_DIMENSIONS:
        return numbers
    for dimension in numbers:
        fewer = {d: number for d, number in numbers.items() if d != dimension}
        if fewer and suffices(fewer):
            numbers = fewer
    return numbers


def _attempts(dimensions: Sequence[_Dimension]) -> list[Numbers]:
    """The usual extents, and other ones, if there are any."""
    usual, others = ({d: d.extents[at] for d in dimensions} for at in (0, -1))
    return [usual, others] if others != usual else [usual] if dimensions else []


def _open_dimensions(graph: GraphProto, given: Shapes) -> list[_Dimension]:
    """The open dimensions of tensors of known rank, which are not given yet, each name once. A name that is a
    formula is no dimension by itself."""
    fed = [i for i in fed_inputs(graph) if i.type.tensor_type.HasField("shape")]
    asked = weight_extents(graph, {i.name: len(i.type.tensor_type.shape.dim) for i in fed})
    found: list[_Dimension] = []
    seen: set[int | str | None] = {None}
    for i in fed:
        extents = [declared_extent(dim) for dim in i.type.tensor_type.shape.dim]
        shape = given.get(i.name)
        chosen = list(shape) if isinstance(shape, Sequence) else [None] * len(extents)
        for axis, (extent, number) in enumerate(zip(extents, chosen, strict=False)):
            is_name = isinstance(extent, str) and extent.isidentifier() and extent not in seen
            if number in (None, -1) and (extent is None or is_name):
                axes = [axis] if extent is None else [k for k, other in enumerate(extents) if other == extent]
                wanted = asked.get(i.name, {}).get(axis)
                usual = role_of(str(extent or ""), extents, axis).value[:2] if wanted is None else (wanted,)
                found.append(_Dimension(i.name, tuple(axes), len(extents), usual))
            seen.add(extent)
    return found


def _shapes(numbers: Numbers, given: Shapes) -> dict[str, GivenShape]:
    """The shapes of the inputs that these dimensions are of, with what is given already."""
    found: dict[str, list[GivenExtent]] = {}
    for dimension, number in numbers.items():
        before = given.get(dimension.input)
        blank: list[GivenExtent] = list(before) if isinstance(before, Sequence) else [None] * dimension.rank
        shape = found.setdefault(dimension.input, blank)
        for axis in dimension.axes:
            shape[axis] = number
    return {name: tuple(shape) for name, shape in found.items()}

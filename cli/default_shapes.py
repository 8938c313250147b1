"""Shapes for inputs that leave extents open, where a subcommand needs numbers.

An open dimension has a role, which has extents to try, the usual one first; which of them a model accepts is for the
caller to find out.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence, Set

from ..artifact.extents import Extent, evaluate
from ..base.bounded_dimension import BoundedDimension
from ..base.dimension_roles import Role, role_of
from ..graph.types import GivenExtent
from .model_inputs import ModelInput

Shapes = dict[str, tuple[int, ...]]


def candidate_shapes(
    inputs: Sequence[ModelInput], given: Mapping[str, Sequence[int | None]], batch: int | None = None
) -> Iterator[Shapes]:
    """Shapes of all inputs that leave extents open: first the usual ones, then others that the model may rather accept.

    What is ``given``, a model's weights ask for, and ``batch``, where that is the first extent, is so in all of them.
    Inputs of unknown rank need to be given, and are left out otherwise.
    """
    known = _known(inputs, given, batch)
    roles = {name: role for name, role in _roles(inputs).items() if name not in known}
    for chosen in _attempts(roles):
        dims = known | chosen
        yield {i.name: _shape(i, given.get(i.name), dims) for i in inputs if i.is_open and _ranked(i, given)}


def shape_options(shapes: Mapping[str, Sequence[GivenExtent]]) -> str:
    """The options of the command line that give these shapes; None is an extent that stays open."""
    texts = (f"{name}={','.join(map(_option_text, shape))}" for name, shape in shapes.items())
    return " ".join(f"--shape {shlex.quote(text)}" for text in texts)


def _option_text(extent: GivenExtent) -> str:
    if isinstance(extent, BoundedDimension):
        high = "" if extent.max is None else extent.max
        return f"{extent.name}:{extent.min}..{high}" + (f":{extent.multiple_of}" if extent.multiple_of > 1 else "")
    return "?" if extent is None else str(extent)


def _ranked(model_input: ModelInput, given: Mapping[str, Sequence[int | None]]) -> bool:
    shape = given.get(model_input.name)
    return model_input.extents is not None or (shape is not None and None not in shape)


def _known(
    inputs: Sequence[ModelInput], given: Mapping[str, Sequence[int | None]], batch: int | None
) -> dict[str, int]:
    """The dimensions that are no matter of choice, by name."""
    known: dict[str, int] = {}
    for found in inputs:
        extents = found.extents or ()
        for extent, number in zip(extents, given.get(found.name, ()), strict=False):
            if isinstance(extent, str) and number is not None:
                known.setdefault(extent, number)
    for found in inputs:
        extents = found.extents or ()
        if batch is not None and extents and isinstance(extents[0], str):
            known.setdefault(extents[0], batch)
    for found in inputs:
        for axis, number in found.asked.items():
            if found.extents is not None and isinstance(name := found.extents[axis], str):
                known.setdefault(name, number)
    return known


def _roles(inputs: Sequence[ModelInput]) -> dict[str, Role]:
    """The roles of open dimensions by their names. One that several inputs share has that of the first."""
    dims = {e for found in inputs for e in found.extents or () if isinstance(e, str)}
    roles: dict[str, Role] = {}
    for found in inputs:
        extents = found.extents or ()
        for axis, extent in enumerate(extents):
            if isinstance(extent, str) and not _is_sum(extent, dims):
                roles.setdefault(extent, role_of(extent, extents, axis))
    return roles


def _attempts(roles: Mapping[str, Role]) -> Iterator[dict[str, int]]:
    """The usual extents; then others of all but the batch; then others of one role, all its dimensions alike; then of a
    single dimension."""
    usual = {name: role.value[0] for name, role in roles.items()}
    yield usual
    if not roles:
        return
    yield {name: role.value[role is not Role.BATCH] for name, role in roles.items()}
    for role in dict.fromkeys(roles.values()):
        for number in role.value[1:]:
            yield usual | {name: number for name, its in roles.items() if its is role}
    for name, role in roles.items():
        if list(roles.values()).count(role) > 1:
            for number in role.value[1:]:
                yield usual | {name: number}


def _shape(found: ModelInput, given: Sequence[int | None] | None, dims: Mapping[str, int]) -> tuple[int, ...]:
    if found.extents is None:
        return tuple(number for number in given or () if number is not None)
    numbers = given or [None] * len(found.extents)
    return tuple(_number(e, dims) if n is None else n for e, n in zip(found.extents, numbers, strict=True))


def _number(extent: Extent, dims: Mapping[str, int]) -> int:
    if isinstance(extent, str) and extent not in dims:
        return sum(int(part) if part.isdecimal() else dims[part] for part in _parts(extent))
    return evaluate(extent, dims)


def _is_sum(name: str, dims: Set[str]) -> bool:
    """Whether a dimension is called as ``past_length + 1``, which exporters write for a sum of others."""
    parts = _parts(name)
    return len(parts) > 1 and all(part.isdecimal() or part in dims for part in parts)


def _parts(name: str) -> list[str]:
    return [part.strip() for part in name.split("+")]

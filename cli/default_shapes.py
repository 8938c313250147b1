"""Shapes for inputs that leave extents open, where a subcommand needs numbers.

An open dimension has a role, by its name, else by its place. A role has extents to try, the usual one first; which of
them a model accepts is for the caller to find out.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence, Set
from enum import Enum

from ..artifact.extents import Extent, evaluate
from .model_inputs import ModelInput

Shapes = dict[str, tuple[int, ...]]


class Role(Enum):
    """What an open dimension counts; the value is the extents to try."""

    BATCH = (1, 2)
    CHANNELS = (3, 1)
    IMAGE = (224, 256, 640, 32, 28, 48, 64, 512)
    DEPTH = (16, 32, 64)
    SEQUENCE = (128, 512, 256, 64, 576, 16, 1, 16000)


_NAMES = (
    (Role.BATCH, r"n|b|bs|nb|bsz|num_images|.*batch.*"),
    (Role.CHANNELS, r"c|.*channel.*"),
    (Role.SEQUENCE, r"t|l|s|.*(seq|len|token|time|frame|step|sample|audio|word|char|position).*"),
    (Role.DEPTH, r"d|depth"),
    (Role.IMAGE, r"h|w|.*(height|width|image|img|rows|cols).*"),
)
_CHANNELS_LAST = (1, 3, 4)
"""Extents of the last axis that tell of images whose channels come last."""


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


def shape_options(shapes: Mapping[str, Sequence[int | None]]) -> str:
    """The options of the command line that give these shapes; None is an extent that stays open."""
    texts = (f"{name}={','.join('?' if e is None else str(e) for e in shape)}" for name, shape in shapes.items())
    return " ".join(f"--shape {shlex.quote(text)}" for text in texts)


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
                roles.setdefault(extent, _role_of_name(extent) or _role_of_place(extents, axis))
    return roles


def _role_of_name(name: str) -> Role | None:
    return next((role for role, pattern in _NAMES if re.fullmatch(pattern, name.lower())), None)


def _role_of_place(extents: Sequence[object], axis: int) -> Role:
    rank = len(extents)
    if axis == 0:
        return Role.BATCH
    if rank == 3 and extents[0] in _CHANNELS_LAST:
        return Role.IMAGE
    if rank < 4:
        return Role.SEQUENCE
    channels = rank - 1 if extents[-1] in _CHANNELS_LAST and extents[1] not in _CHANNELS_LAST else 1
    if axis == channels:
        return Role.CHANNELS
    return Role.IMAGE if rank == 4 else Role.DEPTH


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

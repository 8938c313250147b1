"""What an open dimension counts, by its name, else by its place; and the extents that are usual for it.

They serve where numbers are wanted and none are given: commands that run a model, and advice in errors.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import Enum


class Role(Enum):
    """What an open dimension counts; the value is the extents to try, the usual one first."""

    BATCH = (1, 2)
    CHANNELS = (3, 1)
    IMAGE = (224, 256, 640, 32, 28, 48, 64, 512)
    FEATURES = (20, 28, 14, 7, 56)
    DEPTH = (16, 32, 64)
    SEQUENCE = (128, 512, 256, 64, 576, 16, 1, 16000)


_NAMES = (
    (Role.BATCH, r"bs|bsz|num_images|.*batch.*"),
    (Role.CHANNELS, r"c|.*channel.*"),
    (Role.SEQUENCE, r"t|l|s|.*(seq|len|token|time|frame|step|sample|audio|word|char|position).*"),
    (Role.DEPTH, r"d|depth"),
    (Role.IMAGE, r"h|w|.*(height|width|image|img|rows|cols).*"),
)
_LETTERS_OF_A_BATCH = ("n", "b", "nb")
"""Names of a batch where it stands first, or behind the steps of a sequence; elsewhere they may count anything."""
_CHANNELS_LAST = (1, 3, 4)
"""Extents of the last axis that tell of images whose channels come last."""
_MOST_COLOURS = 16
"""An image of more channels is made of features, as the layers of a network are."""


def role_of(name: str, extents: Sequence[object], axis: int) -> Role:
    """The role of a dimension of that name, at an axis of a tensor of these extents: numbers, and names or anything
    else for those that are open."""
    if name.lower() in _LETTERS_OF_A_BATCH and axis == 1 and _is_sequence(extents[0]):
        return Role.BATCH
    role = _role_of_name(name) or _role_of_place(extents, axis)
    channels = extents[_axis_of_channels(extents)] if len(extents) == 4 else None
    is_deep = isinstance(channels, int) and channels > _MOST_COLOURS
    return Role.FEATURES if role is Role.IMAGE and is_deep else role


def _is_sequence(extent: object) -> bool:
    return isinstance(extent, str) and _role_of_name(extent) is Role.SEQUENCE


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
    if axis == _axis_of_channels(extents):
        return Role.CHANNELS
    return Role.IMAGE if rank == 4 else Role.DEPTH


def _axis_of_channels(extents: Sequence[object]) -> int:
    return len(extents) - 1 if extents[-1] in _CHANNELS_LAST and extents[1] not in _CHANNELS_LAST else 1

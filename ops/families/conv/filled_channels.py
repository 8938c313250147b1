"""Convolutions whose channels or filters fill no vectors, as those that fill them: networks of odd widths, and heads of
detectors, with 36, 91 or 819 filters.

The weights are constants, and get more channels, which x has as zeros, and more filters, whose results nobody reads.
Sums of positions times whole vectors of filters take less time than the few more take, and Winograd's algorithm asks
for them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ....base.dataclass import dataclass
from ...definition.layout_rule import Filling, LayoutCandidate, Packed, ValueLayout
from .layouts import channel_block
from .nchwc import blocked_candidates
from .problem import ConvProblem
from .winograd_weights import winograd_candidates

FEWEST_VECTORS = 2
"""Of channels that there are: of fewer, what is filled up is too large a part, and copies take longer than sums."""


@dataclass(frozen=True, slots=True)
class FilledUp:
    """Packs weights as ``make`` does, of so many ``filters`` and ``channels``: the last ones are repeated."""

    make: Callable[[npt.NDArray[Any]], npt.NDArray[Any]]
    filters: int
    channels: int

    def __call__(self, weight: npt.NDArray[Any]) -> npt.NDArray[Any]:
        more = (self.filters - weight.shape[0], self.channels - weight.shape[1], *[0] * (weight.ndim - 2))
        return self.make(np.pad(weight, [(0, count) for count in more], "edge"))


def filled_candidates(problem: ConvProblem, given: ValueLayout | None) -> Iterator[LayoutCandidate]:
    """The layout rule: the candidates in blocks of a convolution of one group with some channels and filters more, so
    that they fill vectors. Where all positions are known, so that vectors may hold positions as well, that is for
    Winograd's algorithm alone."""
    if not (problem.constant_weight and problem.is_plain and problem.has_plain_kernel and problem.attrs.groups == 1):
        return
    lanes = problem.lanes
    in_blocks = channel_block(problem.group_channels, lanes)
    channels = problem.group_channels if in_blocks else _whole(problem.group_channels, lanes)
    filters = _whole(problem.filters, lanes)
    more_channels, more_filters = channels > problem.group_channels, filters > problem.filters
    few = problem.group_channels < FEWEST_VECTORS * lanes
    if few or not (more_channels or more_filters) or (more_channels and given is not None):
        return
    filled = problem.with_channels(channels, filters)
    is_open = problem.outputs is None
    for found in (*(blocked_candidates(filled, given) if is_open else ()), *winograd_candidates(filled, given)):
        x, *weights = found.arguments
        if found.result is None:
            continue
        if more_channels:
            if not isinstance(x, ValueLayout):
                continue
            x = replace(x, filling=Filling.ZEROS)
        arguments = (x, *(_filled(form, filled) for form in weights))
        result = replace(found.result, filling=Filling.ANY) if more_filters else found.result
        yield replace(found, arguments=arguments, result=result)


def _whole(channels: int, lanes: int) -> int:
    """The channels of whole vectors, unless they are half of one or less."""
    return math.ceil(channels / lanes) * lanes if channels > lanes // 2 else channels


def _filled(form: ValueLayout | Packed | None, problem: ConvProblem) -> ValueLayout | Packed | None:
    match form:
        case ValueLayout():
            return replace(form, filling=Filling.ANY)
        case Packed():
            return replace(form, make=FilledUp(form.make, problem.filters, problem.group_channels))
    return None

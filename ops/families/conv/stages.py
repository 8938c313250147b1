"""The stages of a convolution that its schedule asks for, whatever the implementation."""

from __future__ import annotations

from dataclasses import dataclass

from .... import te
from ...definition.implementation import Stages


@dataclass(frozen=True, slots=True)
class ConvStages(Stages):
    """The ``sums`` of products of ``source``, which is x or a copy of it, and ``weight``, or a copy of that."""

    x: te.Tensor
    source: te.Tensor
    weight: te.Tensor
    sums: te.Tensor

    @property
    def copies(self) -> list[te.Tensor]:
        """The source, if it is a copy of x."""
        return [] if self.source is self.x else [self.source]

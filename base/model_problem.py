"""What stops a model: one thing each, as the error of a refused model lists them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from enum import Enum
from typing import TYPE_CHECKING

from .dataclass import dataclass

if TYPE_CHECKING:
    from .bounded_dimension import BoundedDimension


class ProblemKind(Enum):
    """Which kind of thing stops a model."""

    OPERATOR = "operator"
    """An operator that has no converter."""
    TYPE = "type"
    """An element type, or a kind of value, that is not supported."""
    VALUE = "value"
    """A value or an extent that would have to be known when the model is compiled."""
    NODE = "node"
    """Anything else that a node asks for: a form of its operator, or types that do not fit together."""


@dataclass(frozen=True, slots=True)
class ModelProblem:
    """One thing that stops a model.

    ``message`` says it in words. ``node`` is the name of the node in the model, and ``operator`` what it does; both are
    empty where an input or a weight is at fault. ``shapes`` is what to give as ``shapes=`` so that it does not arise,
    None for an extent that may stay open; empty where no shapes help.
    """

    kind: ProblemKind
    message: str
    node: str = ""
    operator: str = ""
    shapes: Mapping[str, tuple[int | BoundedDimension | None, ...]] = field(default_factory=dict)

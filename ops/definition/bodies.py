"""What operators of control flow have in common: attributes that hold functions, and the rules of their types.

They stand in no table and have no strategy: the compiler makes one native function of a call, which calls the kernels
of its bodies.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any, Self

from ...base.dataclass import dataclass
from ...base.dtype import BOOL, INT64, DType
from ...base.errors import TypeInferenceError
from ...graph.node import Bodies, Function, Node, Tuple
from ...graph.structural import graph_hash
from ...graph.types import TensorType, Type, fields_of
from .attrs import Attrs
from .relations import tensor_argument
from .retyping import with_param_types


@dataclass(frozen=True)
class BodyAttrs(Attrs, Bodies):
    """The base class of attributes that hold functions. Each body gives a tuple of tensors."""

    def __post_init__(self) -> None:
        for body in self.bodies:
            fields_of(body.body.type)

    def to_json(self) -> dict[str, Any]:
        """The fields as JSON values, a body as its digest."""
        values = ((f.name, getattr(self, f.name)) for f in fields(self))
        return {name: graph_hash(value) if isinstance(value, Function) else value for name, value in values}

    @property
    def bodies(self) -> tuple[Function, ...]:
        """The functions among the fields, in order."""
        return tuple(value for f in fields(self) if isinstance(value := getattr(self, f.name), Function))

    def with_bodies(self, bodies: Sequence[Function]) -> Self:
        """The attributes with other functions in place of these."""
        names = (f.name for f in fields(self) if isinstance(getattr(self, f.name), Function))
        changes: dict[str, Any] = dict(zip(names, bodies, strict=True))
        return replace(self, **changes)

    def with_types(self, types: Sequence[Sequence[Type]]) -> Self:
        """The attributes with bodies whose parameters have these types."""
        typed = tuple(with_param_types(body, kinds) for body, kinds in zip(self.bodies, types, strict=True))
        return self if all(a is b for a, b in zip(typed, self.bodies, strict=True)) else self.with_bodies(typed)


def results_of(body: Function) -> tuple[TensorType, ...]:
    """The types of a body's results."""
    return tuple(
        tensor_argument(kind, f"result {k} of {body.name}") for k, kind in enumerate(fields_of(body.body.type))
    )


def scalar_argument(kind: Type, name: str, element: DType) -> None:
    """Raises ``TypeInferenceError`` for anything but one element of a dtype."""
    if kind is not TensorType((), element):
        raise TypeInferenceError(f"{name} should be one {element}, a {TensorType((), element)}, found a {kind}")


def condition_argument(kind: Type, name: str) -> None:
    """Raises ``TypeInferenceError`` for anything but one bool."""
    scalar_argument(kind, name, BOOL)


def count_argument(kind: Type, name: str) -> None:
    """Raises ``TypeInferenceError`` for anything but one int64."""
    scalar_argument(kind, name, INT64)


def called(function: object, params: Sequence[Node], what: str) -> tuple[Node, ...]:
    """What a function of Python gives for nodes: one node, or several. Raises ``TypeInferenceError`` for anything
    else."""
    if not callable(function):
        raise TypeInferenceError(f"{what} should be a function of Python, found a {type(function).__name__}")
    given = function(*params)
    made = given.fields if isinstance(given, Tuple) else given if isinstance(given, (tuple, list)) else (given,)
    for node in made:
        if not isinstance(node, Node):
            raise TypeInferenceError(f"{what} should give nodes, found a value of type {type(node).__name__}")
    return tuple(made)

"""Scopes: the values that nodes see by name, those of a graph, of a subgraph, or of a function's body."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from pathlib import Path

from onnx import TensorProto, TypeProto

from ..base.dataclass import dataclass
from ..base.errors import ModelError
from ..graph.node import Constant, Node
from .output_forms import OutputForms
from .refusal_causes import ConsequentError
from .tensors import tensor_value
from .values import Value


@dataclass(slots=True)
class Scope:
    """The values that the nodes of a graph or of a function's body see by name. Mutable: filled node by node."""

    initializers: Sequence[TensorProto]
    opsets: Mapping[str, int]
    values: dict[str, Value | None]
    outer: Scope | None = None
    types: Mapping[str, TypeProto] = field(default_factory=dict)
    """The types of values that could not be converted, where what follows is to be looked at all the same."""
    unknown: set[str] = field(default_factory=set)
    """The values that were to be had from what was refused."""
    stored: dict[str, TensorProto] = field(init=False)

    def __post_init__(self) -> None:
        self.stored = {i.name: i for i in self.initializers}

    def value(self, name: str, folder: Path | None, forms: OutputForms) -> Value | None:
        """The value of that name; None for an input that was left out. Initializers are read when first asked for."""
        if not name:
            return None
        if name not in self.values and name in self.stored:
            self.values[name] = self._stored(name, folder, forms)
        if name in self.values:
            return self.values[name]
        if name in self.unknown:
            raise ConsequentError(f"the value {name!r} is not known, since what gives it was refused")
        if self.outer is None:
            raise ModelError(f"the value {name!r} is used, but no operator gives it in the form that is supported")
        return self.outer.value(name, folder, forms)

    def found(self, name: str) -> Value | None:
        """The value of that name, if it has been read or made; None for others."""
        here = self.values.get(name)
        return here if here is not None or self.outer is None else self.outer.found(name)

    def _stored(self, name: str, folder: Path | None, forms: OutputForms) -> Node:
        tensor = self.stored[name]
        if tensor.data_type == TensorProto.STRING:
            return forms.constant(tensor)
        return Constant(tensor_value(tensor, f"initializer {name!r}", folder), name)

"""Scopes: the values that nodes see by name, those of a graph, of a subgraph, or of a function's body."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from onnx import TensorProto

from ..base.errors import ModelError
from ..graph.node import Constant, Node
from .output_forms import OutputForms
from .tensors import tensor_value
from .values import Value


@dataclass(slots=True)
class Scope:
    """The values that the nodes of a graph or of a function's body see by name. Mutable: filled node by node."""

    initializers: Sequence[TensorProto]
    opsets: Mapping[str, int]
    values: dict[str, Value | None]
    outer: Scope | None = None
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
        if self.outer is None:
            raise ModelError(f"the value {name!r} is used, but no operator gives it in the form that is supported")
        return self.outer.value(name, folder, forms)

    def _stored(self, name: str, folder: Path | None, forms: OutputForms) -> Node:
        tensor = self.stored[name]
        if tensor.data_type == TensorProto.STRING:
            return forms.constant(tensor)
        return Constant(tensor_value(tensor, f"initializer {name!r}", folder), name)

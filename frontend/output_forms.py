"""Values that Python is shown in another form than native code has them in: strings, and maps from classes to scores.

A string stands for its position in a list that is known when the model is imported. Such values may be outputs, and be
moved; what would look at the strings themselves is refused.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from onnx import TensorProto

from ..base.errors import ModelError
from ..base.output_form import OutputForm
from ..graph.node import Constant, Node
from ..ops.families.unary import identity

MOVES = frozenset(
    {"ArrayFeatureExtractor", "Expand", "Flatten", "Gather", "Identity", "Reshape", "Slice", "Squeeze", "Transpose",
     "Unsqueeze"}
)  # fmt: skip
"""Operators that give elements of their first input, whatever these stand for."""
OF_SEQUENCES = frozenset(
    {"Identity", "Optional", "OptionalGetElement", "OptionalHasElement", "SequenceAt", "SequenceConstruct",
     "SequenceEmpty", "SequenceErase", "SequenceInsert", "SequenceLength"}
)  # fmt: skip
"""Operators that hand whole tensors on, whatever these stand for."""


class OutputForms:
    """The forms of those values of a model that have one. Mutable: grows while the model is imported."""

    def __init__(self) -> None:
        self._forms: dict[Node, OutputForm] = {}

    def of(self, value: Node | None) -> OutputForm | None:
        """The form of a value, if it has one."""
        return None if value is None else self._forms.get(value)

    def put(self, value: Node, form: OutputForm) -> Node:
        """A value like ``value`` that is shown in a form."""
        shown = identity(value)
        self._forms[shown] = form
        return shown

    def hand_on(self, before: Node | None, after: Node) -> None:
        """Show what became of a value in the form of that."""
        form = self.of(before)
        if form is not None:
            self._forms[after] = form

    def strings(self, tensor: TensorProto) -> Node:
        """A constant of strings: their positions."""
        names = tuple(text.decode("utf-8", "replace") for text in tensor.string_data)
        positions = Constant(np.arange(len(names)).reshape(tuple(tensor.dims)), tensor.name)
        self._forms[positions] = OutputForm("labels", names)
        return positions

    def check(self, operator: str, where: str, values: Sequence[Node | None]) -> None:
        """Raise ``ModelError`` where a node would look at values by their form."""
        moved = values[:1] if operator in MOVES else ()
        for value in values:
            form = self.of(value)
            if form is not None and (form.kind == "maps" or value not in moved):
                what = "strings" if form.kind == "labels" else "maps"
                raise ModelError(f"{where}: {what} can be outputs of a model, but not the inputs of {operator}")

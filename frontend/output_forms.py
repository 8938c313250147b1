"""Values that stand for others than the numbers of their nodes: strings, labels, and maps from classes to scores.

Strings are spans of bytes (``string_values.py``). A label stands for its position in a list that is known when the
model is imported, and becomes a string where something looks at it, or joins it with strings. Maps can only be
outputs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar, cast

import numpy as np
from onnx import TensorProto

from ..base.dataclass import dataclass
from ..base.errors import ModelError
from ..base.output_form import OutputForm
from ..graph.node import Constant, Node, tensor_of
from ..ops.families.binary import add
from ..ops.families.gather import take
from ..ops.families.unary import identity
from .string_values import StringTensor, constant_strings, merged
from .values import Ragged, Value, element_nodes, mapped, nodes_of

MOVES = frozenset(
    {"ArrayFeatureExtractor", "Compress", "Concat", "ConcatFromSequence", "DepthToSpace", "Expand", "Flatten", "Gather",
     "GatherElements", "GatherND", "Identity", "Pad", "Reshape", "ReverseSequence", "Scatter", "ScatterElements",
     "ScatterND", "Slice", "SpaceToDepth", "Split", "SplitToSequence", "Squeeze", "Tile", "Transpose", "Unsqueeze",
     "Where"}
)  # fmt: skip
"""Operators whose outputs are elements of their inputs, whatever these stand for."""
OF_SEQUENCES = frozenset(
    {"Optional", "OptionalGetElement", "SequenceAt", "SequenceConstruct", "SequenceEmpty", "SequenceErase",
     "SequenceInsert"}
)  # fmt: skip
"""Operators that hand whole tensors on, whatever these stand for; at positions that only a run knows they move
elements."""
READS = frozenset(
    {"Cast", "CastLike", "CastMap", "CategoryMapper", "DictVectorizer", "Equal", "LabelEncoder", "OneHotEncoder",
     "OptionalHasElement", "RegexFullMatch", "SequenceLength", "Shape", "Size", "StringConcat", "StringNormalizer",
     "StringSplit", "TfIdfVectorizer", "Tokenizer", "Unique"}
)  # fmt: skip
"""Operators whose converters ask for the strings that an input has."""


ValueT = TypeVar("ValueT", bound=Value)


@dataclass(frozen=True, slots=True, eq=False)
class Moved:
    """What an operator is given that moves strings, and what its outputs are: labels, or of which bytes."""

    values: Sequence[Value | None]
    form: OutputForm | None = None
    utf8: Node | None = None


class OutputForms:
    """What those values of a model are that are no numbers. Mutable: grows while the model is imported."""

    def __init__(self) -> None:
        self._forms: dict[Node, OutputForm] = {}
        self._utf8: dict[Node, Node] = {}

    def of(self, value: Node | None) -> OutputForm | None:
        """The form of a value that is labels or maps."""
        return None if value is None else self._forms.get(value)

    def is_plain(self, value: Node | None) -> bool:
        """Whether a value is the numbers of its node."""
        return value not in self._forms and value not in self._utf8

    def strings_of(self, value: Node | None) -> StringTensor | None:
        """The strings that a value is; None for numbers and maps."""
        if value is None:
            return None
        if (utf8 := self._utf8.get(value)) is not None:
            return StringTensor(value, utf8)
        form = self._forms.get(value)
        if form is None or form.kind != "labels":
            return None
        if isinstance(value, Constant):
            return constant_strings([form.names[k] for k in value.value.ravel()], value.value.shape)
        names = constant_strings(form.names)
        return StringTensor(take(names.spans, value), names.utf8)

    def put(self, value: Node, form: OutputForm) -> Node:
        """A value like ``value`` that is labels or maps."""
        shown = identity(value)
        self._forms[shown] = form
        return shown

    def put_strings(self, strings: StringTensor) -> Node:
        """The spans of strings, as a value that is strings."""
        self._utf8[strings.spans] = strings.utf8
        return strings.spans

    def apart(self, *values: ValueT) -> tuple[list[ValueT], Node | None]:
        """Values with spans in place of their strings, and the bytes that all are of; None where there are none."""
        parts = [part for value in values for part in element_nodes(value)]
        texts = {part: text for part in parts if (text := self.strings_of(part)) is not None}
        if not texts:
            return [*values], None
        spans, utf8 = merged(list(texts.values()))
        of = dict(zip(texts, spans, strict=True))
        return [cast(ValueT, mapped(value, lambda part: of.get(part, part))) for value in values], utf8

    def joined(self, value: ValueT, utf8: Node | None) -> ValueT:
        """The value whose elements are spans of these bytes."""
        if utf8 is not None:
            self._utf8.update(dict.fromkeys(element_nodes(value), utf8))
        return value

    def hand_on(self, before: Node, after: Node, finish: Callable[[Node], Node]) -> None:
        """What became of a value is the same. ``finish`` makes a node part of the model."""
        if (form := self._forms.get(before)) is not None:
            self._forms[after] = form
        if (utf8 := self._utf8.get(before)) is not None:
            self._utf8[after] = finish(utf8)

    def constant(self, tensor: TensorProto) -> Node:
        """A constant of strings, as labels."""
        names = tuple(text.decode("utf-8", "replace") for text in tensor.string_data)
        positions = Constant(np.arange(len(names)).reshape(tuple(tensor.dims)), tensor.name)
        self._forms[positions] = OutputForm("labels", names)
        return positions

    def moved(self, operator: str, where: str, values: Sequence[Value | None]) -> Moved:
        """What a node is given, where some of its inputs are no numbers. Raises ``ModelError`` for an operator that
        would look at the numbers that strings and maps are in native code."""
        parts = [part for value in values if value is not None for part in nodes_of(value)]
        others = [part for part in parts if not self.is_plain(part)]
        if not others or operator in READS:
            return Moved(values)
        self._check_alike(_put_into_sequence(operator, values), where)
        whole = all(value is None or isinstance(value, Node) for value in values)
        if (operator in OF_SEQUENCES and self._at_known_positions(values)) or (operator == "Identity" and not whole):
            return Moved(values)
        maps = any((form := self.of(value)) is not None and form.kind == "maps" for value in others)
        if maps or operator not in MOVES | OF_SEQUENCES:
            what = "maps can be outputs of a model, but" if maps else "strings are"
            raise ModelError(f"{where}: {what} not the inputs of {operator}")
        if len(others) == 1 and whole and operator != "Pad" and (form := self.of(parts[0])) is not None:
            return Moved(values, form=form)
        if whole and operator != "Pad" and (forms := self._labels(others)):
            form, of = _as_labels_of_all(forms)
            return Moved([None if v is None else mapped(v, lambda part: of.get(part, part)) for v in values], form)
        strings = {value: found for value in others if (found := self.strings_of(value)) is not None}
        spans, utf8 = merged(list(strings.values()))
        of = dict(zip(strings, spans, strict=True))
        given = [None if value is None else mapped(value, lambda part: of.get(part, part)) for value in values]
        return Moved(given, utf8=utf8)

    def _check_alike(self, elements: Sequence[Node], where: str) -> None:
        """Raise ``ModelError`` where some elements of a sequence are numbers, and others strings or maps."""
        if len({self.is_plain(element) for element in elements}) > 1:
            raise ModelError(
                f"{where}: the elements of a sequence are of one type, found numbers beside strings or maps"
            )

    def _labels(self, values: Sequence[Node]) -> dict[Node, OutputForm] | None:
        """The forms of values that all are labels."""
        forms = {value: form for value in values if (form := self.of(value)) is not None and form.kind == "labels"}
        return forms if len(forms) == len(set(values)) else None

    def _at_known_positions(self, values: Sequence[Value | None]) -> bool:
        """Whether sequences among values are of known length, and all tensors that are no strings are known."""
        tensors = (value for value in values if isinstance(value, Node))
        return not any(isinstance(value, Ragged) for value in values) and all(
            isinstance(tensor, Constant) or not self.is_plain(tensor) for tensor in tensors
        )

    def check_plain(self, values: Sequence[Node | None], who: str) -> None:
        """Raise ``ModelError`` for strings and maps among values; ``who`` says who takes or gives them."""
        if not all(map(self.is_plain, values)):
            raise ModelError(f"{who} strings or maps, which is not supported there")

    def check_no_maps(self, values: Sequence[Node], who: str) -> None:
        """Raise ``ModelError`` for maps among values."""
        forms = map(self.of, values)
        if any(form is not None and form.kind == "maps" for form in forms):
            raise ModelError(f"{who} maps, which is not supported there")

    def hand_on_moved(self, moved: Moved, results: Sequence[Value | None]) -> None:
        """The results of an operator that moves strings are strings, too."""
        for part in (part for result in results if result is not None for part in element_nodes(result)):
            if moved.form is not None:
                self._forms[part] = moved.form
            if moved.utf8 is not None:
                self._utf8[part] = moved.utf8


def _put_into_sequence(operator: str, values: Sequence[Value | None]) -> list[Node]:
    """The tensors that become elements of one sequence."""
    put = {"SequenceConstruct": values, "SequenceInsert": values[:2]}.get(operator, ())
    return [part for value in put if value is not None for part in element_nodes(value)]


def _as_labels_of_all(forms: Mapping[Node, OutputForm]) -> tuple[OutputForm, dict[Node, Node]]:
    """The labels of several lists, by list, as those of one that has all names, and each as a position in that."""
    names: tuple[str, ...] = ()
    begins: dict[tuple[str, ...], int] = {}
    for form in forms.values():
        if form.names not in begins:
            begins[form.names] = len(names)
            names += form.names
    of: dict[Node, Node] = {}
    for value, form in forms.items():
        begin = begins[form.names]
        kind = tensor_of(value).dtype.to_numpy()
        of[value] = add(value, Constant(np.array(begin, kind))) if begin else value
    return OutputForm("labels", names), of

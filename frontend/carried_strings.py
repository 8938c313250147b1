"""Strings that a Loop or a Scan carries: spans, which an iteration selects, of bytes that all lie before the loop."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from typing import TypeAlias

from ..base.dataclass import dataclass
from ..graph.node import Node, Var
from .onnx_node import OnnxNode
from .refusal_causes import MadeBytesError
from .string_values import StringTensor, merged
from .subgraphs import Subgraphs

Part: TypeAlias = tuple[Node, Node | None]
"""What a body gives; of strings spans, and the bytes that these are of, which lie before the loop."""


def outside_spans(node: OnnxNode, result: Node, params: Sequence[Var], subgraphs: Subgraphs) -> Part:
    """What a body with these parameters gives. Raises ``ModelError`` for strings whose bytes an iteration makes."""
    text = node.forms.strings_of(result)
    if text is None:
        return result, None
    return node.finish(text.spans), subgraphs.bytes_outside(node, text.utf8, params)


@dataclass(frozen=True, slots=True, eq=False)
class CarriedStrings:
    """Which carried values are strings, by number: what they are before the loop; the bytes of all, in which those of
    before it stand; and how often the body was found to hand on others."""

    before: Mapping[int, StringTensor] = field(default_factory=dict)
    utf8: Node | None = None
    rounds: int = 0

    def __contains__(self, number: int) -> bool:
        return number in self.before

    def spans(self, node: OnnxNode) -> dict[int, Node]:
        """What the loop carries at first."""
        if self.utf8 is None:
            return {}
        first = {k: merged([StringTensor(text.spans, self.utf8), text])[0][1] for k, text in self.before.items()}
        return {k: node.finish(spans) for k, spans in first.items()}

    def shown(self, node: OnnxNode, number: int, value: Node) -> Node:
        """A carried value as what it stands for: strings, if it is one of them."""
        return node.forms.joined(node.finish(value), self.utf8) if number in self.before else value

    def handed_on(
        self, node: OnnxNode, values: Mapping[int, Node], params: Sequence[Var], subgraphs: Subgraphs
    ) -> tuple[dict[int, Node], CarriedStrings]:
        """What a body with these parameters gives for carried values, of strings their spans; and the strings with the
        bytes that these spans are of, which the body may have to be imported for again. Raises ``ModelError`` for
        strings in place of numbers, and ``MadeBytesError`` for bytes that an iteration makes, or that are others each
        time that the body is imported, as those that it makes of strings around it."""
        numbers = [value for k, value in values.items() if k not in self]
        node.forms.check_plain(numbers, f"the body of {node}, where it took numbers, hands on")
        if self.utf8 is None:
            return {**values}, self
        texts = {k: node.forms.strings_of(values[k]) for k in self.before}
        given = [text for text in texts.values() if text is not None]
        if len(given) < len(texts):
            raise node.unsupported("a body that hands on numbers where it took strings")
        (_, *spans), utf8 = merged([StringTensor(next(iter(self.before.values())).spans, self.utf8), *given])
        utf8 = subgraphs.bytes_outside(node, utf8, params)
        after = self if utf8 is self.utf8 else replace(self, utf8=utf8, rounds=self.rounds + 1)
        if after.rounds > len(self.before) + 1:
            raise MadeBytesError(f"{node}: strings that iterations make are carried, stacked and appended by Loop only")
        return {**values, **dict(zip(texts, map(node.finish, spans), strict=True))}, after


NO_STRINGS = CarriedStrings()


def carried_strings(node: OnnxNode, values: Mapping[int, Node]) -> CarriedStrings:
    """The strings among the values that a loop carries, by number."""
    texts = {k: text for k, value in values.items() if (text := node.forms.strings_of(value)) is not None}
    return CarriedStrings(texts, node.finish(merged([*texts.values()])[1])) if texts else NO_STRINGS

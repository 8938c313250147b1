"""What the body of a Loop gives, once it is imported, and the values behind the loop that are made of that."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import TypeAlias

from ..base.dataclass import dataclass
from ..graph.node import Node, Var
from ..graph.types import TensorType
from ..ir.expr import Expr
from .appending import Appended
from .carried_strings import CarriedStrings
from .made_strings import GrownBytes
from .onnx_node import OnnxNode
from .stacking import GrownRows
from .string_values import StringTensor
from .varying import VaryingValue

Bytes: TypeAlias = Node | GrownBytes
"""The bytes of strings, which lie before the loop; or, where iterations make them, what collects them."""


@dataclass(slots=True, eq=False)
class CarriedParts:
    """What a loop carries: parameters of its body, first values of them, and what the body gives. Mutable."""

    params: list[Var]
    first: list[Node] = field(default_factory=list)
    given: list[Node] = field(default_factory=list)

    def add(self, params: Sequence[Var], first: Sequence[Node], given: Sequence[Node]) -> None:
        """Have the loop carry more."""
        self.params += params
        self.first += first
        self.given += given


@dataclass(frozen=True, slots=True, eq=False)
class ImportedBody:
    """``params`` are the number of the iteration and what is carried, whose first values are ``first``; of each carried
    value the parts that it is made of, and behind these what collects ``grown`` rows and ``appended`` tensors. The body
    gives ``holds``, the ``carried`` parts, and ``rows``. Of rows those of sequences come first, by number in
    ``appended``; ``grown`` are those of which nobody knows before the loop how large they get, by their number among
    all. ``types`` are those of the carried values behind an iteration."""

    node: OnnxNode
    varying: Mapping[int, VaryingValue]
    params: tuple[Var, ...]
    first: Sequence[Node]
    holds: Node
    carried: Sequence[Node]
    rows: Sequence[Node]
    grown: Mapping[int, GrownRows]
    appended: Mapping[int, Appended]
    types: Mapping[int, TensorType]
    strings: CarriedStrings
    """Which of what is carried are strings, of the bytes that iterations hand on."""
    appended_texts: Mapping[int, Bytes]
    """Of those sequences that are of strings, by number, the bytes."""
    texts: Mapping[int, Bytes]
    """Of those rows that are spans of strings, by their number among rows, the bytes."""
    meet: Sequence[tuple[Expr, Expr]] = ()
    """Extents known before the loop that meet in the body, and are taken for equal ones."""

    @property
    def has_born_extents(self) -> bool:
        """Whether the loop gives values whose extents only a run knows."""
        sequences = (each.grown is not None for each in self.appended.values())
        made = (isinstance(each, GrownBytes) for each in (*self.appended_texts.values(), *self.texts.values()))
        return bool(self.varying or self.grown) or any(sequences) or any(made)

    def last(self, parts: Iterator[Node]) -> dict[int, Node]:
        """The carried values behind the loop, of the parts that it gives."""
        values: dict[int, Node] = {}
        for number in self.types:
            if (varying := self.varying.get(number)) is not None:
                values[number] = varying.taken(self.node, [self.node.finish(next(parts)) for _ in varying.variables()])
            else:
                values[number] = self.node.finish(next(parts))
        forms = self.node.forms
        return {
            k: forms.joined(value, values[~k]) if ~k in values else self.strings.shown(self.node, k, value)
            for k, value in values.items()
            if k >= 0
        }

    def with_bytes(self, parts: Iterator[Node]) -> ImportedBody:
        """The same with the bytes of the strings that iterations have made, of further parts."""
        appended, texts = ({k: self._bytes(each, parts) for k, each in found.items()} for found in self._all_texts)
        return replace(self, appended_texts=appended, texts=texts)

    @property
    def _all_texts(self) -> tuple[Mapping[int, Bytes], Mapping[int, Bytes]]:
        return self.appended_texts, self.texts

    def _bytes(self, utf8: Bytes, parts: Iterator[Node]) -> Node:
        return utf8.taken(self.node, self.node.finish(next(parts))) if isinstance(utf8, GrownBytes) else utf8

    def stacks(self, parts: Iterator[Node], rows: Sequence[Node], count: Callable[[], Expr]) -> list[Node]:
        """What the loop stacks, of further parts and the ``rows`` that it gives; ``count`` tells how many iterations it
        had."""
        given = iter(rows)
        made = []
        for number in range(len(rows) + len(self.grown)):
            if (grown := self.grown.get(number)) is None:
                made.append(next(given))
            else:
                own = [self.node.finish(next(parts)) for _ in grown.variables("")]
                made.append(grown.taken(self.node, own, count()))
        for number, utf8 in self.texts.items():
            assert not isinstance(utf8, GrownBytes)
            made[number] = self.node.forms.put_strings(StringTensor(self.node.finish(made[number]), utf8))
        return made

"""The body of a Loop, imported for the types of what it carries: its parameters, and what it gives for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from onnx import GraphProto, ValueInfoProto

from ..graph.node import Constant, Node, Var, tensor_of
from ..graph.types import TensorType, tensor_type
from ..ir.constants import ONE, ZERO
from ..ir.contents import free_vars
from ..ir.expr import Expr
from ..ir.expr import Var as Symbol
from ..ir.makers import as_index, maximum
from ..ir.simplify import simplify
from ..ops.families.assume_extent import assume_extent
from ..ops.families.repeat import broadcast_to_extents
from ..ops.families.reshape import reshape
from .appending import Appended, appended_rows
from .carried_strings import NO_STRINGS, CarriedStrings, carried_strings, outside_spans
from .onnx_node import OnnxNode
from .string_values import StringTensor
from .structure import used_names
from .subgraphs import Subgraphs, as_declared
from .tensors import declared_extent
from .value_bounds import ImportedLoop
from .values import Growing, Value, value_text
from .varying import VaryingValue


@dataclass(frozen=True, slots=True, eq=False)
class ImportedBody:
    """``params`` are the number of the iteration and what is carried, whose first values are ``first``; of each carried
    value the parts that it is made of. The body gives ``holds``, the ``carried`` parts, and ``rows``: those of
    sequences, by number in ``appended``, come first. ``types`` are those of the carried values behind an iteration."""

    node: OnnxNode
    varying: Mapping[int, VaryingValue]
    params: tuple[Var, ...]
    first: tuple[Sequence[Node], ...]
    holds: Node
    carried: Sequence[Node]
    rows: Sequence[Node]
    appended: Mapping[int, Appended]
    types: Mapping[int, TensorType]
    strings: CarriedStrings
    """Which of what is carried are strings, of the bytes that iterations hand on."""
    texts: Mapping[int, Node]
    """Of those rows that are spans of strings, by their number among rows, the bytes, which lie before the loop."""
    appended_texts: Mapping[int, Node]
    """Of those sequences that are of strings, by number, the bytes, which lie before the loop."""

    def as_shown(self, stacks: Sequence[Node]) -> list[Node]:
        """What the loop stacks, where strings are strings."""
        forms = self.node.forms
        shown = [*stacks]
        for number, utf8 in self.texts.items():
            shown[number] = forms.put_strings(StringTensor(self.node.finish(stacks[number]), utf8))
        return shown

    def last(self, found: Sequence[Node]) -> list[Node]:
        """The carried values behind the loop, of the parts that it gives."""
        parts = iter(found)
        values = []
        for number, first in zip(self.types, self.first, strict=True):
            own = [next(parts) for _ in first]
            value = own[0] if number not in self.varying else self._taken(self.varying[number], own)
            values.append(self.strings.shown(self.node, number, value))
        return values

    def _taken(self, varying: VaryingValue, parts: Sequence[Node]) -> Node:
        return varying.taken(self.node, [self.node.finish(part) for part in parts])


@dataclass(frozen=True, slots=True, eq=False)
class LoopBody:
    """A body that carries these ``tensors``, and ``sequences`` that it appends to, by their numbers. Of
    ``strings`` among them it carries spans."""

    node: OnnxNode
    graph: GraphProto
    tensors: Mapping[int, Node]
    sequences: Sequence[int]
    trips: int | Expr | None
    subgraphs: Subgraphs
    strings: CarriedStrings = NO_STRINGS

    def with_strings(self) -> LoopBody:
        """The body that carries the spans of strings, of bytes that all lie before the loop: of those before it, and of
        those that iterations select from. Importing the body tells which these are."""
        body, strings = self, carried_strings(self.node, self.tensors)
        while strings is not body.strings:
            body = replace(self, tensors={**self.tensors, **strings.spans(self.node)}, strings=strings)
            strings = body.imported({}).strings if strings.before else strings
        return body

    def only_written(self, types: Mapping[int, TensorType]) -> dict[int, Node]:
        """Carried values that the body does not read, and gives another rank or dtype than they have before the loop:
        zeros in their place, of the types that it gives."""
        read = {name for inner in self.graph.node for name in used_names(inner)}
        read |= {output.name for output in self.graph.output}
        found: dict[int, Node] = {}
        for k, value in self.tensors.items():
            before, after = tensor_of(value), types[k]
            differs = (before.ndim, before.dtype) != (after.ndim, after.dtype)
            if differs and self.graph.input[2 + k].name not in read:
                zero = Constant(np.zeros((), after.dtype.to_numpy()))
                found[k] = self.node.finish(broadcast_to_extents(zero, after.shape, self.node.shapes.inputs))
        return found

    def imported(self, varying: Mapping[int, VaryingValue]) -> ImportedBody:
        """The body, where some of what is carried changes its shape."""
        node, graph, bounds = self.node, self.graph, self.node.shapes.bounds
        number = Var("number", tensor_type((), "int64"))
        bounds.numbers[number] = ZERO, None if self.trips is None else simplify(maximum(as_index(self.trips) - 1, ZERO))
        variables = {
            k: varying[k].variables() if k in varying else [Var(graph.input[2 + k].name, value.type)]
            for k, value in self.tensors.items()
        }
        params = (number, *(var for own in variables.values() for var in own))
        bound: dict[str, Value] = {graph.input[2 + k].name: Growing() for k in self.sequences}
        bound[graph.input[0].name] = as_declared(number, graph.input[0])
        bound[graph.input[1].name] = as_declared(Constant(np.array(True)), graph.input[1])
        before = len(node.shapes.inputs)
        bounds.loops.append(ImportedLoop(frozenset(params)))
        try:
            for k, own in variables.items():
                name = graph.input[2 + k].name
                value = varying[k].taken(node, own) if k in varying else own[0]
                bound[name] = self.strings.shown(node, k, value)
            holds, *results = self.subgraphs.results(graph, bound)
            self.subgraphs.move_out(before, params)
            return self._parts(varying, params, holds, results, self._born_inside(before))
        finally:
            bounds.loops.pop()

    def _born_inside(self, before: int) -> frozenset[Symbol]:
        """The extents that an iteration computes: those of witnesses behind the first ones that lie in the body."""
        witnesses = (w for w in self.node.shapes.inputs[before:] if w not in self.subgraphs.moved_out)
        return frozenset(v for witness in witnesses for extent in tensor_of(witness).shape for v in free_vars(extent))

    def _parts(
        self,
        varying: Mapping[int, VaryingValue],
        params: tuple[Var, ...],
        holds: Value,
        results: Sequence[Value],
        inner: frozenset[Symbol],
    ) -> ImportedBody:
        node = self.node
        values = {k: _tensor(node, results[k], "carries") for k in self.tensors}
        handed, strings = self.strings.handed_on(node, values, params, self.subgraphs)
        carried: list[Node] = []
        types: dict[int, TensorType] = {}
        for k in self.tensors:
            value = self._as_declared(handed[k], self.graph.output[1 + k])
            value = _as_element(node, value, tensor_of(self.tensors[k]))
            types[k] = tensor_of(value)
            carried += varying[k].put(node, value) if k in varying else [value]
        appended: dict[int, Appended] = {}
        appended_texts: dict[int, Node] = {}
        rows: list[Node] = []
        for k in self.sequences:
            added = results[k]
            if not isinstance(added, Growing):
                raise node.unsupported(f"a loop that hands on {value_text(added)} and not what it was given, longer,")
            (plain,), text = node.forms.apart(added)
            if text is not None:
                appended_texts[k] = self.subgraphs.bytes_outside(node, text, params)
            appended[k], own = appended_rows(node, tuple(map(node.finish, plain.added)), inner)
            rows += own
        ends = _tensor(node, holds, "gives, for a condition,")
        node.forms.check_plain([ends], f"a body, {self.graph.name!r}, gives, for a condition,")
        first_row = len(self.tensors) + len(self.sequences)
        texts: dict[int, Node] = {}
        for number, result in enumerate(results[first_row:], 1 + first_row):
            row = _tensor(node, result, "stacks")
            row, utf8 = outside_spans(node, row, params, self.subgraphs)
            if utf8 is not None:
                texts[len(rows)] = utf8
            node.forms.check_no_maps([row], f"a body, {self.graph.name!r}, gives")
            rows.append(self._row(row, self.graph.output[number], inner))
        first = tuple(varying[k].put(node, value) if k in varying else (value,) for k, value in self.tensors.items())
        return ImportedBody(
            node, varying, params, first, ends, carried, rows, appended, types, strings, texts, appended_texts
        )

    def _row(self, row: Node, declared: ValueInfoProto, inner: frozenset[Symbol]) -> Node:
        row = self._as_declared(row, declared)
        if inner & {v for extent in tensor_of(row).shape for v in free_vars(extent)}:
            raise self.node.unsupported(f"stacking rows of {row.type}, whose extents are those of one iteration,")
        return row

    def _as_declared(self, result: Node, declared: ValueInfoProto) -> Node:
        """A result with the extents that the body is declared to give, where an iteration computes them."""
        dims = declared.type.tensor_type.shape.dim
        for axis, extent in enumerate(tensor_of(result).shape if len(dims) == tensor_of(result).ndim else ()):
            number = declared_extent(dims[axis])
            if isinstance(number, int) and self.node.shapes.bounds.most.keys() & set(free_vars(extent)):
                result = assume_extent(result, axis, as_index(number), self.node.shapes.inputs)
        return self.node.finish(result)


def _as_element(node: OnnxNode, value: Node, before: TensorType) -> Node:
    """One element in the shape that it had before the iteration, as exporters write ``[1]`` for some scalars."""
    after = tensor_of(value)
    is_element = not (set(before.shape) | set(after.shape)) - {ONE} and before.dtype == after.dtype
    return node.finish(reshape(value, (1,) * before.ndim)) if is_element and before.ndim != after.ndim else value


def _tensor(node: OnnxNode, value: Value, verb: str) -> Node:
    if not isinstance(value, Node):
        raise node.unsupported(f"a body that {verb} anything but tensors")
    return value

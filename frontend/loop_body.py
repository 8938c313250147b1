"""The body of a Loop, imported for the types of what it carries: its parameters, and what it gives for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import replace

import numpy as np
from onnx import GraphProto, ValueInfoProto

from ..base.dataclass import dataclass
from ..graph.node import Constant, Node, Var, tensor_of
from ..graph.types import TensorType, tensor_type
from ..ir.constants import ONE, ZERO
from ..ir.contents import free_vars
from ..ir.expr import Expr
from ..ir.expr import Var as Symbol
from ..ir.makers import as_index, maximum
from ..ir.simplify import simplify
from ..ops.families.assume_extent import assume_extent
from ..ops.families.binary import add
from ..ops.families.repeat import broadcast_to_extents
from ..ops.families.reshape import reshape
from .appending import Appended, appended_of
from .carried_strings import NO_STRINGS, CarriedStrings, carried_strings
from .imported_body import Bytes, CarriedParts, ImportedBody
from .integers import integers
from .made_strings import GrownBytes, with_own_bytes
from .onnx_loop import OnnxLoop
from .onnx_node import OnnxNode
from .refusal_causes import MadeBytesError
from .stacking import GrownRows, grown_rows, has_born_extents
from .string_values import StringTensor
from .structure import used_names
from .subgraphs import Subgraphs, as_declared, is_true
from .tensors import declared_extent
from .value_bounds import ImportedLoop
from .values import Growing, Value, value_text
from .varying import VaryingValue

MOST_ROWS = 1 << 16
"""Exporters write a number above that for loops that only a condition ends."""


@dataclass(frozen=True, slots=True, eq=False)
class LoopBody:
    """A body that carries these ``tensors``, and ``sequences`` that it appends to, by their numbers. Of ``strings``
    among them it carries spans; of those whose bytes iterations make, number k, the bytes as well, as number ~k."""

    loop: OnnxLoop
    tensors: Mapping[int, Node]
    sequences: Sequence[int]
    strings: CarriedStrings = NO_STRINGS

    @property
    def node(self) -> OnnxNode:
        """The node that has the body."""
        return self.loop.node

    @property
    def graph(self) -> GraphProto:
        """The body in the model."""
        return self.loop.graph

    @property
    def subgraphs(self) -> Subgraphs:
        """What imports it."""
        return self.loop.subgraphs

    def with_strings(self) -> LoopBody:
        """The body that carries the spans of strings, of bytes that all lie before the loop: of those before it, and of
        those that iterations select from. Importing the body tells which these are, or that iterations make bytes."""
        body, strings = self, carried_strings(self.node, self.tensors)
        before = strings.before
        try:
            while strings is not body.strings:
                body = replace(self, tensors={**self.tensors, **strings.spans(self.node)}, strings=strings)
                strings = body.imported({}).strings if strings.before else strings
        except MadeBytesError:
            spans = {k: text.spans for k, text in before.items()}
            return replace(self, tensors={**self.tensors, **spans, **{~k: text.utf8 for k, text in before.items()}})
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
            if differs and self._name(k) not in read:
                zero = Constant(np.zeros((), after.dtype.to_numpy()))
                found[k] = self.node.finish(broadcast_to_extents(zero, after.shape, self.node.shapes.inputs))
        return found

    def _name(self, number: int) -> str:
        """What the body calls a carried value, or the bytes of its strings."""
        return f"{self._name(~number)}.bytes" if number < 0 else self.graph.input[2 + number].name

    def imported(self, varying: Mapping[int, VaryingValue]) -> ImportedBody:
        """The body, where some of what is carried changes its shape."""
        node, graph, bounds, done = self.node, self.graph, self.node.shapes.bounds, self.loop.done
        trips = self.loop.trips
        number = Var("number", tensor_type((), "int64"))
        bounds.numbers[number] = ZERO, None if trips is None else simplify(maximum(as_index(trips) - 1, ZERO))
        variables = {
            k: varying[k].variables() if k in varying else [Var(self._name(k), value.type)]
            for k, value in self.tensors.items()
        }
        params = (number, *(var for own in variables.values() for var in own))
        bound: dict[str, Value] = {graph.input[2 + k].name: Growing() for k in self.sequences}
        bound[graph.input[1].name] = as_declared(Constant(np.array(True)), graph.input[1])
        before = len(node.shapes.inputs)
        bounds.loops.append(ImportedLoop(frozenset(params)))
        node.shapes.meetings.append({})
        try:
            count = node.finish(add(number, integers(done))) if done else number
            bound[graph.input[0].name] = as_declared(count, graph.input[0])
            taken = {k: varying[k].taken(node, own) if k in varying else own[0] for k, own in variables.items()}
            for k, value in taken.items():
                if ~k in taken:
                    node.forms.joined(taken[max(k, ~k)], taken[min(k, ~k)])
                bound[self._name(k)] = self.strings.shown(node, k, value)
            holds, *results = self.subgraphs.results(graph, bound)
            self.subgraphs.move_out(before, params)
            inner = self.subgraphs.born_inside(before)
            meet = [
                pair
                for pair in node.shapes.meetings[-1]
                if inner.isdisjoint(v for extent in pair for v in free_vars(extent))
            ]
            return replace(self._parts(varying, variables, number, holds, results, inner), meet=meet)
        finally:
            bounds.loops.pop()
            node.shapes.meetings.pop()

    def _parts(
        self,
        varying: Mapping[int, VaryingValue],
        variables: Mapping[int, Sequence[Var]],
        iteration: Var,
        holds: Value,
        results: Sequence[Value],
        inner: frozenset[Symbol],
    ) -> ImportedBody:
        node = self.node
        made = CarriedParts([iteration])
        ends = _tensor(node, holds, "gives, for a condition,")
        node.forms.check_plain([ends], f"a body, {self.graph.name!r}, gives, for a condition,")
        params = (iteration, *(var for own in variables.values() for var in own))
        handed, strings = self._handed_on(results, params)
        types = self._carry(varying, variables, handed, inner, made)
        appended, appended_texts = self._appended(results, params, inner, made)
        rows = [row for each in appended.values() for row in each.rows]
        stacked, texts = self._stacked(results, params, inner, len(rows), made)
        known, grown = self._grow([*rows, *stacked], iteration, is_true(ends), inner, made)
        for k, sequence in appended.items():
            if sequence.grown is not None:
                own = sequence.grown.variables(f"sequence{k}")
                made.add(own, sequence.grown.first(node), sequence.grown.put(node, own, sequence.elements))
        return ImportedBody(
            node,
            varying,
            tuple(made.params),
            made.first,
            ends,
            made.given,
            known,
            grown,
            appended,
            types,
            strings,
            appended_texts,
            texts,
        )

    def _carry(
        self,
        varying: Mapping[int, VaryingValue],
        variables: Mapping[int, Sequence[Var]],
        handed: Mapping[int, Node],
        inner: Set[Symbol],
        made: CarriedParts,
    ) -> dict[int, TensorType]:
        """Add what each carried value is made of, and what is handed on for it; gives the types of that."""
        node = self.node
        types: dict[int, TensorType] = {}
        for k, before in self.tensors.items():
            value = handed[k] if k < 0 else self._as_declared(handed[k], self.graph.output[1 + k], inner)
            value = _as_element(node, value, tensor_of(before))
            types[k] = tensor_of(value)
            if (changes := varying.get(k)) is None:
                made.add(variables[k], [before], [value])
            else:
                made.add(variables[k], changes.first(node, before), changes.put(node, variables[k], value))
        return types

    def _grow(
        self, rows: Sequence[Node], iteration: Var, always_goes_on: bool, inner: Set[Symbol], made: CarriedParts
    ) -> tuple[list[Node], dict[int, GrownRows]]:
        """The rows that have memory before the loop, since it is known how many there are, of which extents; and the
        others by their numbers, which are carried in memory that grows."""
        node = self.node
        trips = self.loop.trips
        sized = trips is not None and (always_goes_on or not _is_many(trips))
        known = [row for row in rows if sized and not has_born_extents(row, inner)]
        grown = {number: grown_rows(node, row, inner) for number, row in enumerate(rows) if row not in known}
        for number, each in grown.items():
            own = each.variables(f"rows{number}")
            made.add(own, each.first(node), each.put(node, iteration, own, rows[number]))
        return known, grown

    def _handed_on(self, results: Sequence[Value], params: Sequence[Var]) -> tuple[dict[int, Node], CarriedStrings]:
        """What the body gives for carried values, of strings their spans, and their bytes where iterations make them;
        and the other strings."""
        node = self.node
        values = {k: _tensor(node, results[k], "carries") for k in self.tensors if k >= 0}
        made = {k for k in values if ~k in self.tensors}
        others = {k: value for k, value in values.items() if k not in made}
        handed, strings = self.strings.handed_on(node, others, params, self.subgraphs)
        for k in made:
            if (text := node.forms.strings_of(values[k])) is None:
                raise node.unsupported("a body that hands on numbers where it took strings")
            own = with_own_bytes(node, text)
            handed |= {k: own.spans, ~k: own.utf8}
        return handed, strings

    def _appended(
        self, results: Sequence[Value], params: Sequence[Var], inner: Set[Symbol], made: CarriedParts
    ) -> tuple[dict[int, Appended], dict[int, Bytes]]:
        """What an iteration appends to each sequence, and the bytes of those of strings."""
        node = self.node
        appended: dict[int, Appended] = {}
        texts: dict[int, Bytes] = {}
        for k in self.sequences:
            added = results[k]
            if not isinstance(added, Growing):
                raise node.unsupported(f"a loop that hands on {value_text(added)} and not what it was given, longer,")
            (plain,), utf8 = node.forms.apart(added)
            elements = [*map(node.finish, plain.added)]
            if utf8 is not None:
                elements, texts[k] = self._spans([StringTensor(each, utf8) for each in elements], params, made)
            appended[k] = appended_of(node, elements, inner)
        return appended, texts

    def _stacked(
        self, results: Sequence[Value], params: Sequence[Var], inner: Set[Symbol], before: int, made: CarriedParts
    ) -> tuple[list[Node], dict[int, Bytes]]:
        """The rows that an iteration gives, and the bytes of those of strings, by their numbers behind those
        ``before``."""
        first = sum(k >= 0 for k in self.tensors) + len(self.sequences)
        rows: list[Node] = []
        texts: dict[int, Bytes] = {}
        for number, result in enumerate(results[first:], 1 + first):
            row = _tensor(self.node, result, "stacks")
            if (text := self.node.forms.strings_of(row)) is not None:
                (row,), texts[before + len(rows)] = self._spans([text], params, made)
            self.node.forms.check_no_maps([row], f"a body, {self.graph.name!r}, gives")
            rows.append(self._as_declared(row, self.graph.output[number], inner))
        return rows, texts

    def _spans(
        self, texts: Sequence[StringTensor], params: Sequence[Var], made: CarriedParts
    ) -> tuple[list[Node], Bytes]:
        """The spans of strings of the same bytes, and these bytes; of bytes that an iteration makes the spans among
        those of all iterations, which the loop collects."""
        node = self.node
        utf8 = node.finish(texts[0].utf8)
        if not self.subgraphs.depends_on(utf8, params):
            return [node.finish(text.spans) for text in texts], self.subgraphs.bytes_outside(node, utf8, params)
        grown = GrownBytes(node.shapes.new_segment())
        (handle,) = own = grown.variables(f"strings{len(made.params)}")
        after, spans = grown.put(node, handle, texts)
        made.add(own, grown.first(node), [after])
        return spans, grown

    def _as_declared(self, result: Node, declared: ValueInfoProto, inner: Set[Symbol]) -> Node:
        """A result with the extents that the body is declared to give, where an iteration computes them."""
        dims = declared.type.tensor_type.shape.dim
        for axis, extent in enumerate(tensor_of(result).shape if len(dims) == tensor_of(result).ndim else ()):
            number = declared_extent(dims[axis])
            if isinstance(number, int) and inner & set(free_vars(extent)):
                result = assume_extent(result, axis, as_index(number), self.node.shapes.inputs)
        return self.node.finish(result)


def _is_many(trips: int | Expr | None) -> bool:
    """Whether these are more iterations than a loop has memory for beforehand which a condition may end."""
    return isinstance(trips, int) and trips > MOST_ROWS


def _as_element(node: OnnxNode, value: Node, before: TensorType) -> Node:
    """One element in the shape that it had before the iteration, as exporters write ``[1]`` for some scalars."""
    after = tensor_of(value)
    is_element = not (set(before.shape) | set(after.shape)) - {ONE} and before.dtype == after.dtype
    return node.finish(reshape(value, (1,) * before.ndim)) if is_element and before.ndim != after.ndim else value


def _tensor(node: OnnxNode, value: Value, verb: str) -> Node:
    if not isinstance(value, Node):
        raise node.unsupported(f"a body that {verb} anything but tensors")
    return value

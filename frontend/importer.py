"""ONNX model → graph function.

load → check the structure → check that all operators are supported → convert node by node, folding small constants.
Where that fails, a survey goes on behind the first error, so that all that stops the model is told.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import field
from pathlib import Path

from onnx import FunctionProto, GraphProto, ModelProto, NodeProto

from ..base.dataclass import dataclass
from ..base.errors import ExpressionError, ModelError, TypeInferenceError
from ..base.value_form import grouped
from ..graph.node import Function, Node, Tuple
from ..graph.types import GivenShapes, TensorType
from ..graph.visit import post_order
from ..ops.definition.shared_calls import share_calls
from . import converters  # noqa: F401  enters them in the table
from .branch_tails import MOST_TAILS, deciding, of_fitting_branch, parted, with_tail
from .control_flow import find_control_flow
from .finished_nodes import FinishedNodes
from .inlining import (
    FunctionKey,
    bind_attributes,
    check_arguments,
    model_functions,
    opsets_of,
    plain_domain,
    standard_body,
)
from .load import load_model
from .model_inputs import ModelInputs, fed_inputs, model_inputs
from .model_name import model_name
from .onnx_node import OnnxNode, describe
from .output_forms import OutputForms
from .problems import ModelSource, explained
from .refusal_causes import ConsequentError, RanksDifferError, UnknownLengthError, UnknownValueError
from .registry import converted, find_converter, version_of
from .scope import Scope
from .shape_values import ShapeValues
from .shown_results import shown_results
from .string_values import StringTensor
from .structure import check_graph, order_nodes, producers_of, used_names
from .subgraphs import Subgraphs
from .support import check_body, check_form, check_supported, has_converter, opset_imports
from .survey import Reading, Survey
from .tensors import check_type_size
from .type_checks import type_checks
from .values import Value, form_of, mapped, nodes_of


def from_onnx(
    model: ModelProto | bytes | str | os.PathLike[str],
    shapes: GivenShapes | None = None,
    mapped: bool = False,
    explain: bool = True,
) -> Function:
    """The graph of an ONNX model: a path, the bytes of a file, or a ``ModelProto``.

    ``shapes`` gives the shapes of inputs by name; a named dimension of one holds wherever it occurs. Other dimensions,
    and those given as None or -1, are as declared: numbers or symbols. Of a sequence it gives the shapes of its
    tensors, as ``[(3,), (4,)]``, and so its length, which each run chooses else; None is for an optional that is empty.
    ``output_names`` are those of the model, with numbers where an output is a list.
    ``name`` is that of its graph, or of the file, where exporters call all graphs alike.
    ``mapped`` leaves large weights in the model's file, which must not change as long as the graph is in use: they need
    no memory until they are read.

    Raises ``ModelError`` for a model that is damaged, or needs what is not supported: then its ``problems`` are all
    that stops the model, and which ``shapes`` help. Without ``explain`` it tells the first of them only, and sooner.
    """
    proto, folder = load_model(model, mapped)
    name = model_name(proto.graph.name, None if isinstance(model, (ModelProto, bytes)) else Path(model))
    source = ModelSource(proto, folder, opset_imports(proto))
    check_graph(proto.graph)
    try:
        return _imported(source, name, shapes)
    except ModelError as error:
        if not explain:
            raise
        raise explained(error, source, shapes, _survey_nodes) from error


def _imported(source: ModelSource, name: str, shapes: GivenShapes | None) -> Function:
    graph = source.proto.graph
    check_supported(source.proto)
    for check in type_checks(graph):
        check()
    given = model_inputs(fed_inputs(graph), shapes)
    importer, scope = _begun(source, given)
    wanted = tuple(o.name for o in graph.output)
    values = importer.run(scope, graph.node, wanted)
    outputs = tuple(form_of(*each) for each in zip(wanted, values, strict=True))
    names = [array for form in outputs for array in form.array_names]
    shown = shown_results([node for value in values for node in nodes_of(value)], names, importer.forms)
    body = importer.finished.as_data(shown.results[0] if len(shown.results) == 1 else Tuple(shown.results))
    if len(importer.shapes.inputs) > len(given.params):
        body = share_calls(body)
    return Function(
        given.params,
        body,
        name,
        shown.names,
        forms=shown.forms if any(shown.forms) else (),
        grouped_inputs=grouped(given.forms),
        grouped_outputs=grouped(outputs),
        string_inputs=tuple(given.params.index(spans) for spans in given.strings),
    )


def _begun(source: ModelSource, given: ModelInputs, survey: Survey | None = None) -> tuple[_Importer, Scope]:
    """What converts the nodes of a model with these inputs, and the values that it begins with."""
    params = given.params
    importer = _Importer(model_functions(source.proto), source.folder, ShapeValues(params), survey)
    for param in params:
        importer.finished.add(param)
    for spans in given.strings:
        importer.forms.put_strings(StringTensor(spans, params[-1]))
    types = {} if survey is None else survey.types
    return importer, Scope(source.proto.graph.initializer, source.opsets, dict(given.values), types=types)


def _survey_nodes(source: ModelSource, given: ModelInputs, survey: Survey) -> None:
    """Have what stops the nodes of a model noted. Inputs that are not given are those that were refused."""
    graph = source.proto.graph
    importer, scope = _begun(source, given, survey)
    scope.unknown.update(i.name for i in fed_inputs(graph) if i.name not in given.values)
    survey.attempt(lambda: importer.run(scope, graph.node, [o.name for o in graph.output]))


@dataclass(slots=True)
class _Importer:
    """Mutable: remembers what it has converted, and which nodes are finished."""

    functions: Mapping[FunctionKey, FunctionProto]
    folder: Path | None
    shapes: ShapeValues
    survey: Survey | None = None
    """What notes errors, where all are to be found."""
    forms: OutputForms = field(default_factory=OutputForms)
    finished: FinishedNodes = field(init=False)
    tails: int = 0
    """Within how many branches it converts what follows them."""

    def __post_init__(self) -> None:
        self.finished = FinishedNodes(self.shapes)

    def run(self, scope: Scope, nodes: Sequence[NodeProto], wanted: Sequence[str]) -> list[Value]:
        """Convert the nodes that the wanted values need, and give these values."""
        self._convert_all(order_nodes(nodes, producers_of(nodes), wanted), scope, wanted)
        found = [scope.value(name, self.folder, self.forms) for name in wanted]
        return [self._present(name, value) for name, value in zip(wanted, found, strict=True)]

    def _convert_all(self, nodes: Sequence[NodeProto], scope: Scope, wanted: Sequence[str]) -> None:
        """Convert nodes in an order of computation, and put what they give into the scope."""
        for place, node in enumerate(nodes):
            before = len(self.shapes.inputs)
            try:
                scope.values.update(self._convert(node, scope))
            except RanksDifferError as error:
                others, tail = parted(node, nodes[place + 1 :])
                if (not tail and node.op_type == "If") or self.tails == MOST_TAILS:
                    raise ModelError(str(error)) from error
                del self.shapes.inputs[before:]
            else:
                continue
            self._convert_all(others, scope, wanted)
            made = {name for other in (node, *tail) for name in other.output}
            self._convert_with_tail(node, tail, scope, [name for name in wanted if name in made])
            return

    def _convert_with_tail(
        self, node: NodeProto, tail: Sequence[NodeProto], scope: Scope, wanted: Sequence[str]
    ) -> None:
        """Convert an If whose branches differ in rank, or a Loop, with what follows in both branches."""
        deciders, name = deciding(node)
        self._convert_all(deciders, scope, [name])
        before = len(self.shapes.inputs)
        self.tails += 1
        try:
            scope.values.update(self._convert(with_tail(node, name, tail, wanted), scope))
        except ModelError as error:
            del self.shapes.inputs[before:]
            condition = scope.value(name, self.folder, self.forms)
            found = self._of_fitting_branch(node, condition, tail, scope, wanted)
            if found is None:
                raise ModelError(str(error)) from error
            scope.values.update(zip(wanted, found, strict=True))
        finally:
            self.tails -= 1

    def _of_fitting_branch(
        self, node: NodeProto, condition: Value | None, tail: Sequence[NodeProto], scope: Scope, wanted: Sequence[str]
    ) -> list[Value] | None:
        """What is wanted of a node and what follows, where this fits the shapes of one of its branches only."""

        def attempt(nodes: Sequence[NodeProto]) -> list[Value] | None:
            inner, before = Scope((), scope.opsets, {}, scope, scope.types), len(self.shapes.inputs)
            try:
                with nullcontext() if self.survey is None else self.survey.pause():
                    return self.run(inner, nodes, wanted)
            except ModelError as error:
                del self.shapes.inputs[before:]
                return None if isinstance(error.__cause__, (TypeInferenceError, ExpressionError)) else []

        return of_fitting_branch(self._view(node, [condition], 1, {}), tail, attempt)

    def _present(self, name: str, value: Value | None) -> Value:
        if value is None:
            raise ModelError(f"the output {name!r} is an input that was left out")
        return value

    def _convert(self, node: NodeProto, scope: Scope) -> dict[str, Value]:
        """The outputs of a node that have names, as far as the form that is supported gives them. Where errors are
        noted, stand-ins take the place of what a node that is refused would give."""
        survey = self.survey
        if survey is None or survey.paused:
            return self._converted(node, scope)
        try:
            with survey.pause():
                return self._converted(node, scope)
        except RanksDifferError:
            raise
        except ModelError:
            before = survey.refusals
        try:
            return self._converted(node, scope)  # its subgraphs and body note what is refused in them
        except ModelError as error:
            if survey.refusals == before:
                survey.note(error, node, self._readings(node, scope))
        return self._stand_ins(node, scope, survey)

    def _readings(self, node: NodeProto, scope: Scope) -> Iterator[Reading]:
        """The nodes that a node of the model reads, and what extents they stand for."""
        for name in used_names(node):
            value = scope.found(name)
            for part in nodes_of(value) if value is not None else ():
                known = self.shapes.of(part)
                yield part, () if known is None else known.ravel()

    def _stand_ins(self, node: NodeProto, scope: Scope, survey: Survey) -> dict[str, Value]:
        found: dict[str, Value] = {}
        for name in filter(None, node.output):
            kind = scope.types.get(name)
            made = survey.stand_in(name, kind) if kind is not None else None
            if made is None:
                scope.unknown.add(name)
                continue
            found[name] = made
            self.finished.add(made)
            self.shapes.inputs.append(made)
        return found

    def _converted(self, node: NodeProto, scope: Scope) -> dict[str, Value]:
        values = [scope.value(name, self.folder, self.forms) for name in node.input]
        done: dict[Node, Node] = {}
        try:
            results = self._results(node, values, scope, done)
        except (TypeInferenceError, ExpressionError) as error:
            refused = UnknownValueError if isinstance(error, UnknownLengthError) else ModelError
            raise refused(f"{describe(node)}: {error}") from error
        named = zip(node.output, results, strict=False)  # the last outputs may not be wanted
        wanted = {name: made for name, made in named if name and made is not None}
        finished = {
            name: mapped(made, lambda part: self.finished.finish(part, node, done)) for name, made in wanted.items()
        }
        if len(finished) == 1:  # of several, one may be computed from another
            finished = {name: self.finished.named(result, name, node) for name, result in finished.items()}
        for name, result in finished.items():
            self._check(node, wanted[name], result, done)
        return finished

    def _check(self, node: NodeProto, made: Value, finished: Value, done: dict[Node, Node]) -> None:
        """Hand the forms of a result on, and raise ``ModelError`` where it is too large."""
        for before, after in zip(nodes_of(made), nodes_of(finished), strict=True):
            self.forms.hand_on(before, after, lambda made: self.finished.finish(made, node, done))
            if isinstance(after.type, TensorType):
                check_type_size(after.type, f"the result of {describe(node)}")

    def _results(
        self, node: NodeProto, values: Sequence[Value | None], scope: Scope, done: dict[Node, Node]
    ) -> Sequence[Value | None]:
        """What a node gives, None for outputs that are left out. ``done`` is as for ``FinishedNodes.finish``."""
        domain = plain_domain(node.domain)
        function = self.functions.get((domain, node.op_type, node.overload))
        if function is not None:
            return self._inline(function, node, values, opsets_of(function, scope.opsets))
        opset = scope.opsets.get(domain)
        if opset is None or not has_converter(node, domain, opset):
            raise ConsequentError(f"{describe(node)} has no converter")  # which is listed with all of the model
        version = version_of(domain, node.op_type, opset)
        if version is not None and (flow := find_control_flow(domain, node.op_type, version)) is not None:
            check_form(node, domain, opset)
            parts = [part for value in values if value is not None for part in nodes_of(value)]
            self.forms.check_no_maps(parts, f"{describe(node)} takes")
            return flow(self._view(node, values, version, done), self._subgraphs(scope))
        convert = find_converter(domain, node.op_type, version) if version is not None else None
        if convert is None or version is None:
            return self._standard_function(node, domain, opset, values, scope)
        check_form(node, domain, opset)
        moved = self.forms.moved(node.op_type, describe(node), values)
        made = converted(convert, self._view(node, moved.values, version, done))
        if made is None:
            return self._standard_function(node, domain, opset, values, scope)
        results = made if isinstance(made, Sequence) else (made,)
        self.forms.hand_on_moved(moved, results)
        return results

    def _view(self, node: NodeProto, values: Sequence[Value | None], version: int, done: dict[Node, Node]) -> OnnxNode:
        def finish(made: Node) -> Node:
            return self.finished.finish(made, node, done)

        attributes = {a.name: a for a in node.attribute}
        return OnnxNode(node, values, attributes, version, self.folder, self.shapes, self.forms, finish)

    def _standard_function(
        self, node: NodeProto, domain: str, opset: int, values: Sequence[Value | None], scope: Scope
    ) -> Sequence[Value | None]:
        body = standard_body(node, domain, opset, [v.type if isinstance(v, Node) else None for v in values])
        if body is None or not body.node:
            raise ModelError(f"{describe(node)}: the operator has no body for these types of inputs")
        opsets = opsets_of(body, scope.opsets)
        check_body(body, opsets, self.functions)
        return self._inline(body, node, values, opsets)

    def _inline(
        self, function: FunctionProto, node: NodeProto, values: Sequence[Value | None], opsets: Mapping[str, int]
    ) -> Sequence[Value | None]:
        check_arguments(function, node)
        given = [*values, *[None] * (len(function.input) - len(values))]
        scope = Scope((), opsets, dict(zip(function.input, given, strict=True)))
        body = bind_attributes(function, {a.name: a for a in node.attribute}, node)
        wanted = [inner for inner, outer in zip(function.output, node.output, strict=False) if outer]
        results = iter(self.run(scope, body, wanted))
        return [next(results) if outer else None for outer in node.output]

    def _subgraphs(self, scope: Scope) -> Subgraphs:
        """What converters of control flow import the subgraphs of a node by, which see the values of ``scope``."""
        begun = len(self.finished.order)
        moved_out: set[Node] = set()
        survey = self.survey
        refused: list[GraphProto] = []

        def results(graph: GraphProto, bound: Mapping[str, Value]) -> list[Value]:
            if any(graph is other for other in refused):
                raise ConsequentError(f"{graph.name!r} was refused")  # what stands in it may have other types each time
            before = survey.refusals if survey is not None else 0
            for node in post_order(Tuple(tuple(node for value in bound.values() for node in nodes_of(value)))):
                self.finished.add(node)
            inner = Scope(graph.initializer, scope.opsets, {**bound}, scope, scope.types)
            try:
                return self.run(inner, graph.node, [output.name for output in graph.output])
            finally:
                if survey is not None and survey.refusals > before:
                    refused.append(graph)

        def is_outside(node: Node) -> bool:
            stands_in = survey is not None and survey.is_stand_in(node)
            return stands_in or node in moved_out or self.finished.order.get(node, begun) < begun

        def named(name: str) -> Value | None:
            return scope.value(name, self.folder, self.forms)

        return Subgraphs(results, named, is_outside, self.finished.as_data, self.shapes, moved_out, self.forms, survey)

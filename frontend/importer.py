"""ONNX model → graph function.

load → check the structure → check that all operators are supported → convert node by node, folding small constants.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from onnx import FunctionProto, GraphProto, ModelProto, NodeProto, TensorProto

from ..base.errors import ExpressionError, ModelError, TypeInferenceError
from ..graph.node import Call, Constant, Function, ImportedValue, Node, Tuple, Var
from ..graph.types import GivenShape, TensorType, given_shapes
from ..graph.visit import inputs, with_inputs
from . import converters  # noqa: F401  enters them in the table
from .fold import fold
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
from .model_name import model_name
from .onnx_node import OnnxNode, describe
from .registry import find_converter, version_of
from .shape_values import ShapeValues
from .structure import check_graph, order_nodes, producers_of
from .support import check_body, check_form, check_supported, opset_imports
from .tensors import (
    Symbols,
    bind_dimensions,
    bind_formulas,
    check_size,
    check_type_size,
    declared_extent,
    element_type,
    tensor_value,
    value_type,
)


def from_onnx(
    model: ModelProto | bytes | str | os.PathLike[str],
    shapes: Mapping[str, Sequence[int | None]] | None = None,
    mapped: bool = False,
) -> Function:
    """The graph of an ONNX model: a path, the bytes of a file, or a ``ModelProto``.

    ``shapes`` gives the shapes of inputs by name; a named dimension of one holds wherever it occurs. Other dimensions,
    and those given as None or -1, are as declared: numbers or symbols. ``output_names`` are those of the model.
    ``name`` is that of its graph, or of the file, where exporters call all graphs alike.
    ``mapped`` leaves large weights in the model's file, which must not change as long as the graph is in use: they need
    no memory until they are read.

    Raises ``ModelError`` for a model that is damaged, or needs what is not supported.
    """
    proto, folder = load_model(model, mapped)
    name = model_name(proto.graph.name, None if isinstance(model, (ModelProto, bytes)) else Path(model))
    opsets = opset_imports(proto)
    check_graph(proto.graph)
    check_supported(proto)
    _check_sizes(proto.graph)
    params = _parameters(proto.graph, given_shapes(shapes))
    importer = _Importer(model_functions(proto), folder, ShapeValues(params))
    importer.final.update(dict.fromkeys(params))
    scope = _Scope(proto.graph.initializer, opsets, {p.name: p for p in params})
    names = tuple(o.name for o in proto.graph.output)
    results = importer.run(scope, proto.graph.node, names)
    body = results[0] if len(results) == 1 else Tuple(tuple(results))
    return Function(params, importer.shapes.as_data(body), name, names)


def _parameters(graph: GraphProto, shapes: Mapping[str, GivenShape]) -> list[Var]:
    """The inputs that are fed at run time: initializers, which early versions list as inputs too, are constants."""
    constants = {i.name for i in graph.initializer}
    fed = [i for i in graph.input if i.name not in constants]
    unknown = sorted(set(shapes) - {i.name for i in fed})
    if unknown:
        known = ", ".join(repr(i.name) for i in fed) or "none"
        raise ModelError(f"shapes= names {unknown[0]!r}, which is no input of the model; its inputs are {known}")
    symbols: Symbols = {}
    for i in fed:
        if i.name in shapes:
            bind_dimensions(i.type, f"input {i.name!r}", symbols, shapes[i.name])
    bind_formulas(fed, symbols)
    return [Var(i.name, value_type(i.type, f"input {i.name!r}", symbols, shapes.get(i.name))) for i in fed]


def _check_sizes(graph: GraphProto) -> None:
    for tensor in graph.initializer:
        where = f"initializer {tensor.name!r}"
        check_size(tensor.dims, element_type(tensor.data_type, where), where)
    for value in (*graph.input, *graph.output, *graph.value_info):
        kind = value.type.tensor_type
        if value.type.HasField("tensor_type") and kind.elem_type != TensorProto.UNDEFINED:
            where = f"value {value.name!r}"
            extents = [extent for dim in kind.shape.dim if isinstance(extent := declared_extent(dim), int)]
            check_size(extents, element_type(kind.elem_type, where), where)


@dataclass(slots=True)
class _Scope:
    """The values that the nodes of a graph or of a function's body see by name. Mutable: filled node by node."""

    initializers: Sequence[TensorProto]
    opsets: Mapping[str, int]
    values: dict[str, Node | None]
    outer: _Scope | None = None
    stored: dict[str, TensorProto] = field(init=False)

    def __post_init__(self) -> None:
        self.stored = {i.name: i for i in self.initializers}

    def value(self, name: str, folder: Path | None) -> Node | None:
        """The value of that name; None for an input that was left out. Initializers are read when first asked for."""
        if not name:
            return None
        if name not in self.values and name in self.stored:
            array = tensor_value(self.stored[name], f"initializer {name!r}", folder)
            self.values[name] = Constant(array, name)
        if name in self.values:
            return self.values[name]
        if self.outer is None:
            raise ModelError(f"the value {name!r} is used, but no operator gives it in the form that is supported")
        return self.outer.value(name, folder)


@dataclass(slots=True)
class _Importer:
    """Mutable: remembers which nodes it has finished."""

    functions: Mapping[FunctionKey, FunctionProto]
    folder: Path | None
    shapes: ShapeValues
    final: dict[Node, None] = field(default_factory=dict)

    def run(self, scope: _Scope, nodes: Sequence[NodeProto], wanted: Sequence[str]) -> list[Node]:
        """Convert the nodes that the wanted values need, and give these values."""
        for node in order_nodes(nodes, producers_of(nodes), wanted):
            results = self._convert(node, scope)
            scope.values.update(results)
        found = [scope.value(name, self.folder) for name in wanted]
        return [self._present(name, value) for name, value in zip(wanted, found, strict=True)]

    def _present(self, name: str, value: Node | None) -> Node:
        if value is None:
            raise ModelError(f"the output {name!r} is an input that was left out")
        return value

    def _convert(self, node: NodeProto, scope: _Scope) -> dict[str, Node]:
        """The outputs of a node that have names, as far as the form that is supported gives them."""
        values = [scope.value(name, self.folder) for name in node.input]
        try:
            results = self._results(node, values, scope)
        except (TypeInferenceError, ExpressionError) as error:
            raise ModelError(f"{describe(node)}: {error}") from error
        done: dict[Node, Node] = {}
        named = zip(node.output, results, strict=False)  # the last outputs may not be wanted
        finished = {name: self._finish(made, node, done) for name, made in named if name and made is not None}
        if len(finished) == 1:  # of several, one may be computed from another
            finished = {name: self._valued(result, name, node) for name, result in finished.items()}
        for result in finished.values():
            if isinstance(result.type, TensorType):
                check_type_size(result.type, f"the result of {describe(node)}")
        return finished

    def _results(self, node: NodeProto, values: Sequence[Node | None], scope: _Scope) -> Sequence[Node | None]:
        """What a node gives, None for outputs that are left out."""
        domain = plain_domain(node.domain)
        function = self.functions.get((domain, node.op_type, node.overload))
        if function is not None:
            return self._inline(function, node, values, opsets_of(function, scope.opsets))
        opset = scope.opsets[domain]
        if domain == "" and node.op_type == "If":
            return self._branch(node, values, scope)
        version = version_of(domain, node.op_type, opset)
        convert = find_converter(domain, node.op_type, version) if version is not None else None
        if convert is None or version is None:
            return self._standard_function(node, domain, opset, values, scope)
        check_form(node, domain, opset)
        made = convert(OnnxNode(node, values, {a.name: a for a in node.attribute}, version, self.folder, self.shapes))
        if made is None:
            return self._standard_function(node, domain, opset, values, scope)
        return made if isinstance(made, Sequence) else (made,)

    def _standard_function(
        self, node: NodeProto, domain: str, opset: int, values: Sequence[Node | None], scope: _Scope
    ) -> Sequence[Node | None]:
        body = standard_body(node, domain, opset, [None if v is None else v.type for v in values])
        if body is None or not body.node:
            raise ModelError(f"{describe(node)}: the operator has no body for these types of inputs")
        opsets = opsets_of(body, scope.opsets)
        check_body(body, opsets, self.functions)
        return self._inline(body, node, values, opsets)

    def _inline(
        self, function: FunctionProto, node: NodeProto, values: Sequence[Node | None], opsets: Mapping[str, int]
    ) -> Sequence[Node | None]:
        check_arguments(function, node)
        given = [*values, *[None] * (len(function.input) - len(values))]
        scope = _Scope((), opsets, dict(zip(function.input, given, strict=True)))
        body = bind_attributes(function, {a.name: a for a in node.attribute}, node)
        wanted = [inner for inner, outer in zip(function.output, node.output, strict=False) if outer]
        results = iter(self.run(scope, body, wanted))
        return [next(results) if outer else None for outer in node.output]

    def _branch(self, node: NodeProto, values: Sequence[Node | None], scope: _Scope) -> Sequence[Node]:
        """An If whose condition is known is the branch that it takes."""
        view = OnnxNode(node, values, {a.name: a for a in node.attribute}, 1, self.folder, self.shapes)
        taken = "then_branch" if view.constant_int(0, "the condition") else "else_branch"
        if not view.has(taken):
            raise ModelError(f"{view}: attribute {taken} is missing")
        graph = view.attributes[taken].g
        inner = _Scope(graph.initializer, scope.opsets, {}, scope)
        return self.run(inner, graph.node, [o.name for o in graph.output])

    def _finish(self, root: Node, node: NodeProto, done: dict[Node, Node]) -> Node:
        """Fold what is constant, and note the origin of the calls that a converter made. ``done`` is what became of
        its nodes so far: its results may share some."""
        stack = [root]
        while stack:
            current = stack[-1]
            if current in self.final or current in done:
                done.setdefault(current, current)
                stack.pop()
                continue
            waiting = [n for n in inputs(current) if n not in done and n not in self.final]
            if waiting:
                stack += waiting
                continue
            stack.pop()
            done[current] = self._finished(current, tuple(done.get(n, n) for n in inputs(current)), node)
        return done[root]

    def _valued(self, result: Node, name: str, node: NodeProto) -> Node:
        """The one result of a node, which knows what the model calls it; unless it is an older value, handed on."""
        if not isinstance(result, Call) or result.origin != _origin(node) or result.value is not None:
            return result
        valued = replace(result, value=ImportedValue(name))
        self.final[valued] = None
        return valued

    def _finished(self, current: Node, args: tuple[Node, ...], node: NodeProto) -> Node:
        made = with_inputs(current, args)
        if isinstance(made, Call):
            folded: Node | None = fold(made)
            if folded is None:
                folded = self.shapes.fold(made)
            made = folded if folded is not None else replace(made, origin=_origin(node))
        self.final[made] = None
        return made


def _origin(node: NodeProto) -> tuple[str, ...]:
    return (node.name or node.output[0],)

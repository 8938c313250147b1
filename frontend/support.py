"""What a model needs and we lack: found before anything is converted, and reported all at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from onnx import FunctionProto, ModelProto, NodeProto, defs

from ..base.errors import ModelError
from .control_flow import find_control_flow
from .inlining import FunctionKey, model_functions, opsets_of, plain_domain, standard_body
from .onnx_node import describe
from .refused import reason_of
from .registry import OWN_DOMAIN, Form, find_converter, foreign_form, version_of
from .structure import subgraphs

MAX_NODES_SHOWN = 10
Gap = tuple[str, str, str]
"""Domain, operator, and its version in words."""


def opset_imports(model: ModelProto) -> dict[str, int]:
    """The operator set version of each domain. Raises ``ModelError`` for one that this ONNX package does not know."""
    opsets = {plain_domain(o.domain): int(o.version) for o in model.opset_import} or {"": 1}
    newest = defs.onnx_opset_version()
    version = opsets.get("", 1)
    if not 1 <= version <= newest:
        raise ModelError(
            f"the model is written for operator set {version} of ONNX; the installed onnx package knows 1 to {newest}"
        )
    return opsets


def check_supported(model: ModelProto) -> None:
    """Raise a ``ModelError`` that lists all operators of the model that can not be converted."""
    _Search(model_functions(model)).report(model.graph.node, opset_imports(model))


def check_body(
    function: FunctionProto, opsets: Mapping[str, int], functions: Mapping[FunctionKey, FunctionProto]
) -> None:
    """Raise ``ModelError`` that lists the operators in the body of a function that cannot be converted."""
    _Search(functions).report(function.node, opsets)


def check_form(node: NodeProto, domain: str, opset: int) -> None:
    """Raise ``ModelError`` for attributes and inputs that the operator has not in this version: they would be ignored,
    and the result another than what is meant."""
    if domain == OWN_DOMAIN:
        return  # its converters look at all attributes and inputs themselves
    form = foreign_form(domain, node.op_type) or _standard_form(node.op_type, opset, domain)
    unknown = [a.name for a in node.attribute if a.name not in form.attributes and not a.name.startswith("__")]
    if unknown:
        known = ", ".join(sorted(form.attributes)) or "none"
        raise ModelError(
            f"{describe(node)}: there is no attribute {unknown[0]} in operator set {opset}; its attributes are {known}"
        )
    if len(node.input) > form.inputs:
        raise ModelError(f"{describe(node)}: {len(node.input)} inputs are given, it takes at most {form.inputs}")


def _standard_form(name: str, opset: int, domain: str) -> Form:
    schema = defs.get_schema(name, opset, domain)
    return Form(frozenset(schema.attributes), schema.max_input)


@dataclass(slots=True)
class _Search:
    """Mutable: collects what is missing, with the nodes that need it."""

    functions: Mapping[FunctionKey, FunctionProto]
    gaps: dict[Gap, list[str]] = field(default_factory=dict)
    open: list[FunctionKey] = field(default_factory=list)
    done: set[FunctionKey] = field(default_factory=set)

    def report(self, nodes: Iterable[NodeProto], opsets: Mapping[str, int]) -> None:
        self.visit(nodes, opsets, None)
        if self.gaps:
            lines = [f"  {name} ({where}, {version}): {_listed(nodes)}" for (where, name, version), nodes in
                     sorted((((_domain(d), n, v), nodes) for (d, n, v), nodes in self.gaps.items()))]  # fmt: skip
            count = "an operator" if len(lines) == 1 else f"{len(lines)} operators"
            raise ModelError("\n".join([f"the model uses {count} that cannot be converted:", *lines]))

    def visit(self, nodes: Iterable[NodeProto], opsets: Mapping[str, int], inside: str | None) -> None:
        """``inside`` names the node of the model that the nodes are part of, if they are a function's."""
        for node in nodes:
            self._node(node, opsets, inside or node.name or next((o for o in node.output if o), ""))
            for graph in subgraphs(node):
                self.visit(graph.node, opsets, inside)

    def _node(self, node: NodeProto, opsets: Mapping[str, int], name: str) -> None:
        domain = plain_domain(node.domain)
        key = (domain, node.op_type, node.overload)
        if key in self.functions:
            self._function(key, opsets, name)
            return
        opset = opsets.get(domain)
        version = version_of(domain, node.op_type, opset) if opset is not None else None
        if version is not None and (
            find_converter(domain, node.op_type, version) is not None
            or find_control_flow(domain, node.op_type, version) is not None
        ):
            return
        body = standard_body(node, domain, opset, None) if opset is not None else None
        if body is not None:
            gaps = len(self.gaps)
            self.visit(body.node, opsets_of(body, opsets), name)
            if len(self.gaps) == gaps:
                return
        words = f"version {version}" if version is not None else f"not in operator set {opset}"
        words = reason_of(domain, node.op_type) or words
        if opset is None:
            words = "its domain is not imported by the model"
        self.gaps.setdefault((domain, node.op_type, words), []).append(name)

    def _function(self, key: FunctionKey, opsets: Mapping[str, int], name: str) -> None:
        if key in self.open:
            raise ModelError(f"the function {key[1]} of the model calls itself, by way of node {name!r}")
        if key in self.done:
            return
        self.open.append(key)
        function = self.functions[key]
        self.visit(function.node, opsets_of(function, opsets), name)
        self.open.pop()
        self.done.add(key)


def _domain(domain: str) -> str:
    return f"domain {domain!r}" if domain else "ONNX"


def _listed(nodes: list[str]) -> str:
    shown = ", ".join(repr(n) for n in nodes[:MAX_NODES_SHOWN])
    more = len(nodes) - MAX_NODES_SHOWN
    return f"node{'s' if len(nodes) > 1 else ''} {shown}{f' and {more} more' if more > 0 else ''}"

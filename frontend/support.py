"""The operators that a model needs and we lack: found before anything is converted, and reported all at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field

from onnx import FunctionProto, ModelProto, NodeProto, defs

from ..base.dataclass import dataclass
from ..base.errors import ModelError
from ..base.model_problem import ModelProblem, ProblemKind
from .control_flow import find_control_flow
from .inlining import FunctionKey, model_functions, opsets_of, plain_domain, standard_body
from .onnx_node import describe
from .refusal import refusal
from .refused import reason_of
from .registry import OWN_DOMAIN, Form, find_converter, foreign_form, version_of
from .structure import subgraphs


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
    _refuse(missing_operators(model))


def missing_operators(model: ModelProto) -> list[ModelProblem]:
    """The operators of the model that cannot be converted, a problem for each node."""
    return _Search(model_functions(model)).found(model.graph.node, opset_imports(model))


def check_body(
    function: FunctionProto, opsets: Mapping[str, int], functions: Mapping[FunctionKey, FunctionProto]
) -> None:
    """Raise ``ModelError`` that lists the operators in the body of a function that cannot be converted."""
    _refuse(_Search(functions).found(function.node, opsets))


def _refuse(problems: Sequence[ModelProblem]) -> None:
    if problems:
        raise refusal(problems)


def has_converter(node: NodeProto, domain: str, opset: int | None) -> bool:
    """Whether the operator of a node has a converter, or a body that the standard gives."""
    version = version_of(domain, node.op_type, opset) if opset is not None else None
    if version is not None and (
        find_converter(domain, node.op_type, version) is not None
        or find_control_flow(domain, node.op_type, version) is not None
    ):
        return True
    return opset is not None and standard_body(node, domain, opset, None) is not None


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
    gaps: list[ModelProblem] = field(default_factory=list)
    open: list[FunctionKey] = field(default_factory=list)
    done: set[FunctionKey] = field(default_factory=set)

    def found(self, nodes: Iterable[NodeProto], opsets: Mapping[str, int]) -> list[ModelProblem]:
        self.visit(nodes, opsets, None)
        return self.gaps

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
        message = f"{node.op_type} ({_domain(domain)}, {words})"
        self.gaps.append(ModelProblem(ProblemKind.OPERATOR, message, name, node.op_type))

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

"""Functions: an operator that has no converter is replaced by its body, if the model or the ONNX standard gives one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from onnx import AttributeProto, FunctionProto, ModelProto, NodeProto, defs

from ..base.errors import ModelError
from ..graph.types import TensorType, Type
from .onnx_node import describe
from .tensors import type_proto

SAME_IN_ONNX = {("com.microsoft", "CausalConvWithState"): 27, ("com.microsoft", "LinearAttention"): 27}
"""Operators of others whose body is that of ONNX's operator of the same name, and the operator set that has it."""

FunctionKey = tuple[str, str, str]
"""Domain, name and overload of a function of the model."""


def model_functions(model: ModelProto) -> dict[FunctionKey, FunctionProto]:
    """The functions that a model brings along, by domain, name and overload."""
    return {(plain_domain(f.domain), f.name, f.overload): f for f in model.functions}


def plain_domain(domain: str) -> str:
    """The empty domain has a second name."""
    return "" if domain == "ai.onnx" else domain


def opsets_of(function: FunctionProto, default: Mapping[str, int]) -> dict[str, int]:
    """The operator sets that a body is written for: of domains that it does not name, those around it, as bodies of
    ONNX's own functions in other domains want it."""
    return {**default, **{plain_domain(o.domain): int(o.version) for o in function.opset_import}}


def standard_body(
    node: NodeProto, domain: str, opset: int, types: Sequence[Type | None] | None
) -> FunctionProto | None:
    """The body that the ONNX standard gives an operator in an operator set; None if it gives none.

    Some bodies depend on the types of the inputs. Where ``types`` are not known yet, such a body is empty.
    """
    if (domain, node.op_type) in SAME_IN_ONNX:
        opset, domain = SAME_IN_ONNX[domain, node.op_type], ""
        node = _with_known_attributes(node, opset)
    try:
        schema: Any = defs.get_schema(node.op_type, opset, domain)
    except defs.SchemaError:
        return None
    body = FunctionProto()
    plain = [v for v in schema.function_opset_versions if v <= opset]
    dependent = [v for v in schema.context_dependent_function_opset_versions if v <= opset]
    if plain:
        body.ParseFromString(schema.get_function_with_opset_version(max(plain)))
    elif dependent and types is not None:
        protos = [type_proto(t) if isinstance(t, TensorType) else b"" for t in types]
        version = max(dependent)
        body.ParseFromString(
            schema.get_context_dependent_function_with_opset_version(version, node.SerializeToString(), protos)
        )
    elif not dependent:
        return None
    defaults = [a.default_value for a in schema.attributes.values()]
    body.attribute_proto.extend(d for d in defaults if d.type != AttributeProto.UNDEFINED)
    return body


def _with_known_attributes(node: NodeProto, opset: int) -> NodeProto:
    """A node as one of ONNX's own, with the attributes that this has."""
    known = defs.get_schema(node.op_type, opset, "").attributes
    made = NodeProto()
    made.CopyFrom(node)
    made.domain = ""
    del made.attribute[:]
    made.attribute.extend(attribute for attribute in node.attribute if attribute.name in known)
    return made


def bind_attributes(function: FunctionProto, given: Mapping[str, AttributeProto], call: NodeProto) -> list[NodeProto]:
    """The nodes of a body, with its references to attributes replaced by their values."""
    values = {default.name: default for default in function.attribute_proto}
    values.update(given)
    return [_bound(node, values, call) for node in function.node]


def _bound(node: NodeProto, values: Mapping[str, AttributeProto], call: NodeProto) -> NodeProto:
    made = NodeProto()
    made.CopyFrom(node)
    made.name = f"{call.name or call.op_type}/{node.name or node.op_type}"
    del made.attribute[:]
    for attribute in node.attribute:
        if not attribute.ref_attr_name:
            made.attribute.append(attribute)
        elif attribute.ref_attr_name in values:  # one that is left out is left out inside as well
            value = AttributeProto()
            value.CopyFrom(values[attribute.ref_attr_name])
            value.name = attribute.name
            made.attribute.append(value)
    return made


def check_arguments(function: FunctionProto, call: NodeProto) -> None:
    """A call gives no more inputs and wants no more outputs than the function has."""
    if len(call.input) > len(function.input) or len(call.output) > len(function.output):
        raise ModelError(f"{describe(call)} does not fit the function {function.name}, which it calls")

"""``Extern`` of our own domain: a call of a packed function, by the name in its attribute ``function``.

``shape`` and ``dtype`` are those of the result, by default those of the first input; all other attributes are options.
"""

from __future__ import annotations

from typing import Any

from onnx import AttributeProto, helper

from ...base.errors import ModelError
from ...graph.node import Node
from ...ops.families.extern import extern
from ..onnx_node import OnnxNode
from ..registry import OWN_DOMAIN, converter
from ..tensors import element_type

_KINDS = (AttributeProto.INT, AttributeProto.FLOAT, AttributeProto.STRING, AttributeProto.INTS, AttributeProto.FLOATS)


@converter("Extern", 1, domain=OWN_DOMAIN)
def _extern(node: OnnxNode) -> Node:
    shape = node.ints("shape")
    dtype = element_type(node.integer("dtype"), f"the result of {node}") if node.has("dtype") else None
    names = [name for name in node.attributes if name not in ("function", "shape", "dtype")]
    options = {name: _option(node, name) for name in names}
    return extern(node.string("function"), *node.all, shape=shape, dtype=dtype, options=options)


def _option(node: OnnxNode, name: str) -> Any:
    """The value of an attribute as JSON has it."""
    attribute = node.attributes[name]
    if attribute.type not in _KINDS:
        kind = AttributeProto.AttributeType.Name(attribute.type)
        raise ModelError(f"{node}: attribute {name} is of type {kind}; an option is a number, a string or numbers")
    value = helper.get_attribute_value(attribute)
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return value if isinstance(value, (int, float)) else list(value)

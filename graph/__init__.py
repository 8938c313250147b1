"""The graph IR: models as immutable graphs of operator calls on typed values."""

from .node import Call, Constant, Function, Node, OpBase, Tuple, TupleGet, Var
from .types import FunctionType, OptionalType, SequenceType, TensorType, TupleType, Type, tensor_type

__all__ = [
    "Call",
    "Constant",
    "Function",
    "FunctionType",
    "Node",
    "OpBase",
    "OptionalType",
    "SequenceType",
    "TensorType",
    "Tuple",
    "TupleGet",
    "TupleType",
    "Type",
    "Var",
    "tensor_type",
]

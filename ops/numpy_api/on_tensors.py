"""Operators on tensors of ``te``: what ``lw.nn`` gives for them, and the functions of numpy that are operators here.

A call of an operator on nodes says what is computed; on tensors, its definition is made at once: the compute of the
implementation that always serves. Schedules are another's matter, such as ``lw.default_schedule``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, ParamSpec, TypeVar, cast

from ... import te
from ...base.errors import ExpressionError
from ...graph.node import Call, Constant, Node, NodeBase, Tuple, TupleGet, Var, tensor_of
from ...graph.numpy_protocol import apply
from ...graph.types import TensorType
from ...graph.visit import post_order
from ...ir.operand import Operand
from ...te.tensor import Tensors
from ..definition.evaluate import definition_of
from ..definition.implementation import outputs_of

P = ParamSpec("P")
R = TypeVar("R")


def on_tensors(function: Callable[P, R]) -> Callable[P, R]:
    """A function that makes calls of operators, which tensors in place of its nodes make computes of."""

    @wraps(function)
    def made(*args: P.args, **kwargs: P.kwargs) -> R:
        variables: dict[te.Tensor, Var] = {}
        given = [_with_nodes(arg, variables) for arg in args]
        named = {name: _with_nodes(arg, variables) for name, arg in kwargs.items()}
        if not variables:
            return function(*args, **kwargs)
        called: Any = function
        tensors: dict[Node, Tensors] = {variable: (tensor,) for tensor, variable in variables.items()}
        return cast(R, _with_tensors(called(*given, **named), tensors))

    return made


apply_to_tensors = on_tensors(apply)
"""What a function of numpy is of tensors: what it is of nodes."""


def _with_nodes(value: Any, variables: dict[te.Tensor, Var]) -> Any:
    """What is given with a variable in place of each tensor, and numbers in place of constant extents."""
    if isinstance(value, te.Tensor):
        return variables.setdefault(value, Var(value.name, TensorType(value.shape, value.dtype)))
    if isinstance(value, Operand) and (known := value.constant()) is not None:
        return known.value
    if isinstance(value, (list, tuple)) and any(isinstance(each, (te.Tensor, Operand)) for each in value):
        return type(value)(_with_nodes(each, variables) for each in value)
    return value


def _with_tensors(result: Any, known: dict[Node, Tensors]) -> Any:
    """What a function gives with the tensors of each node in its place; extents and other values as they are."""
    if isinstance(result, (list, tuple)):
        return type(result)(_with_tensors(each, known) for each in result)
    if not isinstance(result, NodeBase):
        return result
    computed = _computed(cast(Node, result), known)
    return computed[0] if len(computed) == 1 else computed


def _computed(root: Node, known: dict[Node, Tensors]) -> Tensors:
    """The tensors of a node, of which all variables are known; adds those of the nodes on the way to ``known``."""
    for node in post_order(root):
        if node not in known:
            known[node] = _of_node(node, known)
    return known[root]


def _of_node(node: Node, known: Mapping[Node, Tensors]) -> Tensors:
    match node:
        case Call(op, args, attrs, result):
            implementation = definition_of(node)
            if implementation is None:
                raise ExpressionError(f"{op.name} has no compute for all inputs: it does not apply to tensors of te")
            inputs = tuple(tensor for arg in args for tensor in known[arg])
            return outputs_of(implementation.computed(op.name, attrs, inputs, result))
        case Constant(value) if value.size == 1:
            kind = tensor_of(node)
            return (te.compute(kind.shape, lambda *i: te.const(value.item(), kind.dtype), name="const"),)
        case Constant(value):
            raise ExpressionError(
                f"an array of shape {value.shape} meets tensors, but only numbers go with tensors: make the array an "
                "argument of the kernel, or put a te.placeholder in its place"
            )
        case Tuple(fields):
            return tuple(tensor for field in fields for tensor in known[field])
        case TupleGet(value, index):
            return (known[value][index],)
    raise ExpressionError(f"{node!r} is a node of a graph, and does not go together with tensors of te: use lw.compile")

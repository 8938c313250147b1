"""Nodes of the graph IR: an immutable DAG, where a node that several others use is computed once.

    node ::= Var(name, type)
           | Constant(value)                 a numpy array
           | Call(op, args, attrs, type)     args follow the operator's declaration
           | Tuple(fields)
           | TupleGet(tuple, index)
           | Function(params, body)          a model; or, in a call's attributes (``Bodies``), a branch or loop body

Nodes are compared by identity. All carry their type: operators infer it when a call is made (``ops/``). Python's
operators and numpy's functions make calls of them (``array_operators.py``).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import field
from typing import Any, Self, TypeAlias

import numpy as np
import numpy.typing as npt

from ..base.aligned import contiguous
from ..base.brief import one_line
from ..base.dataclass import dataclass
from ..base.dtype import dtype
from ..base.errors import TypeInferenceError
from ..base.output_form import OutputForm
from ..base.state import State
from ..base.value_form import ValueForm
from ..ir import expr
from ..ir.expr import Expr
from .array_operators import ArrayOperators
from .types import FunctionType, TensorType, TupleType, Type, fields_of, tensor_type


class OpBase:
    """What a call calls: ``ops.registry.Op`` is the only subclass."""

    __slots__ = ()
    name: str


class Bodies:
    """Attributes that hold functions, the bodies of a call: its branches, or what it does again and again. A body reads
    nothing but its parameters, which the call binds, and constants: ``ops/definition/bodies.py`` has the base class."""

    __slots__ = ()

    @property
    def bodies(self) -> tuple[Function, ...]:
        """The functions, in order."""
        raise NotImplementedError

    def with_bodies(self, bodies: Sequence[Function]) -> Self:
        """The attributes with other functions in place of these."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True, eq=False, repr=False, weakref_slot=True)
class NodeBase(ArrayOperators):
    """The base class of all nodes."""

    type: Type = field(init=False)

    def __str__(self) -> str:
        from .printer import graph_text  # the printer knows all nodes

        return graph_text(self)  # type: ignore[arg-type]

    def __repr__(self) -> str:
        from .printer import node_line  # the printer knows all nodes

        return one_line(node_line(self))  # type: ignore[arg-type]

    def _repr_html_(self) -> str:
        from .graph_html import graph_html  # it knows all nodes

        return graph_html(self)  # type: ignore[arg-type]

    def _set_type(self, value: Type) -> None:
        object.__setattr__(self, "type", value)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Var(NodeBase):
    """An input of a function."""

    name: str
    declared: Type

    def __post_init__(self) -> None:
        self._set_type(self.declared)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Constant(NodeBase):
    """A value known when the model is compiled. The array is read-only from here on; ``name`` is for people."""

    value: npt.NDArray[Any]
    name: str = ""

    def __post_init__(self) -> None:
        if not isinstance(self.value, np.ndarray):
            raise TypeInferenceError(f"a constant is an array, found {self.value!r}: use lw.const")
        value = contiguous(self.value)
        if value.flags.writeable:
            value = value.view()
            value.flags.writeable = False
        object.__setattr__(self, "value", value)
        self._set_type(tensor_type(value.shape, dtype(value.dtype)))

    @property
    def size(self) -> int:
        """The number of elements."""
        return self.value.size


@dataclass(frozen=True, slots=True, eq=False)
class ImportedValue:
    """A value of the imported model, by name; ``order`` and ``shape`` say how a tensor in another layout becomes it:
    its axes in this order, then reshaped to the model's shape. None for one that has the model's layout."""

    name: str
    order: tuple[int, ...] | None = None
    shape: tuple[Expr, ...] | None = None


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Call(NodeBase):
    """An operator applied. ``attrs`` is a frozen dataclass of the operator's attributes, or None if it has none."""

    op: OpBase
    args: tuple[Node, ...]
    attrs: Any
    result: Type
    origin: tuple[str, ...] = ()
    """Names of the nodes of the imported model that this call stands for."""
    value: ImportedValue | None = None
    """Which value of the imported model the result is, if it is one."""

    def __post_init__(self) -> None:
        self._set_type(self.result)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Tuple(NodeBase):
    """Several values as one: the results of a function, or what an operator of any number of tensors takes."""

    fields: tuple[Node, ...]

    def __post_init__(self) -> None:
        self._set_type(TupleType(tuple(f.type for f in self.fields)))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TupleGet(NodeBase):
    """Field ``index`` of a tuple. Raises ``TypeInferenceError`` for another value, and a field that is not there."""

    tuple: Node
    index: int

    def __post_init__(self) -> None:
        fields = fields_of(self.tuple.type)
        if not 0 <= self.index < len(fields):
            raise TypeInferenceError(f"field {self.index} is taken of a tuple of {len(fields)}")
        self._set_type(fields[self.index])


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Function(NodeBase):
    """``params`` to ``body``; several results are a ``Tuple``. ``name`` is what errors and engines call it.
    ``output_names`` are those of the results, if they have any. ``batch`` are the symbolic dimensions that count
    samples; where none is named, ``lw.compile`` takes those that parameters have first. What the code does for a sample
    depends on no such dimension. ``batch_size`` is their number, if there is only one that the function will run with:
    then it is known to the code, and nothing is chosen by it. ``forms`` are those in which Python is shown the results,
    where these are not the tensors themselves; None for results that are. ``grouped_inputs`` and ``grouped_outputs``
    say of which parameters and results the values are made that callers see, where some are lists or may be absent.
    ``string_inputs`` are the positions of the parameters that are spans of strings (``base/spans.py``), whose bytes are
    the last parameter. ``states`` are the pairs of a parameter and a result that stay in memory from run to run.
    ``repeated`` are the parameters, by position, and their axes that are repeated where a caller gives 1 in place of
    the number that another parameter has.

    Raises ``TypeInferenceError`` for parameters that are no variables, or given twice, for a body that is no node, for
    a name of two outputs, for a ``batch`` that is no tuple of dimensions, and for a negative size of it.
    """

    params: Sequence[Var]
    body: Node
    name: str = "model"
    output_names: tuple[str, ...] = ()
    batch: tuple[expr.Var, ...] = ()
    batch_size: int | None = None
    forms: tuple[OutputForm | None, ...] = ()
    grouped_inputs: tuple[ValueForm, ...] = ()
    grouped_outputs: tuple[ValueForm, ...] = ()
    string_inputs: tuple[int, ...] = ()
    states: tuple[State, ...] = ()
    repeated: frozenset[tuple[int, int]] = frozenset()

    def __post_init__(self) -> None:
        object.__setattr__(self, "params", _distinct_vars(self.params))
        _check_body(self.body)
        _check_names(self.output_names, self.body)
        _check_batch(self.batch, self.batch_size)
        self._set_type(FunctionType(tuple(p.type for p in self.params), self.body.type))


def _distinct_vars(params: object) -> tuple[Var, ...]:
    if not isinstance(params, Iterable):
        raise TypeInferenceError(
            f"the parameters of a function are a list of variables, found a value of type {type(params).__name__}"
        )
    found: dict[Var, None] = {}
    for number, param in enumerate(params):
        if not isinstance(param, Var):
            raise TypeInferenceError(
                f"parameter {number} of a function should be a variable, as lw.var makes it, found a value of type "
                f"{type(param).__name__}"
            )
        if param in found:
            raise TypeInferenceError(f"the parameter {param.name} of a function is given twice")
        found[param] = None
    return tuple(found)


def _check_body(body: object) -> None:
    if not isinstance(body, NodeBase):
        several = ": several results are one, loopwright.graph.Tuple((a, b))" * isinstance(body, (list, tuple))
        kind = type(body).__name__
        raise TypeInferenceError(f"the body of a function is a node, found a value of type {kind}{several}")


def _check_names(names: object, body: Node) -> None:
    """Models may give a result twice, by one name; two results of one name could not be told apart."""
    if not isinstance(names, tuple) or not all(isinstance(name, str) for name in names):
        raise TypeInferenceError(f"output_names are a tuple of names, found {names!r}")
    named: dict[str, Node] = {}
    for name, result in zip(names, body.fields if isinstance(body, Tuple) else (body,), strict=False):
        if named.setdefault(name, result) is not result:
            raise TypeInferenceError(f"the output name {name!r} stands for two results: give each a name of its own")


def _check_batch(batch: object, size: object) -> None:
    if not isinstance(batch, tuple) or not all(isinstance(dim, expr.Var) for dim in batch):
        raise TypeInferenceError(f"batch is a tuple of symbolic dimensions, as te.var makes them, found {batch!r}")
    if size is not None and (not isinstance(size, int) or size < 0):
        raise TypeInferenceError(f"batch_size is a whole number of samples, 0 or more, found {size!r}")


Node: TypeAlias = Var | Constant | Call | Tuple | TupleGet | Function


def check_node(given: object) -> Node:
    """What is given, which must be a node. Raises ``TypeInferenceError`` if it is none, as where an array is passed for
    a constant."""
    if not isinstance(given, Node):
        found = type(given).__name__
        raise TypeInferenceError(f"expected a node, found a {found}: use lw.var for inputs, lw.const for values")
    return given


def tensor_of(node: Node) -> TensorType:
    """The node's type, which must be a tensor's. Raises ``TypeInferenceError`` if it is not, or if this is no node."""
    check_node(node)
    if not isinstance(node.type, TensorType):
        raise TypeInferenceError(f"expected a tensor, found a {node.type}")
    return node.type

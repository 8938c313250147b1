"""Subgraphs of nodes as closed functions: values that they read of the graphs around become operands."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import TypeAlias

from onnx import GraphProto, ValueInfoProto

from ..base.dataclass import dataclass
from ..base.errors import ModelError
from ..graph.closure import closed
from ..graph.node import Constant, Function, Node, Var, tensor_of
from ..graph.visit import post_order
from ..ir.constants import ONE, const_int
from ..ir.contents import free_vars
from ..ir.expr import Var as Symbol
from ..ops.families.assume_extent import assume_extent
from ..ops.families.reshape import reshape
from .onnx_node import OnnxNode
from .output_forms import OutputForms
from .refusal_causes import MadeBytesError
from .shape_values import ShapeValues
from .string_values import bytes_joined_in
from .survey import Survey
from .values import Value, nodes_of, value_text

MOST_ITERATIONS = 64
"""Loops of more iterations are not converted one by one."""
Closed: TypeAlias = tuple[Function, tuple[Node, ...]]
"""A function, and the values that it captures, which are its last parameters."""


@dataclass(frozen=True, slots=True)
class Subgraphs:
    """How the subgraphs of a node are imported. ``results`` gives the outputs of one where values are bound to names;
    ``named`` is a value of the graph that the node stands in; ``is_outside`` holds of the nodes of the graphs around,
    those in ``moved_out`` among them, which bodies have no part in; ``as_data`` is as for ``FinishedNodes``. Mutable:
    that set."""

    results: Callable[[GraphProto, Mapping[str, Value]], list[Value]]
    named: Callable[[str], Value | None]
    is_outside: Callable[[Node], bool]
    as_data: Callable[[Node], Node]
    shapes: ShapeValues
    moved_out: set[Node]
    forms: OutputForms
    survey: Survey | None = None
    """What notes the errors of a body, where all are to be found."""

    def invariant(self, name: str, results: Callable[[], list[Value]], params: Sequence[Var] = ()) -> list[Value]:
        """The results of a branch or body, where numbers that become extents in it are computed before it, as far as
        they depend on none of its parameters. Raises ``ModelError`` for maps among them."""
        before = len(self.shapes.inputs)
        found = results()
        parts = [part for value in found for part in nodes_of(value)]
        self.forms.check_no_maps(parts, f"a branch or body, {name!r}, gives")
        self.move_out(before, params)
        return found

    def tensor_results(
        self, node: OnnxNode, graph: GraphProto, bound: Mapping[str, Value], params: Sequence[Var]
    ) -> list[Node]:
        """The outputs of a body that are tensors, as ``invariant`` gives them. Raises ``ModelError`` for others."""
        found = self.invariant(graph.name, partial(self.results, graph, bound), params)
        for value in found:
            if not isinstance(value, Node):
                raise node.unsupported(f"a body that gives {value_text(value)}")
        return [value for value in found if isinstance(value, Node)]

    def failing_at_once(self) -> AbstractContextManager[None]:
        """Inside, errors of a body are raised, even where all are to be found: for attempts that others follow."""
        return nullcontext() if self.survey is None else self.survey.pause()

    def move_out(self, before: int, params: Sequence[Var] = ()) -> None:
        """Have witnesses of extents that came behind the first ``before`` ones lie outside of the body."""
        for witness in self.shapes.inputs[before:]:
            if not any(node in params for node in post_order(witness, self.is_outside)):
                self.moved_out.add(witness)

    def born_inside(self, before: int) -> frozenset[Symbol]:
        """The extents that a body computes: those of witnesses behind the first ``before`` ones that lie in it."""
        witnesses = (witness for witness in self.shapes.inputs[before:] if witness not in self.moved_out)
        return frozenset(v for witness in witnesses for extent in tensor_of(witness).shape for v in free_vars(extent))

    def are_outside(self, utf8: Node) -> bool:
        """Whether bytes are known, lie outside of the body, or are joined from such."""
        return all(isinstance(leaf, Constant) or self.is_outside(leaf) for leaf in bytes_joined_in(utf8))

    def depends_on(self, value: Node, params: Sequence[Var]) -> bool:
        """Whether parameters of the body have a part in a value."""
        return any(inner in params for inner in post_order(value, self.is_outside))

    def bytes_outside(self, node: OnnxNode, utf8: Node, params: Sequence[Var]) -> Node:
        """The bytes of strings that the body of a loop gives, which are joined before the loop, if at all. Raises
        ``MadeBytesError`` for those that depend on the parameters of the body."""
        utf8 = node.finish(utf8)
        if self.depends_on(utf8, params):
            raise MadeBytesError(f"{node}: strings that iterations make are carried, stacked and appended by Loop only")
        self.keep_outside(utf8)
        return utf8

    def keep_outside(self, node: Node) -> None:
        """Have a node lie outside of the body, which none of its parameters have a part in."""
        self.moved_out.update((node, self.as_data(node)))

    def function(self, name: str, params: Sequence[Var], results: Sequence[Node]) -> Closed:
        """The function of a branch or body that gives these results, of strings their spans."""
        computed = [self.as_data(result) for result in results]
        return closed(name or "body", params, computed, self.is_outside)


def graph_attribute(node: OnnxNode, name: str) -> GraphProto:
    """A subgraph that a node has as an attribute. Raises ``ModelError`` if it is missing."""
    if not node.has(name):
        raise ModelError(f"{node}: attribute {name} is missing")
    return node.attributes[name].g


def check_counts(node: OnnxNode, graph: GraphProto, inputs: int, outputs: int) -> None:
    """Raises ``ModelError`` for a body that takes another number of inputs, or gives fewer outputs."""
    if len(graph.input) != inputs or len(graph.output) < outputs:
        raise ModelError(
            f"{node}: its body should take {inputs} values and give at least {outputs}, it takes "
            f"{len(graph.input)} and gives {len(graph.output)}"
        )


def as_scalar(value: Node) -> Node:
    """One element as a scalar: exporters write ``[1]`` for some of them. Each run checks that an open axis is 1."""
    for axis, extent in enumerate(tensor_of(value).shape):
        if const_int(extent) is None:
            value = assume_extent(value, axis, ONE, ())
    return reshape(value, ()) if tensor_of(value).ndim else value


def as_declared(value: Node, declared: ValueInfoProto) -> Node:
    """A scalar as a vector of one element, where the subgraph declares it so."""
    return reshape(value, (1,)) if len(declared.type.tensor_type.shape.dim) == 1 else value


def is_true(value: Value | None) -> bool:
    """Whether a condition is left out, or known to hold."""
    return value is None or (isinstance(value, Constant) and bool(value.value.all()))

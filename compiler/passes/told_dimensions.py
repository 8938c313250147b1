"""Bodies of control flow that are told dimensions: tensors which have these become operands of the call, and parameters
of its bodies that nothing reads."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from ...graph.node import Call, Function, Node, Var
from ...graph.types import TensorType
from ...ir.contents import free_vars
from ...ir.expr import Expr
from ...ops.definition.bodies import BodyAttrs
from ..symbols import Symbol, births_of


def tellers_of(function: Function) -> list[Node]:
    """The nodes whose extents are the dimensions of a function: its parameters, and what computes extents."""
    return [*function.params, *births_of(function)]


def with_told_bodies(call: Call, extent: Expr, tellers: Sequence[Node]) -> Call:
    """A call whose bodies can state a formula over dimensions: operands from among ``tellers`` come behind its own for
    those dimensions that a body has not by itself; those that none of these has are for others to refuse."""
    attrs: BodyAttrs = call.attrs
    told: set[Symbol] = set.intersection(*(_dimensions(tellers_of(body)) for body in attrs.bodies))
    missing = set(free_vars(extent)) - told
    further: list[Node] = []
    for teller in tellers:
        if found := _dimensions([teller]) & missing:
            further.append(teller)
            missing -= found
    if not further:
        return call
    bodies = tuple(_with_params(body, further) for body in attrs.bodies)
    return replace(call, args=(*call.args, *further), attrs=attrs.with_bodies(bodies))


def _dimensions(nodes: Iterable[Node]) -> set[Symbol]:
    """The dimensions that some tensors have by themselves."""
    kinds = (node.type for node in nodes)
    return {e for kind in kinds if isinstance(kind, TensorType) for e in kind.shape if isinstance(e, Symbol)}


def _with_params(body: Function, nodes: Sequence[Node]) -> Function:
    told = (Var(f"told{len(body.params) + k}", node.type) for k, node in enumerate(nodes))
    return replace(body, params=(*body.params, *told))

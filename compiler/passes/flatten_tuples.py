"""Tuples written out: the first pass, after which the compiler meets tensors only.

f(a: (T, U)) → f(a.0: T, a.1: U); op(pair) → op((pair.0, pair.1)); (x, (y, z)).1 → (y, z); results stand side by side.

A tuple is no value in memory, its members are. So an operator that takes a tuple gets it as a ``Tuple`` of tensors, and
each tensor that is a member of a call's result is one node, however often it is taken.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field, replace

from ...base.dataclass import dataclass
from ...base.errors import ModelError
from ...graph.node import Call, Constant, Function, Node, Tuple, TupleGet, Var
from ...graph.types import TupleType, Type, leaf_types
from ...graph.visit import inputs, post_order, with_inputs


def flatten_tuples(function: Function) -> Function:
    """The function with a parameter for each member of those that are tuples, named ``a.0``, ``a.1.0``, …; with tuples
    written out where operators take them; and a result for each member.

    ``output_names`` may name the members, or what the function gives: then the members of ``y`` are ``y.0``, ….
    Raises ``ModelError`` if they do neither.
    """
    taken = {param.name for param in function.params}
    params: dict[Node, Node] = {param: _member(param, taken) for param in function.params}
    flat = _Flat(dict(params))
    for node in post_order(function.body):
        if node not in flat.made:
            flat.made[node] = flat.flattened(node)
    body = flat.body(function.body)
    names = _output_names(function)
    if body is function.body and names == function.output_names and all(old is new for old, new in params.items()):
        return function
    flat_params = tuple(var for made in params.values() for var in _leaves(made) if isinstance(var, Var))
    return replace(function, params=flat_params, body=body, output_names=names)


def _member(var: Var, taken: set[str]) -> Node:
    """A parameter, or the tuple of those that stand for its members, whose names no other one has."""
    if not isinstance(var.type, TupleType):
        return var
    fields = []
    for number, kind in enumerate(var.type.fields):
        name = f"{var.name}.{number}"
        while name in taken:
            name += "_"
        taken.add(name)
        fields.append(_member(Var(name, kind), taken))
    return Tuple(tuple(fields))


@dataclass(slots=True)
class _Flat:
    """What each node has become; a tuple is a ``Tuple``, or else the result of a call. Mutable: filled inputs first."""

    made: dict[Node, Node]
    _fields: dict[tuple[Node, int], Node] = field(default_factory=dict)

    def flattened(self, node: Node) -> Node:
        match node:
            case Tuple(fields):
                return with_inputs(node, tuple(self.made[f] for f in fields))
            case TupleGet(source, index):
                whole = self.made[source]
                if isinstance(whole, Tuple):
                    return whole.fields[index]
                return self._fields.setdefault((whole, index), with_inputs(node, (whole,)))
            case Call(args=args):
                return with_inputs(node, tuple(self._written_out(self.made[a]) for a in args))
            case Var() | Constant() | Function():
                return node

    def body(self, node: Node) -> Node:
        """The result: a tensor, or one tuple of all tensors."""
        written = self._written_out(self.made[node])
        if not isinstance(written, Tuple):
            return written
        return with_inputs(written, leaves) if len(leaves := _leaves(written)) == len(written.fields) else Tuple(leaves)

    def _written_out(self, node: Node) -> Node:
        """A tensor, or a tuple of such nodes."""
        if isinstance(node, Tuple):
            return with_inputs(node, tuple(map(self._written_out, node.fields)))
        if not isinstance(node.type, TupleType):
            return node
        numbers = range(len(node.type.fields))
        fields = (self._fields.setdefault((node, k), TupleGet(node, k)) for k in numbers)
        return Tuple(tuple(map(self._written_out, fields)))


def _leaves(node: Node) -> tuple[Node, ...]:
    return tuple(leaf for f in inputs(node) for leaf in _leaves(f)) if isinstance(node, Tuple) else (node,)


def _output_names(function: Function) -> tuple[str, ...]:
    names, kind = function.output_names, function.body.type
    count = len(leaf_types(kind))
    if len(names) in (0, count):
        return names
    kinds = kind.fields if isinstance(kind, TupleType) else (kind,)
    if len(names) != len(kinds):
        raise ModelError(f"{function.name} gives {kind}: that is {count} tensors, but output_names are {names}")
    return tuple(leaf for name, part in zip(names, kinds, strict=True) for leaf in _leaf_names(name, part))


def _leaf_names(name: str, kind: Type) -> Iterator[str]:
    """The name of a tensor; of a tuple those of its members, with their numbers."""
    if not isinstance(kind, TupleType):
        yield name
        return
    for number, part in enumerate(kind.fields):
        yield from _leaf_names(f"{name}.{number}", part)

"""Text of graphs: one line a node, in order of computation, named by number."""

from __future__ import annotations

import dataclasses
from typing import Any, assert_never

from ..base.brief import listed, one_line
from .node import Call, Constant, Function, Node, Tuple, TupleGet, Var
from .visit import bodies_of, post_order

MAX_SHOWN = 4
"""Constants of at most so many elements are shown in full."""


def graph_text(root: Node) -> str:
    """A function as ``def``, any other node as the lines that compute it."""
    if isinstance(root, Function):
        return "\n".join(_function(root))
    names: dict[Node, str] = {}
    return "\n".join([*_lines(root, names, ""), names[root]])


def node_line(node: Node) -> str:
    """A node without those that compute it: its name or operator, and its type."""
    match node:
        case Var():
            return f"%{node.name}: {node.type}"
        case Constant():
            return _constant(node)
        case Call():
            return f"<Call {node.op.name}: {one_line(str(node.type), 120)}>"
        case Tuple(fields):
            return f"<Tuple of {listed(f.type for f in fields)}>"
        case TupleGet():
            return f"<TupleGet {node.index}: {one_line(str(node.type), 120)}>"
        case Function(params, body):
            given = listed((f"%{p.name}: {p.type}" for p in params), 80)
            return f"<Function {one_line(node.name, 40)}({given}) -> {one_line(str(body.type), 60)}>"
        case _:
            assert_never(node)


def _function(function: Function) -> list[str]:
    names: dict[Node, str] = {p: f"%{p.name}" for p in function.params}
    params = ", ".join(f"%{p.name}: {p.type}" for p in function.params)
    lines = _lines(function.body, names, "    ")
    return [f"def {function.name}({params}) -> {function.body.type}:", *lines, f"    return {names[function.body]}"]


def _lines(root: Node, names: dict[Node, str], indent: str) -> list[str]:
    lines: list[str] = []
    count = 0
    for node in post_order(root):
        if node in names:
            continue
        match node:
            case Var():
                names[node] = f"%{node.name}"
            case Constant():
                names[node] = _constant(node)
            case Tuple(fields):
                names[node] = f"({', '.join(names[f] for f in fields)}{',' * (len(fields) == 1)})"
            case TupleGet(value, index):
                names[node] = f"{names[value]}.{index}"
            case Function():
                names[node] = node.name
                lines += [indent + line for line in _function(node)]
            case Call(op, args):
                name = f"%{count}"
                count += 1
                lines += [f"{indent}{line}" for body in bodies_of(node) for line in _function(body)]
                shown = ", ".join([*(names[a] for a in args), *attributes_text(node.attrs)])
                lines.append(f"{indent}{name} = {op.name}({shown})  # {node.type}")
                names[node] = name
    return lines


def _constant(node: Constant) -> str:
    if node.value.size <= MAX_SHOWN:
        return f"const({node.value.tolist()}, {node.type})"
    return f"const({node.name or '…'}: {node.type})"


def attributes_text(attrs: Any) -> list[str]:
    """Attributes that differ from their default, by their text: -0.0 is not 0.0."""
    if attrs is None:
        return []
    shown = {f.name: (_attribute(getattr(attrs, f.name)), repr(f.default)) for f in dataclasses.fields(attrs)}
    return [f"{name}={text}" for name, (text, default) in shown.items() if text != default]


def _attribute(value: object) -> str:
    return value.name if isinstance(value, Function) else repr(value)

"""The view of a graph in a notebook."""

from __future__ import annotations

from ..base.html.code import code
from ..base.html.table import facts
from ..base.html.view import view
from ..base.quantities import bytes_text
from .node import Call, Constant, Function, Node, Tuple
from .visit import nested_order


def graph_html(node: Node) -> str:
    """The lines that compute a node; of a function also its inputs, outputs, and how many calls and constants."""
    text = code(str(node), "graph", "print(graph)")
    if not isinstance(node, Function):
        return view(f"{type(node).__name__} of type {node.type}", text)
    nodes = nested_order(node.body)
    calls = sum(isinstance(inner, Call) for inner in nodes)
    constants = [inner.value for inner in nodes if isinstance(inner, Constant)]
    known = {
        "inputs": ", ".join(f"{param.name}: {param.type}" for param in node.params),
        "outputs": ", ".join(_outputs(node)),
        "calls": f"{calls}",
        "constants": f"{len(constants)} ({bytes_text(sum(value.nbytes for value in constants))})" if constants else "",
    }
    return view(f"Graph {node.name}", facts(known), text)


def _outputs(function: Function) -> list[str]:
    results = function.body.fields if isinstance(function.body, Tuple) else (function.body,)
    names = function.output_names or ("",) * len(results)
    return [f"{name}: {result.type}" if name else str(result.type) for name, result in zip(names, results, strict=True)]

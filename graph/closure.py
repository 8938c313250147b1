"""Closed functions of nodes that read values from outside: what a body captures becomes parameters of it.

Bodies of control flow are closed, so that they hash and compile like any function; the call gets what they captured.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from .node import Constant, Function, Node, Tuple, TupleGet, Var
from .types import TensorType
from .visit import inputs, post_order, with_inputs


def closed(
    name: str, params: Sequence[Var], results: Sequence[Node], is_outside: Callable[[Node], bool]
) -> tuple[Function, tuple[Node, ...]]:
    """A function of ``params`` and of what is captured, which gives a tuple of ``results``; and the tensors that it
    captures, in order: those for which ``is_outside`` holds. Constants are not captured."""
    captured: dict[Node, Node] = {}
    done: dict[Node, Node] = {param: param for param in params}

    def enter(node: Node) -> bool:
        """Whether a node is settled without its inputs."""
        if node in done:
            return True
        if isinstance(node, Constant):
            done[node] = node
        elif isinstance(node.type, TensorType) and is_outside(node.tuple if isinstance(node, TupleGet) else node):
            done[node] = captured[node] = Var(f"captured{len(captured)}", node.type)
        return node in done

    stack = list(reversed(results))
    while stack:
        node = stack[-1]
        if enter(node):
            stack.pop()
        elif waiting := [used for used in inputs(node) if not enter(used)]:
            stack += reversed(waiting)
        else:
            done[node] = with_inputs(node, tuple(done[used] for used in inputs(node)))
    body = Tuple(tuple(done[result] for result in results))
    variables = (*params, *(var for var in captured.values() if isinstance(var, Var)))
    return Function(variables, body, name), tuple(captured)


def dependent_on(params: Iterable[Var], results: Sequence[Node]) -> set[Node]:
    """The nodes behind ``results`` that are computed from some of the ``params``, these included."""
    found: set[Node] = set(params)
    for node in post_order(Tuple(tuple(results))):
        if any(used in found for used in inputs(node)):
            found.add(node)
    return found

"""Constants of bodies become operands of the calls that hold these: the last pass, after what is made of constants.

So the code of a body holds no weights, bodies that differ in their weights only are compiled once, and weights that
several bodies have are stored once. Constants of one element stay, where they stand in the code of a kernel.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ...graph.node import Bodies, Call, Constant, Function, Node, Var
from ...graph.visit import bodies_of, inputs, post_order, rewrite


def lift_constants(function: Function) -> Function:
    """The function with bodies that hold no constants but single elements that kernels read."""
    body = rewrite(function.body, _lifted)
    return function if body is function.body else replace(function, body=body)


def _lifted(node: Node) -> Node | None:
    bodies = bodies_of(node)
    constants = tuple(dict.fromkeys(constant for body in bodies for constant in _to_lift(body)))
    if not constants or not isinstance(node, Call) or not isinstance(node.attrs, Bodies):
        return None
    attrs = node.attrs.with_bodies([_over(body, constants) for body in bodies])
    return replace(node, args=(*node.args, *constants), attrs=attrs)


def _to_lift(body: Function) -> Iterator[Constant]:
    """Constants that have to be in memory: several elements, and what a body gives, or hands on to a body in it."""
    for node in post_order(body.body):
        in_memory = node is body.body or bool(bodies_of(node))
        yield from (n for n in inputs(node) if isinstance(n, Constant) and (in_memory or n.size != 1))


def _over(body: Function, constants: tuple[Constant, ...]) -> Function:
    """The body with a further parameter for each of the constants."""
    params: dict[Node, Node] = {constant: Var(f"constant{k}", constant.type) for k, constant in enumerate(constants)}
    variables = tuple(var for var in params.values() if isinstance(var, Var))
    return replace(body, params=(*body.params, *variables), body=rewrite(body.body, params.get))

"""Arithmetic fences: where a product is a number by itself, because several readers must see the same.

Code generation contracts ``a * b - m`` to one fma, whose product is not rounded. Were ``m`` the maximum of the rounded
products, the difference could be more than 0, by as much as half an ulp of a large number. Hence a value that is read
in several places is one value: its product is fenced, and no reader takes it in.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from ...ir.contents import reads_tensors
from ...ir.expr import Binary, Call, Const, Expr, IfThenElse, Reduce, Select
from ...ir.expr_node import ExprNode
from ...ir.intrinsics import ARITHMETIC_FENCE, call
from ...ir.visit import Node, children, rewrite, walk


def fenced(value: Expr) -> Expr:
    """A value that is put in where several readers want it: one number, however the code around each is specialized.

    Besides the product that the value is, or may turn out to be once a condition on indices is known, products fenced
    are those with a factor made of indices: where these are constants, there is no product left to contract.
    """
    inside = _fence_all(value, set(_hidden_products(value)) - {value})
    return call(ARITHMETIC_FENCE, inside) if _is_product(inside) else inside


def fence_shared(bodies: tuple[Expr, ...]) -> tuple[Expr, ...]:
    """Bodies in which each product that a sum or a difference reads, and something else does too, is fenced."""
    while shared := _shared_products(bodies):
        bodies = tuple(_fence_all(body, shared) for body in bodies)
    return bodies


def _fence_all(root: Expr, products: set[Expr]) -> Expr:
    def fence(node: Node) -> Node | None:
        return call(ARITHMETIC_FENCE, node) if node in products else None  # type: ignore[arg-type]

    return rewrite(root, fence) if products else root


def _is_product(node: Node) -> bool:
    """Whether a sum may take the value in before it is rounded."""
    match node:
        case Binary("*", a, _):
            return a.dtype.is_float
        case Call("dot2"):
            return True
        case _:
            return False


def _shared_products(bodies: Iterable[Expr]) -> set[Expr]:
    uses: Counter[Node] = Counter()
    added: set[Node] = set()
    for node in {node: None for body in bodies for node in walk(body)}:
        if isinstance(node, Reduce):
            continue  # the outputs of one reduction share their sources
        products = [part for part in children(node) if _is_product(part)]
        uses.update(products)
        if isinstance(node, Binary) and node.op in ("+", "-"):
            added.update(products)
    return {node for node in added if uses[node] > 1}  # type: ignore[misc]


def _hidden_products(value: Expr) -> Iterable[Expr]:
    """Products that are, or are not, products any more where indices are known."""
    for node in walk(value):
        if _is_product(node) and any(_of_indices(factor) for factor in children(node)):
            yield node  # type: ignore[misc]
        elif isinstance(node, (Select, IfThenElse)) and not reads_tensors(node.condition):
            yield from (branch for branch in (node.a, node.b) if _is_product(branch))


def _of_indices(factor: Node) -> bool:
    return isinstance(factor, ExprNode) and not isinstance(factor, Const) and not reads_tensors(factor)

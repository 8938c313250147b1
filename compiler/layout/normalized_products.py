"""Products whose results are divided by a norm of themselves: their arithmetic is direct (``layout_search.py``).

Fast arithmetic errs by a share of the largest results nearby. Where a row is all zeros, as padding is, its products
are then tiny in place of zero, and a norm that is tiny as well makes numbers around one of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set

from ...graph.node import Call, Node

NORMS = frozenset({"l1", "l2", "sum", "sum_square"})
"""A sum, too, as norms that are written out end in one, of squares or magnitudes."""
INVERSES = frozenset({"reciprocal", "rsqrt"})
OF_DIVISORS = frozenset(
    {"add", "broadcast_to", "clip", "expand_dims", "maximum", "power", "reciprocal", "reshape", "rsqrt", "sqrt",
     "squeeze"}
)  # fmt: skip
"""Between a norm and a division by it."""
OF_VALUES = frozenset(
    {"abs", "add", "assume_extent", "cast", "concatenate", "expand_dims", "multiply", "power", "relu", "reshape",
     "split_part", "squeeze", "strided_slice", "subtract", "take", "transpose"}
)  # fmt: skip
"""Between a product and a norm: what leaves tiny numbers tiny."""
PRODUCTS = frozenset({"nn.conv2d", "nn.dense", "nn.matmul"})


def normalized_products(order: Sequence[Node]) -> Set[Node]:
    """The products of a graph, given in order of computation, that are divided by a norm of their results."""
    seen: set[Node] = set()
    norms = (norm for node in order if isinstance(node, Call) for norm in _norms_divided_by(node))
    return {found for norm in norms for found in _reached(norm.args[0], OF_VALUES, PRODUCTS, seen)}


def _norms_divided_by(call: Call) -> Iterator[Call]:
    """The norms that a call divides by, or by whose inverse it multiplies."""
    match call.op.name:
        case "divide":
            divisors = call.args[1:]
        case "multiply":
            divisors = tuple(arg for arg in call.args if isinstance(arg, Call) and arg.op.name in INVERSES)
        case _:
            return
    for divisor in divisors:
        yield from _reached(divisor, OF_DIVISORS, NORMS, set())


def _reached(start: Node, through: Set[str], ends: Set[str], seen: set[Node]) -> Iterator[Call]:
    """The calls of the operators ``ends`` that a value is computed from by operators ``through``."""
    stack = [start]
    while stack:
        node = stack.pop()
        if node in seen or not isinstance(node, Call):
            continue
        seen.add(node)
        if node.op.name in ends:
            yield node
        elif node.op.name in through:
            stack += node.args

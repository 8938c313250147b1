"""Reverse-mode differentiation: from the sum of a tensor's elements back to what it is computed from.

Source: Griewank and Walther, Evaluating Derivatives (2008), chapter 3: values are visited against the order in which
they are computed, and each hands what changes with it on to its operands.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...base.errors import TypeInferenceError
from ...graph.node import Call, Node, tensor_of
from ...graph.visit import inputs, post_order
from ..definition.registry import op_of
from ..families.binary import add
from .makers import filled_like
from .rules import RULES


def gradients(result: Node, sources: Sequence[Node]) -> list[Node]:
    """The derivatives of the sum of all elements of ``result`` by the elements of each source, of its shape and dtype.

    A source that the result does not depend on has zeros. What is no number that changes smoothly (conditions, indices,
    shapes) counts as constant. Raises ``TypeInferenceError`` for a result that is not of floats, and where a source
    goes through an operator that has no rule.
    """
    if not tensor_of(result).dtype.is_float:
        raise TypeInferenceError(f"a gradient is of floats, found {result.type}")
    own = set(sources)
    order = post_order(result, own.__contains__)
    depends: set[Node] = set(own)
    for node in order:
        if any(used in depends for used in inputs(node)):
            depends.add(node)
    handed: dict[Node, Node] = {result: filled_like(result, 1.0)}
    for node in reversed(order):
        if node in handed and node in depends and node not in own:
            for operand, part in zip(inputs(node), _parts(node, handed[node]), strict=False):
                if part is not None and operand in depends:
                    handed[operand] = add(handed[operand], part) if operand in handed else part
    return [handed[source] if source in handed else filled_like(source, 0.0) for source in sources]


def _parts(node: Node, gradient: Node) -> Sequence[Node | None]:
    """What a node hands on to its operands, of which the last may get nothing."""
    if not isinstance(node, Call):
        raise TypeInferenceError("a gradient goes through no tuples")
    rule = RULES.get(node.op.name)
    if rule is None:
        raise TypeInferenceError(f"{op_of(node).name} has no rule for gradients; those that have: {', '.join(RULES)}")
    return rule(node, gradient)

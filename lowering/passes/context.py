"""What a pass may rely on in the body of a loop."""

from __future__ import annotations

from ...base.dtype import INDEX
from ...ir.constants import const
from ...ir.expr import Binary, Compare, Const
from ...ir.facts import Facts
from ...ir.stmt import For
from ...ir.visit import reads_memory, walk
from .folding import multiply


def inside_loop(facts: Facts, loop: For) -> Facts:
    """What holds in the body of a loop: the range of its variable, and that the loop runs at all.

    Where the extent is ``n // 32``, that it is at least 1 tells that ``n`` is at least 32.
    """
    facts = facts.with_loop(loop.var, loop.min, loop.extent)
    if reads_memory(loop.extent):
        return facts
    for node in walk(loop.extent):
        if isinstance(node, Binary) and node.op == "//" and isinstance(node.b, Const) and int(node.b) > 0:
            facts = facts.with_condition(Compare(">=", node.a, multiply(const(int(node.b), INDEX), node)))
    return facts

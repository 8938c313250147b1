"""What a pass may rely on at a place in a function: the facts of the entry, and those of a loop's body."""

from __future__ import annotations

from ..ir.dtype import INDEX
from ..ir.expr import Binary, Compare, Const, Var, const
from ..ir.facts import NO_FACTS, Facts
from ..ir.interval import Interval
from ..ir.stmt import For, PrimFunc
from ..ir.visit import walk
from .folding import multiply


def entry_facts(func: PrimFunc) -> Facts:
    """Symbolic dimensions of the arguments are not negative."""
    facts = NO_FACTS
    for buffer in func.buffers:
        for extent in buffer.shape:
            if isinstance(extent, Var):
                facts = facts.with_interval(extent, Interval(0, None))
    return facts


def inside_loop(facts: Facts, loop: For) -> Facts:
    """What holds in the body of a loop: the range of its variable, and that the loop runs at all.

    Where the extent is ``n // 32``, that it is at least 1 tells that ``n`` is at least 32.
    """
    facts = facts.with_range(loop.var, loop.min, loop.extent)
    for node in walk(loop.extent):
        if isinstance(node, Binary) and node.op == "//" and isinstance(node.b, Const) and int(node.b) > 0:
            facts = facts.with_condition(Compare(">=", node.a, multiply(const(int(node.b), INDEX), node)))
    return facts

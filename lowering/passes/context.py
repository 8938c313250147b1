"""What a pass may rely on in the body of a loop."""

from __future__ import annotations

from collections.abc import Iterator

from ...base.dtype import INDEX
from ...ir.constants import ONE, const
from ...ir.contents import divisions_of, reads_memory
from ...ir.expr import Binary, Compare, Const, Expr
from ...ir.facts import Facts
from ...ir.stmt import For
from .folding import multiply


def inside_loop(facts: Facts, loop: For) -> Facts:
    """What holds in the body of a loop: the range of its variable, and that the loop runs at all.

    Where the extent is ``n // 32``, that it is at least 1 tells that ``n`` is at least 32; where it is
    ``max(min(n, m), 0)``, that both are at least 1.
    """
    facts = facts.with_loop(loop.var, loop.min, loop.extent)
    if reads_memory(loop.extent):
        return facts
    for least in _all_at_least(loop.extent):
        facts = facts.with_condition(Compare(">=", least, ONE))
    for node in divisions_of(loop.extent):
        if node.op == "//" and isinstance(node.b, Const) and int(node.b) > 0:
            facts = facts.with_condition(Compare(">=", node.a, multiply(const(int(node.b), INDEX), node)))
    return facts


def _all_at_least(extent: Expr) -> Iterator[Expr]:
    """What is at least 1 where an extent is that is limited from below by 0, and from above: none if it is not."""
    match extent:
        case Binary("max", limited, Const(value=0)) | Binary("max", Const(value=0), limited):
            yield from _limits(limited)


def _limits(limited: Expr) -> Iterator[Expr]:
    match limited:
        case Binary("min", a, b):
            yield from _limits(a)
            yield from _limits(b)
        case _:
            yield limited

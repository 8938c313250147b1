"""Minima, maxima and remainders of indices, and choices between reads: which side do they take in most iterations?

``A[max(i - 1, 0)]`` reads ``A[i - 1]`` but for i = 0. In vector lanes a side that is not known costs several loads, in
an innermost loop a test in each iteration; further out it costs nothing. Part of ``loop_partition``: analysis only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from ...base.dataclass import dataclass
from ...base.dtype import INDEX
from ...ir.constants import ZERO, const
from ...ir.contents import free_vars, reads_memory, variables_of
from ...ir.expr import Binary, Compare, Expr, IfThenElse, Select
from ...ir.expr_node import ExprNode
from ...ir.facts import opposite
from ...ir.interval import Interval, interval_of
from ...ir.open_extents import LONG
from ...ir.stmt import For, Stmt, StmtNode, Store
from ...ir.visit import Node, children, rewrite, walk
from .folding import multiply, subtract
from .guards import Guard, guard_of


@dataclass(frozen=True, slots=True, eq=False)
class Side:
    """What a clamp is where all ``conditions`` hold."""

    value: Expr
    conditions: tuple[Compare, ...]


def sides_of(e: Node) -> tuple[Side, ...]:
    """The sides of a clamp of an index, or of a choice between reads, which is called a clamp here too; of a remainder
    the dividend, less the divisor or not."""
    match e:
        case Binary("min", a, b) if e.dtype is INDEX:
            return Side(a, (Compare("<=", a, b),)), Side(b, (Compare("<=", b, a),))
        case Binary("max", a, b) if e.dtype is INDEX:
            return Side(a, (Compare(">=", a, b),)), Side(b, (Compare(">=", b, a),))
        case Binary("%", a, b) if e.dtype is INDEX:  # `(i - 1) % 8` is written `(i + 7) % 8`
            double = multiply(b, const(2, INDEX))
            once, twice = Compare(">=", a, b), Compare("<", a, double)
            return Side(a, (Compare(">=", a, ZERO), Compare("<", a, b))), Side(subtract(a, b), (once, twice))
        case IfThenElse(Compare() as condition, a, b) | Select(Compare() as condition, a, b) if _are_reads(
            condition, a, b
        ):
            return Side(a, (condition,)), Side(b, (opposite(condition),))
        case _:
            return ()


def _are_reads(condition: Compare, a: Expr, b: Expr) -> bool:
    return condition.a.dtype is INDEX and reads_memory(a) and reads_memory(b)


def has_clamps(root: Node) -> bool:
    """Whether a piece of program has any clamp: a minimum, maximum or remainder of an index, or a choice between
    reads."""
    return any(sides_of(node) for node in walk(root))


class ClampFinder:
    """Finds the guards that decide the clamps in loops. Mutable: knows a usual value of each loop variable met, and
    the nodes of expressions with clamps."""

    def __init__(self) -> None:
        self._usual: dict[Expr, Interval] = {}
        self._clamped: dict[Expr, frozenset[Node]] = {}

    def enter(self, loop: For) -> None:
        """Remember a value from the middle of the loop's range."""
        if loop.var in self._usual:
            return
        (middle,) = self._inside(loop, (4,)) or (None,)
        if middle is not None:
            self._usual[loop.var] = Interval.exactly(middle)

    def _inside(self, loop: For, eighths: tuple[int, ...]) -> list[int]:
        """Values in the range of a loop, by so many eighths of it; none where it is not known."""
        low, extent = self._value(loop.min), self._value(loop.extent)
        return [] if low is None or extent is None else [low + max(extent, 0) * part // 8 for part in eighths]

    def guards(self, loop: For) -> list[Guard]:
        """Conditions under which clamps, which differ in lanes or from one innermost iteration to the next, take the
        side that they take in the middle of all loops."""
        found: dict[Compare, Guard] = {}
        for value, inner in _stored(loop.body):
            nodes = self._nodes_with_clamps(value)
            if loop.var in nodes and not nodes.isdisjoint(_hot_loops(loop, inner)):
                for nested in inner:
                    self.enter(nested)
                self._decide(value, loop, inner, found)
        return list(found.values())

    def _nodes_with_clamps(self, value: Expr) -> frozenset[Node]:
        """What an expression is made of; nothing where it has no clamps."""
        found = self._clamped.get(value)
        if found is None:
            found = self._clamped[value] = frozenset(walk(value)) if has_clamps(value) else frozenset()
        return found

    def _decide(self, value: Expr, loop: For, inner: tuple[For, ...], found: dict[Compare, Guard]) -> None:
        """Put the guards for the clamps in an expression into ``found``, those within others first."""
        hot, middle = _hot_loops(loop, inner), self._inside(loop, (3, 5))

        def holds(worst: Compare) -> bool:
            values = [self._value(worst.a, {loop.var: Interval.exactly(x)}) for x in middle]
            return bool(values) and all(value is not None and value >= 0 for value in values)

        def decided(node: Node) -> Expr | None:
            sides = sides_of(node)
            if not sides or not isinstance(node, ExprNode) or hot.isdisjoint(variables_of(node)):
                return None
            for side in sides:
                guards = [guard_of(loop, condition, inner) for condition in side.conditions]
                usual = [guard for guard in guards if guard is not None and holds(guard.worst)]
                if len(usual) == len(guards):
                    found.update((guard.condition, guard) for guard in usual)
                    return side.value
            return None

        rewrite(value, decided, stays=lambda node: isinstance(node, ExprNode) and hot.isdisjoint(variables_of(node)))

    def _value(self, e: Expr, others: Mapping[Expr, Interval] = MappingProxyType({})) -> int | None:
        """An expression's value at the usual ones of its variables, but for some ``others``."""
        open_extent = Interval.exactly(LONG)
        found = interval_of(e, {v: others.get(v) or self._usual.get(v, open_extent) for v in free_vars(e)})
        return found.low if found.is_point else None


def _stored(root: Stmt) -> Iterator[tuple[Expr, tuple[For, ...]]]:
    """The values and indices of stores, each with the loops around it, outermost first."""
    stack: list[tuple[Node, tuple[For, ...]]] = [(root, ())]
    while stack:
        node, loops = stack.pop()
        if isinstance(node, Store):
            yield from ((part, loops) for part in (*node.indices, node.value))
        elif isinstance(node, StmtNode):
            deeper = (*loops, node) if isinstance(node, For) else loops
            stack.extend((child, deeper) for child in reversed(children(node)))


def _hot_loops(loop: For, inner: tuple[For, ...]) -> set[Node]:
    """The variables of the loops in which a clamp costs: those of lanes, and of the innermost loop that stays one."""
    loops = (loop, *inner)
    lanes = {each.var for each in loops if each.kind == "vectorized"}
    running = [each.var for each in loops if each.kind in ("serial", "parallel")]
    return {*lanes, *running[-1:]}

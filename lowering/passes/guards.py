"""The conditions in a loop that depend on its variable, and for which of its iterations they always hold.

Part of ``loop_partition`` and of ``tails``: analysis only.
"""

from __future__ import annotations

from collections.abc import Iterator, Set

from ...base.dataclass import dataclass
from ...base.dtype import INDEX
from ...ir.constants import ONE, ZERO, const
from ...ir.contents import bindings_in, chooses, reads_memory, substitute, variables_of
from ...ir.expr import Compare, Expr, IfThenElse, Logical, Select, Var
from ...ir.stmt import For, If, PrefetchStmt, Seq, Stmt, StmtNode
from ...ir.visit import Node, children
from .folding import add, negate, subtract
from .linear import affine_in


@dataclass(frozen=True, slots=True, eq=False)
class Guard:
    """A comparison that holds in an iteration of the loop, whatever the loops inside do, if ``worst`` holds; or, of
    ``limits_of``, at most then.

    Where that can be solved for the loop's variable, it is so from ``low`` on, or below ``high``.
    """

    condition: Compare
    worst: Compare
    low: Expr | None
    high: Expr | None
    is_exact: bool
    """Whether the condition itself is ``worst``, since no loop inside has a say in it: elsewhere it fails."""


def find_guards(loop: For) -> list[Guard]:
    """The guards that depend on the loop's variable, in order of appearance."""
    found: dict[Compare, Guard] = {}
    bound: set[Var] | None = None
    for condition, inner in conditions_in(loop.body):
        if condition not in found:
            bound = bindings_in(loop.body) if bound is None else bound
            if (guard := guard_of(loop, condition, inner, bound)) is not None:
                found[condition] = guard
    return list(found.values())


def conditions_in(root: Node) -> Iterator[tuple[Compare, tuple[For, ...]]]:
    """Index comparisons that conditions consist of, each with the loops around it, outermost first; no masks."""
    stack: list[tuple[Node, tuple[For, ...]]] = [(root, ())]
    while stack:
        node, loops = stack.pop()
        if isinstance(node, (IfThenElse, Select)) or (isinstance(node, If) and not node.mask):
            for part in conjuncts(node.condition):
                if isinstance(part, Compare) and part.a.dtype is INDEX:
                    yield part, loops
        deeper = (*loops, node) if isinstance(node, For) else loops
        inside = (c for c in reversed(children(node)) if isinstance(c, StmtNode) or chooses(c))
        stack.extend((child, deeper) for child in inside)


def conjuncts(condition: Expr) -> Iterator[Expr]:
    """The conditions that must all hold."""
    if isinstance(condition, Logical) and condition.op == "and":
        yield from conjuncts(condition.a)
        yield from conjuncts(condition.b)
    else:
        yield condition


def conditions_around(root: Node) -> Iterator[tuple[Compare, tuple[For, ...]]]:
    """Index comparisons without which a statement does nothing at all, each with the loops between the statement and
    it, outermost first; no masks."""
    inner: tuple[For, ...] = ()
    while True:
        match root:
            case For():
                inner = (*inner, root)
                root = root.body
            case If(condition, then, None, mask=False):
                for part in conjuncts(condition):
                    if isinstance(part, Compare) and part.a.dtype is INDEX:
                        yield part, inner
                root = then
            case _:
                return


def limits_of(loop: For) -> list[Guard]:
    """What is asked of an iteration of a loop in which anything is done, by the conditions around its whole body, or
    around each of its parts alike, as around the first values of sums and their terms."""
    return list((_limits_of(loop.body, loop, bindings_in(loop.body), ()) or {}).values())


def _limits_of(stmt: Stmt, loop: For, bound: Set[Var], inner: tuple[For, ...]) -> dict[Expr, Guard] | None:
    """What a statement inside the loops ``inner`` asks of the loop around them, by test; None if it does nothing."""
    match stmt:
        case For(body=body):
            return _limits_of(body, loop, bound, (*inner, stmt))
        case If(condition, then, None, mask=False):
            parts = [part for part in conjuncts(condition) if isinstance(part, Compare) and part.a.dtype is INDEX]
            guards = [guard_of(loop, part, inner, bound, best=True) for part in parts]
            found = {guard.worst: guard for guard in guards if guard is not None}
            return found | (_limits_of(then, loop, bound, inner) or {})
        case Seq(stmts):
            common: dict[Expr, Guard] | None = None
            for part in stmts:
                limits = _limits_of(part, loop, bound, inner)
                if limits is not None:
                    common = limits if common is None else {test: common[test] for test in common if test in limits}
                if common == {}:
                    break
            return common
        case PrefetchStmt():
            return None
        case _:
            return {}


def guard_of(
    loop: For, condition: Compare, inner: tuple[For, ...], bound: Set[Var] | None = None, best: bool = False
) -> Guard | None:
    """What a condition that stands inside the loops ``inner`` asks of the loop around them, if that can be said: to
    hold in all of their iterations, or, if that is the ``best``, in one. ``bound`` are the variables that the loop's
    body binds, if these are known."""
    if reads_memory(condition) or not _mentions(condition, loop.var, inner):
        return None
    margin = whole = margin_of(condition)
    if margin is None:
        return None
    for nested in reversed(inner):
        form = affine_in(margin, nested.var)
        if form is None:
            return None
        last = subtract(add(nested.min, nested.extent), ONE)
        margin = substitute(margin, {nested.var: nested.min if (form[0] > 0) is not best else last})
    is_exact = margin is whole
    variables = variables_of(margin)
    if loop.var not in variables or reads_memory(margin):
        return None
    if not (bindings_in(loop.body) if bound is None else bound).isdisjoint(variables):
        return None
    return Guard(condition, Compare(">=", margin, ZERO), *_solve(margin, loop.var), is_exact)


def _mentions(condition: Compare, var: Var, inner: tuple[For, ...]) -> bool:
    """Whether a condition depends on a variable, perhaps by the ranges of the loops around it."""
    parts = (condition, *(e for loop in inner for e in (loop.min, loop.extent)))
    return any(var in variables_of(part) for part in parts)


def margin_of(condition: Compare) -> Expr | None:
    """An expression that is >= 0 exactly if the condition holds."""
    a, b = condition.a, condition.b
    match condition.op:
        case "<":
            return subtract(subtract(b, a), ONE)
        case "<=":
            return subtract(b, a)
        case ">":
            return subtract(subtract(a, b), ONE)
        case ">=":
            return subtract(a, b)
        case "==" | "!=":
            return None


def _solve(margin: Expr, var: Var) -> tuple[Expr | None, Expr | None]:
    """The value from which on, or up to which (exclusive), ``margin >= 0``."""
    form = affine_in(margin, var)
    if form is None or form[0] == 0:
        return None, None
    factor, rest = form
    if factor > 0:
        return negate(_floordiv(rest, factor)), None
    return None, add(_floordiv(rest, -factor), ONE)


def _floordiv(a: Expr, b: int) -> Expr:
    return a if b == 1 else a // const(b, INDEX)

"""The lowered side of a report: where the loops and stores of a module stand, on which lines of its text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ...base.dataclass import dataclass
from ...ir.buffer import Buffer
from ...ir.expr import Call, Expr, Load, Var
from ...ir.intrinsics import ARITHMETIC_FENCE
from ...ir.origin import enclosed
from ...ir.printer import module_lines
from ...ir.stmt import Allocate, CallExtern, For, If, IRModule, Launch, LetStmt, PrimFunc, Stmt, StmtNode, Store
from ...ir.visit import Node, children, walk
from ..allocation import place, slot_lanes


@dataclass(frozen=True, slots=True, eq=False)
class PlacedLoop:
    """A loop of the lowered module, the name of its function, and the loop around it."""

    loop: For
    function: str
    outer: PlacedLoop | None

    @property
    def number(self) -> int:
        """The number of the loop of the schedule's nest that it comes from."""
        return abs(self.loop.origin)

    @property
    def is_border(self) -> bool:
        """Whether it is a copy for the borders of a range."""
        return self.loop.origin < 0


@dataclass(frozen=True, slots=True, eq=False)
class PlacedStore:
    """A store of the lowered module and the loop around it.

    ``values`` are what it evaluates: its parts, and the variables bound for it inside the loop; ``lines`` are where.
    ``conditions`` are the tests that stand between it and the loop. ``buffers`` are what it reaches.
    """

    store: Store
    loop: PlacedLoop | None
    lines: tuple[int, ...]
    values: tuple[Expr, ...]
    conditions: tuple[Expr, ...]

    @property
    def number(self) -> int:
        """The number of the store of the schedule's nest that it comes from."""
        return abs(self.store.origin)

    @property
    def lanes(self) -> int:
        """How many elements one execution of the store writes."""
        return self.store.value.dtype.lanes

    @property
    def is_masked(self) -> bool:
        """Whether the store, or a load of what it stores, has a mask."""
        return self.store.mask is not None or any(load.mask is not None for load in self.loads)

    @property
    def is_fenced(self) -> bool:
        """Whether it computes a product that stays one number, since several places read it."""
        nodes = (node for value in self.values for node in walk(value))
        return any(isinstance(node, Call) and node.name == ARITHMETIC_FENCE for node in nodes)

    @property
    def loads(self) -> Iterator[Load]:
        """The loads in what the store evaluates, each once, in order of appearance."""
        seen = dict.fromkeys(node for value in self.values for node in walk(value) if isinstance(node, Load))
        return iter(seen)


@dataclass(frozen=True, slots=True)
class Lowered:
    """What a module holds. ``loop_at`` gives for a line the loop that its statement begins or stands in; on the
    ``stack_lines`` the stack is used on purpose: for a buffer that lives there, or for the arguments of a launch."""

    loops: tuple[PlacedLoop, ...]
    stores: tuple[PlacedStore, ...]
    loop_at: Mapping[int, PlacedLoop]
    stack_lines: frozenset[int]


def read_lowered(module: IRModule) -> Lowered:
    """The loops and stores of all functions of a module, in order."""
    lines = module_lines(module)
    loops: dict[For, PlacedLoop] = {}
    stores: list[PlacedStore] = []
    loop_at: dict[int, PlacedLoop] = {}
    on_stack = {data for func in module.functions for data in _stack_arrays(func)}
    stack_lines: set[int] = set()
    for func in module.functions:
        for stmt, around in enclosed(func.body):
            outer = next((loops[s] for s in reversed(around) if isinstance(s, For)), None)
            here = outer
            if isinstance(stmt, For):
                here = loops[stmt] = PlacedLoop(stmt, func.name, outer)
            elif isinstance(stmt, Store):
                stores.append(_placed_store(stmt, around, outer, lines))
            if here is not None and stmt in lines:
                loop_at[lines[stmt]] = here
            uses_stack = isinstance(stmt, Launch) or on_stack.intersection(b.data for b in _own_buffers(stmt))
            if stmt in lines and uses_stack:
                stack_lines.add(lines[stmt])
    return Lowered(tuple(loops.values()), tuple(stores), loop_at, frozenset(stack_lines))


def _placed_store(
    store: Store, around: tuple[Stmt, ...], loop: PlacedLoop | None, lines: Mapping[Stmt, int]
) -> PlacedStore:
    inside = around[around.index(loop.loop) + 1 :] if loop is not None else around
    bound = [stmt for stmt in inside if isinstance(stmt, LetStmt)]
    own = [part for part in children(store) if not isinstance(part, StmtNode)]
    return PlacedStore(
        store,
        loop,
        (*(lines[stmt] for stmt in bound), lines[store]),
        (*(stmt.value for stmt in bound), *own),
        tuple(stmt.condition for stmt in inside if isinstance(stmt, If)),
    )


def _stack_arrays(func: PrimFunc) -> Iterator[Var]:
    """The memory that stays on the stack: what cannot be split into slots that become registers."""
    for node in walk(func.body):
        if isinstance(node, Allocate) and place(node.buffer) == "stack" and slot_lanes(node.buffer, node.body) is None:
            yield node.buffer.data


def _own_buffers(stmt: Stmt) -> Iterator[Buffer]:
    """The buffers that a statement itself accesses, not those of the statements in it."""
    if isinstance(stmt, Store):
        yield stmt.buffer
    elif isinstance(stmt, CallExtern):
        yield from (region.buffer for region in stmt.regions)
    own: list[Node] = [part for part in children(stmt) if not isinstance(part, StmtNode)]
    yield from (node.buffer for part in own for node in walk(part) if isinstance(node, Load))

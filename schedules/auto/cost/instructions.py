"""The instructions that a loop's iteration takes, as LLVM leaves them: equal expressions are computed once, and what
does not change in a loop outside of it.

Throughputs are those by which register tiles are chosen (``schedules/register_tile.py``), of a core that does two
vector operations, two loads and a store in a cycle, as Zen and Intel's cores from Haswell on do (Fog, *Instruction
tables*); where it multiplies its widest vectors by halves (``Target.fma_per_cycle``), it loads and stores them so, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ....base.dataclass import dataclass
from ....base.dtype import DType
from ....base.target import Target
from ....ir.constants import const_int
from ....ir.expr import Binary, Broadcast, Call, Cast, Compare, Const, Expr, IfThenElse, Load, Ramp, Select, Unary, Var
from ....ir.expr_node import ExprNode
from ....ir.intrinsics import ARITHMETIC_FENCE
from ....ir.stmt import Evaluate, PrefetchStmt, Stmt, Store
from ....ir.visit import Node, children, walk
from ...machine import CORE
from .nest import LoopNode, expressions_of
from .units import crossings, passes

OPERATIONS = {"/": 10.0, "//": 6.0, "%": 6.0, "min": 3.0, "max": 3.0}
"""How many operations one of these takes; a minimum keeps NaN. All others take one."""
FUNCTIONS = {
    "sqrt": 12.0,
    "rsqrt": 14.0,
    **dict.fromkeys(("floor", "ceil", "round", "trunc", "abs", "fma", "dot2", "dot4", "isnan"), 1.0),
    **dict.fromkeys(("copysign", "isinf", "isfinite", "pair"), 2.0),
    ARITHMETIC_FENCE: 0.0,
}
REINTERPRETED = "as_"
"""So begins the name of what takes the bits of a number for another one."""
POLYNOMIAL = 24.0
"""Operations of a function such as ``exp``."""
DIGIT_INSTRUCTIONS = 3.0
"""To divide an index by a constant."""
MASK_LANES = 3.0
"""Instructions a lane of what is masked, where the target has no masked loads."""
SHUFFLED_STRIDE = 4
"""Lanes so far apart, or nearer, are taken out of the vectors that they lie in."""
GATHERED = 2.0
"""Operations a lane of a vector that is loaded from places apart, beside the loads: 16 cycles for 16 lanes. A Zen 5
takes 5 ns for these where all is in the first cache."""
SCATTERED = 2.0
"""Stores a lane of a vector that is stored to places apart: 32 cycles for 16 lanes, which fits a convolution whose sums
go to other rows on a Zen 5. Where all is in the first cache, that takes 6 ns."""


@dataclass(slots=True)
class BodyWork:
    """What is done in an iteration on average: vector ``operations``, ``loads``, ``stores``, other ``instructions``,
    and the ``chain`` of cycles that the next one waits. ``products`` and ``sums`` are those of the operations for which
    a core has half as many units, each as often as those are busy. ``kept`` are vectors that want a register at one
    time, ``summed`` of them sums, and ``accesses`` how often the units that load and store are busy with one of them.
    Mutable."""

    operations: float = 0.0
    products: float = 0.0
    sums: float = 0.0
    loads: float = 0.0
    stores: float = 0.0
    instructions: float = 0.0
    chain: float = 0.0
    kept: float = 0.0
    summed: float = 0.0
    accesses: float = 1.0

    def busy(self, operations: float) -> None:
        """Count operations beside which nothing else is done: their instructions fill the front of the core."""
        self.operations += operations
        self.products += operations
        self.sums += operations

    def cycles(self, registers: int) -> float:
        """Cycles of an iteration: what is the scarcest; vectors that find no register go to the stack and back, and
        sums, which each iteration wants where they were, are moved around."""
        spilled = max(0.0, self.kept - registers) * self.accesses
        loads, stores = self.loads + spilled, self.stores + spilled
        issued = (self.operations + loads + stores + self.instructions) / CORE.issued
        computed = max(self.operations, self.products, self.sums) / CORE.full_rate
        cycles = max(computed, loads / CORE.loads, stores, issued, self.chain) + CORE.loop_cycles
        return cycles * CORE.moved_sums if spilled and self.summed else cycles


def work_of(root: LoopNode, target: Target) -> dict[LoopNode, BodyWork]:
    """The work of each loop of a tree, what is hoisted out of inner loops among it."""
    counter = _Counter(root, target)
    for node in root.all_inside():
        counter.count(node)
    counter.finish()
    return counter.work


class _Counter:
    """Counts the instructions of all loops. Mutable."""

    def __init__(self, root: LoopNode, target: Target) -> None:
        self.work = {node: BodyWork() for node in root.all_inside()}
        self._target = target
        self._depth = {node: sum(1 for _ in node.around()) for node in root.all_inside()}
        self._root = root
        self._seen: set[tuple[int, int]] = set()
        self._factors: set[int] = set()
        self._fused: set[int] = set()
        self._marked: list[tuple[Expr, LoopNode, float]] = []

    def count(self, node: LoopNode) -> None:
        """Count what stands in the body of a loop itself."""
        own = self.work[node]
        for stmt, runs in node.parts:
            for e in expressions_of(stmt):
                self._expression(e, node, runs)
            self._statement(stmt, node, runs)
        own.chain = max(own.chain, self._chain(node))
        own.summed = sum(
            self._vectors(buffer.dtype) * (const_int(buffer.shape[0]) or 1)
            for loop in node.around()
            for buffer in loop.registers.values()
            if buffer.data in node.written
        )
        own.kept = own.summed + self._waiting(node)

    def _waiting(self, node: LoopNode) -> float:
        """How many vectors, but for the sums, wait for their last use at one time, where the parts of expressions are
        computed in order."""
        order: dict[int, Expr] = {}
        last: dict[int, int] = {}
        for stmt, _ in node.parts:
            for root in expressions_of(stmt):
                for e in _parts_first(root):
                    if id(e) not in order and e.dtype.lanes > 1 and not e.dtype.is_index:
                        order[id(e)] = e
                        last.update((id(child), len(order)) for child in children(e) if id(child) in order)
        ends: dict[int, float] = {}
        for key, at in last.items():
            ends[at] = ends.get(at, 0.0) + self._registers(order[key])
        waiting = most = 0.0
        for at, (key, e) in enumerate(order.items(), start=1):
            waiting += (self._registers(e) if key in last else 0.0) - ends.get(at, 0.0)
            most = max(most, waiting)
        return most

    def _registers(self, e: Expr) -> float:
        """How many registers a value takes beside the sums: none where it is one of them, or the product that a fused
        multiply-add adds."""
        is_sum = isinstance(e, Load) and e.buffer.scope == "register"
        return 0.0 if is_sum or id(e) in self._factors else self._vectors(e.dtype)

    def finish(self) -> None:
        """Count what has been found, now that it is known which products are part of a sum."""
        for e, home, part in self._marked:
            self._node(e, self.work[home], part)

    def _statement(self, stmt: Stmt, node: LoopNode, runs: float) -> None:
        part = runs / node.iterations if node.iterations else 0.0
        work = self.work[node]
        match stmt:
            case Store(buffer) if buffer.scope == "register":
                pass
            case Store(_, indices, value, mask):
                if _is_row(indices[-1]):
                    work.stores += self._accesses(indices[-1], value.dtype) * part
                else:  # lane by lane
                    work.stores += SCATTERED * value.dtype.lanes * part
                    work.operations += value.dtype.lanes * part
                if mask is not None:
                    work.instructions += self._masking(value.dtype) * part
            case PrefetchStmt():
                work.loads += part
            case Evaluate():
                work.instructions += part
            case _:
                work.instructions += part

    def _expression(self, root: Expr, node: LoopNode, runs: float) -> None:
        """Count an expression and its parts, each where it changes, and once there."""
        around = list(node.around())
        homes: dict[int, LoopNode] = {}
        own = self.work[node]
        for e in _parts_first(root):
            own.accesses = max(own.accesses, passes(e.dtype, self._target))
            self._mark_fused(e)
            home = homes[id(e)] = self._where(e, around, homes)
            key = (id(home), id(e))
            if key not in self._seen:
                self._seen.add(key)
                self._marked.append((e, home, min(1.0, runs / home.iterations) if home.iterations else 0.0))

    def _where(self, e: Expr, around: Sequence[LoopNode], homes: Mapping[int, LoopNode]) -> LoopNode:
        """The innermost loop, of those around a statement, in whose iterations the value changes."""
        found = [homes[id(child)] for child in children(e)]
        if isinstance(e, Var):
            found += [loop for loop in around if loop.var is e]
        if isinstance(e, Load):
            found += [loop for loop in around if e.buffer.data in loop.written][:1]
        return max(found, key=self._depth.__getitem__, default=self._root)

    def _mark_fused(self, e: Expr) -> None:
        """A product that is added, on a target with such an instruction, takes none of its own."""
        if isinstance(e, Binary) and e.op in ("+", "-") and e.dtype.is_float and self._target.has_fma:
            factor = next((p for p in (e.b, e.a) if isinstance(p, Binary) and p.op == "*"), None)
            if factor is not None:
                self._factors.add(id(factor))
                self._fused.add(id(e))

    def _node(self, e: Expr, work: BodyWork, part: float) -> None:
        vectors = self._vectors(e.dtype) * part
        match e:
            case Load(buffer, indices, mask) if buffer.scope != "register":
                step = _step_of(indices[-1])
                if step is None or abs(step) > SHUFFLED_STRIDE:  # lane by lane
                    work.loads += e.dtype.lanes * part
                    work.busy(GATHERED * e.dtype.lanes * part)
                else:
                    work.loads += max(1, abs(step)) * self._accesses(indices[-1], e.dtype) * part
                    work.operations += abs(step - 1) * vectors
                if mask is not None:
                    work.instructions += self._masking(e.dtype) * part
            case Binary(op) if e.dtype.is_index and e.dtype.lanes > 1:  # a ramp with another stride is none
                work.operations += OPERATIONS.get(op, 1.0) * vectors
            case Binary(op) if e.dtype.is_index:
                by = const_int(e.b)
                if op in ("//", "%") and (by is None or by & (by - 1)):
                    work.instructions += DIGIT_INSTRUCTIONS * part
            case Binary(op) if id(e) not in self._factors:
                work.operations += OPERATIONS.get(op, 1.0) * vectors
                busy = passes(e.dtype, self._target) * vectors if e.dtype.is_float else 0.0
                if op == "*" or id(e) in self._fused:
                    work.products += busy
                elif op in ("+", "-"):
                    work.sums += busy
            case Call(name):
                work.operations += _function_operations(name) * vectors
            case Compare(a=a) if a.dtype.lanes == 1 and not a.dtype.is_float:
                work.instructions += part
            case Compare(a=a):
                work.operations += self._vectors(a.dtype) * part
            case Unary() | Select() | IfThenElse() | Cast() if not e.dtype.is_index:
                work.operations += vectors
            case Broadcast(value=value) if not isinstance(value, (Load, Const)) and not e.dtype.is_index:
                work.operations += part
            case _:
                pass

    def _masking(self, kind: DType) -> float:
        """Instructions beside a masked access."""
        if self._target.vector_bits > 128:
            return self._vectors(kind)
        return MASK_LANES * kind.lanes

    def _accesses(self, index: Expr, kind: DType) -> float:
        """How often a unit that loads, or stores, is taken by vectors that follow each other."""
        slots = 1.0 if kind.lanes == 1 else passes(kind, self._target)
        return slots * self._vectors(kind) * (1.0 + crossings(index, kind, self._target))

    def _vectors(self, kind: DType) -> float:
        return max(1.0, kind.lanes * kind.element.storage_bits / self._target.vector_bits)

    def _chain(self, node: LoopNode) -> float:
        """Cycles from a sum to itself in the next iteration, through all that is added to it on the way."""
        found: dict[tuple[int, tuple[int, ...]], float] = {}
        for stmt, _ in node.parts:
            if not isinstance(stmt, Store) or any(v is node.var for index in stmt.indices for v in walk(index)):
                continue
            steps = _steps_to(stmt.value, stmt)
            if steps is not None:
                waiting = CORE.sum_cycles * steps + (0.0 if stmt.buffer.scope == "register" else CORE.forwarded_cycles)
                key = id(stmt.buffer.data), tuple(map(id, stmt.indices))
                found[key] = found.get(key, 0.0) + waiting
        return max(found.values(), default=0.0)


def _function_operations(name: str) -> float:
    return 0.0 if name.startswith(REINTERPRETED) else FUNCTIONS.get(name, POLYNOMIAL)


def _parts_first(root: Expr) -> Iterator[Expr]:
    """An expression and all that it is made of, each once, behind its parts."""
    done: set[int] = set()
    stack: list[tuple[Node, bool]] = [(root, False)]
    while stack:
        node, ready = stack.pop()
        if id(node) in done or not isinstance(node, ExprNode):
            continue
        if ready:
            done.add(id(node))
            yield node
        else:
            stack.append((node, True))
            stack += [(child, False) for child in children(node)]


def _is_row(index: Expr) -> bool:
    """Whether lanes are neighbours, or there is one."""
    return _step_of(index) == 1


def _step_of(index: Expr) -> int | None:
    """How far the next lane is from one; 1 where there is one lane, None if that differs or is not known."""
    if index.dtype.lanes == 1:
        return 1
    return const_int(index.stride) if isinstance(index, Ramp) else None


def _steps_to(value: Expr, store: Store) -> int | None:
    """How many operations lead from the element that a store replaces to what it stores; None if it is not read."""
    match value:
        case Load(buffer, indices):
            same = buffer.data is store.buffer.data and all(a is b for a, b in zip(indices, store.indices, strict=True))
            return 0 if same else None
        case Binary(_, a, b) | Select(_, a, b) | IfThenElse(_, a, b):
            steps = [s for s in (_steps_to(a, store), _steps_to(b, store)) if s is not None]
            return 1 + max(steps) if steps else None
        case Cast(value=inner) | Unary(a=inner):
            steps_inside = _steps_to(inner, store)
            return None if steps_inside is None else steps_inside + 1
        case _:
            return None

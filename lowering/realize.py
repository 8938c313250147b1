"""From a schedule's state to its loop nest: the first lowering pass, and what ``print(schedule)`` shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..ir.buffer import Buffer
from ..ir.build import make_buffer
from ..ir.expr import ONE, ZERO, Expr, Load, TensorRead, Var, logical_and
from ..ir.facts import Facts, prove
from ..ir.simplify import simplify
from ..ir.stmt import Allocate, For, If, LetStmt, Stmt, Store, seq
from ..ir.visit import Node, buffers_accessed, free_vars, rewrite, substitute
from ..te.tensor import Tensor
from .loops import Guard
from .regions import Inference, infer
from .state import At, ScheduleState, Stage


@dataclass(frozen=True, slots=True)
class Realized:
    """The nest of a schedule, the buffers of its tensors, and the loop id that each loop variable belongs to."""

    body: Stmt
    buffers: Mapping[Tensor, Buffer]
    loop_of: Mapping[Var, str]
    facts: Facts


@dataclass(frozen=True, slots=True)
class _PlacedGuard:
    """``level`` is the leaf inside whose loop the guard stands, -1 outside all. Stages computed at that loop are
    guarded too, unless the guard reads them."""

    guard: Guard
    level: int
    reads_attached: bool


def realize(state: ScheduleState) -> Realized:
    """The loop nest of a schedule: bounds inferred, reductions initialised, guards in place, indices simplified."""
    builder = _NestBuilder(state, infer(state))
    body = simplify(builder.root_body(), builder.known.facts)
    return Realized(body, builder.buffers, builder.loop_of, builder.known.facts)


class _NestBuilder:
    """Builds the nests of one state. Mutable: ``loop_of`` grows as loops are made."""

    def __init__(self, state: ScheduleState, known: Inference) -> None:
        self.state = state
        self.known = known
        self.buffers: dict[Tensor, Buffer] = {}
        self.loop_of: dict[Var, str] = {}
        for stage in state.stages:
            for tensor in stage.tensors:
                if stage.is_input or stage.name in known.regions:
                    self.buffers[tensor] = self._make_buffer(stage, tensor)

    def _make_buffer(self, stage: Stage, tensor: Tensor) -> Buffer:
        if stage.is_input:
            return make_buffer(tensor.name, tensor.shape, tensor.dtype)
        name = stage.name if len(stage.tensors) == 1 else f"{stage.name}.v{tensor.index}"
        shape = self.known.regions[stage.name].extents
        if stage.name in self.state.outputs:
            return make_buffer(name, shape, tensor.dtype)
        scope = stage.scope or ("local" if isinstance(stage.place, At) else "global")
        return make_buffer(name, shape, tensor.dtype, scope, alignment=64)

    def root_body(self) -> Stmt:
        roots = [s for s in self.state.stages if s.name in self.known.regions and not isinstance(s.place, At)]
        return self._with_stages(roots, None)

    def _with_stages(self, stages: Sequence[Stage], rest: Stmt | None) -> Stmt:
        """Compute the stages in order, then ``rest``; their memory lives as long."""
        body = rest
        for stage in reversed(stages):
            body = seq(self._nest(stage), body)
            if stage.name not in self.state.outputs:
                for tensor in reversed(stage.tensors):
                    body = Allocate(self.buffers[tensor], body)
        return body if body is not None else seq()

    def _nest(self, stage: Stage) -> Stmt:
        loops, reduction = self.known.loops[stage.name], self.known.reduction(stage)
        guards = [*loops.guards, *self._domain_guards(stage), *self._reduce_condition(stage)]
        leaves = list(stage.leaves)
        placed = [self._place_guard(stage, guard) for guard in guards]
        init_level = self._init_level(stage, placed)
        body = self._update(stage)
        for k in range(len(leaves) - 1, -2, -1):
            if k + 1 == init_level and reduction is not None:
                # What chooses terms by the spatial axes alone must not keep the identity from being stored.
                body = _guarded([p.guard for p in placed if p.guard.reduce and p.level <= k], body)
                init_guards = [p.guard for p in placed if not p.guard.reduce and p.level > k]
                init = self._init(stage, reduction.combiner.identity, leaves[k + 1 :], init_guards)
                first = [loops.vars[leaf] == ZERO for leaf in leaves[:init_level] if stage.loops[leaf].reduce]
                body = seq(If(logical_and(first), init) if first else init, body)
            here = [p for p in placed if p.level == k and not (p.guard.reduce and k < init_level)]
            if k >= 0:
                body = _guarded([p.guard for p in here if p.reads_attached], body)
                body = self._with_stages(self.state.attached(stage.name, leaves[k]), body)
            body = _guarded([p.guard for p in here if not p.reads_attached], body)
            if k >= 0:
                body = self._loop(stage, leaves[k], loops.vars[leaves[k]], body)
        return body

    def _init_level(self, stage: Stage, placed: Sequence[_PlacedGuard]) -> int:
        """The level around which a reduction's identity is stored: that of its outermost loop, in general.

        Where the loops from some reduction loop inwards hold but a tile of unrolled and vector loops, the tile is
        initialised just before that loop, when the reduction loops further out are at 0: it is in cache then, or stays
        in registers. That needs those loops to run at least once, whatever the guards.
        """
        leaves = stage.leaves
        levels = [k for k, leaf in enumerate(leaves) if stage.loops[leaf].reduce]
        if not levels:
            return len(leaves)
        extents = self.known.loops[stage.name].extents
        for level in levels:
            inside = [leaf for leaf in leaves[level:] if not stage.loops[leaf].reduce]
            outer = [leaf for leaf in leaves[:level] if stage.loops[leaf].reduce]
            if (
                all(stage.kind(leaf) in ("unrolled", "vectorized") for leaf in inside)
                and all(prove(extents[leaf] >= ONE, self.known.facts) for leaf in outer)
                and not any(p.guard.reduce and levels[0] <= p.level < level for p in placed)
            ):
                return level
        return levels[0]

    def _place_guard(self, stage: Stage, guard: Guard) -> _PlacedGuard:
        """As far outside as its variables, and the stages computed in these loops that it reads, allow."""
        variables, buffers = set(free_vars(guard.condition)), set(buffers_accessed(guard.condition))
        loop_vars = self.known.loops[stage.name].vars
        level = read = -1
        for k, leaf in enumerate(stage.leaves):
            if loop_vars[leaf] in variables:
                level = k
            attached = self.state.attached(stage.name, leaf)
            if buffers.intersection(self.buffers[t] for s in attached for t in s.tensors):
                level = read = k
        return _PlacedGuard(guard, level, level == read >= 0)

    def _loop(self, stage: Stage, leaf: str, var: Var, body: Stmt) -> Stmt:
        self.loop_of[var] = leaf
        return For(var, ZERO, self.known.loops[stage.name].extents[leaf], stage.kind(leaf), body)

    def _domain_guards(self, stage: Stage) -> list[Guard]:
        """A box that bound inference found may reach beyond the tensor: what lies outside is not computed."""
        if not isinstance(stage.place, At):
            return []
        values, region = self.known.axis_values(stage), self.known.regions[stage.name]
        guards = []
        for axis, low, extent in zip(stage.compute.axis, region.lows, region.extents, strict=True):
            if not (low is ZERO and extent is axis.extent):
                value = values[axis.var]
                guards += [Guard(value >= ZERO, reduce=False), Guard(value < axis.extent, reduce=False)]
        return guards

    def _reduce_condition(self, stage: Stage) -> list[Guard]:
        reduction = self.known.reduction(stage)
        if reduction is None or reduction.condition is None:
            return []
        return [Guard(self._resolve(reduction.condition, self.known.axis_values(stage)), reduce=True)]

    def _resolve(self, expr: Expr, values: Mapping[Var, Expr]) -> Expr:
        """Put values in for the axes, and loads in for the reads of tensors."""

        def to_load(node: Node) -> Expr | None:
            if not (isinstance(node, TensorRead) and isinstance(node.tensor, Tensor)):
                return None
            lows = self._lows(node.tensor)
            local = tuple(i if low is ZERO else i - low for i, low in zip(node.indices, lows, strict=True))
            return Load(self.buffers[node.tensor], local)

        return rewrite(substitute(expr, values), to_load)

    def _lows(self, tensor: Tensor) -> tuple[Expr, ...]:
        stage = self.state.stage_of(tensor)
        return (ZERO,) * tensor.ndim if stage.is_input else self.known.regions[stage.name].lows

    def _element(self, stage: Stage) -> tuple[Expr, ...]:
        """Where in the stage's buffers the current element goes."""
        values = self.known.loops[stage.name].values
        return tuple(values[loop] for loop, axis in stage.axis_of.items() if axis.kind == "spatial")

    def _update(self, stage: Stage) -> Stmt:
        """The innermost statement: store the element, or fold one term into it."""
        values, element = self.known.axis_values(stage), self._element(stage)
        targets = [self.buffers[t] for t in stage.tensors]
        bodies = self.known.bodies[stage.name]
        reduction = self.known.reduction(stage)
        if reduction is None:
            return seq(*(Store(b, element, self._resolve(e, values)) for b, e in zip(targets, bodies, strict=True)))
        combiner = reduction.combiner
        ordered = _by_output(stage, targets)
        sources = [self._resolve(source, values) for source in reduction.sources]
        if len(sources) == 1:
            terms = {combiner.lhs[0]: Load(ordered[0], element), combiner.rhs[0]: sources[0]}
            return Store(ordered[0], element, substitute(combiner.results[0], terms))
        # Several outputs: all are computed before any is stored, so that the order of the stores does not matter.
        rhs = [Var(v.name, v.dtype) for v in combiner.rhs]
        lhs = [Var(v.name, v.dtype) for v in combiner.lhs]
        renamed: dict[Var, Expr] = dict(zip((*combiner.lhs, *combiner.rhs), (*lhs, *rhs), strict=True))
        new = [Var(f"{b.name}.new", b.dtype) for b in ordered]
        body: Stmt = seq(*(Store(b, element, v) for b, v in zip(ordered, new, strict=True)))
        body = _lets(new, [substitute(r, renamed) for r in combiner.results], body)
        body = _lets(rhs, sources, body)
        return _lets(lhs, [Load(b, element) for b in ordered], body)

    def _init(self, stage: Stage, identity: Sequence[Expr], leaves: Sequence[str], guards: Sequence[Guard]) -> Stmt:
        """Store the reduction's identity, in loops of its own over the spatial leaves inside the reduction's."""
        loops = self.known.loops[stage.name]
        spatial = [leaf for leaf in leaves if not stage.loops[leaf].reduce]
        fresh = {loops.vars[leaf]: Var(f"{loops.vars[leaf].name}_init") for leaf in spatial}
        element = tuple(substitute(i, fresh) for i in self._element(stage))
        targets = _by_output(stage, [self.buffers[t] for t in stage.tensors])
        body: Stmt = seq(*(Store(b, element, e) for b, e in zip(targets, identity, strict=True)))
        body = _guarded([Guard(substitute(g.condition, fresh), g.reduce) for g in guards], body)
        for leaf in reversed(spatial):
            body = self._loop(stage, leaf, fresh[loops.vars[leaf]], body)
        return body


def _guarded(guards: Sequence[Guard], body: Stmt) -> Stmt:
    """The body under the guards; those that read memory stand inside the others: ``and`` may evaluate both sides."""
    for reads in (True, False):
        conditions = [g.condition for g in guards if bool(buffers_accessed(g.condition)) is reads]
        body = If(logical_and(conditions), body) if conditions else body
    return body


def _lets(variables: Sequence[Var], values: Sequence[Expr], body: Stmt) -> Stmt:
    for var, value in zip(reversed(variables), reversed(values), strict=True):
        body = LetStmt(var, value, body)
    return body


def _by_output(stage: Stage, targets: Sequence[Buffer]) -> list[Buffer]:
    """The buffers in order of the reduction's outputs, which the compute may list in another order."""
    indices = [getattr(body, "index", 0) for body in stage.compute.body]
    return [buffer for _, buffer in sorted(zip(indices, targets, strict=True), key=lambda pair: pair[0])]

"""Find the compute of a tensor intrinsic in the loops of a stage: ``realize`` puts its code in place of the loops.

The loops to replace run over a tile of the stage's axes. With the tile's axes for variables, the stage's innermost
statement and the intrinsic's declared one must be the same, but for the names of axes and where views lie in memory.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace

from ...base.dataclass import dataclass
from ...base.errors import LoopwrightError
from ...ir.buffer import Buffer
from ...ir.build import buffer_strides, index_var
from ...ir.constants import ONE, TRUE, ZERO, const, const_int
from ...ir.contents import substitute
from ...ir.expr import Axis, Compare, Const, Expr, Load, Var
from ...ir.facts import Facts
from ...ir.linear import Linear, linear_of
from ...ir.linear_expr import expr_of
from ...ir.makers import logical_and
from ...ir.simplify import simplify
from ...ir.stmt import If, Stmt, Store
from ...ir.visit import Node, buffers_accessed, children, walk
from ..passes.flatten_buffers import flat_view
from ..passes.guards import conjuncts, margin_of
from ..passes.linear import affine_in, difference
from ..stage import Stage
from ..tensor_intrinsic import TensorIntrinsic, intrinsic_named
from .inference import Inference
from .loops import Predicate
from .stage_code import StageCode
from .views import StridedView, on_memory

_COMMUTATIVE = ("+", "*", "min", "max", "&", "|", "^", "==", "!=", "and", "or")


class MismatchError(LoopwrightError):
    """The loops of ``stage`` do not compute what its intrinsic does; ``rules/invariants.py`` tells the user."""

    stage: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class IntrinsicMatch:
    """The code in place of a stage's loops from number ``depth`` on.

    Where ``full`` does not hold, some iterations of the loops do not count, and the loops must stay; ``full_box`` is
    the same for the elements alone, which a reduction's ``reset`` stores.
    """

    depth: int
    update: Stmt
    full: Expr
    reset: Stmt | None
    full_box: Expr

    def update_or_loops(self, loops: Stmt) -> Stmt:
        """The intrinsic's code, with the loops beside it for the iterations in which ``full`` does not hold."""
        return self.update if self.full is TRUE else If(self.full, self.update, loops)

    def reset_or_loops(self, loops: Stmt, renamed: Mapping[Var, Expr]) -> Stmt:
        """``renamed`` are the variables of the loops in which a reduction is initialised."""
        if self.reset is None:
            return loops
        reset = substitute(self.reset, renamed)
        return reset if self.full_box is TRUE else If(substitute(self.full_box, renamed), reset, loops)


@dataclass(frozen=True, slots=True, eq=False)
class _Tile:
    """The part of a stage that the loops to replace compute. ``variables`` run over the tile's axes of more than one
    element, ``extents`` are theirs; ``loops`` are the variables of the loops to replace, with their extents."""

    variables: tuple[Axis, ...]
    loops: Mapping[Var, int]
    known: Inference
    facts: Facts

    def of_kind(self, kind: str) -> list[Axis]:
        return [axis for axis in self.variables if axis.kind == kind]


def find_match(code: StageCode, stage: Stage, guards: Sequence[Predicate]) -> IntrinsicMatch:
    """The intrinsic of a tensorized stage, put in place. ``guards`` are those inside the loops to replace.

    Raises ``MismatchError``.
    """
    try:
        return _find_match(code, stage, guards)
    except MismatchError as error:
        error.stage = stage.name
        raise


def _find_match(code: StageCode, stage: Stage, guards: Sequence[Predicate]) -> IntrinsicMatch:
    assert stage.tensorized is not None
    intrinsic = intrinsic_named(stage.tensorized.intrinsic)
    tile = _tile(code.known, stage, stage.tensorized_leaves)
    found = simplify(replace(code, known=tile.known).update(stage), tile.facts)
    if not isinstance(found, Store):
        raise MismatchError(f"{stage.name} has several outputs, an intrinsic has one")
    for values in _assignments(intrinsic, tile):
        placements = _Unifier(tile, values).placements(intrinsic, found)
        if placements is not None:
            reset = _reset(intrinsic, tile, stage)
            return IntrinsicMatch(
                len(stage.leaves) - len(stage.tensorized_leaves),
                on_memory(intrinsic.update, placements),
                _full_tile(tile, guards),
                None if reset is None else on_memory(reset, placements),
                _full_tile(tile, [g for g in guards if not g.reduce]),
            )
    raise MismatchError(_comparison(intrinsic, found, tile))


def _reset(intrinsic: TensorIntrinsic, tile: _Tile, stage: Stage) -> Stmt | None:
    """The intrinsic's reset if it stores what the stage's reduction begins with."""
    reduction = tile.known.reduction(stage)
    if reduction is None or intrinsic.identity is None:
        return None
    return intrinsic.reset if reduction.combiner.identity[0] is intrinsic.identity.value else None


def _tile(known: Inference, stage: Stage, leaves: Sequence[str]) -> _Tile:
    """The tile of the stage's axes that the loops run over; each axis must be affine in them, and whole."""
    loops = known.loops[stage.name]
    extents: dict[Var, int] = {}
    for leaf in leaves:
        extent = const_int(loops.extents[leaf])
        if extent is None or extent < 1:
            name = stage.loops[leaf].name
            raise MismatchError(f"loop {name} has extent {loops.extents[leaf]}, expected a positive constant")
        extents[loops.vars[leaf]] = extent
    values = dict(loops.values)
    variables: list[Axis] = []
    facts = known.facts
    for leaf in stage.leaves:
        facts = facts.with_range(loops.vars[leaf], ZERO, loops.extents[leaf])
    for loop, axis in stage.axis_of.items():
        base, size = _base_and_size(axis.name, values[loop], extents)
        values[loop] = base
        if size > 1:
            variables.append(Axis(index_var(axis.name), ZERO, const(size, "index"), axis.kind))
            values[loop] = base + variables[-1].var
            facts = facts.with_range(variables[-1].var, ZERO, variables[-1].extent)
    tiled = replace(loops, values=values)
    return _Tile(tuple(variables), extents, replace(known, loops={**known.loops, stage.name: tiled}), facts)


def _base_and_size(name: str, value: Expr, loops: Mapping[Var, int]) -> tuple[Expr, int]:
    """Where a tile begins on an axis, and how many elements it has there: loops count as digits, the inner ones low."""
    digits: list[tuple[int, int]] = []
    base = value
    for var, extent in loops.items():
        form = affine_in(base, var)
        if form is None:
            raise MismatchError(f"axis {name} is {value}, which is not affine in {var.name}: tensorize before fusing")
        factor, base = form
        if factor and extent > 1:
            digits.append((factor, extent))
    size = 1
    for factor, extent in sorted(digits):
        if factor != size:
            raise MismatchError(f"axis {name} is {value}: the loops do not run over elements that are neighbours")
        size *= extent
    return base, size


def _full_tile(tile: _Tile, guards: Sequence[Predicate]) -> Expr:
    """The condition that all iterations of the loops to replace count."""
    conditions = []
    for part in (part for guard in guards for part in conjuncts(guard.condition)):
        margin = margin_of(part) if isinstance(part, Compare) and part.a.dtype.is_index else None
        for var, extent in tile.loops.items():
            form = None if margin is None else affine_in(margin, var)
            if margin is None or form is None or buffers_accessed(part):
                raise MismatchError(f"the condition {part} chooses among the iterations of the loops")
            margin = substitute(margin, {var: ZERO if form[0] > 0 else const(extent - 1, "index")})
        assert margin is not None
        conditions.append(simplify(margin >= ZERO, tile.facts))
    return simplify(logical_and(conditions), tile.facts)


def _assignments(intrinsic: TensorIntrinsic, tile: _Tile) -> Iterator[dict[Var, Expr]]:
    """The ways to take the tile's axes for the intrinsic's; axes of one element are left out on both sides."""
    values: dict[Var, Expr] = {a.var: ZERO for a in intrinsic.axes if a.extent is ONE}
    choices: list[list[dict[Var, Expr]]] = []
    for kind in ("spatial", "reduce"):
        declared = [a for a in intrinsic.axes if a.kind == kind and a.extent is not ONE]
        own = tile.of_kind(kind)
        choices.append(
            [
                {d.var: o.var for d, o in zip(declared, order, strict=True)}
                for order in itertools.permutations(own)
                if len(own) == len(declared) and all(d.extent is o.extent for d, o in zip(declared, order, strict=True))
            ]
        )
    for spatial, reduce in itertools.product(*choices):
        yield {**values, **spatial, **reduce}


@dataclass(slots=True, eq=False)
class _Unifier:
    """Compares a declared statement with a found one. Mutable: ``placed`` are the views that have been found."""

    tile: _Tile
    values: Mapping[Var, Expr]
    placed: dict[Buffer, StridedView] = field(default_factory=dict)

    def placements(self, intrinsic: TensorIntrinsic, found: Store) -> dict[Buffer, StridedView] | None:
        """Where the intrinsic's views lie if the statements are the same."""
        declared = intrinsic.declared
        element = tuple(substitute(i, self.values) for i in declared.indices)
        same = self._place(declared.buffer, element, found.buffer, found.indices)
        declared_value = simplify(substitute(declared.value, self.values), self.tile.facts)
        same = same and self._same(declared_value, found.value)
        return self.placed if same and len(self.placed) == len(intrinsic.views) else None

    def _same(self, declared: Expr, found: Expr) -> bool:
        if isinstance(declared, Load) and isinstance(found, Load):
            return found.mask is None and self._place(declared.buffer, declared.indices, found.buffer, found.indices)
        if declared is found:
            return True
        if type(declared) is not type(found) or declared.dtype is not found.dtype:
            return False
        if any(getattr(declared, name, None) != getattr(found, name, None) for name in ("op", "name")):
            return False
        a, b = children(declared), children(found)
        if not a or len(a) != len(b):
            return False
        orders = [b, b[::-1]] if getattr(declared, "op", None) in _COMMUTATIVE else [b]
        return any(self._all_same(a, order) for order in orders)

    def _all_same(self, declared: Sequence[Node], found: Sequence[Node]) -> bool:
        before = dict(self.placed)
        if all(self._same(a, b) for a, b in zip(declared, found, strict=True)):  # type: ignore[arg-type]
            return True
        self.placed = before
        return False

    def _place(self, view: Buffer, own: tuple[Expr, ...], memory: Buffer, indices: tuple[Expr, ...]) -> bool:
        """Lay the view where the found access goes; false if that moves otherwise, or the view lies elsewhere."""
        flat = StridedView(flat_view(memory), buffer_strides(memory), memory.elem_offset)
        address = self._by_variable(simplify(flat.position(indices)[0], self.tile.facts))
        if address is None or memory.dtype is not view.dtype:
            return False
        moves, offset = address
        strides: list[Expr] = []
        for index, fixed in zip(own, buffer_strides(view), strict=True):
            form = linear_of(index)
            along = [term.factors[0] for term in form.terms.values()]
            steps = [moves.pop(v, ZERO) for v in along if isinstance(v, Var)]
            if isinstance(fixed, Const):  # elements lie side by side
                steps.append(fixed)
                offset = simplify(offset - fixed * form.constant)
            if any(difference(step, steps[0]) != 0 for step in steps):
                return False
            strides.append(steps[0] if steps else ONE)
        if moves:
            return False
        placement = StridedView(flat.memory, tuple(strides), offset)
        known = self.placed.setdefault(view, placement)
        pairs = zip((*known.strides, known.offset), (*strides, offset), strict=True)
        return known.memory.data is memory.data and all(difference(a, b) == 0 for a, b in pairs)

    def _by_variable(self, address: Expr) -> tuple[dict[Var, Expr], Expr] | None:
        """How much an address moves with each axis of the tile, and where it begins; None if it is not affine."""
        variables = {axis.var for axis in self.tile.variables}
        moves: dict[Var, Linear] = {}
        form = linear_of(address)
        offset = Linear(form.kind, {}, form.constant)
        terms = [(term.coefficient, term.factors) for term in form.terms.values()]
        while terms:
            coefficient, factors = terms.pop()
            moves_with = [any(node in variables for node in walk(f)) for f in factors]
            moving = [f for f, moved in zip(factors, moves_with, strict=True) if moved]
            others = tuple(f for f, moved in zip(factors, moves_with, strict=True) if not moved)
            if len(moving) > 1:
                return None
            if not moving:
                offset.accumulate(coefficient, others)
            elif isinstance(moving[0], Var):
                moves.setdefault(moving[0], Linear(form.kind)).accumulate(coefficient, others)
            else:  # a sum, to be multiplied out
                inner = linear_of(moving[0])
                if any(t.factors[0] is moving[0] for t in inner.terms.values()):
                    return None
                terms += [(coefficient * t.coefficient, (*others, *t.factors)) for t in inner.terms.values()]
                offset.accumulate(coefficient * inner.constant, others)
        return {var: expr_of(move) for var, move in moves.items()}, expr_of(offset)


def _comparison(intrinsic: TensorIntrinsic, found: Store, tile: _Tile) -> str:
    """What was declared and what was found, each with its axes."""
    declared_axes = [axis for axis in intrinsic.axes if axis.extent is not ONE]
    return (
        f"the loops do not compute what {intrinsic.name} does\n"
        f"  declared: {_axes_text(declared_axes)}{simplify(intrinsic.declared)}\n"
        f"  found:    {_axes_text(tile.variables)}{found}"
    )


def _axes_text(axes: Sequence[Axis]) -> str:
    sizes = [f"{axis.name} < {axis.extent}{' (reduced)' if axis.kind == 'reduce' else ''}" for axis in axes]
    return f"for {', '.join(sizes)}: " if sizes else ""

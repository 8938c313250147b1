"""Intrinsics for random schedules: some of four elements, and ones that do what a tile of a stage's loops does."""

import functools
import hashlib

import loopwright as lw
from loopwright import te
from loopwright.ir.build import index_var
from loopwright.ir.constants import ONE, ZERO, const, const_int
from loopwright.ir.contents import substitute
from loopwright.ir.expr import Axis, Load, Ramp, Reduce, TensorRead, Var
from loopwright.ir.makers import as_index, broadcast_to, maximum, minimum
from loopwright.ir.simplify import simplify
from loopwright.ir.stmt import For, Store
from loopwright.ir.visit import rewrite, walk
from loopwright.lowering.nest.bodies import inline_bodies
from loopwright.lowering.nest.regions import loops_of
from loopwright.te.tensor import make_compute, make_placeholder

MAX_TILE = 64


def clamped(value):
    return minimum(maximum(value, -8.0), 8.0) if value.dtype.is_float else value


@functools.cache
def declare_intrinsics(kind):
    """The names of intrinsics over four elements: what ``map`` and ``matmul`` compute."""
    a, b = te.placeholder((4,), kind, name="a"), te.placeholder((4,), kind, name="b")
    k = te.reduce_axis((0, 4), name="k")
    plus = te.compute((4,), lambda i: clamped(a[i]) + 1, name="plus")
    dot = te.compute((), lambda: te.sum(clamped(a[k]) * clamped(b[k]), axis=k), name="dot")

    def add_one(a, out):
        lanes = Ramp(as_index(0), as_index(1), 4)
        four = clamped(Load(a, (lanes,)))
        return Store(out, (lanes,), four + broadcast_to(const(1, kind), 4))

    def multiply_add(a, b, out):
        total = Load(out, ())
        for n in range(4):
            total = total + clamped(Load(a, (as_index(n),))) * clamped(Load(b, (as_index(n),)))
        return Store(out, (), total)

    lw.declare_intrinsic(f"plus_{kind}", plus, add_one, override=True)
    lw.declare_intrinsic(f"dot_{kind}", dot, multiply_add, lambda out: Store(out, (), const(0, kind)), override=True)
    return (f"plus_{kind}", f"dot_{kind}")


def declare_for(state, stage, loop):
    """The name of an intrinsic that does what the loop and those inside it do, as well as can be told."""
    if loop not in stage.leaves:
        raise lw.ScheduleError("the loop does not stand")
    loops = loops_of(state, stage)
    inner = {loops.vars[leaf]: const_int(loops.extents[leaf]) for leaf in stage.leaves[stage.leaves.index(loop) :]}
    if not all(inner.values()):
        raise lw.ScheduleError("the tile has no constant size")
    axes, values, size = [], {}, 1
    for name, axis in stage.axis_of.items():
        ends = (
            simplify(substitute(loops.values[name], {v: as_index(e - 1) for v, e in inner.items()})),
            loops.values[name],
        )
        begin = substitute(loops.values[name], dict.fromkeys(inner, ZERO))
        extent = const_int(simplify(ends[0] - begin + ONE)) or 1
        axes.append(Axis(index_var(axis.name), ZERO, as_index(extent), axis.kind))
        values[axis.var] = axes[-1].var if extent > 1 else ZERO
        size *= extent
    bodies = inline_bodies(state).get(stage.name, ())
    if size > MAX_TILE or len(bodies) != 1:
        raise lw.ScheduleError("the tile is too large, or has not one output")
    op = _compute(bodies[0], axes, values)
    text = f"{op.body[0]} {[str(a.extent) for a in axes]} {op.body[0].dtype} {[str(t) for t in op.inputs]}"
    name = f"tile_{hashlib.sha256(text.encode()).hexdigest()[:12]}"
    return lw.declare_intrinsic(name, op.outputs[0], _Code(op), override=True).name


def _compute(body, axes, values):
    """The body over the tile: each different read is an operand of its own, of the axes in its indices."""
    operands = {}

    def to_operand(node):
        if not isinstance(node, TensorRead):
            return None
        if node not in operands:
            used = [a for a in axes if a.extent is not ONE and any(a.var is v for i in node.indices for v in walk(i))]
            tensor = make_placeholder(f"x{len(operands)}", node.dtype, tuple(a.extent for a in used))
            operands[node] = tensor[tuple(a.var for a in used)]
        return operands[node]

    spatial, reduced = ([a for a in axes if a.kind == kind] for kind in ("spatial", "reduce"))
    if isinstance(body, Reduce):
        source = rewrite(substitute(body.sources[0], values), to_operand)
        made = Reduce(body.combiner, (source,), tuple(reduced), body.condition, 0)
    else:
        made = rewrite(substitute(body, values), to_operand)
    return make_compute("y", tuple(spatial), (made,))


class _Code:
    """The compute as loops over its axes, the last axis outermost; ``update`` of an intrinsic."""

    def __init__(self, op):
        self.op = op

    def __call__(self, *views):
        view_of = dict(zip((*self.op.inputs, self.op.outputs[0]), views, strict=True))

        def to_load(node):
            return Load(view_of[node.tensor], node.indices) if isinstance(node, TensorRead) else None

        axes = (*self.op.axis, *self.op.reduce_axis)
        fresh = {a.var: Var(a.var.name, a.var.dtype) for a in axes}
        output, body = views[-1], self.op.body[0]
        place = tuple(a.var for a in self.op.axis)
        if isinstance(body, Reduce):
            combiner = body.combiner
            terms = {combiner.lhs[0]: Load(output, place), combiner.rhs[0]: rewrite(body.sources[0], to_load)}
            value = substitute(combiner.results[0], terms)
        else:
            value = rewrite(body, to_load)
        stmt = substitute(Store(output, place, value), fresh)
        for axis in axes:
            stmt = For(fresh[axis.var], ZERO, axis.extent, "serial", stmt)
        return stmt

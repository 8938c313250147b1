"""Random computes with random schedules, from plans: JSON values that tests draw and a child process can read."""

import functools
import itertools
from contextlib import ExitStack
from typing import NamedTuple, get_args

import numpy as np
from random_intrinsics import declare_for

import loopwright as lw
from loopwright import te
from loopwright.ir.expr import Const, Load, Ramp, Var, as_index, broadcast_to, const, maximum, minimum
from loopwright.ir.simplify import simplify
from loopwright.ir.stmt import Store
from loopwright.ir.visit import substitute
from loopwright.lowering.state import After, Tail
from loopwright.lowering.step import primitives

MAX_ELEMENTS = 400
TARGETS = ("native", "x86-64", "x86-64-v3")
KINDS = ("int32", "float32", "float64", "int8", "uint8")
SIZES = (3, 0, 1, 2, 4, 5, 7, 8, 11, 13)
NUMBERS = (4, 1, 2, 3, 5, 8, 16, 0, -1, 11, 13)
"""Factors; 11 also names loops that stand no more, 13 also inputs."""
PRIMITIVES = (*(name for name in primitives() if name != "split"), *(f"split/{tail}" for tail in get_args(Tail)))
"""What ``apply_step`` knows. The kinds of tails count as primitives of their own."""


class Program(NamedTuple):
    """What a plan computes: arguments in order, inputs first, which of them are outputs, and the dimensions' values."""

    inputs: list[lw.Tensor]
    outputs: list[lw.Tensor]
    sizes: dict[Var, int]

    @property
    def args(self):
        return [*self.inputs, *self.outputs]

    def shape(self, tensor):
        return concrete(tensor.shape, self.sizes)

    def arrays(self, seed):
        rng = np.random.default_rng(seed)
        made = []
        for tensor in self.inputs:
            kind = tensor.dtype.to_numpy()
            low = 0 if tensor.dtype.kind in ("uint", "bool") else -4
            made.append(rng.integers(low, 2 if tensor.dtype.is_bool else 5, self.shape(tensor)).astype(kind))
        return [*made, *(np.full(self.shape(t), 77).astype(t.dtype.to_numpy()) for t in self.outputs)]


def concrete(shape, sizes):
    values = {var: as_index(size) for var, size in sizes.items()}
    extents = [simplify(substitute(extent, values)) for extent in shape]
    assert all(isinstance(e, Const) for e in extents), extents
    return [int(e) for e in extents]


class _Builder:
    """Makes the stages of a plan. Mutable: ``pool`` holds the tensors so far."""

    def __init__(self, plan):
        self.kind = plan["dtype"]
        self.sizes = {}
        extents = []
        for size, symbolic in zip(plan["sizes"], plan["symbolic"], strict=True):
            if symbolic:
                var = te.var(f"n{len(self.sizes)}")
                self.sizes[var] = size
                extents.append(var)
            else:
                extents.append(size)
        n, m = extents
        self.inputs = [te.placeholder(s, self.kind, name=x) for s, x in (((n, m), "A"), ((m,), "B"), ((n, m), "C"))]
        self.pool = list(self.inputs)

    def add(self, number, form, a, b, c):
        X = self.pool[-1 - a % len(self.pool)]
        Y = self.pool[b % len(self.pool)]
        made = getattr(self, f"_{form}")(f"S{number}", X, Y, c)
        if made is None:
            return
        made = made if isinstance(made, tuple) else (made,)
        if np.prod(concrete(made[0].shape, self.sizes), dtype=int) <= MAX_ELEMENTS:
            self.pool += made

    def get(self, X, *indices):
        """An element; floats are kept small whole numbers, so that every order of adding gives the same."""
        value = X[indices]
        if X.dtype.is_float:
            value = te.minimum(te.maximum(value, -8.0), 8.0)
        return value if X.dtype.element is self.inputs[0].dtype else te.cast(value, self.kind)

    def _map(self, name, X, Y, c):
        def body(*i):
            x = self.get(X, *i)
            return (
                lambda: x + 1,
                lambda: te.select(x > 2, x, x * 2),
                lambda: -x,
                lambda: x + te.cast(i[0] * 3 + len(i), self.kind) if i else x,
                lambda: te.abs(x),
                lambda: te.minimum(x, 3) - te.maximum(x, -3 if self.kind not in ("uint8", "uint32") else 1),
            )[c % 6]()

        return te.compute(X.shape, body, name=name)

    def _zip(self, name, X, Y, c):
        def same(a, b):
            return len(a) == len(b) and all(x is y for x, y in zip(a, b, strict=True))

        def other(i):
            for skip in range(len(i) + 1):
                if same(X.shape[skip:], Y.shape):
                    return self.get(Y, *i[skip:])
            return self.get(X, *(e - 1 - v for e, v in zip(X.shape, i, strict=True)))

        def body(*i):
            x, y = self.get(X, *i), other(i)
            return (x + y, x - y, te.maximum(x, y), te.select(x < y, y, x) * 2)[c % 4]

        return te.compute(X.shape, body, name=name)

    def _two(self, name, X, Y, c):
        return te.compute(X.shape, lambda *i: (self.get(X, *i) + 1, self.get(X, *i) * 2), name=name)

    def _along(self, name, X, extent, index, c):
        """A compute that reads X with another index in one dimension."""
        if not X.ndim:
            return None
        d = c % X.ndim
        shape = (*X.shape[:d], extent(X.shape[d]), *X.shape[d + 1 :])
        return te.compute(
            shape,
            lambda *i: index(X.shape[d], i[d], lambda at: self.get(X, *i[:d], at, *i[d + 1 :])),
            name=name,
        )

    def _pad(self, name, X, Y, c):
        return self._along(
            name,
            X,
            lambda n: n + 2,
            lambda n, i, at: te.if_then_else(te.all(i >= 1, i < n + 1), at(i - 1), te.const(0, self.kind)),
            c,
        )

    def _stencil(self, name, X, Y, c):
        def clamp(i, n):
            return te.maximum(te.minimum(i, n - 1), 0)

        return self._along(
            name, X, lambda n: n, lambda n, i, at: at(clamp(i - 1, n)) + at(i) * 2 + at(clamp(i + 1, n)), c
        )

    def _reverse(self, name, X, Y, c):
        return self._along(name, X, lambda n: n, lambda n, i, at: at(n - 1 - i), c)

    def _half(self, name, X, Y, c):
        return self._along(name, X, lambda n: (n + 1) // 2, lambda n, i, at: at(i * 2), c)

    def _double(self, name, X, Y, c):
        return self._along(name, X, lambda n: n * 2, lambda n, i, at: at(i // 2) + te.cast(i % 2, self.kind), c)

    def _transpose(self, name, X, Y, c):
        return te.compute(X.shape[::-1], lambda *i: self.get(X, *i[::-1]), name=name)

    def _flatten(self, name, X, Y, c):
        if X.ndim != 2:
            return None
        n, m = X.shape
        return te.compute((n * m,), lambda i: self.get(X, i // m, i % m), name=name)

    def _fold(self, name, X, Y, c):
        if X.ndim != 1:
            return None
        (n,) = X.shape
        width = 2 + c % 3
        zero = te.const(1, self.kind)
        return te.compute(
            ((n + width - 1) // width, width),
            lambda i, j: te.if_then_else(i * width + j < n, self.get(X, i * width + j), zero),
            name=name,
        )

    def _gather(self, name, X, Y, c):
        def pick(n, i, at):
            source = te.cast(self.get(Y, *(te.minimum(i, e - 1) for e in Y.shape)), "index")
            return te.if_then_else(te.all(source >= 0, source < n), at(source), te.const(5, self.kind))

        if any(e == 0 for e in concrete(Y.shape, self.sizes)):
            return None
        return self._along(name, X, lambda n: n, pick, c)

    def _reduce(self, name, X, Y, c):
        if not X.ndim:
            return None
        d = c % X.ndim
        r = te.reduce_axis((0, X.shape[d]), name="r")
        fold = (te.sum, te.max, te.min, te.prod if X in set(self.inputs) else te.sum)[c // 2 % 4]

        def body(*i):
            value = self.get(X, *i[:d], r, *i[d:])
            where = (None, None, value > 1, te.all(r.var >= i[0]) if i else None, i[0] > 0 if i else None)[c // 8 % 5]
            return fold(value, axis=r, where=where)

        if X.dtype.is_float and fold in (te.max, te.min) and c // 8 % 5 > 1:
            return None
        return te.compute((*X.shape[:d], *X.shape[d + 1 :]), body, name=name)

    def _any(self, name, X, Y, c):
        if not X.ndim:
            return None
        r = te.reduce_axis((0, X.shape[-1]), name="r")
        fold = (te.any, te.all)[c % 2]
        return te.compute(X.shape[:-1], lambda *i: fold(self.get(X, *i, r) > 0, axis=r), name=name)

    def _arg(self, name, X, Y, c):
        if not X.ndim:
            return None
        d = c % X.ndim
        r = te.reduce_axis((0, X.shape[d]), name="r")
        fold = (te.argmin, te.argmax)[c // 2 % 2]

        def body(*i):
            pair = fold(self.get(X, *i[:d], r, *i[d:]), axis=r, index_dtype="int32")
            return pair[::-1] if c // 4 % 2 else pair

        return te.compute((*X.shape[:d], *X.shape[d + 1 :]), body, name=name)

    def _moments(self, name, X, Y, c):
        if X.ndim != 2:
            return None
        axes = (te.reduce_axis((0, X.shape[0]), name="p"), te.reduce_axis((0, X.shape[1]), name="q"))
        moments = te.reducer(
            "moments", lambda a, b: (a[0] + b[0], a[1] + b[1]), lambda kinds: [te.const(0, k) for k in kinds]
        )

        def body(i):
            x = self.get(X, *axes)
            return moments((x, x * te.cast(i + 1, self.kind)), axis=axes)

        return te.compute((2 + c % 3,), body, name=name)

    def _matmul(self, name, X, Y, c):
        if X.ndim != 2:
            return None
        r = te.reduce_axis((0, X.shape[1]), name="r")
        n = X.shape[0]
        return te.compute((n, n), lambda i, j: te.sum(self.get(X, i, r) * self.get(X, j, r), axis=r), name=name)

    def _window(self, name, X, Y, c):
        if not X.ndim:
            return None
        size, stride = 2 + c // 2 % 2, 1 + c // 4 % 3
        r = te.reduce_axis((0, size), name="w")
        d, zero = c % X.ndim, te.const(0, self.kind)
        n = X.shape[d]

        def body(*i):
            at = i[d] * stride + r - 1
            value = te.if_then_else(te.all(at >= 0, at < n), self.get(X, *i[:d], at, *i[d + 1 :]), zero)
            return (te.sum, te.max)[c // 12 % 2](value, axis=r)

        return te.compute((*X.shape[:d], (n + 2 - size) // stride + 1, *X.shape[d + 1 :]), body, name=name)

    def _scan(self, name, X, Y, c):
        if not X.ndim:
            return None
        steps, shape = 1 + c % 2, X.shape
        state = te.scan_state(shape, self.kind, name=f"{name}_state")
        first = te.compute((steps, *shape[1:]), lambda t, *i: te.cast(t + len(i), self.kind), name=f"{name}_first")

        def cell(t, *i):
            turned = (*i[:-1], shape[-1] - 1 - i[-1]) if i and c // 2 % 2 else i
            return self.get(state, t - steps, *turned) + self.get(X, t, *i)

        def folded(t, *i):
            r = te.reduce_axis((0, shape[-1]), name="r")
            return te.max(cell(t, *i[:-1], r), axis=r)

        made = te.compute(shape, folded if len(shape) > 1 and c // 4 % 2 else cell, name=f"{name}_cell")
        step = te.compute(shape, lambda t, *i: self.get(made, t, *i) - self.get(state, t - 1, *i), name=f"{name}_step")
        return te.scan(first, step, state, name=name)

    def _extern(self, name, X, Y, c):
        """Along the last dimension, differences to the element before."""
        if not X.ndim:
            return None

        def differences(ins, outs):
            ib = te.IRBuilder()
            A, B = ib.buffer_ptr(ins[0]), ib.buffer_ptr(outs[0])
            with ExitStack() as loops:
                kind = "parallel" if c % 2 else "serial"
                i = [loops.enter_context(ib.for_range(0, e, kind=kind)) for e in X.shape[:-1]]
                j = ib.allocate("index", (), "j")
                j[()] = 0
                with ib.while_loop(j[()] < X.shape[-1]):
                    before = te.if_then_else(j[()] > 0, A[*i, j[()] - 1], te.const(0, X.dtype))
                    B[*i, j[()]] = A[*i, j[()]] != before if X.dtype.is_bool else A[*i, j[()]] - before
                    j[()] = j[()] + 1
            return ib.get()

        return te.extern(X.shape, [X], differences, name=name)

    def _ragged(self, name, X, Y, c):
        """Reductions along the first dimension, of which the bounds depend on the element, or are read."""
        if not X.ndim or any(e == 0 for e in concrete(Y.shape, self.sizes)):
            return None
        fold = te.max if c % 2 else te.sum

        def bounds(i):
            if c // 2 % 2:
                return te.minimum(i, X.shape[0]), te.minimum(i * 2, X.shape[0])
            begin = te.cast(self.get(Y, *(te.minimum(i, e - 1) for e in Y.shape)), "index")
            begin = te.minimum(te.maximum(begin, 0), X.shape[0])
            return begin, te.minimum(begin + c // 4 % 4, X.shape[0])

        def body(i, *rest):
            r = te.reduce_axis(bounds(i), name="r")
            return fold(self.get(X, r, *rest), axis=r)

        if fold is te.max and X.dtype.is_float:
            return None  # infinities come of what is empty
        return te.compute((3 + c % 5, *X.shape[1:]), body, name=name)


FORMS = sorted(name[1:] for name in vars(_Builder) if name[0] == "_" and name[1] != "_" and name != "_along")


def make_program(plan):
    """The computes of a plan."""
    builder = _Builder(plan)
    for number, (form, a, b, c) in enumerate(plan["stages"]):
        builder.add(number, form, a, b, c)
    if len(builder.pool) == len(builder.inputs):
        builder.add(99, "map", 0, 0, 0)
    last = builder.pool[-1]
    extra = builder.pool[-1 - plan["extra"] % len(builder.pool)]
    ops = [last.op] if extra in set(builder.inputs) or extra.op is last.op else [extra.op, last.op]
    outputs = [tensor for op in ops for tensor in op.outputs]
    state = lw.create_schedule(outputs).state
    used = {tensor for stage in state.stages for tensor in stage.tensors}
    return Program([t for t in builder.inputs if t in used], outputs, builder.sizes)


def apply_step(s, step):
    """One primitive with arguments that may be illegal. Raises what the primitive raises."""
    primitive, which, x, y, number = step
    stages = s.state.stages
    computed = [stage for stage in stages if not stage.is_input]
    stage = (stages if number == 13 else computed)[which % len(stages if number == 13 else computed)]
    named = (list(stage.loops) if number == 11 else list(stage.leaves)) or ["none#0"]
    loop = named[x % len(named)]
    view, others = s[stage.name], computed[y % len(computed)]
    match primitive:
        case "compute_inline" | "compute_root":
            getattr(view, primitive)()
        case "vectorize" | "unroll" | "parallel":
            getattr(view, primitive)(loop)
        case _ if primitive.startswith("split/") and y == 7:
            view.tile(loop, named[(x + 1) % len(named)], number, 4, tail=primitive.removeprefix("split/"))
        case _ if primitive.startswith("split/"):
            parts = "nparts" if y % 4 == 3 else "factor"
            view.split(loop, tail=primitive.removeprefix("split/"), **{parts: number})
        case "fuse":
            view.fuse(loop, named[(x % len(named) + 1 if y % 4 else y) % len(named)])
        case "reorder":
            shuffled = np.random.default_rng([x, y]).permutation(len(named))
            view.reorder(*(named[k] for k in shuffled[: 2 + number]))
        case "compute_at":
            consumers = s.state.consumers(stage)
            target = consumers[y % len(consumers)] if consumers and number % 4 else others
            loops = list(target.leaves) or ["none#0"]
            view.compute_at(s[target.name], loops[x % len(loops)])
        case "reverse_compute_at":
            producers = [p for p in computed if stage in s.state.consumers(p)]
            target = producers[y % len(producers)] if producers and number % 4 else others
            while number % 8 > 3 and isinstance(target.place, After):  # into a nest that others are in already
                target = s.state.stage(target.place.stage)
            loops = list(target.leaves) or ["none#0"]
            view.reverse_compute_at(s[target.name], loops[x % len(loops)])
        case "cache_write":
            s.cache_write(stage.name, ("local", "global")[number % 2])
        case "cache_read":
            source = stages[which % len(stages)]
            readers = [r.name for r in s.state.consumers(source)][: 1 + y % 2] or [others.name]
            s.cache_read(source.name, ("local", "global")[number % 2], readers)
        case "rfactor":
            reductions = [c for c in computed if any(loop.reduce for loop in c.loops.values())]
            chosen = reductions[which % len(reductions)] if reductions and number % 4 else stage
            loops = [leaf for leaf in chosen.leaves if chosen.loops[leaf].reduce or y % 4 == 3] or ["none#0"]
            s.rfactor(chosen.name, loops[x % len(loops)], factor_axis=(0, -1, 1, 0)[y % 4])
        case "set_scope" | "storage_align" | "transform_layout":
            inner = [c for c in computed if c.name not in s.state.outputs] or computed
            apply_storage(s[(inner if number > 0 else computed)[which % len(inner)].name], primitive, x, y, number)
        case "tensorize":
            tensorize_somewhere(s, which, x, number)
        case "prefetch":
            read = [other for other in stages if stage in s.state.consumers(other)] or computed
            view.prefetch(read[y % len(read)].name, loop, number)
        case "annotate":
            key = ("partition", "mine.note", "mine.other", "partiton")[y % 4]
            view.annotate(loop, key, False if key == "partition" else number)
        case _:
            raise AssertionError(f"apply_step does not know {primitive}")


LAYOUTS = (
    ("lambda i: (i // 4, i % 4)", "lambda i: i * 2 + 1", "lambda i: i // 2", "lambda i: 7 - i"),
    ("lambda i, j: (j, i)", "lambda i, j: (j // 4, i, j % 4)", "lambda i, j: (i, i + j)", "lambda i, j: i + j"),
)
"""Index maps of one and of two dimensions; the last ones of each may not do."""


def apply_storage(view, primitive, x, y, number):
    if primitive == "set_scope":
        view.set_scope(("global", "local", "register", "nowhere")[y % 4 if x else y % 3])
    elif primitive == "storage_align":
        view.storage_align(x % 2 if number == 16 else 0, number, y % 3)
    else:
        maps = LAYOUTS[min(view.op.outputs[0].ndim, 2) - 1]
        view.transform_layout(maps[y % len(maps)])


def tensorize_somewhere(s, which, x, number):
    """At the first place where it is legal, of all innermost loops or of all loops; or else at one where an intrinsic
    is made to measure, or where it is not legal."""
    places = [(stage.name, leaf) for stage in s.state.stages for leaf in stage.leaves[-1 if x else 0 :]]
    places = places[which % max(len(places), 1) :] + places or [("none", "none#0")]
    kind = next((stage.tensors[0].dtype for stage in s.state.stages if stage.is_input), "int32")
    names = declare_intrinsics(str(kind)) if number != 11 else ["nothing"]
    for (stage, leaf), name in itertools.product(places[: 4 if number != 13 else 1], names):
        try:
            return s[stage].tensorize(leaf, name)
        except lw.ScheduleError:
            continue
    stage, leaf = places[0]
    return s[stage].tensorize(leaf, declare_for(s.state, s.state.stage(stage), leaf) if number > 1 else names[0])


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


def make_schedule(program, plan, print_each=True):
    """The schedule of a plan, and the refusals met on the way. A refused step leaves all as it was; after each of the
    others the schedule is printed, or only after the last."""
    s = lw.create_schedule(program.outputs)
    refusals = []
    for step in plan["steps"]:
        before, trace = s.state, s.trace
        try:
            apply_step(s, step)
            assert not print_each or str(s)
        except lw.ScheduleError as error:
            refusals.append(f"{step}: {error}")
            unchanged = s.state is before and s.trace == trace
            assert unchanged, f"the refused {step} changed the schedule"
    assert str(s)
    return s, refusals

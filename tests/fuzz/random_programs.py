"""Random computes, from plans: elementwise, stencils, windows, reductions, scans, externs … over the stages before."""

from contextlib import ExitStack
from typing import NamedTuple

import numpy as np

import loopwright as lw
from loopwright import te
from loopwright.ir.contents import substitute
from loopwright.ir.expr import Const, Var
from loopwright.ir.makers import as_index
from loopwright.ir.simplify import simplify

MAX_ELEMENTS = 400
KINDS = ("int32", "float32", "float64", "int8", "uint8")
SIZES = (3, 0, 1, 2, 4, 5, 7, 8, 11, 13)


class Program(NamedTuple):
    """What a plan computes: arguments in order, inputs first, which of them are outputs, the dimensions' values, and
    what stands among the numbers of the inputs."""

    inputs: list[lw.Tensor]
    outputs: list[lw.Tensor]
    sizes: dict[Var, int]
    outliers: tuple[float, ...] = ()

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
            if self.outliers and made[-1].size:
                place = rng.integers(made[-1].size)
                with np.errstate(over="ignore"):
                    made[-1].reshape(-1)[place] = kind.type(self.outliers[rng.integers(len(self.outliers))])
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

    def _clamped(self, name, X, Y, c):
        """Reads that are clamped on one side, or in all dimensions."""
        if c % 4 == 3:
            last = [n - 1 for n in X.shape]

            def corner(*i):
                return self.get(X, *(te.minimum(v + 1, n) for v, n in zip(i, last, strict=True)))

            return te.compute(
                X.shape, lambda *i: corner(*i) - self.get(X, *(te.maximum(v - 1, 0) for v in i)), name=name
            )
        sides = (
            lambda n, i, at: at(te.maximum(i - 1, 0)) + at(i),
            lambda n, i, at: at(te.minimum(i + 2, n - 1)) - at(i),
            lambda n, i, at: at(te.maximum(te.minimum(i * 2 - 1, n - 1), 0)),
        )
        return self._along(name, X, lambda n: n, sides[c % 4], c // 4)

    def _border(self, name, X, Y, c):
        """Neighbours beyond the ends: by choices of indices or of reads, or of a padded tensor."""
        if not X.ndim or any(e == 0 for e in concrete(X.shape, self.sizes)):
            return None
        chosen = (
            lambda n, i, at: at(te.select(i >= 1, i - 1, 0)) + at(te.select(i > n - 3, n - 1, i + 2)),
            lambda n, i, at: te.if_then_else(i < 1, at(n - 1), at(i - 1)) + at(i),
            lambda n, i, at: at((i + n - 1) % n) - at((i + 1) % n),
        )
        if c // 4 % 5 < len(chosen):
            return self._along(name, X, lambda n: n, chosen[c // 4 % 5], c)
        d, mode = c % X.ndim, ("constant", "edge", "reflect", "wrap")[c // X.ndim % 4]
        around = [2 if axis == d else 0 for axis in range(X.ndim)]
        padded = te.pad(X, around, mode=mode, name=f"{name}_padded")
        ahead = te.compute(
            X.shape, lambda *i: self.get(padded, *(v + a for v, a in zip(i, around, strict=True))), name=f"{name}_ahead"
        )

        def body(*i):
            first, last = (self.get(padded, *i[:d], i[d] + k, *i[d + 1 :]) for k in (0, 4))
            return first * 2 - last + self.get(ahead, *i)

        return padded, ahead, te.compute(X.shape, body, name=name)

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

    def _running(self, name, X, Y, c):
        """Running folds along the first dimension, from the begin or the end, with the element itself or without."""
        if not X.ndim:
            return None
        (n, *_), fold, reverse = X.shape, te.max if c % 2 else te.sum, c // 2 % 2

        def body(k, *rest):
            r = te.reduce_axis((0, (n - k if reverse else k + 1) - c // 4 % 2), name="r")
            return fold(self.get(X, n - 1 - r if reverse else r, *rest), axis=r)

        if fold is te.max and X.dtype.is_float:
            return None  # infinities come of what is empty
        return te.compute(X.shape, body, name=name)


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
    return Program([t for t in builder.inputs if t in used], outputs, builder.sizes, outliers_of(plan))


def outliers_of(plan):
    """What the plan puts among the numbers of the inputs; plans from before there were outliers have none."""
    if not plan.get("outliers"):
        return ()
    kind = np.dtype(plan["dtype"])
    if kind.kind != "f":
        return (np.iinfo(kind).min, np.iinfo(kind).max)
    limits = np.finfo(kind)
    return (1e10, 1e38, limits.min, limits.smallest_subnormal, -0.0, np.inf, -np.inf, np.nan)

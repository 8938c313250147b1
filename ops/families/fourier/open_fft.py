"""``nn.open_fft``: the discrete Fourier transform along an axis whose extent only a run knows, in n log n steps.

The stages are those of ``nn.fft`` (Stockham's), but a run finds the radices: it divides what is left of the length by
the first of ``RADICES`` that divides it. A length with other factors is a convolution by a chirp, made of transforms of
a longer length (Bluestein, "A Linear Filtering Approach to the Computation of the Discrete Fourier Transform", 1970):
the extent of ``roots`` says which, so that the same loops serve the transform of the chirp, and both ways of the rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import ExitStack

from .... import te
from ....base.dataclass import dataclass
from ....base.errors import TypeInferenceError
from ....graph.types import TensorType, Type
from ....ir.buffer import Buffer
from ....ir.builder import BufferPtr, IRBuilder
from ....ir.constants import const_int
from ....ir.expr import Expr
from ....ir.makers import as_index
from ....ir.simplify import simplify
from ....ir.stmt import Stmt
from ....te.tensor import Tensors
from ...definition.attrs import Attrs, attr
from ...definition.registry import OpPattern, register_op
from ...definition.relations import same_dtype, tensor_argument
from ...definition.strategy import register_compute
from .butterfly import Complex, butterfly

RADICES = (8, 4, 2, 5, 3, 7)
"""The butterflies of a run's lengths; each of them is code for neighbours as vectors, and one by one."""
LANES = 8


@dataclass(frozen=True)
class OpenFftAttrs(Attrs):
    """The attributes of ``nn.open_fft``."""

    onesided: bool = attr("whether the first length // 2 + 1 results are kept, not all", default=False)
    inverse: bool = attr("whether it is the inverse transform, divided by the length", default=False)


def _relation(types: Sequence[Type], attrs: OpenFftAttrs) -> Type:
    x, roots, chirp = (tensor_argument(kind, name) for kind, name in zip(types, ("x", "roots", "chirp"), strict=True))
    same_dtype([x, roots, chirp], ["x", "roots", "chirp"])
    if x.dtype not in ("float32", "float64"):
        raise TypeInferenceError(f"x must be of float32 or float64, found {x.dtype}")
    if x.ndim != 4 or const_int(x.shape[-1]) not in (1, 2):
        raise TypeInferenceError(f"x must be [before, length, after, 1 or 2], found {x}")
    for name, table in (("roots", roots), ("chirp", chirp)):
        if table.ndim != 2 or const_int(table.shape[0]) != 2:
            raise TypeInferenceError(f"{name} must be [2, elements], found {table}")
    bins = simplify(x.shape[1] // 2 + 1) if attrs.onesided else x.shape[1]
    return TensorType((x.shape[0], bins, x.shape[2], as_index(2)), x.dtype)


OPEN_FFT = register_op(
    "nn.open_fft",
    "the discrete Fourier transform along axis 1, whose extent is open: [before, bins, after, 2]",
    [
        ("x", "[before, length, after, 1] of reals or [before, length, after, 2] of pairs"),
        ("roots", "[2, n], both parts of exp(-2πi k / n); n is the length, or one of its kind from 2 · length - 1 on"),
        ("chirp", "[2, length], both parts of exp(-πi k² / length), or [2, 0] where n is the length"),
    ],
    _relation,
    OpPattern.OPAQUE,
    OpenFftAttrs,
    support_level=4,
)


@dataclass(frozen=True, slots=True, eq=False)
class _Planes:
    """Complex numbers in memory, all real parts before all imaginary ones. What is read keeps its value."""

    ib: IRBuilder
    memory: BufferPtr
    lead: tuple[Expr, ...] = ()

    def __getitem__(self, at: Expr) -> Complex:
        real, imaginary = (self.ib.let(name, self.memory[(*self.lead, k, at)]) for k, name in enumerate(("re", "im")))
        return Complex(real.as_expr(), imaginary.as_expr())

    def __setitem__(self, at: Expr, value: Complex) -> None:
        self.memory[(*self.lead, 0, at)] = value.real
        self.memory[(*self.lead, 1, at)] = value.imaginary


@dataclass(frozen=True, slots=True, eq=False)
class _Transform:
    """Writes the transforms of a call."""

    ib: IRBuilder
    attrs: OpenFftAttrs
    x: BufferPtr
    roots: BufferPtr
    chirp: BufferPtr
    result: BufferPtr

    @property
    def length(self) -> Expr:
        return self.x.shape[1]

    @property
    def longer(self) -> Expr:
        """The length of the transforms that are computed."""
        return self.roots.shape[1]

    @property
    def some(self) -> Expr:
        """The length, or 1 of rows without elements, whose transform is 0."""
        return te.maximum(self.length, 1)

    @property
    def is_chirped(self) -> Expr:
        return self.longer != self.some

    def write(self) -> None:
        """All rows, where the tables have extents that serve; NaN else."""
        ib, has_chirp = self.ib, self.chirp.shape[1] == self.length
        with ib.if_scope((self.longer == self.some) | has_chirp & (self.longer >= 2 * self.length - 1)):
            self._write_rows()
        with ib.else_scope():
            before, bins, after, _ = self.result.shape
            missing = te.const(math.nan, self.x.dtype)
            with ib.for_range(0, before * bins * after, name="element") as at:
                for part in range(2):
                    self.result[at // after // bins, at // after % bins, at % after, part] = missing

    def _write_rows(self) -> None:
        """First the transform of the chirp, if there is need for it, then the rows."""
        ib, after = self.ib, self.x.shape[2]
        spectrum = _Planes(ib, ib.allocate(self.x.dtype, (2, self.longer), "spectrum"))
        chirps = te.select(self.is_chirped, as_index(1), as_index(0))
        with ib.for_range(0, 2, name="phase") as phase:
            of_chirp = phase == 0
            rows = ib.let("rows", te.select(of_chirp, chirps, self.x.shape[0] * after))
            with ib.for_range(0, rows, name="row", kind="parallel") as row:
                memory = ib.allocate(self.x.dtype, (2, 2, self.longer), "work")
                side = ib.allocate("index", (), "side")
                side[()] = as_index(0)
                with ib.for_range(0, te.select(of_chirp, as_index(1), 1 + chirps), name="pass") as number:
                    source = _Planes(ib, memory, (ib.let("source", side[()]).as_expr(),))
                    with ib.if_scope(number == 0):
                        self._load(source, row.as_expr(), of_chirp)
                    with ib.else_scope():  # the inverse transform is that of the conjugates, conjugated
                        self._fill(source, self.longer, lambda k: (source[k] * spectrum[k]).conjugate)
                    self._stages(memory, side)
                found = _Planes(ib, memory, (ib.let("found", side[()]).as_expr(),))
                with ib.if_scope(of_chirp):
                    self._fill(spectrum, self.longer, lambda k: found[k])
                with ib.else_scope():
                    self._store(found, row // after, row % after)

    def _load(self, work: _Planes, row: Expr, of_chirp: Expr) -> None:
        """What is transformed first: the conjugate chirp to both sides of 0, or the elements of a row."""
        ib, (_, _, after, components) = self.ib, self.x.shape
        chirp, zero = _Planes(ib, self.chirp), te.const(0.0, self.x.dtype)
        before, column = ib.let("before", row // after).as_expr(), ib.let("column", row % after).as_expr()

        def element(k: Expr) -> Complex:
            real = self.x[before, k, column, 0]
            value = Complex(real, self.x[before, k, column, 1] if const_int(components) == 2 else zero)
            return value.conjugate if self.attrs.inverse else value

        with ib.if_scope(self.is_chirped):
            self._fill(work, self.longer, lambda k: Complex(zero, zero))
            with ib.if_scope(of_chirp):
                work[as_index(0)] = chirp[as_index(0)].conjugate
                with ib.for_range(1, self.length, name="k") as k:
                    work[k.as_expr()] = chirp[k.as_expr()].conjugate
                    work[self.longer - k] = chirp[k.as_expr()].conjugate
            with ib.else_scope():
                self._fill(work, self.length, lambda k: element(k) * chirp[k])
        with ib.else_scope():
            work[as_index(0)] = Complex(zero, zero)
            self._fill(work, self.length, element)

    def _store(self, work: _Planes, before: Expr, column: Expr) -> None:
        ib, kind, chirp = self.ib, self.x.dtype, _Planes(self.ib, self.chirp)
        scale = te.const(1.0, kind) / te.cast(self.some, kind) if self.attrs.inverse else te.const(1.0, kind)

        def put(factor: Expr, value: Callable[[Expr], Complex]) -> None:
            factor = ib.let("factor", factor).as_expr()

            def one(k: Expr) -> None:
                found = value(k).conjugate if self.attrs.inverse else value(k)
                self.result[before, k, column, 0] = found.real * factor
                self.result[before, k, column, 1] = found.imaginary * factor

            _each(ib, as_index(0), self.result.shape[1], one)

        with ib.if_scope(self.is_chirped):
            put(scale / te.cast(self.longer, kind), lambda k: work[k].conjugate * chirp[k])
        with ib.else_scope():
            put(scale, lambda k: work[k])
        if const_int(self.x.shape[3]) == 1:
            self._clear_imaginary(before, column)

    def _clear_imaginary(self, before: Expr, column: Expr) -> None:
        """Of real numbers, the results for the frequency 0, and for the highest one of an even length, are real."""
        zero = te.const(0.0, self.x.dtype)
        with self.ib.if_scope(self.length > 0):
            self.result[before, 0, column, 1] = zero
            with self.ib.if_scope(self.length % 2 == 0):
                self.result[before, self.length // 2, column, 1] = zero

    def _fill(self, planes: _Planes, count: Expr, value: Callable[[Expr], Complex]) -> None:
        """Write the first ``count`` numbers."""
        _each(self.ib, as_index(0), count, lambda k: planes.__setitem__(k, value(k)))

    def _stages(self, memory: BufferPtr, side: BufferPtr) -> None:
        """All stages of the transform of what stands on one side of the memory; ``side`` then has the results'."""
        ib = self.ib
        left, done = ib.allocate("index", (), "left"), ib.allocate("index", (), "done")
        left[()], done[()] = self.longer, as_index(1)
        with ib.while_loop(left[()] > 1), ExitStack() as otherwise:
            for radix in RADICES:
                with ib.if_scope(left[()] % radix == 0):
                    stage = _Stage(
                        ib,
                        radix,
                        ib.let("groups", left[()] // radix).as_expr(),
                        ib.let("done", done[()]).as_expr(),
                        _Planes(ib, memory, (ib.let("source", side[()]).as_expr(),)),
                        _Planes(ib, memory, (ib.let("target", 1 - side[()]).as_expr(),)),
                        _Planes(ib, self.roots),
                    )
                    stage.write()
                    left[()], done[()], side[()] = stage.groups, stage.done * radix, 1 - side[()]
                otherwise.enter_context(ib.else_scope())
            left[()] = as_index(1)  # no length has other factors


@dataclass(frozen=True, slots=True, eq=False)
class _Stage:
    """Element ``[p + groups · j, q]`` of the source, for all j, gives elements ``[p, done · k + q]`` for all k."""

    ib: IRBuilder
    radix: int
    groups: Expr
    done: Expr
    source: _Planes
    target: _Planes
    roots: _Planes

    def write(self) -> None:
        """Vectors of groups, where few results are done and so few are neighbours; of these neighbours else."""
        ib = self.ib
        vectors = te.select(self.done < LANES, self.groups // LANES, as_index(0))
        first = ib.let("first", vectors * LANES).as_expr()
        with ib.for_range(0, self.done, name="q") as q:
            _each(ib, as_index(0), first, lambda p: self._butterfly(p, q.as_expr(), self._turns(p)), tail=False)
        with ib.for_range(first, self.groups, name="p") as p:
            turns = self._turns(p.as_expr())
            _each(ib, as_index(0), self.done, lambda q: self._butterfly(p.as_expr(), q, turns))

    def _turns(self, p: Expr) -> list[Complex]:
        """The roots of unity that results 1, 2, … of group ``p`` are turned by."""
        return [self.roots[p * j * self.done] for j in range(1, self.radix)]

    def _butterfly(self, p: Expr, q: Expr, turns: list[Complex]) -> None:
        values = [self.source[(p + self.groups * j) * self.done + q] for j in range(self.radix)]
        first, *others = butterfly(values, False)
        for k, result in enumerate([first, *(r * turn for r, turn in zip(others, turns, strict=True))]):
            self.target[(p * self.radix + k) * self.done + q] = result


def _each(ib: IRBuilder, begin: Expr, end: Expr, do: Callable[[Expr], None], tail: bool = True) -> None:
    """For all numbers from ``begin`` to ``end``: as vectors, then one by one what is left."""
    vectors = ib.let("vectors", (end - begin) // LANES).as_expr()
    with (
        ib.for_range(0, vectors, name="vector") as vector,
        ib.for_range(0, LANES, name="lane", kind="vectorized") as lane,
    ):
        do(begin + vector * LANES + lane)
    if tail:
        with ib.for_range(begin + vectors * LANES, end, name="single") as single:
            do(single.as_expr())


def _compute(attrs: OpenFftAttrs, inputs: Tensors, result: Type) -> te.Tensor:
    kind = tensor_argument(result, "result")

    def body(ins: Sequence[Buffer], outs: Sequence[Buffer]) -> Stmt:
        ib = IRBuilder()
        _Transform(ib, attrs, *map(ib.buffer_ptr, (*ins, *outs))).write()
        return ib.get()

    return te.extern(kind.shape, inputs, body, "open_fft", kind.dtype)


register_compute(OPEN_FFT, _compute)

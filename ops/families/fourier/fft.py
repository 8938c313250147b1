"""``nn.fft``: the discrete Fourier transform of the rows of x, as pairs of a real and an imaginary part.

Stockham's algorithm in stages of butterflies, each of which leaves its results in order (Stockham, "High-Speed
Convolution and Correlation", 1966). A stage is a compute ``[…, groups, radix · done]`` that reads the one before;
vectors run over ``done``, which is contiguous in both, and in the first stages over the groups. All stages of a row are
computed by one task, so that they stay in its caches. Rows of an even number of reals are transformed as half as many
complex numbers, and then taken apart (Cooley, Lewis and Welch, "The Fast Fourier Transform Algorithm: Programming
Considerations", 1970).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from .... import te
from ....base.dataclass import dataclass
from ....base.errors import TypeInferenceError
from ....base.target import Target
from ....graph.node import Call, Constant, Node, tensor_of
from ....graph.types import TensorType, Type
from ....ir.constants import const_int
from ....ir.expr import Axis, Expr
from ....ir.makers import as_index
from ....lowering.schedule import Schedule, StageView
from ....schedules.around import schedule_around
from ....te.tensor import Tensors
from ...definition.attrs import Attrs, attr, positive
from ...definition.registry import OpPattern, register_op
from ...definition.relations import same_dtype, tensor_argument
from ...definition.strategy import OpStrategy, Stages, register_strategy
from .butterfly import Complex, butterfly
from .plan import FourierStage, radices_of, root_table, stages_of, table_extent


@dataclass(frozen=True)
class FftAttrs(Attrs):
    """The attributes of ``nn.fft``."""

    bins: int = attr("how many results of a row are kept, from the first one", check=positive)
    inverse: bool = attr("whether it is the inverse transform, divided by the length", default=False)


Parts: TypeAlias = tuple[te.Tensor, te.Tensor]
"""The real and the imaginary part of what a stage gives."""
Read: TypeAlias = Callable[[Sequence[Axis], Expr, Expr], Complex]
"""An element ``[row, p, q]`` of what a stage reads."""


@dataclass(frozen=True, slots=True, eq=False)
class FftStages(Stages):
    """The result, and what the stages give, in order."""

    parts: tuple[tuple[FourierStage, Parts], ...]


def is_packed(length: int, components: int) -> bool:
    """Whether rows of ``length`` elements, of one or two components, are transformed as half as many pairs."""
    return components == 1 and length % 2 == 0


def _row_of(x: TensorType) -> tuple[int, int]:
    """The length of the rows of x, and how many components their elements have. Raises ``TypeInferenceError`` where
    there is no transform of them."""
    if x.dtype not in ("float32", "float64"):
        raise TypeInferenceError(f"x must be of float32 or float64, found {x.dtype}")
    if x.ndim < 2 or const_int(x.shape[-1]) not in (1, 2):
        raise TypeInferenceError(f"x must be […, length, 1] or […, length, 2], found {x}")
    length, components = const_int(x.shape[-2]), const_int(x.shape[-1]) or 1
    if length is None:
        raise TypeInferenceError(f"the length of the rows of x must be known, found {x}")
    if length < 1 or radices_of(length) is None:
        raise TypeInferenceError(f"the rows of x must have a length of prime factors up to 13, found {length}")
    return length, components


def _relation(types: Sequence[Type], attrs: FftAttrs) -> Type:
    x, roots = tensor_argument(types[0], "x"), tensor_argument(types[1], "roots")
    same_dtype([x, roots], ["x", "roots"])
    length, components = _row_of(x)
    if attrs.bins > length:
        raise TypeInferenceError(f"rows of {length} elements have no {attrs.bins} results")
    extents = tuple(const_int(extent) for extent in roots.shape)
    if extents != (2, expected := table_extent(length, is_packed(length, components))):
        raise TypeInferenceError(f"roots must be [2, {expected}], found {roots}")
    return TensorType((*x.shape[:-2], as_index(attrs.bins), as_index(2)), x.dtype)


FFT = register_op(
    "nn.fft",
    "the discrete Fourier transform of each row, as pairs of a real and an imaginary part: […, bins, 2]",
    [
        ("x", "[…, length, 1] of reals or […, length, 2] of pairs; the length has prime factors up to 13"),
        ("roots", "the roots of unity of all stages"),
    ],
    _relation,
    OpPattern.OUT_ELEMENTWISE_FUSABLE,
    FftAttrs,
    support_level=4,
)


@dataclass(frozen=True, slots=True)
class _Transform:
    """The numbers of a call, and what it reads."""

    x: te.Tensor
    roots: te.Tensor
    attrs: FftAttrs

    @property
    def length(self) -> int:
        return const_int(self.x.shape[-2]) or 1

    @property
    def components(self) -> int:
        return const_int(self.x.shape[-1]) or 1

    @property
    def is_packed(self) -> bool:
        return is_packed(self.length, self.components)

    @property
    def inner(self) -> int:
        """The length of the complex transform."""
        return self.length // 2 if self.is_packed else self.length

    @property
    def lead(self) -> tuple[Expr, ...]:
        return self.x.shape[:-2]

    def element(self, row: Sequence[Axis], position: Expr, _: Expr) -> Complex:
        """An element of the complex transform's source."""
        if self.is_packed:
            return Complex(self.x[(*row, position * 2, 0)], self.x[(*row, position * 2 + 1, 0)])
        imaginary = self.x[(*row, position, 1)] if self.components == 2 else te.const(0.0, self.x.dtype)
        return Complex(self.x[(*row, position, 0)], imaginary)

    def root(self, at: Expr) -> Complex:
        return Complex(self.roots[0, at], self.roots[1, at])

    def stage(self, stage: FourierStage, number: int, read: Read) -> Parts:
        """The real and the imaginary parts that a stage gives of elements that are read."""

        def element(*index: Axis) -> tuple[Expr, Expr]:
            *row, p, place = index
            k, q = place // stage.done, place % stage.done
            results = butterfly([read(row, p + stage.groups * j, q) for j in range(stage.radix)], self.attrs.inverse)
            if stage.groups > 1:
                turned = [r * self.root(stage.offset + stage.groups * j + p) for j, r in enumerate(results) if j]
                results = [results[0], *turned]
            real, imaginary = results[-1].real, results[-1].imaginary
            for j in reversed(range(stage.radix - 1)):
                real = te.select(k == j, results[j].real, real)
                imaginary = te.select(k == j, results[j].imaginary, imaginary)
            return real, imaginary

        shape = (*self.lead, stage.groups, stage.radix * stage.done)
        real, imaginary = te.compute(shape, element, name=f"fft.stage{number}")
        return real, imaginary


def _reader(parts: Parts) -> Read:
    real, imaginary = parts
    return lambda row, p, q: Complex(real[(*row, p, q)], imaginary[(*row, p, q)])


def _compute(attrs: FftAttrs, inputs: Tensors, result: Type) -> FftStages:
    x, roots = inputs
    transform = _Transform(x, roots, attrs)
    made: list[tuple[FourierStage, Parts]] = []
    read: Read = transform.element
    for number, stage in enumerate(stages_of(transform.inner)):
        made.append((stage, transform.stage(stage, number, read)))
        read = _reader(made[-1][1])
    scale = te.const(1 / transform.length if attrs.inverse else 1.0, x.dtype)

    def element(*index: Axis) -> Expr:
        *row, k, component = index
        value = _unpacked(transform, read, row, k) if transform.is_packed else read(row, as_index(0), k.as_expr())
        return te.select(component == 0, value.real, value.imaginary) * scale

    shape = (*transform.lead, attrs.bins, 2)
    return FftStages(te.compute(shape, element, name="fft"), tuple(made))


def _unpacked(transform: _Transform, read: Read, row: Sequence[Axis], k: Axis) -> Complex:
    """An element of the spectrum of reals, by that of the complex numbers whose parts are neighbours among them."""
    inner, offset = transform.inner, sum(stage.radix * stage.groups for stage in stages_of(transform.inner))
    own = read(row, as_index(0), k % inner)
    mirrored = read(row, as_index(0), (inner - k % inner) % inner).conjugate
    even, odd = (own + mirrored).scaled(0.5), (mirrored - own).times_i.scaled(0.5)
    return even + odd * transform.root(offset + k)


def _schedule(attrs: FftAttrs, anchor: FftStages, outputs: Tensors, target: Target) -> Schedule:
    """Row by row; butterflies of a vector of neighbours at a time."""
    kept = [real for _, (real, _) in anchor.parts]
    schedule, main = schedule_around(anchor.result, outputs, kept, target)
    lanes = target.lanes(main.dtype)
    stage = schedule[main]
    *rows, k, component = stage.loops
    vectors, lane = stage.split(k, factor=lanes)
    stage.reorder(*rows, vectors, component, lane)
    stage.unroll(component)
    stage.vectorize(lane)
    task = stage.fuse(*rows) if len(rows) > 1 else rows[0]
    stage.parallel(task)
    for of, (real, _) in reversed(anchor.parts):
        view = schedule[real]
        view.compute_at(stage, task)
        _vectorize(view, of, lanes)
    return schedule


def _vectorize(view: StageView, of: FourierStage, lanes: int) -> None:
    """A vector of groups, or of results so far, at a time, whose butterflies are computed as a whole."""
    *rows, p, place = view.loops
    k, q = view.split(place, factor=of.done)
    if of.done >= of.groups:
        vectors, lane = view.split(q, factor=min(lanes, of.done))
        view.reorder(*rows, p, vectors, k, lane)
    else:
        vectors, lane = view.split(p, factor=min(lanes, of.groups))
        view.reorder(*rows, q, vectors, k, lane)
    view.unroll(k)
    view.vectorize(lane)


@register_strategy(FFT)
def _strategy(attrs: FftAttrs, inputs: Sequence[Type], result: Type, target: Target) -> OpStrategy:
    strategy = OpStrategy()
    strategy.add_implementation(_compute, _schedule, "fft.stages")
    return strategy


def fft(x: Node, bins: int | None = None, inverse: bool = False) -> Call:
    """The first ``bins`` results of the transform of each row of ``x`` [batch, …, length, 1 or 2]."""
    kind = tensor_of(x)
    length, components = _row_of(kind)
    table = root_table(length, is_packed(length, components), inverse).astype(kind.dtype.to_numpy())
    return FFT(x, Constant(table), attrs=FftAttrs(length if bins is None else bins, inverse))

"""Normalisation: batch (at inference), instance, layer, and by root mean square."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ... import te
from ...base.dataclass import dataclass
from ...base.errors import TypeInferenceError
from ...base.target import Target
from ...graph.node import Call, Node
from ...graph.types import TensorType, Type
from ...ir.constants import const_int
from ...ir.expr import Axis, Expr
from ...ir.makers import as_index
from ...ir.operand import Operand
from ...lowering.schedule import Schedule
from ...schedules.rows import extent_of
from ...te.tensor import Tensors
from ..definition.accumulate import accumulator, widened
from ..definition.arguments import axis_of, real
from ..definition.attrs import Attrs, attr
from ..definition.cost import moved
from ..definition.folds import LONG_ROWS, ROWS_OF_VECTORS, LaneOrder, long_rows, rows_of_vectors
from ..definition.op_group import OpGroup
from ..definition.registry import OpPattern, register_op
from ..definition.relations import normalize_axis, same_dtype, stretched_to, tensor_argument
from ..definition.strategy import (
    Compute,
    OpStrategy,
    register_compute,
    register_strategy,
    schedule_default,
)
from .reduce import RowStages, Term, fold_axes, schedule_stages_by_rows

GROUP = OpGroup.NORMALISATION


def float_arguments(types: Sequence[Type], names: Sequence[str], least_rank: int) -> list[TensorType]:
    """The arguments' types: floats all, the first of a least rank."""
    kinds = [tensor_argument(t, name) for t, name in zip(types, names, strict=True)]
    if not kinds[0].dtype.is_float:
        raise TypeInferenceError(f"{names[0]} must be of floats, found {kinds[0].dtype}")
    if kinds[0].ndim < least_rank:
        raise TypeInferenceError(f"{names[0]} needs at least {least_rank} axes, found {kinds[0]}")
    return kinds


def _check_per_channel(x: TensorType, kinds: Sequence[TensorType], names: Sequence[str]) -> None:
    channels = x.shape[1]
    for kind, name in zip(kinds, names, strict=True):
        known = kind.ndim == 1 and None not in (const_int(kind.shape[0]), const_int(channels))
        if kind.ndim != 1 or (known and kind.shape[0] is not channels):
            raise TypeInferenceError(f"{name} needs one element for each of the {channels} channels, found {kind}")
        if not kind.dtype.is_float:
            raise TypeInferenceError(f"{name} must be of floats, found {kind.dtype}")


@dataclass(frozen=True, slots=True, eq=False)
class _Mean:
    """A mean over rows, and the sums that it is made of."""

    tensor: te.Tensor
    sums: te.Tensor


def _moments(x: te.Tensor, first: int, name: str, order: LaneOrder | None, share: float = 1.0) -> tuple[_Mean, _Mean]:
    """Mean and variance over the axes from ``first`` on. Two passes over a row, which stays in cache: so that nothing
    cancels where the mean is large. The mean's sum is of that ``share`` of each element."""
    mean = _mean(x, first, lambda i: widened(x[i]), f"{name}.mean", order, share)

    def square(i: tuple[Operand, ...]) -> Expr:
        distance = widened(x[i]) - mean.tensor[i[:first]]
        return distance * distance

    return mean, _mean(x, first, square, f"{name}.variance", order)


def _mean(x: te.Tensor, first: int, term: Term, name: str, order: LaneOrder | None, share: float = 1.0) -> _Mean:
    """The mean of a term over the axes of x from ``first`` on."""
    axes = range(first, x.ndim)

    def part(i: tuple[Operand, ...]) -> Expr:
        return term(i) if share == 1 else term(i) * share

    total = fold_axes(f"{name}.sum", x.shape, axes, te.sum, part, order).tensor
    count = te.cast(extent_of([x.shape[d] for d in axes]), total.dtype)
    divisor = count if share == 1 else count * share
    return _Mean(te.compute(total.shape, lambda *i: total[i] / divisor, name=name), total)


def share_of_mean(shape: Sequence[Expr]) -> float:
    """A power of two of which as many as a box has elements are at most 1, so that a sum of such parts of floats does
    not overflow where their mean does not. To multiply by it rounds no float but those next to the least normal one.
    An open number of elements is taken to be at most 2²⁰."""
    count = const_int(extent_of(shape))
    return 0.5 ** (20 if count is None else max(count - 1, 0).bit_length())


def _stages(result: te.Tensor, means: Sequence[_Mean], factor: te.Tensor) -> RowStages:
    """The stages of a normalisation by some means, and a factor that is made of the last one."""
    return RowStages(result, tuple(mean.sums for mean in means), (*(mean.tensor for mean in means), factor))


_SHORTEST_ROW = 8
"""Rows of so many elements are folded in lanes: half of the longest vectors, or a whole one."""


def _by_rows(name: str, compute: Callable[[LaneOrder | None], Compute], first: int, x: TensorType) -> OpStrategy:
    """Normalisation over the axes of x from ``first`` on, row by row, in lanes where they are long enough."""

    def schedule(attrs: Attrs, anchor: RowStages, outputs: Tensors, target: Target) -> Schedule:
        follows = len(outputs) == 1 and outputs[0].ndim == x.ndim
        return (
            schedule_stages_by_rows(anchor, outputs, range(first), target)
            if follows
            else schedule_default(attrs, (anchor.result,), outputs, target)
        )

    made, cost = OpStrategy(), moved([x, x])
    made.add_implementation(compute(None), schedule, f"nn.{name}.generic")
    with made.specialized(long_rows(range(first, x.ndim), x.shape)):
        made.add_implementation(compute(LONG_ROWS), schedule, f"nn.{name}.rows", cost=cost)
    with made.specialized(rows_of_vectors(range(first, x.ndim), x.shape, _SHORTEST_ROW)):
        made.add_implementation(compute(ROWS_OF_VECTORS), schedule, f"nn.{name}.short_rows", cost=cost)
    return made


# nn.batch_norm


@dataclass(frozen=True)
class EpsilonAttrs(Attrs):
    """The attributes of ``nn.batch_norm`` and ``nn.instance_norm``."""

    epsilon: float = attr("added to the variance", default=1e-5)


_BATCH = ["x", "scale", "bias", "mean", "variance"]


def _batch_relation(types: Sequence[Type], attrs: EpsilonAttrs) -> Type:
    x, *channels = float_arguments(types, _BATCH, 2)
    _check_per_channel(x, channels, _BATCH[1:])
    return x


def _batch_compute(attrs: EpsilonAttrs, inputs: Tensors, result: Type) -> te.Tensor:
    x, scale, bias, mean, variance = inputs
    kind = accumulator(x.dtype)

    def element(*i: Axis) -> Expr:
        c = i[1]
        centered = te.cast(x[i], kind) - te.cast(mean[c], kind)
        deviation = te.sqrt(te.cast(variance[c], kind) + attrs.epsilon)
        return te.cast(centered * (te.cast(scale[c], kind) / deviation) + te.cast(bias[c], kind), x.dtype)

    return te.compute(x.shape, element, name="batch_norm")


BATCH_NORM = register_op(
    "nn.batch_norm",
    "(x - mean) / sqrt(variance + epsilon) · scale + bias, with statistics given per channel",
    [
        ("x", "[N, C, …]"),
        ("scale", "per channel"),
        ("bias", "per channel"),
        ("mean", "per channel"),
        ("variance", "per channel"),
    ],
    _batch_relation,
    OpPattern.BROADCAST,
    EpsilonAttrs,
    support_level=2,
)
register_compute(BATCH_NORM, _batch_compute)


def batch_norm(x: Node, scale: Node, bias: Node, mean: Node, variance: Node, epsilon: float = 1e-5) -> Call:
    """Batch normalisation as at inference: (x - mean) / sqrt(variance + epsilon) · scale + bias, per channel."""
    return BATCH_NORM(x, scale, bias, mean, variance, attrs=EpsilonAttrs(real(epsilon, "epsilon")))


# nn.instance_norm


def _instance_relation(types: Sequence[Type], attrs: EpsilonAttrs) -> Type:
    x, *channels = float_arguments(types, _BATCH[:3], 3)
    _check_per_channel(x, channels, _BATCH[1:3])
    return x


def _instance_compute(order: LaneOrder | None) -> Compute:
    def compute(attrs: EpsilonAttrs, inputs: Tensors, result: Type) -> RowStages:
        x, scale, bias = inputs
        kind = accumulator(x.dtype)
        mean, variance = _moments(x, 2, "instance_norm", order)

        def factor(n: Axis, c: Axis) -> Expr:
            return te.cast(scale[c], kind) / te.sqrt(variance.tensor[n, c] + attrs.epsilon)

        factors = te.compute(x.shape[:2], factor, name="instance_norm.factor")

        def element(n: Axis, c: Axis, *o: Axis) -> Expr:
            centered = te.cast(x[(n, c, *o)], kind) - mean.tensor[n, c]
            return te.cast(centered * factors[n, c] + te.cast(bias[c], kind), x.dtype)

        return _stages(te.compute(x.shape, element, name="instance_norm"), (mean, variance), factors)

    return compute


INSTANCE_NORM = register_op(
    "nn.instance_norm",
    "Each channel of each sample brought to mean 0 and variance 1, then scaled and shifted",
    [("x", "[N, C, spatial…]"), ("scale", "per channel"), ("bias", "per channel")],
    _instance_relation,
    OpPattern.OUT_ELEMENTWISE_FUSABLE,
    EpsilonAttrs,
    support_level=2,
)


@register_strategy(INSTANCE_NORM)
def _instance_strategy(attrs: EpsilonAttrs, inputs: Sequence[Type], result: Type, target: Target) -> OpStrategy:
    return _by_rows("instance_norm", _instance_compute, 2, tensor_argument(inputs[0], "x"))


def instance_norm(x: Node, scale: Node, bias: Node, epsilon: float = 1e-5) -> Call:
    """(x - mean) / sqrt(variance + epsilon) · scale + bias, of the spatial axes of each sample and channel."""
    return INSTANCE_NORM(x, scale, bias, attrs=EpsilonAttrs(real(epsilon, "epsilon")))


# nn.layer_norm


@dataclass(frozen=True)
class LayerNormAttrs(Attrs):
    """The attributes of ``nn.layer_norm``."""

    axis: int = attr("first of the axes that are normalised, from 0", default=-1)
    epsilon: float = attr("added to the variance", default=1e-5)


def _layer_relation(types: Sequence[Type], attrs: LayerNormAttrs) -> Type:
    names = ["x", "scale", "bias"]
    x, scale, bias = float_arguments(types, names, 1)
    same_dtype([x, scale, bias], names)
    first = normalize_axis(attrs.axis, x.ndim)
    _check_stretches(scale, "scale", x, first)
    _check_stretches(bias, "bias", x, first)
    return x


def _check_stretches(kind: TensorType, name: str, x: TensorType, first: int) -> None:
    problem = f"{name} must broadcast to the axes from {first} on of {x}, found {kind}"
    stretched_to(x.shape, kind.shape, ("x", name), problem)


def _layer_compute(order: LaneOrder | None) -> Compute:
    def compute(attrs: LayerNormAttrs, inputs: Tensors, result: Type) -> RowStages:
        x, scale, bias = inputs
        first = normalize_axis(attrs.axis, x.ndim)
        kind = accumulator(x.dtype)
        mean, variance = _moments(x, first, "layer_norm", order, share_of_mean(x.shape[first:]))
        inverse = te.compute(
            variance.tensor.shape,
            lambda *i: te.const(1, kind) / te.sqrt(variance.tensor[i] + attrs.epsilon),
            name="layer_norm.inverse",
        )

        def element(*i: Axis) -> Expr:
            rows = i[:first]
            normal = (te.cast(x[i], kind) - mean.tensor[rows]) * inverse[rows]
            return te.cast(normal * _stretched(scale, i) + _stretched(bias, i), x.dtype)

        return _stages(te.compute(x.shape, element, name="layer_norm"), (mean, variance), inverse)

    return compute


def _stretched(tensor: te.Tensor, i: Sequence[Axis]) -> Expr:
    used = i[len(i) - tensor.ndim :]
    place = tuple(as_index(0) if const_int(e) == 1 else as_index(a) for a, e in zip(used, tensor.shape, strict=True))
    return te.cast(tensor[place], accumulator(tensor.dtype))


LAYER_NORM = register_op(
    "nn.layer_norm",
    "The axes from one on brought to mean 0 and variance 1, then scaled and shifted",
    [("x", "any shape"), ("scale", "broadcasts to x"), ("bias", "broadcasts to x")],
    _layer_relation,
    OpPattern.OUT_ELEMENTWISE_FUSABLE,
    LayerNormAttrs,
    support_level=2,
)


@register_strategy(LAYER_NORM)
def _layer_strategy(attrs: LayerNormAttrs, inputs: Sequence[Type], result: Type, target: Target) -> OpStrategy:
    x = tensor_argument(inputs[0], "x")
    return _by_rows("layer_norm", _layer_compute, normalize_axis(attrs.axis, x.ndim), x)


def layer_norm(x: Node, scale: Node, bias: Node, axis: int = -1, epsilon: float = 1e-5) -> Call:
    """Normalise over the axes from ``axis`` on: (x - mean) / sqrt(variance + epsilon) · scale + bias."""
    return LAYER_NORM(x, scale, bias, attrs=LayerNormAttrs(axis_of("nn.layer_norm", x, axis), real(epsilon, "epsilon")))


# nn.rms_norm


@dataclass(frozen=True)
class RMSNormAttrs(Attrs):
    """The attributes of ``nn.rms_norm``."""

    axis: int = attr("first of the axes that are normalised, from 0", default=-1)
    epsilon: float = attr("added to the mean of squares", default=1e-5)


def _rms_relation(types: Sequence[Type], attrs: RMSNormAttrs) -> Type:
    names = ["x", "scale"]
    x, scale = float_arguments(types, names, 1)
    same_dtype([x, scale], names)
    _check_stretches(scale, "scale", x, normalize_axis(attrs.axis, x.ndim))
    return x


def _rms_compute(order: LaneOrder | None) -> Compute:
    def compute(attrs: RMSNormAttrs, inputs: Tensors, result: Type) -> RowStages:
        x, scale = inputs
        first = normalize_axis(attrs.axis, x.ndim)
        squares = _mean(x, first, lambda i: widened(x[i]) * widened(x[i]), "rms_norm.squares", order)
        inverse = te.compute(
            squares.tensor.shape,
            lambda *i: te.const(1, squares.tensor.dtype) / te.sqrt(squares.tensor[i] + attrs.epsilon),
            name="rms_norm.inverse",
        )

        def element(*i: Axis) -> Expr:
            return te.cast(widened(x[i]) * inverse[i[:first]] * _stretched(scale, i), x.dtype)

        return _stages(te.compute(x.shape, element, name="rms_norm"), (squares,), inverse)

    return compute


RMS_NORM = register_op(
    "nn.rms_norm",
    "The axes from one on divided by the root of the mean of their squares, then scaled",
    [("x", "any shape"), ("scale", "broadcasts to x")],
    _rms_relation,
    OpPattern.OUT_ELEMENTWISE_FUSABLE,
    RMSNormAttrs,
    support_level=2,
)


@register_strategy(RMS_NORM)
def _rms_strategy(attrs: RMSNormAttrs, inputs: Sequence[Type], result: Type, target: Target) -> OpStrategy:
    x = tensor_argument(inputs[0], "x")
    return _by_rows("rms_norm", _rms_compute, normalize_axis(attrs.axis, x.ndim), x)


def rms_norm(x: Node, scale: Node, axis: int = -1, epsilon: float = 1e-5) -> Call:
    """x / sqrt(mean of x² + epsilon) · scale, the mean over the axes from ``axis`` on."""
    return RMS_NORM(x, scale, attrs=RMSNormAttrs(axis_of("nn.rms_norm", x, axis), real(epsilon, "epsilon")))

"""What convolutions and pools share: attributes per spatial axis, padding rules, the extents that windows give.

Layout is N, C, spatial axes. Pads are all begins, then all ends, as in ONNX.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

from .. import te
from ..graph.types import TensorType
from ..ir.errors import TypeInferenceError
from ..ir.expr import Expr, ExprLike, as_index, const, const_int
from ..ir.simplify import simplify

AutoPad: TypeAlias = Literal["NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"]
PerAxis: TypeAlias = int | Sequence[int]
"""A number for each spatial axis, or one for all."""


def per_axis(value: PerAxis, rank: int, name: str) -> tuple[int, ...]:
    """One number for each of ``rank`` spatial axes. Raises ``TypeInferenceError`` if there are more or fewer."""
    values = (value,) * rank if isinstance(value, int) else tuple(int(v) for v in value)
    if len(values) != rank:
        raise TypeInferenceError(f"{name} needs a number for each of the {rank} spatial axes, found {values}")
    return values


def spatial_rank(kind: TensorType, name: str = "x") -> int:
    """The number of spatial axes of a tensor in layout N, C, …."""
    if kind.ndim < 3:
        raise TypeInferenceError(f"{name} needs the axes N, C and at least one spatial axis, found {kind}")
    return kind.ndim - 2


def check_ranks(rank: int, **values: tuple[int, ...]) -> None:
    """Attributes that must have a number per spatial axis; ``padding`` has two."""
    for name, value in values.items():
        expected = 2 * rank if name == "padding" else rank
        if len(value) != expected:
            raise TypeInferenceError(f"{name} must have {expected} numbers for {rank} spatial axes, found {value}")


def resolve_padding(
    kind: TensorType,
    window: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    padding: PerAxis,
    auto_pad: AutoPad,
) -> tuple[int, ...]:
    """Begins and ends in numbers. ``padding`` may be one number, one per axis (both sides), or begins and ends.

    ``SAME_…`` gives ceil(extent / stride) windows; the odd element goes to the end (``UPPER``) or the beginning.
    Raises ``TypeInferenceError`` for SAME padding of a symbolic extent with a stride, which no number describes.
    """
    rank = len(window)
    if auto_pad == "NOTSET":
        if not isinstance(padding, int) and len(padding) == 2 * rank:
            return tuple(int(p) for p in padding)
        return per_axis(padding, rank, "padding") * 2
    if auto_pad == "VALID":
        return (0,) * (2 * rank)
    if auto_pad not in ("SAME_UPPER", "SAME_LOWER"):
        raise TypeInferenceError(f"auto_pad must be NOTSET, SAME_UPPER, SAME_LOWER or VALID, found {auto_pad!r}")
    small, large = [], []
    for axis in range(rank):
        total = _same_total(kind.shape[axis + 2], window[axis], strides[axis], dilations[axis])
        small.append(total // 2)
        large.append(total - total // 2)
    return (*small, *large) if auto_pad == "SAME_UPPER" else (*large, *small)


def _same_total(extent: Expr, window: int, stride: int, dilation: int) -> int:
    reach = (window - 1) * dilation + 1
    if stride == 1:
        return reach - 1
    number = const_int(extent)
    if number is None:
        raise TypeInferenceError(f"auto_pad SAME with a stride needs a known extent, found {extent}")
    return max((-(-number // stride) - 1) * stride + reach - number, 0)


def windows(extent: Expr, window: int, stride: int, dilation: int, pads: tuple[int, int], ceil_mode: bool) -> Expr:
    """How many windows fit along an axis; with ``ceil_mode`` one that begins inside may reach beyond the end."""
    reach = (window - 1) * dilation + 1
    room = extent + (pads[0] + pads[1] - reach)
    number = const_int(simplify(room))
    if number is not None and number < 0:
        raise TypeInferenceError(
            f"a window of {window} (dilation {dilation}) is larger than the extent {extent} with pads {pads}"
        )
    if not ceil_mode:
        return simplify(room // stride + 1)
    count = (room + (stride - 1)) // stride + 1
    # A window that would begin in the padding at the end is left out.
    return simplify(te.minimum(count, (extent + (pads[0] - 1)) // stride + 1))


def window_shape(
    kind: TensorType,
    window: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    padding: Sequence[int],
    ceil_mode: bool = False,
) -> tuple[Expr, ...]:
    """The spatial extents of a window operator's result."""
    rank = len(window)
    return tuple(
        windows(kind.shape[d + 2], window[d], strides[d], dilations[d], (padding[d], padding[rank + d]), ceil_mode)
        for d in range(rank)
    )


def inside(position: Sequence[Expr], shape: Sequence[Expr], padding: Sequence[int], exceeds: Sequence[bool]) -> Expr:
    """Whether a position (relative to the tensor, so it may be negative) is in the tensor.

    Only the sides that can be left are tested: those with padding, and ends that a window ``exceeds``.
    """
    rank = len(position)
    tests: list[Expr] = []
    for d, (index, extent) in enumerate(zip(position, shape, strict=True)):
        if padding[d] > 0:
            tests.append(index >= 0)
        if padding[rank + d] > 0 or exceeds[d]:
            tests.append(index < extent)
    return te.all(*tests) if tests else const(True, "bool")


def padded(
    x: te.Tensor, padding: Sequence[int], value: ExprLike, name: str, exceeds: Sequence[bool] | None = None
) -> te.Tensor:
    """``x`` with a border of ``value`` around its spatial axes; ``x`` itself if there is no padding."""
    rank = x.ndim - 2
    if not any(padding):
        return x
    shape = (*x.shape[:2], *(e + (padding[d] + padding[rank + d]) for d, e in enumerate(x.shape[2:])))
    beyond = exceeds or (False,) * rank

    def element(n: Expr, c: Expr, *spatial: Expr) -> Expr:
        position = tuple(as_index(s) - padding[d] for d, s in enumerate(spatial))
        return te.if_then_else(inside(position, x.shape[2:], padding, beyond), x[(n, c, *position)], value)

    return te.compute(shape, element, name=name)

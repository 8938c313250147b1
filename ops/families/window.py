"""What convolutions and pools share: attributes per spatial axis, layouts, padding rules, extents that windows give.

Spatial axes are in the order D, H, W. Pads are all begins, then all ends, as in ONNX.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

from ... import te
from ...base.choices import is_one_of
from ...base.errors import TypeInferenceError
from ...graph.layout import Layout
from ...graph.types import TensorType
from ...ir.constants import const, const_int
from ...ir.expr import Axis, Expr
from ...ir.makers import as_index, maximum
from ...ir.simplify import simplify
from ..definition.arguments import PerAxis, integers, per_axis

AutoPad: TypeAlias = Literal["NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"]
LAYOUT = "layout of x and of the result; empty: N, C, then the spatial axes"


def spatial_rank(kind: TensorType, name: str = "x") -> int:
    """The number of spatial axes of a tensor in layout N, C, …."""
    if kind.ndim < 3:
        raise TypeInferenceError(f"{name} needs the axes N, C and at least one spatial axis, found {kind}")
    return kind.ndim - 2


def rank_in(kind: TensorType, layout: str, name: str = "x") -> int:
    """The number of spatial axes of a tensor in a layout; in N, C, … if that is empty."""
    if not isinstance(layout, str):
        raise TypeInferenceError(f"a layout is text, as 'NCHW', found {layout!r}")
    return len(Layout(layout).names) - 2 if layout else spatial_rank(kind, name)


def spatial_axes(rank: int) -> str:
    """The names of the spatial axes in layouts. Raises ``TypeInferenceError`` for more than three."""
    if not 1 <= rank <= 3:
        raise TypeInferenceError(f"there may be 1 to 3 spatial axes, found {rank}")
    return "DHW"[-rank:]


def axis_extents(kind: TensorType, layout: str, axes: str, blocked: str, names: tuple[str, str]) -> dict[str, Expr]:
    """How many elements each axis of an argument has, by the axis' name.

    ``axes`` are those that the layout must have, ``blocked`` those of them that may be in blocks; ``names`` are the
    argument's and that of the attribute with its layout. Raises ``TypeInferenceError`` for anything else.
    """
    argument, attribute = names
    found = checked_layout(layout, axes, blocked, attribute)
    try:
        return found.extents(kind.shape)
    except TypeInferenceError as error:
        raise TypeInferenceError(f"{argument}: {error}") from None


def checked_layout(text: str, axes: str, blocked: str, attribute: str) -> Layout:
    """The layout of that text. Raises ``TypeInferenceError`` if it has not these axes, or has blocks of others."""
    layout = Layout(text)
    if sorted(layout.names) != sorted(axes):
        raise TypeInferenceError(f"{attribute} must have the axes {', '.join(axes)}, found {layout}")
    wrong = [str(axis) for axis in layout.axes if axis.block is not None and axis.name not in blocked]
    if wrong:
        raise TypeInferenceError(f"{attribute} may have blocks of {' and '.join(blocked)} only, found {layout}")
    return layout


def known_window(extents: Sequence[Expr]) -> tuple[int, ...]:
    """The extents of a weight's window in numbers. Raises ``TypeInferenceError`` if one is unknown or 0."""
    window = tuple(n for e in extents if (n := const_int(e)) is not None and n > 0)
    if len(window) != len(extents):
        raise TypeInferenceError(f"the window of weight must have known extents, found {tuple(map(str, extents))}")
    return window


def check_ranks(rank: int, **values: tuple[int, ...]) -> None:
    """Attributes that must have a number per spatial axis; ``padding`` has two."""
    for name, value in values.items():
        expected = 2 * rank if name == "padding" else rank
        if len(value) != expected:
            raise TypeInferenceError(f"{name} must have {expected} numbers for {rank} spatial axes, found {value}")


def given_padding(padding: PerAxis, rank: int) -> tuple[int, ...]:
    """Begins and ends, of one number, of one per axis (for both sides), or of begins and ends."""
    given = integers(padding, "padding")
    return given if len(given) == 2 * rank else per_axis(padding, rank, "padding") * 2


def check_auto_pad(auto_pad: object) -> None:
    """Raise ``TypeInferenceError`` for a padding rule that ONNX does not have."""
    if not is_one_of(auto_pad, AutoPad):
        raise TypeInferenceError(f"auto_pad must be NOTSET, SAME_UPPER, SAME_LOWER or VALID, found {auto_pad!r}")


def resolve_padding(
    extents: Sequence[Expr],
    window: Sequence[int],
    strides: Sequence[int],
    dilation: Sequence[int],
    padding: PerAxis,
    auto_pad: AutoPad,
) -> tuple[int, ...]:
    """Begins and ends in numbers, for axes of these extents: ``given_padding``, unless ``auto_pad`` chooses.

    ``SAME_…`` gives ceil(extent / stride) windows; the odd element goes to the end (``UPPER``) or the beginning.
    Raises ``TypeInferenceError`` for SAME padding of a symbolic extent with a stride, which no number describes.
    """
    rank = len(window)
    check_auto_pad(auto_pad)
    if auto_pad == "NOTSET":
        return given_padding(padding, rank)
    if auto_pad == "VALID":
        return (0,) * (2 * rank)
    small, large = [], []
    for axis in range(rank):
        total = _same_total(extents[axis], window[axis], strides[axis], dilation[axis])
        small.append(total // 2)
        large.append(total - total // 2)
    return (*small, *large) if auto_pad == "SAME_UPPER" else (*large, *small)


def _same_total(extent: Expr, window: int, stride: int, dilation: int) -> int:
    total = const_int(same_padding(extent, window, stride, dilation))
    if total is None:
        raise TypeInferenceError(f"auto_pad SAME with a stride needs a known extent, found {extent}")
    return total


def same_padding(extent: Expr, window: int, stride: int, dilation: int) -> Expr:
    """How many elements ``auto_pad`` SAME adds to an axis of this extent: as many as ceil(extent / stride) windows
    need."""
    reach = (window - 1) * dilation + 1
    if stride == 1:
        return as_index(reach - 1)
    total = ((extent + (stride - 1)) // stride - 1) * stride + reach - extent
    return simplify(total if reach >= stride else maximum(total, 0))


def windows(extent: Expr, window: int, stride: int, dilation: int, pads: tuple[int, int], ceil_mode: bool) -> Expr:
    """How many windows fit along an axis; with ``ceil_mode`` one that begins inside may reach beyond the end, by less
    than a stride, also where it is the only one."""
    reach = (window - 1) * dilation + 1
    room = extent + (pads[0] + pads[1] - reach)
    number = const_int(simplify(room))
    if number is not None and number <= (-stride if ceil_mode else -1):
        raise TypeInferenceError(
            f"a window of {window} (dilation {dilation}) is larger than the extent {extent} with pads {pads}"
        )
    if not ceil_mode:
        return simplify(room // stride + 1)
    count = (room + (stride - 1)) // stride + 1
    # A window that would begin in the padding at the end is left out.
    return simplify(te.minimum(count, (extent + (pads[0] - 1)) // stride + 1))


def window_shape(
    extents: Sequence[Expr],
    window: Sequence[int],
    strides: Sequence[int],
    dilation: Sequence[int],
    padding: Sequence[int],
    ceil_mode: bool = False,
) -> tuple[Expr, ...]:
    """The spatial extents of a window operator's result."""
    rank = len(window)
    return tuple(
        windows(extents[d], window[d], strides[d], dilation[d], (padding[d], padding[rank + d]), ceil_mode)
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


def padded(x: te.Tensor, layout: Layout, padding: Sequence[int], name: str) -> te.Tensor:
    """``x`` with a border of zeros around its spatial axes; ``x`` itself if there is no padding."""
    if not any(padding):
        return x
    axes = spatial_axes(len(padding) // 2)
    positions = [layout.position(axis) for axis in axes]
    shape = list(x.shape)
    for d, place in enumerate(positions):
        shape[place] = shape[place] + (padding[d] + padding[len(positions) + d])

    def element(*index: Axis) -> Expr:
        where: list[Expr] = [as_index(i) for i in index]
        for d, place in enumerate(positions):
            where[place] = where[place] - padding[d]
        extents = [x.shape[place] for place in positions]
        valid = inside([where[place] for place in positions], extents, padding, [False] * len(positions))
        return te.if_then_else(valid, x[tuple(where)], te.const(0, x.dtype))

    return te.compute(shape, element, name=name)

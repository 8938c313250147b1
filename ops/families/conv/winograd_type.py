"""The attributes of ``nn.winograd_conv2d``, and the type of its result."""

from __future__ import annotations

from collections.abc import Sequence

from ....base.dataclass import dataclass
from ....base.errors import TypeInferenceError
from ....graph.layout import NCHW, Layout
from ....graph.types import TensorType, Type
from ....ir.constants import const_int
from ....ir.makers import as_index
from ...definition.attrs import Attrs, all_non_negative, attr, natural, one_of
from ...definition.relations import FLOAT_KINDS, same_dtype, tensor_argument
from ..window import axis_extents, check_ranks, window_shape
from .layouts import check_blocked
from .winograd_transform import SIZES, TAPS


@dataclass(frozen=True, kw_only=True)
class WinogradAttrs(Attrs):
    """The attributes of ``nn.winograd_conv2d``, whose window is 3×3 and whose stride is 1."""

    size: int = attr("m: rows and columns of the result in a tile", check=one_of(*SIZES))
    padding: tuple[int, ...] = attr("zeros around H and W: both begins, then both ends", (0,) * 4, all_non_negative)
    data_layout: str = attr("layout of x, with channels in blocks", "NCHW16c")
    out_layout: str = attr("layout of the result, also NCHW; empty: that of x", "")
    group: int = attr("tiles whose products are made together; 0: as many as cost least, of known images", 0, natural)

    @property
    def data(self) -> Layout:
        """The layout of x."""
        return Layout(self.data_layout)

    @property
    def out(self) -> Layout:
        """The layout of the result; that of x unless another one is given."""
        return Layout(self.out_layout or self.data_layout)

    @property
    def points(self) -> int:
        """How many rows and columns of inputs a tile needs, and of planes there are."""
        return self.size + TAPS - 1


def winograd_type(types: Sequence[Type], attrs: WinogradAttrs) -> Type:
    """The type of the result of x and planes, which fit each other."""
    x, planes = tensor_argument(types[0], "x"), tensor_argument(types[1], "planes")
    same_dtype([x, planes], ["x", "planes"])
    if x.dtype.kind not in FLOAT_KINDS:
        raise TypeInferenceError(f"x must be of floats, found {x}")
    check_ranks(2, padding=attrs.padding)
    check_blocked(attrs.data, "data_layout")
    if attrs.out is not NCHW:
        check_blocked(attrs.out, "out_layout")
    extents = axis_extents(x, attrs.data_layout, "NCHW", "C", ("x", "data_layout"))
    panels, rows, columns, channels, width = panel_extents(planes)
    if (rows, columns) != (attrs.points, attrs.points):
        raise TypeInferenceError(
            f"tiles of size {attrs.size} need {attrs.points}×{attrs.points} planes, found {rows}×{columns}"
        )
    if const_int(extents["C"]) != channels:
        raise TypeInferenceError(f"x has {extents['C']} channels, but planes have {channels}")
    if width % attrs.out.factor("C"):
        raise TypeInferenceError(f"panels of {width} filters do not fall into blocks of out_layout {attrs.out}")
    positions = window_shape([extents["H"], extents["W"]], (TAPS, TAPS), (1, 1), (1, 1), attrs.padding)
    if None in map(const_int, positions) and (attrs.out is NCHW or not attrs.group):
        raise TypeInferenceError(f"an open height or width needs a group, and blocks of channels made, found {x}")
    named = {"N": extents["N"], "C": as_index(panels * width), "H": positions[0], "W": positions[1]}
    return TensorType(attrs.out.shape(named), x.dtype)


def panel_extents(planes: TensorType) -> tuple[int, ...]:
    """How many panels, rows, columns and channels there are, and filters in a panel."""
    extents = tuple(n for e in planes.shape if (n := const_int(e)) is not None)
    if len(extents) != 5 or planes.ndim != 5:
        raise TypeInferenceError(f"planes must be [panel, row, column, channel, filter], all known, found {planes}")
    return extents

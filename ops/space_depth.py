"""depth_to_space and space_to_depth: blocks of pixels become channels, and channels blocks; layout NCHW."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .. import te
from ..graph.node import Call, Node
from ..graph.types import TensorType, Type
from ..ir.errors import TypeInferenceError
from ..ir.expr import Expr, const_int
from ..ir.simplify import simplify
from .attrs import Attrs, attr, one_of, positive
from .registry import OpPattern, register_op
from .relations import tensor_argument
from .strategy import Tensors, register_compute


@dataclass(frozen=True)
class BlockAttrs(Attrs):
    block_size: int = attr("edge of a block of pixels", check=positive)
    mode: str = attr(
        "order of the channels where they are many: by block, then by channel (DCR), or the reverse (CRD)",
        "DCR",
        one_of("DCR", "CRD"),
    )


def _image(kind: Type) -> TensorType:
    x = tensor_argument(kind, "x")
    if x.ndim != 4:
        raise TypeInferenceError(f"x must be of rank 4, batch, channels, rows and columns, found {x}")
    return x


def _divided(extent: Expr, by: int, what: str) -> Expr:
    known = const_int(extent)
    if known is None or known % by:
        raise TypeInferenceError(f"{what} must divide by {by}, found {extent}")
    return simplify(extent // by)


def _depth_to_space_relation(types: Sequence[Type], attrs: BlockAttrs) -> Type:
    x, b = _image(types[0]), attrs.block_size
    n, c, h, w = x.shape
    return TensorType((n, _divided(c, b * b, "channels"), simplify(h * b), simplify(w * b)), x.dtype)


def _depth_to_space_compute(attrs: BlockAttrs, inputs: Tensors, result: Type) -> te.Tensor:
    (x,) = inputs
    assert isinstance(result, TensorType)
    b, channels = attrs.block_size, result.shape[1]

    def element(n: Any, c: Any, h: Any, w: Any) -> Expr:
        block = h % b * b + w % b
        source = block * channels + c if attrs.mode == "DCR" else c * (b * b) + block
        return x[n, source, h // b, w // b]

    return te.compute(result.shape, element, name="depth_to_space")


def _space_to_depth_relation(types: Sequence[Type], attrs: BlockAttrs) -> Type:
    x, b = _image(types[0]), attrs.block_size
    n, c, h, w = x.shape
    return TensorType((n, simplify(c * (b * b)), _divided(h, b, "rows"), _divided(w, b, "columns")), x.dtype)


def _space_to_depth_compute(attrs: BlockAttrs, inputs: Tensors, result: Type) -> te.Tensor:
    (x,) = inputs
    assert isinstance(result, TensorType)
    b, channels = attrs.block_size, x.shape[1]

    def element(n: Any, c: Any, h: Any, w: Any) -> Expr:
        block, channel = (c // channels, c % channels) if attrs.mode == "DCR" else (c % (b * b), c // (b * b))
        return x[n, channel, h * b + block // b, w * b + block % b]

    return te.compute(result.shape, element, name="space_to_depth")


DEPTH_TO_SPACE = register_op(
    "nn.depth_to_space",
    "channels to blocks of pixels",
    [("x", "NCHW")],
    _depth_to_space_relation,
    OpPattern.INJECTIVE,
    BlockAttrs,
    support_level=5,
)
SPACE_TO_DEPTH = register_op(
    "nn.space_to_depth",
    "blocks of pixels to channels",
    [("x", "NCHW")],
    _space_to_depth_relation,
    OpPattern.INJECTIVE,
    BlockAttrs,
    support_level=5,
)
register_compute(DEPTH_TO_SPACE, _depth_to_space_compute)
register_compute(SPACE_TO_DEPTH, _space_to_depth_compute)


def depth_to_space(x: Node, block_size: int, mode: str = "DCR") -> Call:
    """Each pixel's channels spread to a block of pixels."""
    return DEPTH_TO_SPACE(x, attrs=BlockAttrs(block_size, mode))


def space_to_depth(x: Node, block_size: int, mode: str = "DCR") -> Call:
    """Each block of pixels gathered to the channels of one."""
    return SPACE_TO_DEPTH(x, attrs=BlockAttrs(block_size, mode))

"""ONNX's ImageDecoder, by packed functions: how large the image is becomes extents, then its pixels are read."""

from __future__ import annotations

import numpy as np

from ...base.dtype import INDEX
from ...base.errors import ModelError
from ...graph.node import Constant, Node
from ...ir.build import index_var
from ...ir.expr import Const, Var
from ...ops.families.born_extents import BORN_EXTENTS, BornExtentsAttrs
from ...ops.families.concatenate import concatenate
from ...ops.families.extern import extern
from ..onnx_node import OnnxNode
from ..registry import converter

EXTENTS, DECODE = "loopwright.image_extents", "loopwright.decode_image"
CHANNELS = {"RGB": 3, "BGR": 3, "Grayscale": 1}


@converter("ImageDecoder", 20)
def _image_decoder(node: OnnxNode) -> Node:
    """The pixels of an encoded image, uint8[height, width, channels]. Images of other modes are converted."""
    wanted = node.string("pixel_format", "RGB")
    if wanted not in CHANNELS:
        raise node.unsupported(f"the pixel_format {wanted!r}, which is none of {', '.join(CHANNELS)},")
    if node.rank != 1 or node.type().dtype != "uint8":
        raise ModelError(f"{node}: it takes a vector of uint8, found {node.type()}")
    size = extern(EXTENTS, node[0], shape=(2,), dtype="int64")
    known = concatenate([size, Constant(np.array([CHANNELS[wanted]]))], 0)
    extents: tuple[Var | Const, ...] = (index_var("height"), index_var("width"), Const(CHANNELS[wanted], INDEX))
    witness = BORN_EXTENTS(known, attrs=BornExtentsAttrs(extents, "the extents of an image"))
    return extern(DECODE, witness, node[0], dtype="uint8", options={"pixel_format": wanted})

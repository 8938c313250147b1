"""onnxruntime's matrix products and convolutions of floats, with what it fuses into them."""

from __future__ import annotations

from collections.abc import Sequence

from ....graph.node import Node, tensor_of
from ....ops.families.binary import add
from ....ops.families.conv.conv import conv
from ....ops.families.matmul.matmul import dense, matmul
from ....ops.families.transpose import transpose
from ....ops.families.window import known_window
from ...onnx_node import OnnxNode
from ..convolution import check_kernel_shape, convolution, same_padded
from ..elementwise import aligned_at
from ..linear import gemm, scaled
from .activations import activated
from .entering import contrib

WINDOW = "auto_pad dilations group kernel_shape pads strides"


@contrib("TransposeMatMul", "alpha transA transB", inputs=2)
@contrib("FusedMatMul", "alpha transA transB transBatchA transBatchB", inputs=2)
def _fused_matmul(node: OnnxNode) -> Node:
    """alpha · A · B, where each may have its last two axes swapped, and its first axis behind the other batches."""
    a = _turned(node[0], node.flag("transA"), node.flag("transBatchA"))
    b, swapped = node[1], node.flag("transB") and node.type(1).ndim > 1
    if tensor_of(b).ndim == 2 and not node.flag("transBatchB") and tensor_of(a).ndim:
        return scaled(dense(a, b, transposed=swapped), node.real("alpha", 1.0))
    return scaled(matmul(a, _turned(b, swapped, node.flag("transBatchB"))), node.real("alpha", 1.0))


def _turned(x: Node, swapped: bool, batch_first: bool) -> Node:
    """A matrix or batch of such as it is multiplied: [rows, …, columns] with ``batch_first``, and columns before rows
    if ``swapped``."""
    rank = tensor_of(x).ndim
    if rank < 2 or not (swapped or batch_first):
        return x
    order: Sequence[int] = (*range(1, rank - 1), 0, rank - 1) if batch_first else range(rank)
    return transpose(x, (*order[:-2], order[-1], order[-2]) if swapped else order)


@contrib(
    "FusedGemm",
    "activation activation_alpha activation_beta activation_gamma alpha beta transA transB",
    inputs=3,
)
def _fused_gemm(node: OnnxNode) -> Node:
    names = [name for name in ("activation_alpha", "activation_beta", "activation_gamma") if node.has(name)]
    return activated(node, gemm(node), node.string("activation", ""), tuple(node.real(name) for name in names))


@contrib("FusedConv", f"activation activation_params {WINDOW}", inputs=4)
def _fused_conv(node: OnnxNode) -> Node:
    """The sum of a convolution, a bias, and a tensor of the shape of the result, after an activation."""
    result, other = convolution(node), node.get(3)
    whole = result if other is None else add(result, other)
    return activated(node, whole, node.string("activation", ""), node.floats("activation_params") or ())


@contrib("NhwcConv", WINDOW, inputs=3)
def _nhwc_conv(node: OnnxNode) -> Node:
    """Channels are the last axis of x and of the result, and of the weights, which begin with the filters."""
    spatial = "DHW"[-(node.rank - 2) :]
    window = node.type(1).shape[1:-1]
    check_kernel_shape(node, window)
    x, options = same_padded(node, node[0], known_window(window), 0.0, last=True)
    result = conv(
        x,
        node[1],
        groups=node.integer("group", 1),
        data_layout=f"N{spatial}C",
        kernel_layout=f"O{spatial}I",
        **options,
    )
    bias = node.get(2)
    return result if bias is None else add(result, aligned_at(bias, tensor_of(result).ndim, node.rank - 1))

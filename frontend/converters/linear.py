"""ONNX's matrix products."""

from __future__ import annotations

import numpy as np

from ...graph.node import Constant, Node, tensor_of
from ...ops.families.binary import add, multiply
from ...ops.families.cast import cast
from ...ops.families.einsum import einsum
from ...ops.families.matmul.matmul import dense, matmul
from ...ops.families.transpose import transpose
from ..onnx_node import OnnxNode
from ..registry import converter
from ..run_time_broadcast import broadcast_at_run_time


@converter("MatMul", 1, 9, 13)
def _matmul(node: OnnxNode) -> Node:
    """A matrix on the right serves all batches: then it is a dense layer."""
    if node.type(1).ndim == 2 and node.rank >= 1:
        return dense(node[0], node[1], transposed=False)
    are_matrices = min(node.rank, node.type(1).ndim) >= 2
    a, b = broadcast_at_run_time(node, (node[0], node[1]), behind=2) if are_matrices else (node[0], node[1])
    return matmul(a, b)


@converter("Gemm", 1, 6, 7, 9, 11, 13)
def gemm(node: OnnxNode) -> Node:
    """alpha · A · B + beta · C, where C broadcasts; it is optional since version 11. Integers times a fraction are
    added as real numbers, and rounded towards 0 at the end."""
    x = transpose(node[0]) if node.flag("transA") else node[0]
    product: Node = dense(x, node[1], transposed=node.flag("transB"))
    alpha, beta, c, kind = node.real("alpha", 1.0), node.real("beta", 1.0), node.get(2), node.type().dtype
    fractions = not kind.is_float and not (alpha.is_integer() and beta.is_integer())
    if fractions:
        product, c = cast(product, "float64"), None if c is None else cast(c, "float64")
    product = scaled(product, alpha)
    y = product if c is None or beta == 0 else add(product, scaled(c, beta))
    return cast(y, str(kind)) if fractions else y


def scaled(x: Node, factor: float) -> Node:
    """x times a number."""
    return x if factor == 1 else multiply(x, Constant(np.asarray(factor, tensor_of(x).dtype.to_numpy())))


@converter("Einsum", 12, 28)
def _einsum(node: OnnxNode) -> Node:
    return einsum(node.string("equation"), node.all)

"""The rules of gradients of products and convolutions: each is a product or a convolution again."""

from __future__ import annotations

from collections.abc import Sequence

from ...base.errors import TypeInferenceError
from ...graph.node import Call, Node, tensor_of
from ...ir.constants import const_int
from ..families.conv.conv import conv
from ..families.conv.transpose import conv_transpose
from ..families.matmul.matmul import matmul
from ..families.reshape import expand_dims, reshape
from ..families.slicing import strided_slice
from ..families.transpose import transpose
from .makers import reshaped_like, summed_like


def unsupported(call: Call, what: str) -> TypeInferenceError:
    """The error for a call whose operator has a rule, but not for this."""
    return TypeInferenceError(f"{call.op.name} {what} has no rule for gradients")


def _turned(x: Node) -> Node:
    """Matrices with their last two axes exchanged."""
    rank = tensor_of(x).ndim
    return transpose(x, (*range(rank - 2), rank - 1, rank - 2))


def matmul_rule(call: Call, gradient: Node) -> Sequence[Node | None]:
    """The rule of numpy's product, where a vector is a matrix of one row, or of one column."""
    a, b = call.args
    row, column = tensor_of(a).ndim == 1, tensor_of(b).ndim == 1
    left, right = expand_dims(a, 0) if row else a, expand_dims(b, 1) if column else b
    rank = tensor_of(gradient).ndim
    if column:
        gradient = expand_dims(gradient, rank)
    if row:
        gradient = expand_dims(gradient, tensor_of(gradient).ndim - 1)
    by_left, by_right = matmul(gradient, _turned(right)), matmul(_turned(left), gradient)
    return reshaped_like(summed_like(by_left, left), a), reshaped_like(summed_like(by_right, right), b)


def batch_matmul_rule(call: Call, gradient: Node) -> Sequence[Node | None]:
    """The rule of products of matrices, one for each batch, of which either may lie transposed."""
    a, b = call.args
    left = _turned(a) if call.attrs.transpose_a else a
    right = _turned(b) if call.attrs.transpose_b else b
    by_left, by_right = matmul(gradient, _turned(right)), matmul(_turned(left), gradient)
    return (
        summed_like(_turned(by_left) if call.attrs.transpose_a else by_left, a),
        summed_like(_turned(by_right) if call.attrs.transpose_b else by_right, b),
    )


def dense_rule(call: Call, gradient: Node) -> Sequence[Node | None]:
    """The rule of rows times a weight, which lies as [N, K] where it is transposed."""
    x, weight = call.args
    transposed = call.attrs.transposed
    by_x = matmul(gradient, weight if transposed else _turned(weight))
    rows, columns = (reshape(each, (-1, _last(call, each))) for each in (x, gradient))
    return by_x, matmul(_turned(columns), rows) if transposed else matmul(_turned(rows), columns)


def _last(call: Call, x: Node) -> int:
    extent = const_int(tensor_of(x).shape[-1])
    if extent is None:
        raise unsupported(call, "over an open extent")
    return extent


def conv_rule(call: Call, gradient: Node) -> Sequence[Node | None]:
    """The rule of convolutions with channels first and one group, of known extents: by x it is the transposed
    convolution, by the weight a convolution of x by the gradient, whose steps are the window's distances and the other
    way round."""
    (x, weight), attrs = call.args, call.attrs
    rank = attrs.rank
    shapes = [[const_int(e) for e in tensor_of(each).shape[2:]] for each in (x, weight, gradient)]
    standard = attrs.groups == 1 and str(attrs.data_layout).startswith("NC") and not attrs.out_layout
    if not standard or not str(attrs.kernel_layout).startswith("OI"):
        raise unsupported(call, "in groups, or with channels last,")
    if any(extent is None for shape in shapes for extent in shape):
        raise unsupported(call, "of open extents")
    sizes, windows, steps = ([e for e in shape if e is not None] for shape in shapes)
    begins, ends = attrs.padding[:rank], attrs.padding[rank:]
    covered = [
        (n - 1) * stride + apart * (k - 1) + 1 - begin - end
        for n, stride, apart, k, begin, end in zip(
            steps, attrs.strides, attrs.dilation, windows, begins, ends, strict=True
        )
    ]
    left = [size - reached for size, reached in zip(sizes, covered, strict=True)]
    by_x = conv_transpose(
        gradient, weight, strides=attrs.strides, padding=attrs.padding, dilation=attrs.dilation, output_padding=left
    )
    exchanged = (1, 0, *range(2, rank + 2))
    by_weight = conv(
        transpose(x, exchanged),
        transpose(gradient, exchanged),
        strides=attrs.dilation,
        padding=attrs.padding,
        dilation=attrs.strides,
    )
    whole = strided_slice(by_weight, [0] * rank, windows, list(range(2, rank + 2)))
    return by_x, transpose(whole, exchanged)

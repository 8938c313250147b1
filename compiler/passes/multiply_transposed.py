"""Products by a matrix of a run that is transposed for them read it as it lies: few rows need no copy of it then, and
others copy it to panels once, not twice.

nn.matmul(x, transpose(w))   →   nn.dense(x, w), or of batches nn.batch_matmul(x, w, transpose_b=True)

Factors that are made of narrower numbers are rearranged in any case, and are left as they are.
"""

from __future__ import annotations

from dataclasses import replace

from ...base.dtype import FLOAT32, FLOAT64
from ...graph.node import Call, Constant, Function, Node, tensor_of
from ...graph.visit import inputs, post_order, users, with_inputs
from ...ir.constants import const_int
from ...ops.definition.registry import get_op
from ...ops.families.matmul.batch_matmul import batch_matmul
from ...ops.families.matmul.matmul import dense
from ...ops.families.transpose import transpose
from .quantized_values import with_origin

DENSE, MATMUL, TRANSPOSE = get_op("nn.dense"), get_op("nn.matmul"), get_op("transpose")
FEW_ROWS = range(13, 129)
"""Fewer are multiplied by what lies as it lies, without panels of it."""
MANY = 4
"""So many times as many are many rows beside few, and many terms: 16 x 1024 and 64 x 1024 by 1024 x 1024 take 0.75 and
0.7 times as long with the smaller factor in panels as with the larger one."""


def multiply_transposed(function: Function) -> Function:
    """The function in which no right factor of a product is transposed for it alone."""
    used_by = users(function.body)
    done: dict[Node, Node] = {}
    for node in post_order(function.body):
        rebuilt = with_inputs(node, tuple(done[n] for n in inputs(node)))
        is_product = isinstance(node, Call) and node.op in (DENSE, MATMUL)
        if is_product and isinstance(rebuilt, Call) and len(used_by[inputs(node)[1]]) == 1:
            made = _multiplied(rebuilt)
            rebuilt = rebuilt if made is None else with_origin(made, rebuilt, set(made.args))
        done[node] = rebuilt
    body = done[function.body]
    return function if body is function.body else replace(function, body=body)


def _multiplied(product: Call) -> Call | None:
    """A product by the matrix that is transposed for it; None if there is none such."""
    x, right = product.args
    kind = tensor_of(right).dtype
    if not isinstance(right, Call) or right.op is not TRANSPOSE or kind not in (FLOAT32, FLOAT64):
        return None
    (weight,), rank = right.args, tensor_of(right).ndim
    if rank < 2 or right.attrs.axes != (*range(rank - 2), rank - 1, rank - 2):
        return None
    out_dtype = product.attrs.out_dtype or None
    if rank == 2:
        return dense(x, weight, not product.attrs.transposed, out_dtype)
    batches = [tensor_of(factor).shape[:-2] for factor in (x, weight)]
    if len(batches[0]) != len(batches[1]) or any(a is not b for a, b in zip(*batches, strict=True)):
        return None
    if _has_few_rows(x, weight):
        return transpose(batch_matmul(weight, x, transpose_b=True, out_dtype=out_dtype), right.attrs.axes)
    return batch_matmul(x, weight, transpose_b=True, out_dtype=out_dtype)


def _has_few_rows(x: Node, weight: Node) -> bool:
    """Whether x has few rows beside the matrix of a run that is transposed for it; open extents are taken for large."""
    (rows, terms), columns = tensor_of(x).shape[-2:], tensor_of(weight).shape[-2]
    count = const_int(rows)
    if count is None or count not in FEW_ROWS or isinstance(weight, Constant):
        return False
    return all(number is None or number >= MANY * count for number in map(const_int, (terms, columns)))

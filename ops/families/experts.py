"""nn.expert_dense: each row times the weights of the expert that it is sent to, as mixtures of experts have it."""

from __future__ import annotations

from collections.abc import Sequence

from ... import te
from ...base.dtype import INT64
from ...base.errors import TypeInferenceError
from ...base.target import Target
from ...graph.node import Call, Node
from ...graph.types import TensorType, Type
from ...ir.expr import Axis, Expr
from ...ir.makers import as_index
from ...ir.operand import Operand
from ...te.tensor import Tensors
from ..definition.accumulate import widened
from ..definition.attrs import Attrs
from ..definition.cost import moved
from ..definition.folds import LONG_ROWS, LaneOrder, long_rows
from ..definition.op_group import OpGroup
from ..definition.registry import OpPattern, register_op
from ..definition.relations import FLOAT_KINDS, same_dtype, same_extent, tensor_argument
from ..definition.strategy import Compute, OpStrategy, register_strategy, schedule_default
from .reduce import RowStages, fold_axes, rows_schedule

GROUP = OpGroup.PRODUCTS


def _relation(types: Sequence[Type], attrs: Attrs) -> Type:
    names = ["x", "experts", "weights"]
    x, experts, weights = (tensor_argument(kind, name) for kind, name in zip(types, names, strict=True))
    same_dtype([x, weights], ["x", "weights"])
    if x.dtype.kind not in FLOAT_KINDS or x.ndim != 2 or weights.ndim != 3:
        raise TypeInferenceError(f"x must be a matrix of floats, and weights have 3 axes, found {x} and {weights}")
    if experts.dtype is not INT64 or experts.ndim != 1:
        raise TypeInferenceError(f"experts must be a vector of int64, found {experts}")
    problem = f"x [R, K], experts [R] and weights [E, N, K] must agree, found {x}, {experts} and {weights}"
    same_extent(x.shape[0], experts.shape[0], problem)
    same_extent(x.shape[1], weights.shape[2], problem)
    return TensorType((x.shape[0], weights.shape[1]), x.dtype)


def _compute(order: LaneOrder | None) -> Compute:
    def compute(attrs: Attrs, inputs: Tensors, result: Type) -> RowStages:
        x, experts, weights = inputs
        last = weights.shape[0] - 1

        def product(i: tuple[Operand, ...]) -> Expr:
            row, column, k = i
            expert = te.maximum(te.minimum(as_index(experts[row]), last), 0)
            return widened(x[row, k]) * widened(weights[expert, column, k])

        rows, columns = tensor_argument(result, "result").shape
        sums = fold_axes("expert_dense.sums", (rows, columns, x.shape[1]), [2], te.sum, product, order)

        def element(row: Axis, column: Axis) -> Expr:
            return te.cast(sums[row, column], x.dtype)

        return RowStages(te.compute((rows, columns), element, name="expert_dense"), (sums.tensor,))

    return compute


EXPERT_DENSE = register_op(
    "nn.expert_dense",
    "Each row of x times the weights of one expert: y[r, n] = Σₖ x[r, k] · weights[experts[r], n, k]",
    [
        ("x", "[R, K] of floats"),
        ("experts", "[R] of int64: which expert's weights; the nearest one that there is for others"),
        ("weights", "[E, N, K], of x's dtype"),
    ],
    _relation,
    OpPattern.OUT_ELEMENTWISE_FUSABLE,
    support_level=2,
)


@register_strategy(EXPERT_DENSE)
def _strategy(attrs: Attrs, inputs: Sequence[Type], result: Type, target: Target) -> OpStrategy:
    """Rows of weights are read as they lie, one at a time, so that only the weights of chosen experts are."""
    rows, columns = tensor_argument(result, "result").shape
    made = OpStrategy()
    made.add_implementation(_compute(None), schedule_default, "nn.expert_dense.generic")
    with made.specialized(long_rows([2], (rows, columns, tensor_argument(inputs[0], "x").shape[1]))):
        made.add_implementation(
            _compute(LONG_ROWS), rows_schedule, "nn.expert_dense.rows", cost=moved([*inputs, result])
        )
    return made


def expert_dense(x: Node, experts: Node, weights: Node) -> Call:
    """Each row of ``x`` [R, K] times the weights [E, N, K] of its expert: [R, N]. ``experts``, of int64, are numbers
    from 0 to E - 1; others mean the nearest one."""
    return EXPERT_DENSE(x, experts, weights)

"""Operands of numpy's functions as nodes of one dtype.

The rules are numpy's (NEP 50), in which a constant (a number, an array, or a list of numbers) counts by its kind only,
as Python's numbers do: a float32 node and a float64 array give float32, an int32 node and 0.5 give float64.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

import numpy as np
import numpy.typing as npt

from ...base.dtype import DType, dtype
from ...base.errors import ExpressionError, TypeInferenceError
from ...graph.array_operators import ArrayOperators
from ...graph.node import Constant, Node, check_node, tensor_of
from ..families.cast import cast

_WEAK = {"b": False, "i": 0, "u": 0, "f": 0.0, "V": 0.0}
"""What stands for a constant in numpy's promotion, by the kind of its dtype; V is that of bfloat16."""


def as_node(value: object) -> Node:
    """A node, or the constant that a value is, in a dtype of its own."""
    return check_node(value) if isinstance(value, ArrayOperators) else Constant(_array(value))


def alike(*values: object) -> list[Node]:
    """The operands in their common dtype; some is a node."""
    return in_dtype(values, common_dtype(values))


def in_dtype(values: Sequence[object], kind: DType) -> list[Node]:
    """The operands in a dtype."""
    return [converted(v, kind) if isinstance(v, ArrayOperators) else _constant(v, kind) for v in values]


def converted(value: object, kind: DType) -> Node:
    """A node in a dtype: itself, if it has that."""
    node = check_node(value)
    return node if tensor_of(node).dtype is kind else cast(node, kind)


def common_dtype(values: Sequence[object]) -> DType:
    """What numpy's promotion gives for the dtypes of nodes, and the kinds of constants."""
    nodes = [tensor_of(check_node(v)).dtype.to_numpy() for v in values if isinstance(v, ArrayOperators)]
    weak = [_WEAK[_array(v).dtype.kind] for v in values if not isinstance(v, ArrayOperators)]
    common = reduce(np.promote_types, nodes)
    if dtype(common).is_float:
        return dtype(common)  # numpy would widen bfloat16 beside a number
    return dtype(np.result_type(common, *weak))


def _array(value: object) -> npt.NDArray[Any]:
    if isinstance(value, (list, tuple)) and any(isinstance(v, ArrayOperators) for v in value):
        raise TypeInferenceError("a list of nodes is no operand: np.stack makes a node of it")
    try:
        array = np.asarray(value)
        if not isinstance(value, (bool, int)) or array.dtype.kind in _WEAK:
            dtype(array.dtype)
            return array
    except (ExpressionError, ValueError):
        pass
    if isinstance(value, int):
        raise TypeInferenceError(f"the integer {value} has more than 64 bits")
    raise TypeInferenceError(
        f"expected a node, a number or an array of numbers, found a value of type {type(value).__name__}"
    )


def _constant(value: object, kind: DType) -> Constant:
    """The constant in a dtype that it is to have: rounded, where that is a float; what it cannot hold is refused."""
    given = _array(value)
    with np.errstate(all="ignore"):
        made = given.astype(kind.to_numpy())
        kept = np.isfinite(made) == np.isfinite(given) if kind.is_float else made == given
    if not np.all(kept):
        first = given.ravel()[np.argmin(kept)]
        raise TypeInferenceError(f"the constant {first} does not fit {kind}: cast the node to a wider dtype")
    return Constant(made)

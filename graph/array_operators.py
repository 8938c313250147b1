"""What graph nodes have in common with arrays: Python's operators, numpy's functions, and methods.

Each is an operator of a graph, by the table of ``numpy_protocol.py``. Only ``==`` and ``!=`` are none: nodes are keys
of tables, and are compared by identity; ``lw.nn.equal`` compares values.
"""

from __future__ import annotations

from operator import getitem
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

import numpy as np
import numpy.typing as npt

from ..base.dtype import DType
from ..base.errors import TypeInferenceError
from ..ir.constants import const_int
from ..ir.expr import Expr
from ..ir.operators import Operator, Operators
from ..ir.ufuncs import UFUNCS
from .numpy_protocol import apply, apply_ufunc
from .types import FunctionType, TensorType, Type

if TYPE_CHECKING:
    from .node import Node

Value: TypeAlias = "ArrayOperators | npt.ArrayLike"
"""A node, or what becomes a constant beside one."""
Axes: TypeAlias = int | tuple[int, ...] | None


class ArrayOperators(Operators["Value", "Node"]):
    """The base class of all nodes. What is not a tensor refuses all of it with a ``TypeInferenceError``.

    Operands have the dtype that numpy's promotion gives (NEP 50), in which constants (Python's numbers, and arrays)
    count by their kind only: ``x * 2``, ``x + np.ones(3)`` and ``x @ w`` have the dtype of a float32 ``x``.
    """

    __slots__ = ()
    __iter__ = None  # as a node that can be indexed, it would be taken for a sequence
    type: Type

    @property
    def shape(self) -> tuple[int | Expr, ...]:
        """The extents: numbers, or expressions of symbolic dimensions."""
        return tuple(e if (number := const_int(e)) is None else number for e in self._tensor_type.shape)

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return self._tensor_type.ndim

    @property
    def dtype(self) -> DType:
        """The dtype of the elements."""
        return self._tensor_type.dtype

    @property
    def T(self) -> Node:
        """The tensor with its axes reversed."""
        return self.transpose()

    @property
    def _tensor_type(self) -> TensorType:
        if not isinstance(self.type, TensorType):
            raise TypeInferenceError(f"expected a tensor, found a {self.type}")
        return self.type

    @staticmethod
    def operate(op: Operator, a: Any, b: Any) -> Node:
        """What ``a op b`` stands for."""
        made: Node = apply(UFUNCS[op], a, b)
        return made

    def __matmul__(self, other: Value) -> Node:
        return _node(np.matmul, self, other)

    def __rmatmul__(self, other: Value) -> Node:
        return _node(np.matmul, other, self)

    def __neg__(self) -> Node:
        return _node(np.negative, self)

    def __pos__(self) -> Node:
        return _node(np.positive, self)

    def __abs__(self) -> Node:
        return _node(np.absolute, self)

    def __invert__(self) -> Node:
        return _node(np.invert, self)

    def __getitem__(self, key: Any) -> Node:
        """Part of a tensor, as numpy's basic indexing takes it: by integers, slices, ``...`` and ``None``; on one axis
        by integers of an array or node, too. Of a tuple, the member of that number. Of an axis that is open, a number
        beyond its end is its last element.
        """
        return _node(getitem, self, key)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, (bool, int, float, np.generic, np.ndarray)):
            raise TypeInferenceError("`==` asks whether two nodes are the same one: lw.nn.equal compares values")
        return self is other

    __hash__ = object.__hash__

    def __bool__(self) -> bool:
        if isinstance(self.type, FunctionType):
            return True
        raise TypeInferenceError(
            "the truth of a graph node is not known while the graph is built: use np.where or lw.nn.where instead of "
            "`if`, `&`, `|`, `~` instead of `and`, `or`, `not`, and `is None` to ask whether there is a node"
        )

    def __array__(self, dtype: object = None, copy: object = None) -> NoReturn:
        raise TypeInferenceError(
            "a graph node has no value while the graph is built: lw.compile makes a library of a lw.Function, and "
            "lw.Engine runs it"
        )

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        return apply_ufunc(ufunc, method, inputs, options)

    def __array_function__(self, function: Any, types: object, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        return apply(function, *args, **options)

    def astype(self, dtype: str | DType | npt.DTypeLike) -> Node:
        """The tensor in another dtype: floats become integers by truncation, and saturate."""
        return _node(np.astype, self, dtype)

    def reshape(self, *shape: int | Expr | tuple[int | Expr, ...]) -> Node:
        """The elements in another shape; -1, once, is what the other extents leave."""
        return _node(np.reshape, self, shape[0] if len(shape) == 1 else shape)

    def ravel(self) -> Node:
        """The elements in one row."""
        return _node(np.ravel, self)

    flatten = ravel

    def transpose(self, *axes: int | tuple[int, ...] | None) -> Node:
        """The tensor with axis k being axis ``axes[k]``; the axes reversed, if none are given."""
        return _node(np.transpose, self, axes[0] if len(axes) == 1 and not isinstance(axes[0], int) else axes or None)

    def swapaxes(self, axis1: int, axis2: int) -> Node:
        """The tensor with two axes exchanged."""
        return _node(np.swapaxes, self, axis1, axis2)

    def squeeze(self, axis: Axes = None) -> Node:
        """The tensor without axes of extent 1: the given ones, else all."""
        return _node(np.squeeze, self, axis)

    def sum(self, axis: Axes = None, keepdims: bool = False) -> Node:
        """The sum over axes, over all by default; of small integers in 64 bits."""
        return _node(np.sum, self, axis, keepdims=keepdims)

    def prod(self, axis: Axes = None, keepdims: bool = False) -> Node:
        """The product over axes, over all by default; of small integers in 64 bits."""
        return _node(np.prod, self, axis, keepdims=keepdims)

    def mean(self, axis: Axes = None, keepdims: bool = False) -> Node:
        """The mean over axes, over all by default; of integers in float64."""
        return _node(np.mean, self, axis, keepdims=keepdims)

    def var(self, axis: Axes = None, keepdims: bool = False) -> Node:
        """The variance over axes, over all by default."""
        return _node(np.var, self, axis, keepdims=keepdims)

    def std(self, axis: Axes = None, keepdims: bool = False) -> Node:
        """The standard deviation over axes, over all by default."""
        return _node(np.std, self, axis, keepdims=keepdims)

    def max(self, axis: Axes = None, keepdims: bool = False) -> Node:
        """The largest element over axes, over all by default; NaN if there is one."""
        return _node(np.max, self, axis, keepdims=keepdims)

    def min(self, axis: Axes = None, keepdims: bool = False) -> Node:
        """The smallest element over axes, over all by default; NaN if there is one."""
        return _node(np.min, self, axis, keepdims=keepdims)

    def any(self, axis: Axes = None, keepdims: bool = False) -> Node:
        """Whether any element over axes is true."""
        return _node(np.any, self, axis, keepdims=keepdims)

    def all(self, axis: Axes = None, keepdims: bool = False) -> Node:
        """Whether all elements over axes are true."""
        return _node(np.all, self, axis, keepdims=keepdims)

    def argmax(self, axis: int | None = None, keepdims: bool = False) -> Node:
        """The position, an int64, of the largest element along an axis, or among all; the first of equals."""
        return _node(np.argmax, self, axis, keepdims=keepdims)

    def argmin(self, axis: int | None = None, keepdims: bool = False) -> Node:
        """The position, an int64, of the smallest element along an axis, or among all; the first of equals."""
        return _node(np.argmin, self, axis, keepdims=keepdims)

    def clip(self, min: Value | None = None, max: Value | None = None) -> Node:
        """The elements, held between bounds, each of which is optional."""
        return _node(np.clip, self, min, max)


def _node(function: Any, *args: Any, **options: Any) -> Node:
    made: Node = apply(function, *args, **options)
    return made

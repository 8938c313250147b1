"""Arithmetic on whole tensors, as numpy's on arrays: ``A + B``, ``np.exp(A)``, ``A @ B``, ``A.sum(axis=1)``.

Each gives the tensor of a new compute. Elementwise functions are made here, of the same functions on elements
(``ir/ufuncs.py``). All others are operators, as they are for nodes of graphs (``graph/numpy_protocol.py``). Operators
stand above ``te``, which works without them: their module is loaded by its name where one is asked for.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

import numpy as np

from ..base.dtype import DType, dtype
from ..base.errors import ExpressionError
from ..ir.expr import ExprLike
from ..ir.makers import cast
from ..ir.operand import Operand
from ..ir.operators import Operator, Operators
from ..ir.ufuncs import UFUNCS, apply_ufunc

if TYPE_CHECKING:
    from .tensor import Tensor

Number: TypeAlias = bool | int | float | np.number[Any] | np.bool_
AxisLike: TypeAlias = int | Sequence[int] | None

_OPERATORS = f"{__name__.partition('.te.')[0]}.ops.numpy_api.on_tensors"


def apply(function: Any, *args: Any, **options: Any) -> Any:
    """The value of a function of numpy that is no elementwise one, of which some argument is a tensor: an operator."""
    return import_module(_OPERATORS).apply_to_tensors(function, *args, **options)


def elementwise(ufunc: np.ufunc, *operands: Tensor | Number) -> Tensor:
    """An elementwise function of numpy, of tensors that broadcast, and of numbers, which take the tensors' dtype.

    Raises ``ExpressionError`` for shapes that do not broadcast, and for different dtypes: nothing is converted.
    """
    values = _checked(ufunc.__name__, operands)
    _same_dtype(ufunc.__name__, values)
    return _broadcast(ufunc.__name__, values, lambda *elements: apply_ufunc(ufunc, "__call__", elements, {}))


def _broadcast(name: str, values: Sequence[Any], function: Callable[..., ExprLike]) -> Tensor:
    """A compute of the elements of tensors that broadcast, and of numbers."""
    from .broadcasting import broadcast_shapes, read_broadcast
    from .compute import compute
    from .tensor import Tensor

    tensors = [value for value in values if isinstance(value, Tensor)]
    try:
        shape = broadcast_shapes([tensor.shape for tensor in tensors], [tensor.name for tensor in tensors])
    except ExpressionError as error:
        raise ExpressionError(f"np.{name} of {', '.join(map(repr, tensors))}: {error}") from None

    def element(*indices: Operand) -> ExprLike:
        return function(*(read_broadcast(v, indices) if isinstance(v, Tensor) else v for v in values))

    made: Tensor = compute(shape, element, name=name)
    return made


def _checked(name: str, operands: Sequence[object]) -> list[Any]:
    """Tensors and numbers; those of numpy, extents and other constants as Python's, which take any dtype."""
    from .tensor import Tensor

    whole = next(operand for operand in operands if isinstance(operand, Tensor))
    values: list[Any] = []
    for operand in operands:
        if isinstance(operand, (np.generic, np.ndarray)) and operand.ndim == 0:
            values.append(operand.item())
        elif isinstance(operand, (Tensor, bool, int, float)):
            values.append(operand)
        elif isinstance(operand, Operand) and (known := operand.constant()) is not None:
            values.append(known.value)
        elif isinstance(operand, Operand):
            raise ExpressionError(
                f"np.{name}: {whole!r} is a whole tensor, and `{operand}` one element: read elements of the tensor, as "
                f"in {whole.name}[i]"
            )
        else:
            shape = f" of shape {operand.shape}" if isinstance(operand, np.ndarray) else ""
            raise ExpressionError(
                f"np.{name}: {whole!r} meets a {type(operand).__name__}{shape}, but only numbers go with tensors: make "
                "an array an argument of the kernel, or put a te.placeholder in its place"
            )
    return values


def _same_dtype(name: str, values: Sequence[Any]) -> None:
    from .tensor import Tensor

    tensors = [value for value in values if isinstance(value, Tensor)]
    for other in tensors[1:]:
        if other.dtype is not tensors[0].dtype:
            raise ExpressionError(
                f"np.{name}: {tensors[0]!r} and {other!r} do not share a dtype; convert one of them, as by "
                f"astype({str(tensors[0].dtype)!r})"
            )


class WholeTensor(Operators["Tensor | Number", "Tensor"]):
    """What tensors have in common with numpy's arrays. ``==`` is not among it: it asks whether two are the same."""

    __slots__ = ()

    @abstractmethod
    def _tensor(self) -> Tensor:
        """This, as the tensor that it is."""

    @staticmethod
    def operate(op: Operator, a: Any, b: Any) -> Tensor:
        """What ``a op b`` stands for."""
        return elementwise(UFUNCS[op], a, b)

    def __invert__(self) -> Tensor:
        return elementwise(np.invert, self._tensor())

    def __neg__(self) -> Tensor:
        return elementwise(np.negative, self._tensor())

    def __abs__(self) -> Tensor:
        return elementwise(np.absolute, self._tensor())

    def __matmul__(self, other: Tensor) -> Tensor:
        made: Tensor = apply(np.matmul, self._tensor(), other)
        return made

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        if method != "__call__":
            raise ExpressionError(
                f"np.{ufunc.__name__}.{method} does not apply to tensors: np.sum, np.prod, np.max, … reduce them"
            )
        if ufunc is np.matmul:
            return apply(ufunc, *inputs, **options)
        if options:
            raise ExpressionError(f"np.{ufunc.__name__} of tensors takes no {', '.join(options)}")
        return elementwise(ufunc, *inputs)

    def __array_function__(self, function: Any, types: object, args: Sequence[Any], options: dict[str, Any]) -> Any:
        return apply(function, *args, **options)

    def __array__(self, *args: object, **options: object) -> NoReturn:
        raise ExpressionError(
            f"{self._tensor()!r} has no values: it says what is computed, and lw.kernel or lw.build run it"
        )

    def __bool__(self) -> bool:
        raise ExpressionError(
            f"the truth of {self._tensor()!r} is not known before it is computed: choose by np.where, not by if"
        )

    @property
    def T(self) -> Tensor:
        """The tensor with its axes in reverse order."""
        return self.transpose()

    def transpose(self, *axes: int | Sequence[int] | None) -> Tensor:
        """The tensor with axis k being axis ``axes[k]``, as ``np.transpose``; the axes reversed, if none are given."""
        order = axes[0] if len(axes) == 1 and not isinstance(axes[0], int) else axes or None
        made: Tensor = apply(np.transpose, self._tensor(), order)
        return made

    def reshape(self, *shape: int | Sequence[int]) -> Tensor:
        """The elements in another shape, as ``np.reshape`` gives them; one extent may be -1."""
        made: Tensor = apply(np.reshape, self._tensor(), shape[0] if len(shape) == 1 else shape)
        return made

    def astype(self, kind: str | DType | np.dtype[Any] | type) -> Tensor:
        """The tensor in another dtype; ``te.cast`` says how values are converted."""
        from .compute import compute

        tensor, to = self._tensor(), dtype(kind)
        return tensor if tensor.dtype is to else compute(tensor.shape, lambda *i: cast(to, tensor[i]), name="astype")

    def sum(self, axis: AxisLike = None, keepdims: bool = False) -> Tensor:
        """The sum over axes, as ``np.sum``, in the dtype of the tensor."""
        return self._reduced(np.sum, axis, keepdims)

    def prod(self, axis: AxisLike = None, keepdims: bool = False) -> Tensor:
        """The product over axes, as ``np.prod``, in the dtype of the tensor."""
        return self._reduced(np.prod, axis, keepdims)

    def mean(self, axis: AxisLike = None, keepdims: bool = False) -> Tensor:
        """The mean over axes, as ``np.mean``, in the dtype of the tensor."""
        return self._reduced(np.mean, axis, keepdims)

    def min(self, axis: AxisLike = None, keepdims: bool = False) -> Tensor:
        """The smallest element over axes, as ``np.min``."""
        return self._reduced(np.min, axis, keepdims)

    def max(self, axis: AxisLike = None, keepdims: bool = False) -> Tensor:
        """The largest element over axes, as ``np.max``."""
        return self._reduced(np.max, axis, keepdims)

    def _reduced(self, function: Callable[..., Any], axis: AxisLike, keepdims: bool) -> Tensor:
        made: Tensor = apply(function, self._tensor(), axis=axis, keepdims=keepdims)
        return made

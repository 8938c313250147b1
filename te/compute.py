"""What users write computes with: ``placeholder``, ``var``, ``reduce_axis`` and ``compute``."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias, TypeVar, overload

from ..base.dtype import DType, dtype
from ..base.errors import ExpressionError
from ..ir.build import index_var
from ..ir.constants import ZERO, const_int
from ..ir.contents import free_vars
from ..ir.expr import Axis, Broadcast, Expr, ExprLike, Ramp, Reduce, ReduceVar, Var
from ..ir.makers import as_expr, as_index
from ..ir.operand import Operand
from ..ir.simplify import simplify
from ..ir.visit import children, walk
from .bounds import check_reads
from .lanes import computed_in_lanes
from .tensor import Tensor, make_compute, make_placeholder

MAX_EXTENT = 1 << 47
"""Largest extent of a dimension, and largest number of bytes of a tensor: what a 47-bit address space could hold."""

Element = TypeVar("Element")
ElementFunction: TypeAlias = (
    Callable[[Axis], Element]
    | Callable[[Axis, Axis], Element]
    | Callable[[Axis, Axis, Axis], Element]
    | Callable[[Axis, Axis, Axis, Axis], Element]
    | Callable[[Axis, Axis, Axis, Axis, Axis], Element]
    | Callable[[Axis, Axis, Axis, Axis, Axis, Axis], Element]
    | Callable[[Axis, Axis, Axis, Axis, Axis, Axis, Axis], Element]
    | Callable[[Axis, Axis, Axis, Axis, Axis, Axis, Axis, Axis], Element]
    | Callable[[], Element]
)
"""A function from the axes of a compute to the element there. They are spelled out so that type checkers know what the
parameters of a lambda are; functions of ``*axes`` fit too, and take any number."""


def var(name: str = "n") -> Var:
    """A symbolic dimension: a variable of dtype ``index`` whose value the caller's arrays decide."""
    return index_var(check_name(name))


def placeholder(shape: Sequence[ExprLike], dtype: str | DType = "float32", name: str = "placeholder") -> Tensor:
    """An input tensor of the given extents, numbers or index expressions of ``te.var`` dimensions.

    Raises ``ExpressionError`` for a negative or too large extent, an unknown dtype, and a name that is no identifier.
    """
    kind = scalar_dtype(dtype)
    return make_placeholder(check_name(name), kind, check_shape(name, shape, kind))


def reduce_axis(domain: tuple[ExprLike, ExprLike], name: str = "r") -> Axis:
    """An axis to reduce over, for values ``domain[0] <= r < domain[1]``; it is empty if the end is not above the begin.

    The bounds may depend on the axes of the compute, and read tensors there: ``te.reduce_axis((row[i], row[i + 1]))``,
    made in the function of the compute, runs over row i of a sparse matrix.

    Raises ``ExpressionError`` where the end is certain to come before the begin.
    """
    try:
        begin, end = domain
    except (TypeError, ValueError):
        raise ExpressionError(f"reduce_axis {name}: the domain is a pair (begin, end), found {domain!r}") from None
    low, high = as_index(begin), as_index(end)
    extent = simplify(high - low)
    if (number := const_int(extent)) is not None and not 0 <= number <= MAX_EXTENT:
        raise ExpressionError(f"reduce_axis {name}: the domain ({low}, {high}) is not a range")
    return Axis(ReduceVar(check_name(name)), low, extent, "reduce")


@overload
def compute(shape: Sequence[ExprLike], fcompute: ElementFunction[ExprLike], name: str = ...) -> Tensor: ...
@overload
def compute(
    shape: Sequence[ExprLike], fcompute: ElementFunction[tuple[ExprLike, ...]], name: str = ...
) -> tuple[Tensor, ...]: ...
def compute(
    shape: Sequence[ExprLike], fcompute: Callable[..., ExprLike | tuple[ExprLike, ...]], name: str = "compute"
) -> Tensor | tuple[Tensor, ...]:
    """A tensor of the given shape whose element at (i, j, …) is ``fcompute(i, j, …)``.

    ``fcompute`` is called once, with symbolic axes; its last parameter may be ``*rest``. If it returns a tuple, there
    are several tensors of that shape: they are the outputs of one reduction (``te.argmin`` …), or none of them is a
    reduction.

    Raises ``ExpressionError`` where a dtype, a rank or a shape does not fit, where a reduction stands inside another
    expression, and where a read is certain to be out of bounds.

    >>> from loopwright import te
    >>> A = te.placeholder((4, 8), name="A")
    >>> r = te.reduce_axis((0, 8), name="r")
    >>> te.compute((4,), lambda i: te.sum(A[i, r], axis=r), name="rows")
    rows: float32[4]
    """
    extents = check_shape(check_name(name), shape, None)
    names = _axis_names(fcompute, len(shape), name)
    axis = tuple(Axis(index_var(n), ZERO, e, "spatial") for n, e in zip(names, extents, strict=True))
    result = fcompute(*axis)
    body = tuple(as_expr(_check_value(name, r)) for r in (result if isinstance(result, tuple) else (result,)))
    _check_body(name, body)
    for expr in body:
        check_shape(name, extents, expr.dtype)
    op = make_compute(name, axis, body)
    check_reads(op)
    if op.reduction is not None and op.reduction.lanes > 1:
        op = computed_in_lanes(op)
    return op.outputs if isinstance(result, tuple) else op.outputs[0]


def check_name(name: str) -> str:
    """Names are identifiers, or several joined by dots, so that loop nests can be read."""
    if not all(part.isidentifier() for part in str(name).split(".")):
        raise ExpressionError(f"a name must be an identifier, or identifiers joined by dots, found {name!r}")
    return name


def scalar_dtype(kind: str | DType) -> DType:
    """The dtype of a tensor's elements. Raises ``ExpressionError`` for vectors and handles."""
    made = dtype(kind)
    if made.lanes != 1 or made.kind == "handle":
        raise ExpressionError(f"a tensor's elements are scalars, not {made}")
    return made


def check_shape(name: str, shape: object, kind: DType | None) -> tuple[Expr, ...]:
    """The extents of a tensor as simplified index expressions. Raises ``ExpressionError`` for what is no sequence, for
    negative extents, and for a tensor of more than 2**47 bytes; ``kind`` None counts a byte an element."""
    if isinstance(shape, (int, Operand)):
        raise ExpressionError(f"the shape of {name} is a sequence of extents: write ({shape},)")
    if isinstance(shape, str) or not isinstance(shape, Iterable):
        raise ExpressionError(f"the shape of {name} is a sequence of extents, found {shape!r}")
    extents = tuple(simplify(as_index(e)) for e in shape)
    numbers = [number for e in extents if (number := const_int(e)) is not None]
    size = math.prod(numbers) * (kind.storage_bytes if kind is not None else 1)
    if any(n < 0 for n in numbers):
        raise ExpressionError(f"{name}: a shape has no negative extents, found {[str(e) for e in extents]}")
    if any(n > MAX_EXTENT for n in numbers) or size > MAX_EXTENT:
        raise ExpressionError(
            f"{name}: shape {[str(e) for e in extents]} is too large; a tensor has at most 2**47 bytes"
        )
    return extents


def _axis_names(fcompute: Callable[..., Any], rank: int, name: str) -> list[str]:
    if not callable(fcompute):
        raise ExpressionError(f"{name} needs a function from indices to the element there, found {fcompute!r}")
    try:
        signature = inspect.signature(fcompute).parameters.values()
    except ValueError:  # of C
        raise ExpressionError(f"the elements of {name} are said by a function of Python, found {fcompute!r}") from None
    own = inspect.Parameter.KEYWORD_ONLY  # of a lambda in a loop, which keeps what the loop changes
    parameters = [p for p in signature if p.kind is not own or p.default is inspect.Parameter.empty]
    if parameters and parameters[-1].kind is inspect.Parameter.VAR_POSITIONAL and len(parameters) <= rank + 1:
        named = [p.name for p in parameters[:-1]]
        return [*named, *(f"i{k}" for k in range(len(named), rank))]
    if len(parameters) != rank:
        raise ExpressionError(f"{name} has {rank} dimensions, but its function takes {len(parameters)} indices")
    return [p.name for p in parameters]


def _check_value(name: str, value: Any) -> Any:
    if value is None:
        raise ExpressionError(f"the function of {name} returned nothing: return the element's expression")
    if isinstance(value, Tensor):
        raise ExpressionError(f"the function of {name} returned the whole tensor {value!r}: return one element of it")
    if isinstance(value, (tuple, list)):
        raise ExpressionError(f"the function of {name} returned {value!r} as an element; several outputs are one tuple")
    return value


def _check_reduced(name: str, expr: Expr) -> None:
    for var in free_vars(expr):
        if isinstance(var, ReduceVar):
            raise ExpressionError(
                f"{name} uses the reduce axis {var.name} without reducing over it: te.sum(…, axis={var.name}), "
                "or another reduction, must stand around it"
            )


def _check_body(name: str, body: tuple[Expr, ...]) -> None:
    if not body:
        raise ExpressionError(f"the function of {name} returned no expression: return the element's expression")
    for expr in body:
        if any(isinstance(node, Reduce) for child in children(expr) for node in walk(child)):
            raise ExpressionError(
                f"{name}: a reduction stands inside another expression; give it a compute of its own, and read that"
            )
        if expr.dtype.lanes != 1 or any(isinstance(node, (Ramp, Broadcast)) for node in walk(expr)):
            raise ExpressionError(f"{name}: computes are scalar; vectors come from the schedule's vectorize")
        _check_reduced(name, expr)
    reductions = [e for e in body if isinstance(e, Reduce)]
    for axis in reductions[0].axes if reductions else ():
        others = {other.var for other in reductions[0].axes}
        if any(node in others for bound in (axis.min, axis.extent) for node in walk(bound)):
            raise ExpressionError(
                f"{name}: the bounds of the reduction axis {axis.name} depend on a reduction axis; "
                "they may depend on the axes of the compute only"
            )
    if reductions and (
        len(reductions) != len(body)
        or len(body) != len(body[0].sources if isinstance(body[0], Reduce) else ())
        or sorted(r.index for r in reductions) != list(range(len(body)))
        or any(r.combiner is not reductions[0].combiner or r.sources is not reductions[0].sources for r in reductions)
    ):
        raise ExpressionError(f"{name}: several outputs with a reduction must be all the outputs of one reduction")

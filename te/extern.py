"""``te.extern``: a tensor that loop IR written by hand computes: sorts, searches, anything with ``while``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import overload

from ..base.dtype import DType
from ..base.errors import ExpressionError, VerificationError
from ..ir.buffer import Buffer
from ..ir.build import make_buffer
from ..ir.expr import ExprLike
from ..ir.stmt import PrimFunc, Stmt, StmtNode
from ..ir.verify import verify
from .compute import check_name, check_shape, scalar_dtype
from .tensor import Tensor, make_extern

Shape = tuple[ExprLike, ...]
Body = Callable[[list[Buffer], list[Buffer]], Stmt]


@overload
def extern(
    shape: Shape, inputs: Sequence[Tensor], fcompute: Body, name: str = ..., dtype: str | DType | None = ...
) -> Tensor: ...
@overload
def extern(
    shape: list[Shape],
    inputs: Sequence[Tensor],
    fcompute: Body,
    name: str = ...,
    dtype: str | DType | Sequence[str | DType] | None = ...,
) -> tuple[Tensor, ...]: ...
def extern(
    shape: Shape | list[Shape],
    inputs: Sequence[Tensor],
    fcompute: Body,
    name: str = "extern",
    dtype: str | DType | Sequence[str | DType] | None = None,
) -> Tensor | tuple[Tensor, ...]:
    """A tensor of the given shape, or several for a list of shapes, that a statement of the loop IR computes.

    ``fcompute(ins, outs)`` is called once, with a buffer for each input and each output, and returns the statement;
    ``te.IRBuilder`` writes it. It may read the inputs anywhere, read and write the outputs and what it allocates, and
    call functions of C on them, see ``te.extern_function``. It must write each element of the outputs that is read
    later. ``dtype`` is that of the outputs, or one for each; without it the outputs have the dtype that all inputs
    share.

    A schedule has no loops of it to transform: it runs as written, on whole inputs. It can be placed by ``compute_at``.

    Raises ``ExpressionError`` where a shape or dtype does not fit, and where the statement breaks a rule of the loop
    IR: touches other memory, stores into an input, uses a variable that is not bound.

    >>> from loopwright import te
    >>> def running_maximum(ins, outs):
    ...     ib = te.IRBuilder()
    ...     A, B = ib.buffer_ptr(ins[0]), ib.buffer_ptr(outs[0])
    ...     B[0] = A[0]
    ...     with ib.for_range(1, 8, name="i") as i:
    ...         B[i] = te.maximum(B[i - 1], A[i])
    ...     return ib.get()
    >>> A = te.placeholder((8,), name="A")
    >>> te.extern((8,), [A], running_maximum, name="B")
    B: float32[8]
    """
    check_name(name)
    several = isinstance(shape, list)
    shapes = shape if isinstance(shape, list) else [shape]
    read = _check_inputs(name, inputs)
    kinds = _dtypes(name, read, len(shapes), dtype)
    if not shapes:
        raise ExpressionError(f"{name} has no outputs: give the shape of one at least")
    ins = [make_buffer(t.name, t.shape, t.dtype) for t in read]
    names = [name] if len(shapes) == 1 else [f"{name}.v{k}" for k in range(len(shapes))]
    extents = [check_shape(n, s, kind) for n, s, kind in zip(names, shapes, kinds, strict=True)]
    outs = [make_buffer(n, s, kind) for n, s, kind in zip(names, extents, kinds, strict=True)]
    body = fcompute(list(ins), list(outs))
    if not isinstance(body, StmtNode):
        raise ExpressionError(f"the function of {name} returned {body!r}: return a statement, as IRBuilder.get() gives")
    func = PrimFunc(name, (*ins, *outs), body, tuple(outs))
    try:
        verify(func)
    except VerificationError as error:
        raise ExpressionError(f"the statement of {error.problem}") from None
    op = make_extern(name, read, func)
    return op.outputs if several else op.outputs[0]


def _check_inputs(name: str, inputs: object) -> tuple[Tensor, ...]:
    if not isinstance(inputs, Sequence) or not all(isinstance(t, Tensor) for t in inputs):
        raise ExpressionError(f"the inputs of {name} are a sequence of tensors, found {inputs!r}")
    return tuple(inputs)


def _dtypes(
    name: str, inputs: Sequence[Tensor], outputs: int, given: str | DType | Sequence[str | DType] | None
) -> list[DType]:
    if given is None:
        shared = {t.dtype for t in inputs}
        if len(shared) != 1:
            raise ExpressionError(f"{name}: its inputs do not share a dtype, so say dtype=… of the outputs")
        return [*shared] * outputs
    if isinstance(given, (str, DType)):
        return [scalar_dtype(given)] * outputs
    if len(given) != outputs:
        raise ExpressionError(f"{name} has {outputs} outputs, but {len(given)} dtypes")
    return [scalar_dtype(kind) for kind in given]

"""The computes of a schedule as text, close to the Python that declared them: the topmost text of the explorer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

from ..ir.expr import Axis, Expr
from ..ir.printer import Printer
from ..ir.simplify import simplify
from ..te.tensor import ComputeOp, ExternOp, Operation, PlaceholderOp, ScanOp, StateOp, Tensor


def compute_lines(op: Operation) -> list[str]:
    r"""The lines that declare an operation, reduction axes before it.

    >>> from loopwright import te
    >>> A = te.placeholder((4, 8), "float32", name="A")
    >>> r = te.reduce_axis((0, 8), name="r")
    >>> B = te.compute((4,), lambda i: te.sum(A[i, r], axis=r), name="B")
    >>> print("\n".join(compute_lines(B.op)))
    r = reduce_axis((0, 8))
    B = compute((4,), lambda i: sum(A[i, r], axis=[r]))
    """
    printer = Printer()
    match op:
        case PlaceholderOp():
            (tensor,) = op.outputs
            return [f'{op.name} = placeholder({_shape(printer, tensor.shape)}, "{tensor.dtype}")']
        case ComputeOp():
            parameters = ", ".join(printer.name(axis.var) for axis in op.axis)
            bodies = [printer.expr(body) for body in op.body]
            body = bodies[0] if len(bodies) == 1 else f"({', '.join(bodies)})"
            axes = [_reduce_axis(printer, axis) for axis in op.reduce_axis]
            shape = _shape(printer, op.outputs[0].shape)
            return [*axes, f"{op.name} = compute({shape}, lambda {parameters}: {body})"]
        case StateOp():
            (tensor,) = op.outputs
            return [f'{op.name} = state({_shape(printer, tensor.shape)}, "{tensor.dtype}")']
        case ScanOp():
            return [f"{op.name} = scan({', '.join(map(_names, (op.init, op.update, op.state)))})"]
        case ExternOp():
            return [f"{op.name} = extern({_names(op.inputs)}) as", *(f"    {row}" for row in str(op.func).split("\n"))]
        case _:
            assert_never(op)


def _reduce_axis(printer: Printer, axis: Axis) -> str:
    end = simplify(axis.min + axis.extent)
    return f"{printer.name(axis.var)} = reduce_axis(({printer.expr(axis.min)}, {printer.expr(end)}))"


def _shape(printer: Printer, extents: Sequence[Expr]) -> str:
    inside = ", ".join(map(printer.expr, extents))
    return f"({inside},)" if len(extents) == 1 else f"({inside})"


def _names(tensors: Sequence[Tensor]) -> str:
    return f"[{', '.join(tensor.name for tensor in tensors)}]"

"""What a kernel expects of its arguments: checks arrays against parameter buffers, and fills the argument slots.

The checks of a call depend on the types, shapes and strides of its arrays, then on their addresses. What follows from
the former is worked out once and remembered as a ``ArgumentLayout``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..base.addresses import address_of
from ..base.dataclass import dataclass
from ..base.errors import InternalError, RuntimeArgumentError
from ..codegen.abi import symbolic_dims
from ..ir.buffer import Buffer
from ..ir.build import buffer_strides
from ..ir.constants import const_int
from ..ir.contents import free_vars
from ..ir.expr import Binary, Const, Expr, Unary, Var
from ..ir.scalar import eval_binary
from ..ir.stmt import PrimFunc
from .arrays import Array, as_array

MAX_BYTES = 1 << 47
"""More than any array has; index arithmetic of kernels relies on a bound."""

_MAX_LAYOUTS = 256


@dataclass(frozen=True, slots=True)
class ArgumentLayout:
    """What the shapes of one set of arrays come to.

    ``dims`` are the symbolic dimensions in order of their slots. ``spans`` are the bytes that each array reaches over,
    from its address. ``apart`` lists the pairs of arguments that must not overlap.
    """

    dims: tuple[int, ...]
    spans: tuple[tuple[int, int], ...]
    apart: tuple[tuple[int, int], ...]


class Arguments:
    """The parameters of a kernel. ``slots`` checks arrays and gives the values that native code is called with.

    Keeps the layouts met so far; safe to use from several threads.
    """

    def __init__(self, func: PrimFunc) -> None:
        self.func = func
        self.buffers = func.buffers
        self.dims = symbolic_dims(func)
        written = {buffer.data for buffer in func.outputs}
        self.written = tuple(buffer.data in written for buffer in self.buffers)
        self._alignments = tuple(buffer.alignment for buffer in self.buffers)
        self._layouts: dict[Any, ArgumentLayout] = {}
        self._check_parameters()

    def __str__(self) -> str:
        """The parameters, as in ``A: float32[n, 16], C: float32[n] (written)``."""
        return ", ".join(
            f"{b.name}: {b.dtype}[{', '.join(map(str, b.shape))}]{' (written)' if w else ''}"
            for b, w in zip(self.buffers, self.written, strict=True)
        )

    def arrays(self, values: Sequence[object]) -> Sequence[Array]:
        """The arguments as numpy arrays of the same memory."""
        if len(values) != len(self.buffers):
            raise RuntimeArgumentError(
                f"{self.func.name} takes {len(self.buffers)} arrays ({self}), but was called with {len(values)}"
            )
        for value in values:
            if type(value) is not np.ndarray:
                return [as_array(value, self.where(k)) for k, value in enumerate(values)]
        return values  # type: ignore[return-value]

    def slots(self, arrays: Sequence[Array]) -> tuple[int, ...]:
        """The argument slots: addresses, then symbolic dimensions. Raises ``RuntimeArgumentError``."""
        key = tuple([(a.shape, a.strides, a.dtype, a.flags.writeable) for a in arrays])
        layout = self._layouts.get(key)
        if layout is None:
            layout = Resolver(self, arrays).layout()
            if len(self._layouts) >= _MAX_LAYOUTS:
                self._layouts.clear()
            self._layouts[key] = layout
        addresses = [address_of(a) for a in arrays]
        for k, alignment in enumerate(self._alignments):
            if addresses[k] % alignment:
                advice = "numpy.empty makes one that does" if self.written[k] else "numpy.array makes a copy that does"
                raise self.error(k, f"should start at an address divisible by {alignment}; {advice}")
        for i, j in layout.apart:
            a, b = addresses[i], addresses[j]
            (low_a, high_a), (low_b, high_b) = layout.spans[i], layout.spans[j]
            if a + low_a < b + high_b and b + low_b < a + high_a:
                raise self._overlap(i, j)
        return (*addresses, *layout.dims)

    def where(self, k: int) -> str:
        """The kernel, and an argument by its number from 1 and its name, for messages; ``k`` counts from 0."""
        return f"{self.func.name}: argument {k + 1} ({self.buffers[k].name})"

    def error(self, k: int, message: str) -> RuntimeArgumentError:
        """The error for argument ``k``, counted from 0; the message goes on behind its name."""
        return RuntimeArgumentError(f"{self.where(k)} {message}")

    def _overlap(self, i: int, j: int) -> RuntimeArgumentError:
        output, other = (i, j) if self.written[i] else (j, i)
        return self.error(
            output,
            f"is written, but shares memory with argument {other + 1} ({self.buffers[other].name}); pass a copy of one",
        )

    def _check_parameters(self) -> None:
        """Reject functions that arrays cannot be bound to, when the kernel is made rather than when it is called."""
        for k, buffer in enumerate(self.buffers):
            if const_int(buffer.elem_offset) != 0 or buffer.dtype.lanes != 1:
                raise self.error(k, "cannot be an array: it has an offset, or vectors as elements")
        alone = {e for b in self.buffers for e in (*b.shape, *(b.strides or ())) if isinstance(e, Var)}
        for dim in self.dims:
            if dim not in alone:
                raise RuntimeArgumentError(
                    f"{self.func.name}: the value of {dim.name} cannot be read off the arguments ({self}): "
                    f"{dim.name} alone has to be a dimension of one of them"
                )


class Resolver:
    """Checks one set of arrays against the parameters, but for their addresses."""

    def __init__(self, arguments: Arguments, arrays: Sequence[Array]) -> None:
        self.arguments = arguments
        self.arrays = arrays
        self.values: dict[Var, int] = {}
        self.sources: dict[Var, str] = {}

    def layout(self) -> ArgumentLayout:
        """The symbolic dimensions that the arrays' shapes and strides say, the bytes that each array spans, and which
        pairs must not overlap. Raises ``RuntimeArgumentError`` for the first array that does not fit."""
        arguments, arrays = self.arguments, self.arrays
        for k, (buffer, array) in enumerate(zip(arguments.buffers, arrays, strict=True)):
            self._check_type(k, buffer, array)
        for k, (buffer, array) in enumerate(zip(arguments.buffers, arrays, strict=True)):
            self._solve(k, buffer, array)
        spans = []
        for k, (buffer, array) in enumerate(zip(arguments.buffers, arrays, strict=True)):
            self._check_shape(k, buffer, array)
            self._check_strides(k, buffer, array)
            spans.append(_span(array))
        return ArgumentLayout(tuple(self.values[dim] for dim in arguments.dims), tuple(spans), self._apart())

    def _check_type(self, k: int, buffer: Buffer, array: Array) -> None:
        error, wanted = self.arguments.error, buffer.dtype.to_numpy()
        if array.dtype != wanted:
            if array.dtype.newbyteorder("=") == wanted:
                raise error(
                    k,
                    f"has the foreign byte order of dtype {array.dtype.str}; convert it: array.astype({wanted.name!r})",
                )
            raise error(
                k, f"should have dtype {wanted.name}, found {array.dtype}; convert it: array.astype({wanted.name!r})"
            )
        if array.ndim != buffer.ndim:
            raise error(k, f"should have {buffer.ndim} dimensions {_shape(buffer.shape)}, found shape {array.shape}")
        if self.arguments.written[k] and not array.flags.writeable:
            raise error(k, "is written by the kernel, but the array is read-only; pass a writable one")
        size = array.itemsize
        for extent in array.shape:
            size *= max(extent, 1)
        if size > MAX_BYTES:
            raise error(k, f"has shape {array.shape}, beyond the limit of 2**47 bytes (empty dimensions count as 1)")

    def _solve(self, k: int, buffer: Buffer, array: Array) -> None:
        """Take the values of symbolic dimensions from the extents and strides where they stand alone."""
        for axis, extent in enumerate(buffer.shape):
            if isinstance(extent, Var) and extent not in self.values:
                self.values[extent] = array.shape[axis]
                self.sources[extent] = f"dimension {axis} of argument {k + 1} ({buffer.name})"
        for axis, stride in enumerate(buffer.strides or ()):
            if isinstance(stride, Var) and stride not in self.values:
                self.values[stride] = array.strides[axis] // array.itemsize
                self.sources[stride] = f"stride {axis} of argument {k + 1} ({buffer.name})"
                if self.values[stride] < 0:
                    raise self.arguments.error(
                        k, f"has the negative stride {array.strides[axis]} in dimension {axis}; pass a copy of it"
                    )

    def _check_shape(self, k: int, buffer: Buffer, array: Array) -> None:
        for axis, extent in enumerate(buffer.shape):
            wanted, found = self._value(extent), array.shape[axis]
            if wanted != found:
                known = self._explanation(extent)
                whole = "" if known else f": the shape should be {_shape(buffer.shape)}, found {array.shape}"
                raise self.arguments.error(
                    k, f"should have extent {wanted}{known} in dimension {axis}, found {found}{whole}"
                )

    def _explanation(self, extent: Expr) -> str:
        """Why a symbolic extent has its value, in parentheses; nothing for a constant."""
        reasons = [f"{var.name} = {self.values[var]} from {self.sources[var]}" for var in free_vars(extent)]
        text = f"{extent}, where " if reasons and not isinstance(extent, Var) else ""
        return f" ({text}{'; '.join(reasons)})" if reasons else ""

    def _check_strides(self, k: int, buffer: Buffer, array: Array) -> None:
        """Strides of dimensions of extent 1 reach nothing, and an empty array has no elements: any will do there."""
        if array.size == 0:
            return
        wanted = [self._value(stride) * array.itemsize for stride in buffer_strides(buffer)]
        if all(w == s or n == 1 for w, s, n in zip(wanted, array.strides, array.shape, strict=True)):
            return
        if buffer.strides is None:
            raise self.arguments.error(
                k,
                f"should be contiguous, with strides {tuple(wanted)} in bytes, found {array.strides}; "
                "numpy.ascontiguousarray makes a contiguous copy",
            )
        raise self.arguments.error(k, f"should have strides {tuple(wanted)} in bytes, found {array.strides}")

    def _value(self, value: Expr) -> int:
        match value:
            case Const():
                return int(value)
            case Var():
                return self.values[value]
            case Unary("-", a):
                return -self._value(a)
            case Binary(op, a, b):
                try:
                    return int(eval_binary(op, value.dtype, self._value(a), self._value(b)))
                except ZeroDivisionError:
                    raise RuntimeArgumentError(
                        f"{self.arguments.func.name}: {value} divides by 0{self._explanation(value)}"
                    ) from None
            case _:
                raise InternalError(f"{self.arguments.func.name}: a parameter has the extent {value}")

    def _apart(self) -> tuple[tuple[int, int], ...]:
        """Pairs of which one is written; parameters that are views of one memory may overlap, empty arrays cannot."""
        buffers, written = self.arguments.buffers, self.arguments.written
        return tuple(
            (i, j)
            for i in range(len(buffers))
            for j in range(i + 1, len(buffers))
            if (written[i] or written[j])
            and buffers[i].data is not buffers[j].data
            and self.arrays[i].size
            and self.arrays[j].size
        )


def _shape(shape: Sequence[Expr]) -> str:
    return f"({', '.join(map(str, shape))}{',' if len(shape) == 1 else ''})"


def _span(array: Array) -> tuple[int, int]:
    """First byte that an array reaches and first behind it, relative to its address."""
    reaches = [(extent - 1) * stride for extent, stride in zip(array.shape, array.strides, strict=True) if extent > 0]
    return sum(r for r in reaches if r < 0), sum(r for r in reaches if r > 0) + array.itemsize

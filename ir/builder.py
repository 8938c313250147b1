"""Write the loop IR by hand: loops, conditions and memory as ``with`` blocks and subscripts. For ``te.extern``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeAlias

from ..base.dtype import DType
from ..base.errors import ExpressionError
from .buffer import Buffer, Scope
from .build import index_var, make_buffer
from .expr import Cast, Expr, ExprLike, Load, Var
from .extern import ExternFunction, Region
from .makers import as_expr, as_index
from .simplify import simplify
from .stmt import Allocate, CallExtern, For, If, LetStmt, LoopKind, Stmt, Store, While, seq

_Entry: TypeAlias = "Stmt | Callable[[Stmt], Stmt]"
"""A statement, or what a declaration makes of the statements that follow it in its block."""
Indices: TypeAlias = "ExprLike | tuple[ExprLike, ...]"


class IRBuilder:
    """Makes a statement of the loop IR, in the order in which it is written. Mutable: grows until ``get``.

    >>> from loopwright import te
    >>> def doubled(ins, outs):
    ...     ib = te.IRBuilder()
    ...     A, B = ib.buffer_ptr(ins[0]), ib.buffer_ptr(outs[0])
    ...     with ib.for_range(0, 4, name="i") as i:
    ...         B[i] = A[i] * 2.0
    ...     return ib.get()
    >>> A = te.placeholder((4,), name="A")
    >>> te.extern((4,), [A], doubled, name="B")
    B: float32[4]

    Subscripts read where their value is *used*, not where they are written: ``x = A[0]`` is no copy. ``let`` makes one,
    and a store takes effect for all that is written after it.
    """

    def __init__(self) -> None:
        self._blocks: list[list[_Entry]] = [[]]

    def buffer_ptr(self, buffer: Buffer) -> BufferPtr:
        """A handle on a buffer whose subscripts are loads, and stores where they are assigned to."""
        return BufferPtr(self, buffer)

    @contextmanager
    def for_range(self, begin: ExprLike, end: ExprLike, name: str = "i", kind: LoopKind = "serial") -> Iterator[Var]:
        """A loop over ``begin <= i < end``; gives its variable. The bounds are evaluated once, before the loop."""
        low = as_index(begin)
        var, extent = index_var(name), simplify(as_index(end) - low)
        with self._block() as block:
            yield var
        self.emit(For(var, low, extent, kind, _joined(block)))

    @contextmanager
    def while_loop(self, condition: Expr) -> Iterator[None]:
        """A loop that runs as long as the condition, evaluated before each iteration, holds."""
        with self._block() as block:
            yield
        self.emit(While(condition, _joined(block)))

    @contextmanager
    def if_scope(self, condition: Expr) -> Iterator[None]:
        """What runs if the condition holds. ``else_scope`` may follow directly."""
        with self._block() as block:
            yield
        self.emit(If(condition, _joined(block)))

    @contextmanager
    def else_scope(self) -> Iterator[None]:
        """What runs if the condition of the ``if_scope`` just before does not hold."""
        before = self._blocks[-1][-1] if self._blocks[-1] else None
        if not isinstance(before, If) or before.orelse is not None:
            raise ExpressionError("else_scope must follow directly on an if_scope")
        with self._block() as block:
            yield
        self._blocks[-1][-1] = If(before.condition, before.then, _joined(block))

    def let(self, name: str, value: ExprLike) -> Var:
        """The value as it is now, under a name: later stores do not change it."""
        made = as_expr(value)
        var = Var(name, made.dtype)
        self._declare(lambda rest: LetStmt(var, made, rest))
        return var

    def allocate(
        self, kind: str | DType, shape: Sequence[ExprLike], name: str = "buf", scope: Scope = "local"
    ) -> BufferPtr:
        """Memory for the rest of the block, not initialised. A single value is of shape ``()``, its subscript too."""
        buffer = make_buffer(name, shape, kind, scope)
        self._declare(lambda rest: Allocate(buffer, rest))
        return self.buffer_ptr(buffer)

    def call(self, function: ExternFunction, *args: BufferPtr | Buffer | Region | ExprLike) -> None:
        """Call a function of C. Scalars take the dtypes of its parameters, an ``index`` that of an integer, by a cast;
        a buffer stands for all of its elements, ``region`` picks some of them."""
        if not isinstance(function, ExternFunction):
            raise ExpressionError(f"what is called is made by te.extern_function, found {function!r}")
        kinds = [param.dtype for param in function.params]
        if len(args) != len(kinds):
            raise ExpressionError(f"{function} takes {len(kinds)} arguments, found {len(args)}")
        self.emit(CallExtern(function, tuple(_argument(a, k) for a, k in zip(args, kinds, strict=True))))

    def emit(self, stmt: Stmt) -> None:
        """Add a statement."""
        self._blocks[-1].append(stmt)

    def get(self) -> Stmt:
        """What has been written."""
        if len(self._blocks) > 1:
            raise ExpressionError("get() comes after the `with` blocks of the builder, not inside one")
        return _joined(self._blocks[0])

    def _declare(self, around: Callable[[Stmt], Stmt]) -> None:
        self._blocks[-1].append(around)

    @contextmanager
    def _block(self) -> Iterator[list[_Entry]]:
        self._blocks.append([])
        try:
            yield self._blocks[-1]
        finally:
            self._blocks.pop()


class BufferPtr:
    """A buffer in the hands of a builder: ``B[i, j]`` loads, ``B[i, j] = value`` stores."""

    __slots__ = ("_builder", "buffer")

    def __init__(self, builder: IRBuilder, buffer: Buffer) -> None:
        self._builder = builder
        self.buffer = buffer

    @property
    def shape(self) -> tuple[Expr, ...]:
        """The extents of the buffer, one expression a dimension."""
        return self.buffer.shape

    @property
    def dtype(self) -> DType:
        """The dtype of an element, which may be a vector."""
        return self.buffer.dtype

    def region(self, begin: Indices, extents: Indices) -> Region:
        """The box of ``extents`` elements from ``begin`` on, for a function of C."""
        return Region(self.buffer, _as_indices(begin), _as_indices(extents))

    def __getitem__(self, indices: Indices) -> Expr:
        return Load(self.buffer, _as_indices(indices))

    def __setitem__(self, indices: Indices, value: ExprLike) -> None:
        stored = as_expr(value, self.buffer.dtype)
        self._builder.emit(Store(self.buffer, _as_indices(indices), stored))

    def __iter__(self) -> None:
        raise ExpressionError(f"{self.buffer!r} cannot be iterated over: read its elements by index")


def _as_indices(indices: Indices) -> tuple[Expr, ...]:
    given = indices if isinstance(indices, tuple) else (indices,)
    if any(isinstance(i, slice) for i in given):
        raise ExpressionError("buffers are read and written element by element, not by slices")
    return tuple(as_index(i) for i in given)


def _argument(arg: BufferPtr | Buffer | Region | ExprLike, kind: DType) -> Region | Expr:
    if isinstance(arg, Region):
        return arg
    if isinstance(arg, (Buffer, BufferPtr)):
        whole = arg if isinstance(arg, Buffer) else arg.buffer
        return Region(whole, (as_index(0),) * whole.ndim, whole.shape)
    value = as_expr(arg, kind)
    return Cast(kind, value) if value.dtype.is_index and kind.is_data_int else value


def _joined(block: Sequence[_Entry]) -> Stmt:
    """The statements of a block as one; declarations go around what follows them."""
    rest: Stmt = seq()
    for entry in reversed(block):
        rest = entry(rest) if callable(entry) else seq(entry, rest)
    return rest

"""Statements and functions of the loop IR.

    stmt ::= For(var, min, extent, kind, body)       kind: serial | parallel | vectorized | unrolled
           | While(condition, body)
           | If(condition, then, orelse, mask)       mask: no loop is split to get rid of the condition
           | Store(buffer, indices, value, mask)     lanes where the mask is false write nothing
           | Allocate(buffer, body)                  memory for ``buffer.data`` while the body runs, not initialised
           | LetStmt(var, value, body)
           | Seq(stmts)
           | Assert(condition, message)              a false condition ends the kernel with an error
           | Evaluate(value)
           | PrefetchStmt(buffer, indices, to_write) fetch an element's cache line, for a store if to_write; it
                                                     touches nothing, so that the indices may be out of bounds
           | Launch(function, extent, args)          run function(begin, end, *args) over chunks of 0 … extent on the
                                                     thread pool
           | CallExtern(function, args)              call a function of C, see ``extern.py``; args: scalars, regions

    func ::= PrimFunc(name, params, body)            params: buffers in order of the arguments
    mod  ::= IRModule(functions)

Semantics
  - ``for v in [min, min + extent)``; an extent of 0 or below runs nothing.
  - The iterations of parallel and vectorized loops must be independent: none reads or writes what another writes.
    A vectorized loop runs its iterations in lock step; the unrolled one is a serial loop that will be copied out.
  - Statements of a ``Seq`` run in order.
  - The ``origin`` of a loop or store, see ``origin.py``, has no meaning for what runs, and does not count in equality.

Statements are immutable and not interned: two equal statements are two places in a program.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from ..base.brief import listed, one_line
from ..base.dataclass import dataclass
from ..base.errors import ExpressionError
from .buffer import Buffer
from .expr import Expr, TensorBase, Var
from .extern import ExternFunction, Passing, Region
from .operand_types import access_dtype

LoopKind = Literal["serial", "parallel", "vectorized", "unrolled"]
Notes: TypeAlias = tuple[tuple[str, "str | int | bool"], ...]
"""What a schedule says of a loop: keys and values, see the primitive ``annotate``."""
PLAIN_TAIL = ("tail", "plain")
"""The note at a loop that the schedule has unrolled, in a tail whose code would have been too large so."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class StmtNode:
    """The base class of all statements."""

    def __str__(self) -> str:
        from .printer import stmt_text  # the printer knows all nodes

        return stmt_text(self)  # type: ignore[arg-type]

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {one_line(str(self), 160)}>"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class For(StmtNode):
    """A loop: ``body`` for each ``var`` from ``min`` on, ``extent`` of them; none if that is 0 or below. ``kind``
    says how the iterations run, ``origin`` which loop of a schedule it is, and ``notes`` what the schedule says of
    it."""

    var: Var
    min: Expr
    extent: Expr
    kind: LoopKind
    body: Stmt
    origin: int = 0
    notes: Notes = ()


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class While(StmtNode):
    """``body`` again and again, as long as the scalar condition holds before it."""

    condition: Expr
    body: Stmt


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class If(StmtNode):
    """``then`` where the scalar condition holds, else ``orelse`` if there is one. ``mask``: no loop is split to get
    rid of it."""

    condition: Expr
    then: Stmt
    orelse: Stmt | None = None
    mask: bool = False


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Store(StmtNode):
    """``buffer[indices] = value``, in the lanes that the ``mask`` leaves on. ``origin`` says of which stage it is.
    Raises ``ExpressionError`` for a value of another dtype than is accessed."""

    buffer: Buffer
    indices: tuple[Expr, ...]
    value: Expr
    mask: Expr | None = None
    origin: int = 0

    def __post_init__(self) -> None:
        expected = access_dtype(self.buffer, self.indices, self.mask)
        if self.value.dtype is not expected:
            raise ExpressionError(f"store of a {self.value.dtype} into {self.buffer.name}, which takes {expected} here")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Allocate(StmtNode):
    """Memory for ``buffer.data`` while the body runs. It is not initialised."""

    buffer: Buffer
    body: Stmt


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class LetStmt(StmtNode):
    """``body``, in which ``var`` stands for ``value``, which is computed once, before it."""

    var: Var
    value: Expr
    body: Stmt


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Seq(StmtNode):
    """Statements that run in order."""

    stmts: tuple[Stmt, ...]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Assert(StmtNode):
    """A check: where the condition is false, the kernel ends with an error of this message."""

    condition: Expr
    message: str


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Evaluate(StmtNode):
    """The value of an expression, which nobody uses."""

    value: Expr


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class PrefetchStmt(StmtNode):
    """Fetch the cache line of an element, for a store if ``to_write``. It touches no memory, so that the indices may
    be out of bounds. Raises ``ExpressionError`` for vector indices."""

    buffer: Buffer
    indices: tuple[Expr, ...]
    to_write: bool = False

    def __post_init__(self) -> None:
        if access_dtype(self.buffer, self.indices, None) is not self.buffer.dtype:
            raise ExpressionError(f"prefetch of {self.buffer.name} with vector indices")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Launch(StmtNode):
    """An outlined parallel loop: ``function`` names a PrimFunc of the module, with params (begin, end, *args)."""

    function: str
    extent: Expr
    args: tuple[Buffer | Var, ...]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class CallExtern(StmtNode):
    """A call of a function of C: it reads, writes and updates the regions as its parameters say."""

    function: ExternFunction
    args: tuple[Region | Expr, ...]

    def __post_init__(self) -> None:
        name, params = self.function.symbol, self.function.params
        if len(self.args) != len(params):
            raise ExpressionError(f"{name} takes {len(params)} arguments, found {len(self.args)}")
        for number, (arg, param) in enumerate(zip(self.args, params, strict=True), start=1):
            kind = arg.buffer.dtype if isinstance(arg, Region) else arg.dtype
            if isinstance(arg, Region) is not param.is_region or kind is not param.dtype:
                found = f"a region of {kind}" if isinstance(arg, Region) else f"a {kind}"
                raise ExpressionError(f"argument {number} of {name} is declared as {param}, found {found}")

    @property
    def regions(self) -> tuple[Region, ...]:
        """All regions among the arguments, in order."""
        return tuple(arg for arg in self.args if isinstance(arg, Region))

    @property
    def read(self) -> tuple[Region, ...]:
        """The regions whose elements the function may look at."""
        return self._passed("read", "update")

    @property
    def written(self) -> tuple[Region, ...]:
        """The regions whose elements the function may store to."""
        return self._passed("write", "update")

    def _passed(self, *how: Passing) -> tuple[Region, ...]:
        pairs = zip(self.args, self.function.params, strict=True)
        return tuple(arg for arg, param in pairs if isinstance(arg, Region) and param.passing in how)


Stmt: TypeAlias = (
    For | While | If | Store | Allocate | LetStmt | Seq | Assert | Evaluate | PrefetchStmt | Launch | CallExtern
)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class PrimFunc:
    """A function over buffers.

    ``params`` are buffers, and index variables after (or, in the body of a parallel loop, before) them. The variables
    in buffer shapes are symbolic dimensions: of an entry function the caller's arrays determine them.
    ``outputs`` are the buffers that the function writes, among ``params``. ``tensors`` are what the parameters of a
    function that was lowered stand for, in their order: what it computes, while the body says how.
    """

    name: str
    params: tuple[Buffer | Var, ...]
    body: Stmt
    outputs: tuple[Buffer, ...] = ()
    tensors: tuple[TensorBase, ...] = ()

    def __str__(self) -> str:
        from .printer import func_text  # the printer knows all nodes

        return func_text(self)

    def __repr__(self) -> str:
        return f"<PrimFunc {one_line(self.name, 60)}({listed(map(_declared, self.params))})>"

    def _repr_html_(self) -> str:
        from .func_html import func_html

        return func_html(self)

    @property
    def buffers(self) -> tuple[Buffer, ...]:
        """The parameters that are buffers, in order."""
        return tuple(p for p in self.params if isinstance(p, Buffer))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class IRModule:
    """Functions that call each other by name; the first is the entry."""

    functions: tuple[PrimFunc, ...]

    def __str__(self) -> str:
        return "\n\n".join(str(f) for f in self.functions)

    def __repr__(self) -> str:
        return f"<IRModule of {listed(f.name for f in self.functions)}>"

    def _repr_html_(self) -> str:
        from .func_html import func_html

        return func_html(self)

    @property
    def entry(self) -> PrimFunc:
        """The function that is called from outside."""
        return self.functions[0]


def _declared(param: Buffer | Var) -> str:
    shape = f"[{', '.join(map(str, param.shape))}]" if isinstance(param, Buffer) else ""
    return f"{param.name}: {param.dtype}{shape}"


def seq(*stmts: Stmt | None) -> Stmt:
    """A sequence, flattened, without the Nones; the statement itself if there is only one."""
    flat: list[Stmt] = []
    for stmt in stmts:
        if isinstance(stmt, Seq):
            flat.extend(stmt.stmts)
        elif stmt is not None:
            flat.append(stmt)
    return flat[0] if len(flat) == 1 else Seq(tuple(flat))

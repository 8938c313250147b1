"""What a legal program of the loop IR is, in one place. Passes are checked with it; it visits each node once.

variables     bound once, used only where they are bound; addresses (``buffer.data``) are never values
dtypes        loop bounds are scalar ``index``, conditions scalar bool; the nodes check their operands when made
memory        accesses go to parameters or enclosing allocations, in the dtype of that memory; stores only to
              ``outputs`` (which are parameters) and allocations; so does what a function of C is called to write
loops         a vectorized loop has a constant extent of 2 to MAX_LANES; inside there are neither vectors, nor
              parallel loops, launches, calls of C functions or other vectorized loops
functions     parameters are distinct buffers and index variables; a Launch fits the function it names, which is
              another one of the module
te            no TensorRead, no Reduce
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn, assert_never

from ..base.dtype import BOOL, HANDLE, INDEX, DType
from ..base.errors import ExpressionError, VerificationError
from .buffer import Buffer
from .constants import const_int
from .contents import free_vars
from .expr import Call, Const, Expr, IfThenElse, Let, Load, Reduce, TensorRead, Var
from .intrinsics import call
from .operand_types import MAX_LANES
from .printer import func_text
from .stmt import (
    Allocate,
    Assert,
    CallExtern,
    Evaluate,
    For,
    If,
    IRModule,
    Launch,
    LetStmt,
    PrefetchStmt,
    PrimFunc,
    Seq,
    Stmt,
    Store,
    While,
)
from .visit import children


def verify(func: PrimFunc | IRModule, stage: str = "") -> None:
    """Check that a program is legal; ``stage`` says in the message what made it.

    Raises ``VerificationError``, which shows the function with the offending statement marked.
    """
    functions = func.functions if isinstance(func, IRModule) else (func,)
    by_name: dict[str, PrimFunc] = {}
    for f in functions:
        if f.name in by_name:
            raise VerificationError(f"{_after(stage)}two functions of the module are called {f.name}")
        by_name[f.name] = f
    for position, f in enumerate(functions):
        _Verifier(f, by_name if isinstance(func, IRModule) else {}, stage).run(is_entry=position == 0)


def _after(stage: str) -> str:
    return f"after {stage}: " if stage else ""


class _Verifier:
    """Checks one function. Mutable: knows what is in scope at the statement that it looks at."""

    def __init__(self, func: PrimFunc, functions: dict[str, PrimFunc], stage: str) -> None:
        self._func = func
        self._functions = functions
        self._stage = stage
        self._at: Stmt | None = None
        self._vars: set[Var] = set()  # in scope
        self._bound: set[Var] = set()  # bound anywhere so far
        self._memory: dict[Var, DType] = {}  # in scope
        self._writable: set[Var] = set()
        self._vectorized: For | None = None
        self._lets: dict[Var, Let] = {}
        self._checked: set[Expr] = set()  # by what does not depend on the scope
        self._seen: set[Expr] = set()  # since a variable last went out of scope, or a vectorized loop began

    def run(self, is_entry: bool) -> None:
        func = self._func
        for param in func.params:
            if isinstance(param, Buffer):
                self._bind(param.data)
                self._memory[param.data] = param.dtype
            else:
                self._bind(param)
                self._require(param.dtype is INDEX, f"parameter {param.name} is a {param.dtype}, expected index")
        self._shape_vars(is_entry)
        params = {id(p) for p in func.params}
        for output in func.outputs:
            self._require(id(output) in params, f"output {output.name} is no parameter")
            self._writable.add(output.data)
        self._stmt(func.body)

    def _shape_vars(self, is_entry: bool) -> None:
        """Symbolic dimensions: the caller's arrays determine those of an entry, others get them as parameters."""
        for buffer in self._func.buffers:
            self._layout(buffer)
            for part in buffer.layout:
                for var in free_vars(part):
                    if var not in self._vars:
                        self._require(is_entry, f"{var.name}, in the shape of {buffer.name}, must be a parameter")
                        self._bind(var)

    def _layout(self, buffer: Buffer) -> None:
        self._require(
            all(p.dtype is INDEX for p in buffer.layout), f"the layout of {buffer.name} must be of scalar indices"
        )
        self._require(
            buffer.strides is None or len(buffer.strides) == buffer.ndim,
            f"{buffer.name} has {buffer.ndim} dimensions, but {len(buffer.strides or ())} strides",
        )
        self._require(buffer.data.dtype is HANDLE, f"the address of {buffer.name} is a {buffer.data.dtype}")

    # Scopes.

    def _bind(self, var: Var) -> None:
        self._require(var not in self._bound, f"{var.name} is bound twice")
        self._bound.add(var)
        self._vars.add(var)

    @contextmanager
    def _scope(self, var: Var) -> Iterator[None]:
        self._bind(var)
        yield
        self._vars.discard(var)
        self._seen.clear()

    # Statements.

    def _stmt(self, stmt: Stmt) -> None:
        self._at = stmt
        match stmt:
            case Seq(stmts):
                for s in stmts:
                    self._stmt(s)
            case For():
                self._for(stmt)
            case While(condition, body):
                self._condition(condition)
                self._stmt(body)
            case If(condition, then, orelse):
                self._condition(condition)
                self._stmt(then)
                if orelse is not None:
                    self._stmt(orelse)
            case Store():
                self._store(stmt)
            case Allocate(buffer, body):
                self._allocate(buffer, body)
            case LetStmt(var, value, body):
                self._expr(value)
                self._require(var.dtype is value.dtype, f"{var.name}: {var.dtype} is bound to a {value.dtype}")
                with self._scope(var):
                    self._stmt(body)
            case Assert(condition):
                self._condition(condition)
            case Evaluate(value):
                self._expr(value)
            case PrefetchStmt(buffer, indices):
                self._reachable(buffer)
                for part in (*buffer.layout, *indices):
                    self._expr(part)
            case Launch():
                self._launch(stmt)
            case CallExtern():
                self._call_extern(stmt)
            case _:
                assert_never(stmt)

    def _for(self, loop: For) -> None:
        for what, bound in (("start", loop.min), ("extent", loop.extent)):
            self._expr(bound)
            self._require(bound.dtype is INDEX, f"the {what} of loop {loop.var.name} is a {bound.dtype}, not an index")
        self._require(loop.var.dtype is INDEX, f"the loop variable {loop.var.name} is a {loop.var.dtype}, not an index")
        outside = self._vectorized
        if outside is not None and loop.kind in ("parallel", "vectorized"):
            self._fail(f"{loop.kind} loop {loop.var.name} inside the vectorized loop {outside.var.name}")
        if loop.kind == "vectorized":
            extent = const_int(loop.extent)
            if extent is None or not 2 <= extent <= MAX_LANES:
                wanted = f"a constant of 2 to {MAX_LANES}"
                self._fail(f"the vectorized loop {loop.var.name} has extent {loop.extent}, not {wanted}")
            self._vectorized = loop
            self._seen.clear()
        with self._scope(loop.var):
            self._stmt(loop.body)
        self._vectorized = outside

    def _store(self, store: Store) -> None:
        self._access(store)
        for part in children(store):
            self._expr(part)  # type: ignore[arg-type]
        name = store.buffer.name
        self._require(store.buffer.data in self._writable, f"store into {name}, neither an output nor allocated here")

    def _allocate(self, buffer: Buffer, body: Stmt) -> None:
        self._layout(buffer)
        for part in buffer.layout:
            self._expr(part)
        with self._scope(buffer.data):
            self._memory[buffer.data] = buffer.dtype
            self._writable.add(buffer.data)
            self._stmt(body)
        del self._memory[buffer.data]
        self._writable.discard(buffer.data)
        self._seen.clear()

    def _launch(self, launch: Launch) -> None:
        self._expr(launch.extent)
        self._require(launch.extent.dtype is INDEX, f"the extent of the launch is a {launch.extent.dtype}")
        self._require(self._vectorized is None, "launch inside a vectorized loop")
        callee = self._functions.get(launch.function)
        if callee is None or callee is self._func:
            self._fail(f"launch of {launch.function}, which is no other function of the module")
        first, rest = callee.params[:2], callee.params[2:]
        self._require(
            len(first) == 2 and all(isinstance(p, Var) for p in first),
            f"{callee.name} is launched, so its first parameters must be the variables begin and end",
        )
        self._require(
            len(rest) == len(launch.args),
            f"{callee.name} takes {len(rest)} arguments behind begin and end, not {len(launch.args)}",
        )
        written = {output.data for output in callee.outputs}
        for param, arg in zip(rest, launch.args, strict=True):
            self._argument(callee, param, arg, written)

    def _call_extern(self, call: CallExtern) -> None:
        name = call.function.symbol
        self._require(self._vectorized is None, f"{name} is called inside a vectorized loop: it has no vector form")
        for region in call.regions:
            self._reachable(region.buffer)
            for part in region.buffer.layout:
                self._expr(part)
        for value in children(call):
            self._expr(value)  # type: ignore[arg-type]
        for region in call.written:
            data, target = region.buffer.data, region.buffer.name
            self._require(data in self._writable, f"{name} writes {target}, neither an output nor allocated here")

    def _argument(self, callee: PrimFunc, param: Buffer | Var, arg: Buffer | Var, written: set[Var]) -> None:
        where = f"argument {arg.name} for parameter {param.name} of {callee.name}"
        if isinstance(param, Buffer) and isinstance(arg, Buffer):
            self._reachable(arg)
            self._require(arg.dtype is param.dtype, f"{where} holds {arg.dtype}, expected {param.dtype}")
            if param.data in written:
                self._require(arg.data in self._writable, f"{where} is written, but neither an output nor allocated")
            return
        if isinstance(param, Buffer) or isinstance(arg, Buffer):
            self._fail(f"{where}: one is a buffer, the other a variable")
        self._expr(arg)
        self._require(arg.dtype is param.dtype, f"{where} is a {arg.dtype}, expected {param.dtype}")

    # Expressions.

    def _condition(self, condition: Expr) -> None:
        self._expr(condition)
        if condition.dtype is not BOOL:
            self._fail(f"the condition `{condition}` is a {condition.dtype}, not a scalar bool")

    def _expr(self, root: Expr) -> None:
        """Check the nodes of an expression that the statement at hand uses."""
        seen = self._seen
        stack: list[Any] = [root]
        while stack:
            node = stack.pop()
            if node in seen:
                continue
            seen.add(node)
            if self._vectorized is not None and node.dtype.lanes > 1:
                self._fail(f"the vector `{node}` stands inside the vectorized loop {self._vectorized.var.name}")
            match node:
                case Var():
                    if node not in self._vars:
                        self._fail(f"{node.name} is used, but not bound here")
                    if node.dtype is HANDLE:
                        self._fail(f"the address {node.name} is used as a value")
                case Let():
                    self._let(node)
                case _:
                    if isinstance(node, Load):
                        self._access(node)
                    if node not in self._checked:
                        self._checked.add(node)
                        self._context_free(node)
                    stack.extend(children(node)[::-1])

    def _let(self, node: Let) -> None:
        """One Let node may stand in several places, being interned; different ones need different variables."""
        self._expr(node.value)
        if self._lets.get(node.var) is node and node.var not in self._vars:
            self._bound.discard(node.var)
        self._lets[node.var] = node
        with self._scope(node.var):
            self._expr(node.body)

    def _context_free(self, node: Expr) -> None:
        match node:
            case TensorRead() | Reduce():
                self._fail(f"`{node}` belongs to tensor expressions, and should have been lowered")
            case Const():
                self._const(node)
            case Call():
                self._call(node)
            case IfThenElse(condition) if condition.dtype is not BOOL:
                self._fail(f"the condition of `{node}` is a {condition.dtype}, not scalar")
            case _:
                pass

    def _const(self, node: Const) -> None:
        kind, value = node.dtype, node.value
        wanted = bool if kind.is_bool else float if kind.holds_floats else int
        low, high = kind.int_range() or (-(1 << 63), (1 << 63) - 1)
        fits = type(value) is wanted and kind.lanes == 1 and (kind.holds_floats or low <= value <= high)
        if not fits:
            self._fail(f"{value!r} is not a constant of {kind}")

    def _call(self, node: Call) -> None:
        try:
            fits = call(node.name, *node.args) is node
        except ExpressionError as error:
            self._fail(str(error))
        if not fits:
            self._fail(f"`{node}` does not give a {node.dtype}")

    def _access(self, node: Load | Store) -> None:
        buffer = node.buffer
        self._reachable(buffer)
        for part in buffer.layout:
            if not isinstance(part, Const):
                self._expr(part)

    def _reachable(self, buffer: Buffer) -> None:
        kind = self._memory.get(buffer.data)
        if kind is None:
            self._fail(f"{buffer.name} is neither a parameter nor allocated around here")
        if kind is not buffer.dtype:
            self._fail(f"{buffer.name} views memory of {kind} as {buffer.dtype}")

    def _require(self, fact: bool, message: str) -> None:
        if not fact:
            self._fail(message)

    def _fail(self, message: str) -> NoReturn:
        culprit = self._at
        text = func_text(self._func, lambda stmt: "# <-- here" if stmt is culprit else None)
        raise VerificationError(f"{_after(self._stage)}{self._func.name}: {message}\n{text}")

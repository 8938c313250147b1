"""Text of expressions, statements and functions: close to Python, variables named uniquely in order of appearance.

Equal programs print equal text, whatever the order of imports or the hash seed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterable
from typing import TypeAlias, assert_never

from .buffer import Buffer
from .expr import (
    Binary,
    Broadcast,
    Call,
    Cast,
    Compare,
    Const,
    Expr,
    IfThenElse,
    Let,
    Load,
    Logical,
    Ramp,
    Reduce,
    Select,
    TensorRead,
    Unary,
    Var,
)
from .extern import Region
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

INDENT = "    "
_ATOM = 20
_PRECEDENCE = {
    "or": 1,
    "and": 2,
    "not": 3,
    **dict.fromkeys(("==", "!=", "<", "<=", ">", ">="), 4),
    "|": 5,
    "^": 6,
    "&": 7,
    **dict.fromkeys(("<<", ">>"), 8),
    **dict.fromkeys(("+", "-"), 9),
    **dict.fromkeys(("*", "/", "//", "%"), 10),
    "neg": 11,
}

MAX_NODES = 100_000
"""An expression with more nodes than this, written out as a tree, is cut short: shared parts can make it endless. Of a
text that is kept, four characters count as a node."""

LONGEST_KEPT = 200
"""Texts of so many characters are kept: the parts of expressions occur again and again."""

_Text: TypeAlias = Generator[tuple[Expr, int], str, str]
Marker = Callable[[Stmt], str | None]
"""Gives a note to print behind a statement's first line, or None."""


class Printer:
    """Keeps the names given so far; one Printer prints one function, so that names stay unique within it."""

    def __init__(self, marker: Marker | None = None) -> None:
        self._names: dict[object, str] = {}
        self._taken: set[str] = set()
        self._texts: dict[Expr, tuple[str, int]] = {}
        self._marker = marker

    def name(self, thing: Var | Buffer) -> str:
        """The unique name of a variable or buffer: its own, with a number behind it where that is taken.

        Views of one memory share a name.
        """
        key: object = thing.data if isinstance(thing, Buffer) else thing
        if key not in self._names:
            base, number = thing.name or "v", 0
            candidate = base
            while candidate in self._taken:
                number += 1
                candidate = f"{base}_{number}"
            self._taken.add(candidate)
            self._names[key] = candidate
        return self._names[key]

    def expr(self, value: Expr, level: int = 0) -> str:
        """Text of an expression, in parentheses if it binds less tightly than ``level``."""
        return self._run(self._expr(value, level))

    def _run(self, root: _Text) -> str:
        """Drive the generators of nested expressions with a stack of our own: Python's is too short for deep ones."""
        stack, text = [root], ""
        budget = MAX_NODES
        request: tuple[Expr, int] | None
        while stack:
            try:
                request = next(stack[-1]) if not text else stack[-1].send(text)
            except StopIteration as done:
                stack.pop()
                text = done.value
                continue
            value, level = request
            kept = self._texts.get(value)
            budget -= 1 if kept is None else 1 + len(kept[0]) // 4
            if budget <= 0:
                text = "…"
            elif kept is not None:
                text = _in_parentheses(*kept, level)
            else:
                text = ""
                stack.append(self._expr(value, level))
        return text

    def _expr(self, value: Expr, level: int) -> _Text:
        text, own = yield from self._bare(value)
        if len(text) <= LONGEST_KEPT:
            self._texts[value] = text, own
        return _in_parentheses(text, own, level)

    def _infix(self, op: str, a: Expr, b: Expr) -> Generator[tuple[Expr, int], str, tuple[str, int]]:
        own = _PRECEDENCE[op]
        left = own + 1 if own == _PRECEDENCE["=="] else own
        return f"{(yield a, left)} {op} {(yield b, own + 1)}", own

    def _list(self, values: Iterable[Expr]) -> _Text:
        texts: list[str] = []
        for value in values:
            texts.append((yield value, 0))  # noqa: PERF401 - a comprehension cannot yield
        return ", ".join(texts)

    def _bare(self, value: Expr) -> Generator[tuple[Expr, int], str, tuple[str, int]]:
        """Text without parentheses, and how tightly it binds. Yields the parts that it needs the text of."""
        match value:
            case Var():
                return self.name(value), _ATOM
            case Const():
                return _const_text(value)
            case Cast(to, inner):
                return f"{to}({(yield inner, 0)})", _ATOM
            case Unary("not", a):
                return f"not {(yield a, _PRECEDENCE['not'])}", _PRECEDENCE["not"]
            case Unary(op, a):
                return f"{op}{(yield a, _PRECEDENCE['neg'])}", _PRECEDENCE["neg"]
            case Binary("min" | "max" as op, a, b):
                return f"{op}({(yield from self._list((a, b)))})", _ATOM
            case Binary(op, a, b) | Compare(op, a, b) | Logical(op, a, b):
                return (yield from self._infix(op, a, b))
            case Select(condition, a, b):
                return f"select({(yield from self._list((condition, a, b)))})", _ATOM
            case IfThenElse(condition, a, b):
                return f"if_then_else({(yield from self._list((condition, a, b)))})", _ATOM
            case Let(var, bound, body):
                return f"(let {self.name(var)} = {(yield bound, 0)} in {(yield body, 0)})", _ATOM
            case Call(name, args):
                return f"{name}({(yield from self._list(args))})", _ATOM
            case Load(buffer, indices, mask):
                return (yield from self._access(buffer, indices, mask)), _ATOM
            case Ramp(base, stride, lanes):
                return f"ramp({(yield from self._list((base, stride)))}, {lanes})", _ATOM
            case Broadcast(inner, lanes):
                return f"broadcast({(yield inner, 0)}, {lanes})", _ATOM
            case TensorRead(tensor, indices):
                return f"{tensor.name}[{(yield from self._list(indices))}]", _ATOM
            case Reduce():
                return (yield from self._reduce(value)), _ATOM
            case _:
                assert_never(value)

    def _reduce(self, value: Reduce) -> _Text:
        axes = ", ".join(self.name(axis.var) for axis in value.axes)
        sources = yield from self._list(value.sources)
        condition = "" if value.condition is None else f", where={(yield value.condition, 0)}"
        which = f"[{value.index}]" if len(value.sources) > 1 else ""
        return f"{value.combiner.name}({sources}, axis=[{axes}]{condition}){which}"

    def _access(self, buffer: Buffer, indices: tuple[Expr, ...], mask: Expr | None) -> _Text:
        name = self.name(buffer)
        inside = (yield from self._list(indices)) or "()"
        masked = "" if mask is None else f" where {(yield mask, 0)}"
        return f"{name}[{inside}{masked}]"

    def access(self, buffer: Buffer, indices: tuple[Expr, ...], mask: Expr | None) -> str:
        """Text of a load, or of the left side of a store."""
        return self._run(self._access(buffer, indices, mask))

    def stmt(self, stmt: Stmt, indent: str = "") -> list[str]:
        """The lines of a statement."""
        lines = self._stmt(stmt, indent)
        if self._marker is not None and (note := self._marker(stmt)) is not None:
            lines[0] += f"  {note}"
        return lines

    def _stmt(self, stmt: Stmt, indent: str) -> list[str]:
        deeper = indent + INDENT
        match stmt:
            case For(var, low, extent, kind, body):
                bounds = self.expr(extent)
                if not (isinstance(low, Const) and low.value == 0):
                    bounds = f"{self.expr(low)}, {self._end(low, extent)}"
                domain = "range" if kind == "serial" else kind
                noted = "".join(f"  # {key} = {value!r}" for key, value in stmt.notes)
                return [f"{indent}for {self.name(var)} in {domain}({bounds}):{noted}", *self.stmt(body, deeper)]
            case While(condition, body):
                return [f"{indent}while {self.expr(condition)}:", *self.stmt(body, deeper)]
            case If(condition, then, orelse, mask):
                note = "  # mask" if mask else ""
                lines = [f"{indent}if {self.expr(condition)}:{note}", *self.stmt(then, deeper)]
                return lines if orelse is None else [*lines, f"{indent}else:", *self.stmt(orelse, deeper)]
            case Store(buffer, indices, value, mask):
                return [f"{indent}{self.access(buffer, indices, mask)} = {self.expr(value)}"]
            case Allocate(buffer, body):
                return [f"{indent}{self.declaration(buffer)} = allocate({buffer.scope!r})", *self.stmt(body, indent)]
            case LetStmt(var, value, body):
                return [f"{indent}{self.name(var)} = {self.expr(value)}", *self.stmt(body, indent)]
            case Seq(stmts):
                return [line for s in stmts for line in self.stmt(s, indent)] or [f"{indent}pass"]
            case Assert(condition, message):
                return [f"{indent}assert {self.expr(condition)}, {message!r}"]
            case Evaluate(value):
                return [f"{indent}{self.expr(value)}"]
            case PrefetchStmt(buffer, indices, to_write):
                return [f"{indent}prefetch({self.access(buffer, indices, None)}{', to_write' if to_write else ''})"]
            case CallExtern(function, args):
                given = [self.region(a) if isinstance(a, Region) else self.expr(a) for a in args]
                return [f"{indent}{function.symbol}({', '.join(given)})"]
            case Launch(function, extent, args):
                names = ", ".join(self.name(a) for a in args)
                return [f"{indent}launch({function}, {self.expr(extent)}, [{names}])"]
            case _:
                assert_never(stmt)

    def _end(self, low: Expr, extent: Expr) -> str:
        match low, extent:
            case Const(value=a), Const(value=b):
                return str(a + b)
            case _, Binary("-", end, start) if start is low:
                return self.expr(end)
            case _:
                return f"{self.expr(low)} + {self.expr(extent, _PRECEDENCE['*'])}"

    def region(self, region: Region) -> str:
        """A box as slices; one that has strides of its own as ``view(A[begin], (extents), (strides))``."""
        name = self.name(region.buffer)
        if region.strides is None:
            pairs = zip(region.begin, region.extents, strict=True)
            slices = [f"{self.expr(low)}:{self._end(low, extent)}" for low, extent in pairs]
            return f"{name}[{', '.join(slices) or '()'}]"
        start, extents, strides = (self._list(part) for part in (region.begin, region.extents, region.strides))
        return f"view({name}[{self._run(start)}], ({self._run(extents)}), ({self._run(strides)}))"

    def declaration(self, buffer: Buffer) -> str:
        """A buffer as a parameter or an allocation declares it: name, dtype and shape, with strides and offset where
        they are not the usual ones."""
        shape = ", ".join(self.expr(extent) for extent in buffer.shape)
        strides = "" if buffer.strides is None else f", strides=({self._run(self._list(buffer.strides))})"
        offset = buffer.elem_offset
        start = "" if isinstance(offset, Const) and offset.value == 0 else f", offset={self.expr(offset)}"
        return f"{self.name(buffer)}: {buffer.dtype}[{shape}{strides}{start}]"

    def func(self, func: PrimFunc) -> str:
        """The text of a function: its line of parameters, and its body indented."""
        params = [self.declaration(p) if isinstance(p, Buffer) else f"{self.name(p)}: {p.dtype}" for p in func.params]
        return "\n".join([f"def {func.name}({', '.join(params)}):", *self.stmt(func.body, INDENT)])


def _in_parentheses(text: str, own: int, level: int) -> str:
    """A text, in parentheses if it binds less tightly than it has to."""
    return f"({text})" if own < level else text


def _const_text(value: Const) -> tuple[str, int]:
    kind, number = value.dtype, value.value
    text = str(kind.to_numpy().type(number)) if kind.is_float and kind.bits <= 32 else repr(number)
    if kind.is_float and text.lstrip("-").isdigit():
        text += ".0"
    if kind.is_index or kind.is_bool or (kind.kind == "float" and kind.bits == 32):
        return text, _ATOM if not text.startswith("-") else _PRECEDENCE["neg"]
    return f"{kind}({text})", _ATOM


def expr_text(value: Expr) -> str:
    """The text of an expression, whose variables are named anew."""
    return Printer().expr(value)


def stmt_text(stmt: Stmt, marker: Marker | None = None) -> str:
    """The text of a statement, one line a statement. ``marker`` may give a note for each statement, which stands behind
    its first line."""
    return "\n".join(Printer(marker).stmt(stmt))


def func_text(func: PrimFunc, marker: Marker | None = None) -> str:
    """The text of a function. ``marker`` may give a note for each statement, which stands behind its first line."""
    return Printer(marker).func(func)


def module_lines(module: IRModule) -> dict[Stmt, int]:
    """The line of the module's text, from 1, on which each statement begins; a ``Seq`` is where its first part is."""
    return _marked_lines(lambda mark: "\n\n".join(func_text(f, mark) for f in module.functions))


def stmt_lines(stmt: Stmt) -> dict[Stmt, int]:
    """The lines on which statements stand in the text of a statement, as ``module_lines`` gives those of a module."""
    return _marked_lines(lambda mark: stmt_text(stmt, mark))


def _marked_lines(print_with: Callable[[Marker], str]) -> dict[Stmt, int]:
    marked: list[Stmt] = []

    def mark(stmt: Stmt) -> str | None:
        if isinstance(stmt, Seq):
            return None
        marked.append(stmt)
        return f"\0{len(marked) - 1}"

    text = print_with(mark)
    found = ((number, re.search(r"\0(\d+)$", line)) for number, line in enumerate(text.split("\n"), start=1))
    return {marked[int(mark.group(1))]: number for number, mark in found if mark}

"""Texts whose lines know what they come from: of nests and functions by their statements, of LLVM IR and assembly by
the line tables. ``stages.py`` says what the columns mean."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..base.dataclass import dataclass
from ..codegen.marked_text import MarkedLine
from ..ir.origin import with_origins
from ..ir.printer import module_lines, stmt_lines, stmt_text
from ..ir.stmt import For, IRModule, Launch, PrimFunc, Stmt, Store
from ..ir.visit import walk
from ..lowering.nest.realize import realize
from ..lowering.state import ScheduleState
from .compute_text import compute_lines


@dataclass(frozen=True, slots=True)
class LinkedText:
    """A stage's text in lines, and the links of each line; the head of ``stages.py`` says what the columns hold."""

    lines: tuple[str, ...]
    sources: tuple[int | None, ...]
    origins: tuple[int | None, ...]
    loops: tuple[int | None, ...]
    stores: tuple[str | None, ...]

    def __str__(self) -> str:
        return "\n".join(self.lines)


@dataclass(slots=True)
class _Line:
    """The links of a line. Mutable: filled in while the text is gone through."""

    source: int | None = None
    origin: int | None = None
    loop: int | None = None
    store: str | None = None


def _text(lines: Sequence[str], links: Sequence[_Line]) -> LinkedText:
    return LinkedText(
        tuple(lines),
        tuple(link.source for link in links),
        tuple(link.origin for link in links),
        tuple(link.loop for link in links),
        tuple(link.store for link in links),
    )


def link_computes(state: ScheduleState, keys: Mapping[str, int]) -> LinkedText:
    """What a fresh schedule computes, ``keys`` being those of its loops by id."""
    lines: list[str] = []
    links: list[_Line] = []
    for stage in state.stages:
        texts = compute_lines(stage.op)
        axes = [keys[loop.id] for loop in stage.loops.values() if loop.reduce]  # their lines come first
        lines += texts
        links += [_Line(loop=axis, store=stage.name) for axis in axes]
        links += [_Line(store=stage.name) for _ in texts[len(axes) :]]
    return _text(lines, links)


def link_nest(state: ScheduleState, keys: Mapping[str, int], *, last: bool) -> LinkedText:
    """The nest of a state, ``keys`` being those of its loops by id; that of the last one has origins."""
    realized = realize(state)
    body = with_origins(realized.body) if last else realized.body
    stage_of = {buffer.data: state.stage_of(tensor).name for tensor, buffer in realized.buffers.items()}
    lines = stmt_text(body).split("\n")
    links = [_Line() for _ in lines]
    for stmt, number in stmt_lines(body).items():
        link = links[number - 1]
        link.origin = _origin(stmt)
        if isinstance(stmt, For):
            link.loop = keys.get(realized.loop_of.get(stmt.var, ""))
        elif isinstance(stmt, Store):
            link.store = stage_of.get(stmt.buffer.data)
    return _text(lines, links)


def link_function(func: PrimFunc, loops: Mapping[int, int]) -> LinkedText:
    """A numbered function; ``loops`` are the keys of loops by their origins."""
    return _link_module(IRModule((func,)), loops, is_source=False)


def link_module(module: IRModule, loops: Mapping[int, int]) -> LinkedText:
    """The lowered module, which is the source of the line tables."""
    return _link_module(module, loops, is_source=True)


def _link_module(module: IRModule, loops: Mapping[int, int], *, is_source: bool) -> LinkedText:
    lines = str(module).split("\n")
    links = [_Line(number if is_source else None) for number in range(1, len(lines) + 1)]
    bodies: dict[str, Stmt] = {func.name: func.body for func in module.functions}
    for stmt, number in module_lines(module).items():
        link = links[number - 1]
        link.origin = _origin(bodies.get(stmt.function, stmt) if isinstance(stmt, Launch) else stmt)
        if isinstance(stmt, For) and stmt.origin:
            link.loop = loops.get(abs(stmt.origin))
    return _text(lines, links)


def link_machine_text(marked: Sequence[MarkedLine], source: LinkedText) -> LinkedText:
    """LLVM IR or assembly, by the lines of the lowered module that its own come from."""
    links = []
    for line in marked:
        at = None if line.source is None else line.source - 1
        links.append(_Line() if at is None else _Line(at + 1, source.origins[at], source.loops[at]))
    return _text([line.text for line in marked], links)


def _origin(stmt: Stmt) -> int | None:
    """The origin of a loop or store; of another statement, that of the first one in it."""
    numbered = (node.origin for node in walk(stmt) if isinstance(node, (For, Store)) and node.origin)
    return next((abs(origin) for origin in numbered), None)

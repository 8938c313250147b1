"""Assembly text as functions of instructions, each marked with its source line, and the loops that their jumps make.

Reads what LLVM prints for ELF targets; an instruction is a name and its operands, of whatever architecture.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import field

from ...base.dataclass import dataclass

_ENTRY = re.compile(r"\t\.type\t([^,]+),[@%]function")
_LABEL = re.compile(r'("?[^\s"#]+"?):')
_LOCATION = re.compile(r"\t\.loc\t\d+ (\d+)")
_INSTRUCTION = re.compile(r"\t([a-z][\w.]*)(?:\s+(.*))?")
_COMMENT = re.compile(r"\s+(?:#|//|;).*$")
_FOR_GOOD = re.compile(r"jmpq?|b|br|retq?|ud2|brk|udf")
"""Instructions behind which the next one in the text is not reached."""


@dataclass(frozen=True, slots=True, eq=False)
class Instruction:
    """``line`` is that of the source text, 0 if none."""

    name: str
    operands: tuple[str, ...]
    line: int

    def __str__(self) -> str:
        return f"{self.name} {', '.join(self.operands)}"


@dataclass(slots=True, eq=False)
class Block:
    """Instructions that run one after the other. ``next`` are the blocks that may follow. Mutable while it is read."""

    instructions: list[Instruction] = field(default_factory=list)
    next: list[Block] = field(default_factory=list)


@dataclass(frozen=True, slots=True, eq=False)
class MachineLoop:
    """A natural loop. ``own`` are its instructions that are in none of the loops inside it; ``parent`` is around it."""

    header: Block
    blocks: frozenset[Block]
    own: tuple[Instruction, ...]
    back: Instruction
    parent: MachineLoop | None


@dataclass(frozen=True, slots=True, eq=False)
class MachineFunction:
    """``loops`` are in order of their first blocks; ``straight`` are the instructions in no loop."""

    name: str
    blocks: tuple[Block, ...]
    loops: tuple[MachineLoop, ...]
    straight: tuple[Instruction, ...]

    @property
    def instructions(self) -> Iterator[Instruction]:
        """All instructions of the function, in the order of the text."""
        return (instruction for block in self.blocks for instruction in block.instructions)


def read_assembly(text: str) -> tuple[MachineFunction, ...]:
    """The functions of an assembly text, in order."""
    lines = iter(text.splitlines())  # of which each function takes its own
    return tuple(_function(entry[1], lines) for row in lines if (entry := _ENTRY.match(row)))


def _function(name: str, lines: Iterator[str]) -> MachineFunction:
    """The function whose label comes next, up to its end."""
    blocks = [Block()]
    labels: dict[str, Block] = {}
    line = 0
    for row in lines:
        if row.startswith("\t.size"):
            break
        if location := _LOCATION.match(row):
            line = int(location[1])
        elif label := _LABEL.match(row):
            if blocks[-1].instructions:
                blocks.append(Block())
            labels[label[1]] = blocks[-1]
        elif found := _INSTRUCTION.match(_COMMENT.sub("", row)):
            blocks[-1].instructions.append(Instruction(found[1], _operands(found[2] or ""), line))
            if _target(blocks[-1].instructions[-1], None) or _FOR_GOOD.fullmatch(found[1]):
                blocks.append(Block())
    _link(blocks, labels)
    loops = _loops(blocks)
    inside = {block for loop in loops for block in loop.blocks}
    straight = tuple(i for block in blocks if block not in inside for i in block.instructions)
    return MachineFunction(name.strip('"'), tuple(blocks), loops, straight)


def _operands(text: str) -> tuple[str, ...]:
    """Split at the commas that stand in no parentheses, brackets or braces."""
    parts, depth = [""], 0
    for char in text:
        depth += (char in "([{") - (char in ")]}")
        if char == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += char
    return tuple(part.strip() for part in parts if part.strip())


def _target(instruction: Instruction, labels: Mapping[str, Block] | None) -> str | None:
    """The label that an instruction may jump to: a local one, last of its operands; calls do not count."""
    last = instruction.operands[-1] if instruction.operands else ""
    if not last.startswith(".L") or not re.match(r"j|b\b|b\.|cbn?z|tbn?z|b[a-z]{2,3}$", instruction.name):
        return None
    return last if labels is None or last in labels else None


def _link(blocks: list[Block], labels: Mapping[str, Block]) -> None:
    for block, following in zip(blocks, [*blocks[1:], None], strict=True):
        last = block.instructions[-1] if block.instructions else None
        target = None if last is None else _target(last, labels)
        if target is not None:
            block.next.append(labels[target])
        if following is not None and (last is None or not _FOR_GOOD.fullmatch(last.name)):
            block.next.append(following)


def _loops(blocks: list[Block]) -> tuple[MachineLoop, ...]:
    before: dict[Block, list[Block]] = {block: [] for block in blocks}
    for block in blocks:
        for after in block.next:
            before[after].append(block)
    members: dict[Block, set[Block]] = {}
    backs: dict[Block, Instruction] = {}
    for tail, header in _back_edges(blocks[0]):
        loop = members.setdefault(header, {header})
        backs[header] = tail.instructions[-1] if tail.instructions else header.instructions[-1]
        todo = [tail]
        while todo:
            block = todo.pop()
            if block not in loop:
                loop.add(block)
                todo += before[block]
    made: list[MachineLoop] = []
    for header, loop in sorted(members.items(), key=lambda item: -len(item[1])):
        parents = [m for m in made if header in m.blocks]
        inner = {b for other, part in members.items() if other in loop and other is not header for b in part}
        own = tuple(i for block in blocks if block in loop and block not in inner for i in block.instructions)
        made.append(MachineLoop(header, frozenset(loop), own, backs[header], parents[-1] if parents else None))
    return tuple(sorted(made, key=lambda loop: blocks.index(loop.header)))


def _back_edges(entry: Block) -> list[tuple[Block, Block]]:
    """The edges that lead back to a block on the way from the entry, found depth first."""
    edges: list[tuple[Block, Block]] = []
    seen, way = {entry}, {entry}
    stack = [(entry, iter(entry.next))]
    while stack:
        block, rest = stack[-1]
        after = next(rest, None)
        if after is None:
            way.discard(block)
            stack.pop()
        elif after in way:
            edges.append((block, after))
        elif after not in seen:
            seen.add(after)
            way.add(after)
            stack.append((after, iter(after.next)))
    return edges

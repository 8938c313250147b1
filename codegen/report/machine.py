"""The machine side of a report: instructions by their lines, and the loops of the machine by the lowered ones."""

from __future__ import annotations

from collections.abc import Iterable

from ...base.dataclass import dataclass
from .assembly import Instruction, MachineFunction, MachineLoop, read_assembly
from .lowered import Lowered, PlacedLoop
from .x86 import Counts, count, uses_frame_pointer


@dataclass(frozen=True, slots=True, eq=False)
class CodeOfLoop:
    """A loop of the machine, the lowered loop that it comes from, and what it executes outside of its inner loops."""

    machine: MachineLoop
    function: str
    source: PlacedLoop | None
    innermost: bool
    counts: Counts


class Machine:
    """The code of a module whose lowered side is known."""

    def __init__(self, assembly: str, lowered: Lowered) -> None:
        self._lowered = lowered
        self._functions = read_assembly(assembly)
        self._frame = {f: uses_frame_pointer(f.instructions) for f in self._functions}
        self.loops = tuple(self._code_of(f, loop) for f in self._functions for loop in f.loops)

    @property
    def total(self) -> Counts:
        """All instructions of the module."""
        return sum((self._count(f, f.instructions) for f in self._functions), Counts())

    def on_lines(self, lines: Iterable[int]) -> Counts:
        """All instructions that come from these lines."""
        wanted = set(lines)
        return sum((self._count(f, (i for i in f.instructions if i.line in wanted)) for f in self._functions), Counts())

    def of_loop(self, placed: PlacedLoop) -> tuple[CodeOfLoop, ...]:
        """The machine's loops that come from a lowered loop: several where LLVM has split or copied it, none where it
        is gone."""
        return tuple(code for code in self.loops if code.source is placed)

    def _code_of(self, function: MachineFunction, loop: MachineLoop) -> CodeOfLoop:
        innermost = all(other.parent is not loop for other in function.loops)
        return CodeOfLoop(loop, function.name, self._source(loop), innermost, self._count(function, loop.own))

    def _source(self, loop: MachineLoop) -> PlacedLoop | None:
        """The lowered loop whose line the jump back has; where the jump has none, the one most instructions are of."""
        at = self._lowered.loop_at
        if loop.back.line in at:
            return at[loop.back.line]
        votes = [at[i.line] for i in loop.own if i.line in at]
        return max(votes, key=votes.count) if votes else None

    def _count(self, function: MachineFunction, instructions: Iterable[Instruction]) -> Counts:
        """Counts, in which accesses to a buffer that lives on the stack are no spills."""
        return count(instructions, self._frame[function], self._lowered.stack_lines)

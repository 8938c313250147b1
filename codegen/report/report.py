"""The report on a kernel's loops: what users get from ``kernel.vector_report()``, and how it prints."""

from __future__ import annotations

from dataclasses import field

from ...base.brief import BriefRepr, listed, one_line
from ...base.dataclass import dataclass
from ...ir.stmt import LoopKind
from .assembly import Instruction
from .x86 import Counts


@dataclass(frozen=True, slots=True, repr=False)
class LoopReport(BriefRepr):
    """What became of one loop of a schedule's nest.

    ``id`` is that of the schedule; the loops that store a reduction's initial values share it with the reduction's own.
    ``costs`` say what keeps the loop's code from being as good as it could be. ``code`` counts the instructions: of a
    vectorized loop those of its statements; of a loop that is one in machine code, its own, without loops inside it;
    None where there are none, or where the assembly of the target is not read.
    """

    id: str
    name: str
    kind: LoopKind
    extent: str
    depth: int
    became: str
    costs: tuple[str, ...]
    code: Counts | None

    @property
    def header(self) -> str:
        """The loop as a line of the nest shows it, ``for i in parallel(64)``, without a colon."""
        return f"for {self.name} in {'range' if self.kind == 'serial' else self.kind}({self.extent})"


@dataclass(frozen=True, slots=True, repr=False)
class CodeLoop(BriefRepr):
    """A loop of the machine code, and the loop of the schedule that it comes from, by its ``id``, its ``name``, and its
    number in the nest (``origin``, 0 if unknown). ``tail``: a copy for the borders. ``instructions`` are its own, in
    order, those of loops inside it apart."""

    id: str
    name: str
    function: str
    innermost: bool
    tail: bool
    code: Counts
    origin: int = 0
    instructions: tuple[Instruction, ...] = field(default=(), repr=False, compare=False)


@dataclass(frozen=True, slots=True, repr=False)
class VectorReport:
    """What became of each loop of a schedule (``loops``, in order of the nest), and the loops that the machine code
    has (``code``). ``str`` is both as tables, without columns that are empty. ``warnings`` name the stages that are
    computed more than twice."""

    name: str
    target: str
    loops: tuple[LoopReport, ...]
    code: tuple[CodeLoop, ...]
    note: str = ""
    warnings: tuple[str, ...] = ()

    def __getitem__(self, loop: object) -> LoopReport:
        """The report on a loop by its id, name or view; the last one in the nest that fits. Raises ``KeyError``."""
        wanted = loop if isinstance(loop, str) else getattr(loop, "id", None)
        for report in reversed(self.loops):
            if wanted in (report.id, report.name):
                return report
        raise KeyError(f"{self.name} has no loop {loop}; it has {', '.join(r.name for r in self.loops)}")

    @property
    def costs(self) -> tuple[str, ...]:
        """All that costs, each with the loop that it is about."""
        return tuple(f"{loop.name} ({loop.id}): {cost}" for loop in self.loops for cost in loop.costs)

    def _repr_html_(self) -> str:
        from .report_html import report_html  # it knows reports

        return report_html(self)

    def __repr__(self) -> str:
        loops = listed(dict.fromkeys(loop.name for loop in self.loops))
        return f"<VectorReport of {one_line(self.name, 60)}: loops {loops or 'none'}>"

    def __str__(self) -> str:
        lines = [f"{self.name} for {self.target}", *([self.note] if self.note else [])]
        lines += [f"! {warning}" for warning in self.warnings]
        headers = ["    " * loop.depth + loop.header for loop in self.loops]
        width = max(map(len, headers), default=0)
        for loop, header in zip(self.loops, headers, strict=True):
            lines.append(f"{header:{width}}  {loop.became}")
            lines += [f"{'':{width}}  ! {cost}" for cost in loop.costs]
        if self.code:
            lines += ["", "loops of the machine code", *_table(self.code)]
        return "\n".join(lines)


def _table(loops: tuple[CodeLoop, ...]) -> list[str]:
    """The rows in columns, without those in which no loop has anything: they fit 80 columns so."""
    columns = zip(("loop", *CODE_COLUMNS), *code_rows(loops), strict=True)
    used = [[cell or NONE for cell in column] for column in columns if any(column[1:])]
    widths = [max(map(len, column)) for column in used]
    rows = zip(*used, strict=True)
    return ["  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]) for row in rows]


NONE = "."
"""What stands for no instructions."""
CODE_COLUMNS = ("instructions", "zmm", "ymm", "xmm", "scalar", "fma", "masked", "gather", "stack", "calls")


def code_rows(loops: tuple[CodeLoop, ...]) -> list[tuple[str, ...]]:
    """A row for each loop of the machine code: its name, then a count for each of ``CODE_COLUMNS``, empty for none."""
    rows = []
    for loop in loops:
        c = loop.code
        what = ", ".join(word for word in (loop.function, "innermost" * loop.innermost, "tail" * loop.tail) if word)
        numbers = (c.instructions, c.zmm, c.ymm, c.xmm, c.scalar, c.fused, c.masked, c.gathers, c.stack, len(c.calls))
        rows.append((f"{loop.name or '?'} ({what})", *(str(n) if n else "" for n in numbers)))
    return rows

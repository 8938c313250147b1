"""Makes the panes of the page from the stages of a schedule: each line knows those of another pane that it comes from.

computes ← nest without steps ← nest after each step; below the last of these: the trace, and each pass;
below the lowered module: LLVM IR and assembly; below the nest, what a machine model says of its loops
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import fields

from ..base.quantities import seconds_text
from ..codegen.report.report import LoopReport
from ..codegen.report.x86 import Counts
from .document import Note, Pane, PassEntry, Role, ScheduleEntry
from .linked_text import LinkedText
from .model_text import model_lines
from .stages import Provenance

LOWERED = "lowered"
"""The name of what stands behind the last pass: the module that code is emitted from."""

_COUNTED = {
    "fused": ("fma", "fma"),
    "products": ("product", "products"),
    "sums": ("sum", "sums"),
    "gathers": ("gather", "gathers"),
    "scatters": ("scatter", "scatters"),
    "one_lane": ("move of one lane", "moves of one lane"),
    "divisions": ("division", "divisions"),
    "stored": ("store to the stack", "stores to the stack"),
    "reloaded": ("load from the stack", "loads from the stack"),
    "branches": ("branch", "branches"),
    "instructions": ("instruction", "instructions"),
}
"""What is counted, in words: one, and several."""
_BRIEFER = (
    ("a loop in the loop IR, which LLVM has removed or written out", "gone, by LLVM"),
    (" of them for the borders", " for borders"),
    ("register tile of 1 vector", "a vector"),
    ("register tile of ", "tile of "),
    ("kept in registers", "in registers"),
)


def schedule_panes(stages: Provenance, name: str, number: int) -> tuple[ScheduleEntry, list[Pane]]:
    """The panes of a schedule, and its entry in the document, of which it is schedule ``number``."""
    made = _PanesOf(stages, f"{number}/")
    start, steps = made.start(), made.steps()
    nests, passes, machine, model = made.nests(start), made.passes(), made.machine(), made.model()
    entry = ScheduleEntry(
        name,
        f"{number}/compute",
        steps.id,
        tuple(k for k, step in enumerate(stages.steps, start=1) for _ in step.python.split("\n")) or (0,),
        tuple(pane.id for pane in nests),
        made.entries,
        tuple(pane.id for pane in machine[:-1]),
        machine[-1].id,
        model[0].id if model else "",
        stages.predictions,
    )
    return entry, [made.compute(), start, steps, *nests, *passes, *machine, *model]


class _PanesOf:
    """Makes the panes of one schedule; the ids of all begin with ``prefix``. Mutable: ``entries`` are of the passes."""

    def __init__(self, stages: Provenance, prefix: str) -> None:
        self.stages = stages
        self.prefix = prefix
        self.last = stages.steps[-1].nest if stages.steps else stages.start
        # What stands around a loop or a store has its origin too, and comes before it: so the last line counts.
        self.line_of = {o: k for k, o in enumerate(self.last.origins, start=1) if o is not None}
        self.entries: tuple[PassEntry, ...] = ()

    def compute(self) -> Pane:
        return Pane(f"{self.prefix}compute", "compute", "Computes", self.stages.compute.lines)

    def start(self) -> Pane:
        """The nest without steps: each line comes from the compute that it is part of, a loop over a reduction axis
        from that axis too."""
        text = self.stages.start
        origins = tuple(map(self._compute_lines, text.loops, text.stores))
        return Pane(f"{self.prefix}start", "nest", "Nest without steps", text.lines, f"{self.prefix}compute", origins)

    def nests(self, start: Pane) -> list[Pane]:
        """The nest before the first step and after each: loops come from those that stood for their axes at first."""
        texts = [self.stages.start, *(step.nest for step in self.stages.steps)]
        panes: list[Pane] = []
        for number, text in enumerate(texts):
            previous = panes[-1].id if panes else ""
            notes = self._notes() if number == len(texts) - 1 else ()
            title = f"Nest after step {number}"
            origins = tuple(map(self._first_lines, text.loops, text.stores))
            panes.append(
                Pane(f"{self.prefix}nest{number}", "nest", title, text.lines, start.id, origins, previous, notes)
            )
        return panes

    def steps(self) -> Pane:
        """The trace: each step comes from the loops of the last nest that it made, or had a hand in, and from the
        stores of a stage that it made."""
        lines, origins = [], []
        made_stages = self._made_stages()
        for number, step in enumerate(self.stages.steps):
            touched = self._became(
                k for k, loop in enumerate(self.stages.loops) if number in (loop.made_by, *loop.changed_by)
            )
            stores = _lines_with(self.last.stores, made_stages.get(number, ()))
            for line in step.python.split("\n"):
                lines.append(line)
                origins.append((*_lines_with(self.last.loops, touched), *stores))
        return Pane(
            f"{self.prefix}steps", "steps", "Steps", tuple(lines) or ("# no steps",), self._nest, tuple(origins)
        )

    def passes(self) -> list[Pane]:
        """The function behind each pass that changed it, then the module with the bodies of parallel loops apart."""
        panes: list[Pane] = []
        entries: list[PassEntry] = []
        for number, stage in enumerate(self.stages.passes):
            made = self._function(f"pass{number}", stage.name, stage.text, panes) if stage.changed else None
            entries.append(PassEntry(stage.name, seconds_text(stage.seconds), made.id if made else ""))
            panes += [made] if made else []
        panes.append(self._function(LOWERED, LOWERED, self.stages.loop_ir, panes))
        entries.append(PassEntry(LOWERED, "what code is emitted from", panes[-1].id))
        self.entries = tuple(entries)
        return panes

    def machine(self) -> list[Pane]:
        """LLVM IR as emitted, LLVM IR behind LLVM's passes, assembly."""
        texts: tuple[tuple[str, Role, str, LinkedText], ...] = (
            ("llvm0", "llvm", "as emitted", self.stages.llvm_ir),
            ("llvm1", "llvm", "optimized", self.stages.llvm_ir_optimized),
            ("assembly", "assembly", "Assembly", self.stages.assembly),
        )
        lowered = f"{self.prefix}{LOWERED}"
        return [
            Pane(f"{self.prefix}{name}", role, title, text.lines, lowered, tuple(map(_one, text.sources)))
            for name, role, title, text in texts
        ]

    def model(self) -> list[Pane]:
        """What a machine model predicts; no pane where it reads no code of this target."""
        if self.stages.target.arch != "x86_64":
            return []
        rows = list(model_lines(self.stages.predictions))
        origins = tuple(_one(self.line_of.get(origin)) for _, origin in rows)
        name = f"{self.prefix}model"
        return [Pane(name, "model", "Machine model", tuple(text for text, _ in rows), self._nest, origins)]

    @property
    def _nest(self) -> str:
        return f"{self.prefix}nest{len(self.stages.steps)}"

    def _function(self, name: str, title: str, text: LinkedText, before: Sequence[Pane]) -> Pane:
        origins = tuple(_one(self.line_of.get(origin)) if origin is not None else () for origin in text.origins)
        previous = before[-1].id if before else ""
        return Pane(f"{self.prefix}{name}", "pass", title, text.lines, self._nest, origins, previous)

    def _compute_lines(self, loop: int | None, store: str | None) -> tuple[int, ...]:
        """The lines of the computes that a line of the nest without steps comes from: none of another axis."""
        stage = store if loop is None else self.stages.loops[loop].stage
        computes = self.stages.compute
        lines = enumerate(zip(computes.stores, computes.loops, strict=True), start=1)
        return tuple(line for line, (name, axis) in lines if name == stage and axis in (None, loop))

    def _first_lines(self, loop: int | None, store: str | None) -> tuple[int, ...]:
        """The lines of the nest without steps that a line of a later nest comes from."""
        if loop is not None and (lines := _lines_with(self.stages.start.loops, self._axes(loop))):
            return lines
        stage = store if loop is None else self.stages.loops[loop].stage
        return () if stage is None else self._stage_lines(self.stages.first_stages[stage])

    def _stage_lines(self, stages: Collection[str]) -> tuple[int, ...]:
        """The lines of the nest without steps that store what stages compute; the loops of those that store into the
        memory of another one, as the parts of a scan do."""
        start = self.stages.start
        loops = [None if loop is None else self.stages.loops[loop].stage for loop in start.loops]
        return _lines_with(start.stores, stages) or _lines_with(loops, stages)

    def _axes(self, loop: int) -> set[int]:
        """The loops that a loop was made of in the first place."""
        traced = self.stages.loops[loop]
        of = traced.made_of if traced.copies is None else (traced.copies,)
        return {axis for part in of for axis in self._axes(part)} if of else {loop}

    def _made_stages(self) -> dict[int, list[str]]:
        """The stages that each step has made, by the step's index: all of their loops are of that step or later."""
        first: dict[str, int] = {}
        for loop in self.stages.loops:
            made = -1 if loop.made_by is None else loop.made_by
            first[loop.stage] = min(made, first.get(loop.stage, made))
        return {step: [stage for stage, made in first.items() if made == step] for step in first.values()}

    def _became(self, loops: Iterable[int]) -> set[int]:
        """Loops, and all that later steps made of them."""
        found: set[int] = set()
        todo = list(loops)
        while todo:
            loop = todo.pop()
            if loop not in found:
                found.add(loop)
                todo += self.stages.loops[loop].became
        return found

    def _notes(self) -> tuple[Note, ...]:
        """The verdict of the vector report on each loop of the last nest."""
        reports = ((line, self.stages.statements[origin].report) for origin, line in self.line_of.items())
        return tuple(_note(line, report) for line, report in reports if report is not None)


def _note(line: int, report: LoopReport) -> Note:
    code = _code_text(report.code) if report.code and report.code.instructions else ""
    return Note(line, report.header, _brief(report), report.became, report.costs, code)


def _brief(report: LoopReport) -> str:
    """What costs in a loop, or else what became of it, without what the nest says itself."""
    if report.costs:
        return report.costs[0]
    if report.kind == "unrolled" and report.became.startswith("written out"):
        return ""
    if "no instructions of their own" in report.became:
        return ""
    text = re.sub(r"^\d+ lanes of \w+( in|,) ", "", report.became)
    for words, fewer in _BRIEFER:
        text = text.replace(words, fewer)
    return text.removeprefix("a loop").removeprefix(", ")


def _code_text(code: Counts) -> str:
    """What instructions there are, as in ``17 instructions: 14 ymm, 8 fma``."""
    counts = [(f.name, getattr(code, f.name)) for f in fields(code) if f.name not in ("instructions", "calls")]
    parts = [_counted(name, n) for name, n in counts if n]
    parts += [f"calls of {', '.join(dict.fromkeys(code.calls))}"] if code.calls else []
    return f"{_counted('instructions', code.instructions)}{': ' * bool(parts)}{', '.join(parts)}"


def _counted(name: str, count: int) -> str:
    one, several = _COUNTED.get(name, (name, name))
    return f"{count} {one if count == 1 else several}"


def _lines_with(column: Sequence[object], wanted: Collection[object]) -> tuple[int, ...]:
    return tuple(line for line, value in enumerate(column, start=1) if value is not None and value in wanted)


def _one(line: int | None) -> tuple[int, ...]:
    return () if line is None else (line,)

"""Every stage of a schedule on its way to machine code as text, and what each line comes from: what the explorer shows.

``provenance(schedule, args, target)`` gives a ``Provenance``. Its texts, in order of the way down:

- ``compute``: the computes, one a line, before any schedule;
- ``start``, the nest of the fresh schedule, and ``steps``: of each step of the trace its Python and the nest after it;
  the nest before a step is that of the step before, or ``start``;
- ``passes``: the function behind each lowering pass, ``realize`` first; ``changed`` is False where it is as before;
- ``loop_ir``: the lowered module, the bodies of parallel loops apart. **This text is the source of the line tables**;
- ``llvm_ir``, ``llvm_ir_optimized``, ``assembly``: as ``kernel`` prints them, to the letter.

Each is a ``LinkedText``: lines, and columns as long as these, which hold for each line a link or None:

- ``sources``: the line of ``loop_ir``, from 1. In ``loop_ir``, where it is the line's own number, and all below.
- ``origins``: a key of ``statements``: the loop or store of the last schedule's nest that the line comes from. In the
  nest after the last step, in all ``passes``, in ``loop_ir`` and, by way of ``sources``, in all below. Lines of other
  statements (``if``, ``let``, ``allocate``) have the origin of the first loop or store inside them.
- ``loops``: an index into ``Provenance.loops``: the loop whose header the line is. In all nests and passes and in
  ``loop_ir``; a line of ``llvm_ir`` and below has the loop of its source line, where that is a header. In ``compute``
  the line of a reduction axis has the loop that stands for it at first.
- ``stores``: the name of the schedule's stage whose tensor the line computes. In ``compute`` and all nests.

So two lines belong together when they share a source (LLVM IR and assembly, exactly), an origin (nest, passes and all
below), a loop (nests of different steps) or a stage (compute and nests). ``loops[k].made_by`` is the index in
``steps`` of the step that made the loop, None for an axis of the compute; ``changed_by`` are the later steps that name
it; ``made_of`` are the loops that it was split or fused from, and ``became`` those that it was split or fused into.
``copies`` is, for a loop of what ``cache_read`` made, the loop over that dimension of the stage that it copies.
``first_stages`` has for each stage the one of the fresh schedule that steps such as ``cache_write`` made it of; a copy
of an input has the stages that read it.
``statements[origin].around`` are the origins of the loops around, outermost first.
``statements[origin].report`` is the vector report's verdict on the loop.
``predictions`` say what an iteration of each innermost loop of the machine code takes by a machine model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..artifact.options import CodegenOptions, Precision
from ..base.dataclass import dataclass
from ..base.target import Target
from ..codegen.compile import texts_with_lines
from ..codegen.host import resolve_target
from ..codegen.marked_text import read_assembly_lines, read_llvm_ir
from ..codegen.report.report import LoopReport, VectorReport
from ..codegen.report.verdicts import vector_report
from ..ir.origin import Nest
from ..lowering.passes.outline_parallel import outline_parallel
from ..lowering.pipeline import PassRecord, lower_numbered
from ..lowering.recomputed import recomputations
from ..lowering.schedule import Schedule
from ..lowering.trace_python import python_steps
from ..te.tensor import Tensor
from .linked_text import LinkedText, link_computes, link_function, link_machine_text, link_module, link_nest
from .loop_history import TracedLoop, loop_history
from .loop_prediction import LoopPrediction
from .machine_model import predictions


@dataclass(frozen=True, slots=True)
class StepStage:
    """A step of the trace: its Python, of one or more lines, and the nest after it."""

    python: str
    nest: LinkedText


@dataclass(frozen=True, slots=True)
class PassStage:
    """A lowering pass: seconds taken, whether it changed the function, and the function after it."""

    name: str
    seconds: float
    changed: bool
    text: LinkedText


@dataclass(frozen=True, slots=True)
class NestStatement:
    """A loop or a store of the last nest. ``loop`` is an index into ``Provenance.loops``, None for a loop that is not
    the schedule's, such as that of a prefetch. ``report`` is the verdict on the loop. For a store both are None.
    ``around`` are the origins of the loops around it, outermost first."""

    loop: int | None
    around: tuple[int, ...]
    report: LoopReport | None


@dataclass(frozen=True, slots=True)
class Provenance:
    """All stages of one schedule; see the head of the module."""

    name: str
    target: Target
    compute: LinkedText
    start: LinkedText
    steps: tuple[StepStage, ...]
    passes: tuple[PassStage, ...]
    loop_ir: LinkedText
    llvm_ir: LinkedText
    llvm_ir_optimized: LinkedText
    assembly: LinkedText
    loops: tuple[TracedLoop, ...]
    first_stages: Mapping[str, tuple[str, ...]]
    statements: Mapping[int, NestStatement]
    report: VectorReport
    predictions: tuple[LoopPrediction, ...]


def provenance(
    schedule: Schedule,
    args: Sequence[Tensor],
    target: str | Target | None = "native",
    name: str = "main",
    precision: Precision = "standard",
) -> Provenance:
    """The stages of a schedule, built as ``lw.build`` does with these arguments, and linked. Raises what that does."""
    resolved, options = resolve_target(target), CodegenOptions(precision=precision)
    records: list[PassRecord] = []
    func, nest = lower_numbered(schedule, args, name, resolved, trace_passes=records)
    module = outline_parallel(func)
    marked = texts_with_lines(module, resolved, options)
    warnings = tuple(map(str, recomputations(schedule.state)))
    report = vector_report(nest, module, resolved, options, marked.assembly, warnings)
    history = loop_history(schedule)
    last = len(history.states) - 1
    nests = [link_nest(s, history.keys[k], last=k == last) for k, s in enumerate(history.states)]
    python = python_steps(schedule.trace.steps, history.states[0])
    loops = {number: history.keys[last][loop.id] for number, loop in nest.loops.items() if loop.id}
    loop_ir = link_module(module, loops)
    return Provenance(
        func.name,
        resolved,
        link_computes(history.states[0], history.keys[0]),
        nests[0],
        tuple(StepStage("\n".join(lines), text) for lines, text in zip(python, nests[1:], strict=True)),
        _passes(records, loops),
        loop_ir,
        link_machine_text(read_llvm_ir(marked.llvm_ir), loop_ir),
        link_machine_text(read_llvm_ir(marked.llvm_ir_optimized), loop_ir),
        link_machine_text(read_assembly_lines(marked.assembly), loop_ir),
        history.loops,
        history.first_stages,
        _statements(nest, loops, report),
        report,
        predictions(report, nest, resolved),
    )


def _passes(records: Sequence[PassRecord], loops: Mapping[int, int]) -> tuple[PassStage, ...]:
    found: list[PassStage] = []
    for record in records:
        changed = record.text is not None
        text = link_function(record.func, loops) if changed else found[-1].text
        found.append(PassStage(record.name, record.seconds, changed, text))
    return tuple(found)


def _statements(nest: Nest, loops: Mapping[int, int], report: VectorReport) -> dict[int, NestStatement]:
    verdicts = dict(zip(nest.loops, report.loops, strict=True))
    found = {n: NestStatement(loops.get(n), loop.around, verdicts[n]) for n, loop in nest.loops.items()}
    found.update((number, NestStatement(None, around, None)) for number, around in nest.stores.items())
    return dict(sorted(found.items()))

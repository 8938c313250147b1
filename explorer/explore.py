"""``lw.explore``: schedules of one compute, all stages of each, measured, as a page."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from ..artifact.options import CodegenOptions, Precision
from ..base.errors import RuntimeArgumentError
from ..base.quantities import count_text
from ..base.target import Target
from ..codegen.host import resolve_target
from ..compiler.build import compile_schedule
from ..compiler.model.progress import Progress, progress_shown, unseen
from ..lowering.schedule import Schedule
from ..runtime.foreign import why_not_here
from ..runtime.kernel import Kernel
from ..runtime.measure.measure_rates import measure_rates
from ..runtime.threads.default_threads import default_threads
from ..te.tensor import Tensor
from .document import Document, Pane, Peer, ScheduleEntry
from .explorer_page import ExplorerPage
from .measure import Program, counts_as_float, peer_call, random_array, time_alternating, work_of
from .panes import schedule_panes
from .stages import provenance


def explore(
    schedules: Schedule | Mapping[str, Schedule],
    path: str | os.PathLike[str] | None = None,
    target: str | Target | None = "native",
    name: str = "main",
    precision: Precision = "standard",
    measure: bool = True,
    peers: Mapping[str, Program] | None = None,
    progress: Progress | bool | None = None,
) -> ExplorerPage:
    """A page that shows how schedules become machine code: notebooks show it where it is made, and ``path`` is the HTML
    file that it is written to, for any browser, without a network.

    ``schedules`` are several of one compute, by their names, or just one. They are compiled as ``lw.build`` does, and
    their kernels timed on random arrays unless ``measure`` is False; those of another compute than the first one's are
    shown without times. ``peers`` are other programs that compute the same, by their names: each is called with the
    arrays of the inputs, in the order of their lines in the page's computes, and timed beside. ``progress`` is as for
    ``lw.compile``, after each schedule and after the times.
    Raises what ``lw.build`` raises, and ``RuntimeArgumentError`` where there is nothing to show, a peer fails, or the
    file cannot be written.
    """
    given = {name: schedules} if isinstance(schedules, Schedule) else schedules
    with progress_shown(f"exploring {name}", progress) as advance:
        shown = document(given, resolve_target(target), name, precision, measure, _named(peers), advance)
    made = ExplorerPage(shown)
    return made if path is None else made.save(path)


def document(
    schedules: Mapping[str, Schedule],
    target: Target,
    name: str,
    precision: Precision = "standard",
    measure: bool = True,
    peers: Mapping[str, Program] | None = None,
    progress: Progress = unseen,
) -> Document:
    """What ``explore`` shows, as data. ``progress`` is called after each part of the work: how many are done, of how
    many, and the name of the part, which is that of a schedule, or ``times``."""
    _check(schedules)
    parts = len(schedules) + measure
    entries: list[ScheduleEntry] = []
    panes: dict[str, Pane] = {}
    for number, (title, schedule) in enumerate(schedules.items()):
        stages = provenance(schedule, sum(arguments_of(schedule), ()), target, name, precision)
        entry, made = schedule_panes(stages, str(title), number)
        entries.append(_share_computes(entry, made, panes))
        progress(number + 1, parts, entry.name)
    threads = target.threads or default_threads()
    subtitle = f"{stages.report.target} · {precision} precision · {count_text(threads, 'thread')}"
    shown = Document(name, subtitle, tuple(panes.values()), tuple(entries))
    if measure:
        shown = _measured(shown, schedules, target, precision, _named(peers))
        progress(parts, parts, "times")
    return shown


def _check(schedules: object) -> None:
    """Raises ``RuntimeArgumentError`` for what are not schedules by their names."""
    named = isinstance(schedules, Mapping) and all(isinstance(schedule, Schedule) for schedule in schedules.values())
    if not named or not schedules:
        raise RuntimeArgumentError(f"expected schedules by their names, found {schedules!r}")


def arguments_of(schedule: Schedule) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
    """The inputs of a schedule, and its outputs."""
    state = schedule.state
    inputs = [tensor for stage in state.stages if stage.is_input for tensor in stage.tensors]
    return tuple(inputs), tuple(tensor for stage in state.outputs for tensor in state.stage(stage).tensors)


def _share_computes(entry: ScheduleEntry, made: Sequence[Pane], panes: dict[str, Pane]) -> ScheduleEntry:
    """Add the panes of a schedule to those of the page. Where it is of the compute of the first one, it has the first
    one's panes of that: so lines of two schedules belong together."""
    computes, start, *rest = made
    first = panes.get("0/compute"), panes.get("0/start")
    if None in first or (computes.lines, start.lines) != tuple(pane.lines for pane in first if pane):
        panes.update((pane.id, pane) for pane in made)
        return entry
    for pane in rest:
        panes[pane.id] = replace(pane, parent="0/start") if pane.parent == start.id else pane
    return replace(entry, compute="0/compute")


def _measured(
    shown: Document,
    schedules: Mapping[str, Schedule],
    target: Target,
    precision: Precision,
    peers: Mapping[str, Program],
) -> Document:
    """The document with times, where the kernels can run here and their shapes are known."""
    inputs, outputs = arguments_of(next(iter(schedules.values())))
    work = work_of(inputs, outputs)
    if work is None or why_not_here(target) is not None:
        return replace(shown, work=work)
    rng = np.random.default_rng(0)
    arrays = [random_array(tensor, rng) for tensor in (*inputs, *outputs)]
    kernels = _kernels(shown, schedules, target, precision)
    why_untimed = next((kernel.why_untimed for kernel in kernels.values()), "")
    if why_untimed:
        return replace(shown, work=work, subtitle=f"{shown.subtitle} · no times: {why_untimed}")
    bound = [kernel.bind(*arrays) for kernel in kernels.values()]
    calls = {str(n): peer_call(str(n), peer, inputs, arrays[: len(inputs)]) for n, peer in peers.items()}
    seconds, others = time_alternating(bound, calls)
    times = dict(zip(kernels, seconds, strict=True))
    return replace(
        shown,
        schedules=tuple(replace(entry, seconds=times.get(k)) for k, entry in enumerate(shown.schedules)),
        peers=tuple(Peer(n, s) for n, s in others.items()),
        work=work,
        machine=measure_rates(target, target.threads or default_threads()) if counts_as_float(inputs) else None,
    )


def _kernels(
    shown: Document, schedules: Mapping[str, Schedule], target: Target, precision: Precision
) -> dict[int, Kernel]:
    """The kernels of the first compute's schedules, by the numbers of these: others take other arrays."""
    kernels = {}
    for number, (entry, schedule) in enumerate(zip(shown.schedules, schedules.values(), strict=True)):
        if entry.compute == shown.schedules[0].compute:
            args = sum(arguments_of(schedule), ())
            compiled = compile_schedule(schedule, args, target, shown.title, CodegenOptions(precision=precision))
            kernels[number] = Kernel(compiled.func, compiled.code)
    return kernels


def _named(peers: object) -> Mapping[str, Program]:
    if peers is None:
        return {}
    if not isinstance(peers, Mapping):
        raise RuntimeArgumentError(f"peers are programs by their names, found {peers!r}")
    return peers

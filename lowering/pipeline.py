"""Lowering, from a schedule to the loop IR that code is emitted from: a flat list of passes, from top to bottom."""

from __future__ import annotations

import logging
import os
import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path

from ..base.brief import BriefRepr
from ..base.dataclass import dataclass
from ..base.errors import RuntimeArgumentError, ScheduleError, VerificationError
from ..base.quantities import seconds_text
from ..base.target import Target
from ..base.timing import TimedStage, timed
from ..ir.buffer import Buffer
from ..ir.build import make_buffer
from ..ir.contents import free_vars
from ..ir.expr import Var
from ..ir.origin import Nest, nest_of, with_origins
from ..ir.printer import func_text
from ..ir.simplify import FunctionSimplifier
from ..ir.stmt import PrimFunc, Stmt
from ..ir.verify import verify
from ..ir.visit import walk
from ..te.tensor import PlaceholderOp, Tensor
from .nest.realize import Realized, realize
from .passes.affine_indices import affine_indices
from .passes.flatten_buffers import flatten_buffers
from .passes.loop_partition import loop_partition
from .passes.name_quotients import name_quotients
from .passes.narrow_tails import narrow_tails
from .passes.promote_registers import promote_registers
from .passes.storage_rewrite import storage_rewrite
from .passes.unroll import unroll
from .passes.vectorize import vectorize
from .passes.whole_vectors import whole_vectors
from .schedule import Schedule

logger = logging.getLogger("loopwright.lowering")

Pass = Callable[[PrimFunc], PrimFunc]


def passes(target: Target | None, debug: bool = False) -> list[tuple[str, Pass]]:
    """The passes after realize, in order. ``target`` decides how many vector registers a loop may keep.

    The list is for one function: what simplifies it remembers what it has simplified.
    For ``debug`` builds there are none: their checks speak of the tensors and loops of the schedule, and run the
    iterations of each loop one after the other.
    """
    if debug:
        return []
    registers = 2 * target.vector_registers if target is not None else 64
    simplify = FunctionSimplifier()
    return [
        ("flatten_buffers", flatten_buffers),
        ("simplify", simplify),
        ("loop_partition", lambda func: loop_partition(func, simplifier=simplify)),
        ("affine_indices", affine_indices),
        ("narrow_tails", lambda func: narrow_tails(func, target) if target is not None else func),
        ("vectorize", lambda func: vectorize(func, simplify.facts_of(func))),
        ("whole_vectors", lambda func: whole_vectors(func, simplify.facts_of(func))),
        ("unroll", unroll),
        ("simplify", simplify),
        ("promote_registers", lambda func: promote_registers(func, simplify.facts_of(func), max_registers=registers)),
        ("storage_rewrite", storage_rewrite),
        ("simplify", simplify),
        ("name_quotients", lambda func: name_quotients(func, simplify.facts_of(func))),
    ]


@dataclass(frozen=True, slots=True, repr=False)
class PassRecord(BriefRepr):
    """What one pass did: seconds taken, and the function's text after it, None where it left the function unchanged;
    ``func`` is the function after it."""

    name: str
    seconds: float
    text: str | None
    func: PrimFunc = field(repr=False)

    def __str__(self) -> str:
        head = f"# {self.name}, {seconds_text(self.seconds)}"
        return f"{head}: unchanged" if self.text is None else f"{head}\n{self.text}\n"


def lower(
    schedule: Schedule,
    args: Sequence[Tensor],
    name: str = "main",
    target: Target | None = None,
    trace_passes: bool | list[PassRecord] = False,
    debug: bool = False,
) -> PrimFunc:
    """Lower a schedule to a function over the buffers of ``args``, in that order. A placeholder that no stage reads may
    be among them: its buffer is taken, and not touched.

    ``trace_passes`` True prints the function after each pass; a list collects ``PassRecord``s instead. The environment
    variable ``LOOPWRIGHT_DUMP_IR`` names a folder that gets one file a pass. ``debug`` is for debug builds.
    Raises ``ScheduleError`` where ``args`` leave out a tensor that is needed, or name one that is not there.
    """
    with TimedStage("realize") as stage:
        func = realized_function(schedule, args, name)
    trace = _Trace(name, trace_passes)
    trace.record("realize", stage.timing.seconds, func, changed=True)
    return _run_passes(func, target, debug, trace)


def lower_numbered(
    schedule: Schedule,
    args: Sequence[Tensor],
    name: str,
    target: Target,
    debug: bool = False,
    trace_passes: bool | list[PassRecord] = False,
) -> tuple[PrimFunc, Nest]:
    """Lower as ``lower`` does, but with loops and stores that know which ones of the nest they come from; see
    ``ir/origin.py``. The second value is that nest."""
    with TimedStage("realize") as stage:
        realized = realize(schedule.state)
        numbered = replace(realized, body=with_origins(realized.body))
        func = _function(schedule, args, name, numbered)
    trace = _Trace(name, trace_passes)
    trace.record("realize", stage.timing.seconds, func, changed=True)
    return _run_passes(func, target, debug, trace), nest_of(numbered.body, realized.loop_of)


def run_passes(func: PrimFunc, target: Target) -> PrimFunc:
    """The passes alone, for a function as ``realized_function`` makes it."""
    return _run_passes(func, target, False, _Trace(func.name, False))


def _run_passes(func: PrimFunc, target: Target | None, debug: bool, trace: _Trace) -> PrimFunc:
    """What the passes make of a function, which is verified before them and behind the last one; if it is wrong there,
    the error names the first pass behind which it is."""
    timed(verify, func, "realize")
    made = func
    for pass_name, run in passes(target, debug):
        with TimedStage(pass_name) as stage:
            new = run(made)
        trace.record(pass_name, stage.timing.seconds, new, changed=new is not made)
        made = new
    try:
        timed(verify, made)
    except VerificationError:
        for pass_name, run in passes(target, debug):
            func = run(func)
            verify(func, pass_name)
        raise
    return made


def realized_function(schedule: Schedule, args: Sequence[Tensor], name: str = "main") -> PrimFunc:
    """The function as it is before the passes."""
    _check_name(name)
    if not isinstance(schedule, Schedule):
        raise ScheduleError(f"expected what create_schedule gives, found {schedule!r}")
    return _function(schedule, args, name, realize(schedule.state))


def _function(schedule: Schedule, args: object, name: str, realized: Realized) -> PrimFunc:
    if isinstance(args, (str, Tensor)) or not isinstance(args, Iterable):
        raise ScheduleError(f"arguments are tensors, in a list, found {args!r}")
    args = tuple(args)
    params = _parameters(schedule, args, realized.buffers)
    written = {t for stage in schedule.state.outputs for t in schedule.state.stage(stage).tensors}
    outputs = tuple(b for t, b in zip(args, params, strict=True) if t in written)
    _check_dimensions(name, realized.body, params)
    return PrimFunc(name, params, realized.body, outputs, args)


def _check_name(name: object) -> None:
    if not isinstance(name, str) or not name.isidentifier() or not name.isascii():
        raise ScheduleError(f"a function's name must be an identifier, found {name!r}")


def _parameters(schedule: Schedule, args: Sequence[Tensor], buffers: Mapping[Tensor, Buffer]) -> tuple[Buffer, ...]:
    for arg in args:
        if not isinstance(arg, Tensor):
            raise ScheduleError(f"arguments are tensors, found {arg!r}")
        if _is_unused(arg, buffers):
            continue
        if arg not in buffers:
            raise ScheduleError(f"argument {arg!r} is not part of the schedule")
        stage = schedule.state.stage_of(arg)
        if not stage.is_input and stage.name not in schedule.state.outputs:
            raise ScheduleError(
                f"argument {arg!r} is computed on the way: name it in create_schedule to make it an output"
            )
    if len(set(args)) != len(args):
        raise ScheduleError("an argument is named twice")
    needed = [
        t
        for stage in schedule.state.stages
        if stage.is_input or stage.name in schedule.state.outputs
        for t in stage.tensors
    ]
    missing = [t.name for t in needed if t not in set(args)]
    if missing:
        raise ScheduleError(f"the arguments leave out {', '.join(missing)}: name all inputs and outputs")
    unused = {arg: make_buffer(arg.name, arg.shape, arg.dtype) for arg in args if _is_unused(arg, buffers)}
    return tuple({**buffers, **unused}[arg] for arg in args)


def _is_unused(arg: Tensor, buffers: Mapping[Tensor, Buffer]) -> bool:
    """Whether an argument is an input that nothing reads: the function takes its memory, and leaves it alone."""
    return arg not in buffers and isinstance(arg.op, PlaceholderOp)


def _check_dimensions(name: str, body: Stmt, params: tuple[Buffer, ...]) -> None:
    known = {v for b in params for e in b.shape for v in walk(e) if isinstance(v, Var)}
    unknown = [v.name for v in free_vars(body) if v not in known]
    if unknown:
        raise ScheduleError(
            f"{name}: the value of {', '.join(unknown)} is not known: a variable must stand in the shape of an argument"
        )


class _Trace:
    """Where the record of each pass goes. Mutable."""

    def __init__(self, name: str, wanted: bool | list[PassRecord]) -> None:
        self._name = name
        self._records = wanted if isinstance(wanted, list) else None
        self._prints = wanted is True
        folder = os.environ.get("LOOPWRIGHT_DUMP_IR")
        self._folder = Path(folder) if folder else None
        self._count = 0

    def record(self, pass_name: str, seconds: float, func: PrimFunc, changed: bool) -> None:
        logger.debug("%s: %s took %s%s", self._name, pass_name, seconds_text(seconds), "" if changed else ", unchanged")
        if self._records is None and not self._prints and self._folder is None:
            return
        record = PassRecord(pass_name, seconds, func_text(func) if changed else None, func)
        if self._records is not None:
            self._records.append(record)
        if self._prints:
            print(record)  # noqa: T201  asked for by trace_passes
        if self._folder is not None and record.text is not None:
            self._write(self._folder / f"{self._name}.{self._count:02}.{pass_name}.txt", record.text)
        self._count += 1

    @staticmethod
    def _write(path: Path, text: str) -> None:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            aside = path.with_name(f".{path.name}-{secrets.token_hex(8)}")
            with aside.open("x", encoding="utf-8") as file:  # never through a link that others may have put there
                file.write(text + "\n")
            aside.replace(path)
        except OSError as error:
            raise RuntimeArgumentError(f"LOOPWRIGHT_DUMP_IR: {path} cannot be written: {error.strerror}") from error

"""An executor runs one request at a time: it owns an arena, a set of threads, and their number.

Mutable: the arena and what is laid out in it. Whoever has taken the executor from its engine uses it alone.
"""

from __future__ import annotations

import math
import os
import struct
import time
from collections.abc import Callable, Sequence
from typing import Any, NoReturn, TypeAlias, TypeVar

import numpy as np

from ..artifact.extents import evaluate
from ..base.addresses import addresses_of
from ..base.aligned import ARENA_ALIGNMENT, PAGE_BYTES, aligned_empty
from ..base.dataclass import dataclass
from ..base.errors import OutOfMemoryError
from ..base.freed_memory import keep_freed
from ..base.quantities import bytes_text
from .arena import Arena
from .arrays import Array
from .dimensions import Plan, Shape, largest_arena, plan_text
from .executor_config import ExecutorConfig
from .functions.host_call import HostCall
from .growing_segments import GrowingSegments
from .loaded_model import LoadedModel
from .output_memory import KEPT_FROM, OutputMemory
from .outputs import RunOutputs
from .plans import MAX_PLANS, Plans
from .presented import presentation
from .signature import Signature, Values
from .staged_run import StagedRun
from .steps import step_calls, time_steps
from .threads.thread_pool import PoolLease

_CONTEXT = struct.Struct("q")
_LARGE = 4 * PAGE_BYTES
"""Of smaller outputs, what stores take at any address is less than it takes to find a better one."""
Claim: TypeAlias = Callable[[int, str], None]
"""Asks for so many bytes of what the model may take, in the place of those it had; the text says for what dimensions.
Raises ``OutOfMemoryError``."""
Place: TypeAlias = Callable[[Sequence[Shape | None]], Sequence[Array | None]]
"""Gives buffers for outputs of these shapes, None for those that the run is to allocate. A shape is None where only the
run knows it."""
Result = TypeVar("Result")


class Executor:
    """Runs a loaded model on arrays that are checked already."""

    def __init__(
        self, loaded: LoadedModel, signature: Signature, config: ExecutorConfig, lease: PoolLease | None, claim: Claim
    ) -> None:
        model = loaded.model
        self._claim = claim
        self._lease = lease  # the threads that the loaded code is linked to are its own as long as it lives
        self.config = config
        self._loaded = loaded
        self._entry = loaded.entry if not config.cores else self._pinned
        self._signature = signature
        self._segments = GrowingSegments(model.name, model.segments, self._claim_segments) if model.segments else None
        self._context = self._with_segments(context_of(config.threads or 1))
        self._symbolic = bool(model.dims)
        self._shown = presentation(model.forms) if model.forms else None
        self._grouped = signature.grouped_outputs
        self._plans = Plans(model)
        self._largest_arena = largest_arena(model)
        self._kinds = [spec.dtype.to_numpy() for spec in model.outputs]
        self._shapes: list[Shape] | None = None
        self._outputs: list[_Output | None] = []
        self._known: list[_Output] = []
        self._unknown: Sequence[None] = [None] * len(model.outputs)
        self._staged = StagedRun(loaded, self._claim_stages, self._segments) if model.is_staged else None
        self._other_bytes, self._dims_text = 0, ""
        self._arena = Arena(model.name)
        self._output_memory = OutputMemory()
        self._fixed = b""
        self._pack = struct.Struct(f"{len(model.inputs) + len(model.outputs)}q").pack
        if not self._symbolic:
            self._lay_out([tuple(evaluate(e, {}) for e in spec.shape) for spec in model.inputs])

    def __str__(self) -> str:
        cores = f" on cores {', '.join(map(str, self.config.cores))}" if self.config.cores else ""
        return (
            f"{self.config.threads} threads{cores}, an arena of {bytes_text(self.arena_bytes)}, "
            f"plans for {len(self._plans)} of at most {MAX_PLANS} sets of shapes"
        )

    @property
    def arena_bytes(self) -> int:
        """The memory that is held for intermediates, whether a run is on or not."""
        return self._grown_bytes + (self._arena.nbytes if self._staged is None else self._staged.nbytes)

    @property
    def held_bytes(self) -> int:
        """The memory that is held for intermediates and for outputs to come."""
        return self.arena_bytes + self._output_memory.nbytes

    @property
    def used_bytes(self) -> int:
        """What of that the last run needed."""
        return self._grown_bytes + (self._arena.used if self._staged is None else self._staged.used)

    @property
    def _grown_bytes(self) -> int:
        """The memory of segments that loops have grow, all of which counts as used."""
        return 0 if self._segments is None else self._segments.nbytes

    def trim(self) -> None:
        """Give back the memory for intermediates and outputs; the next run has it anew. No run may be on."""
        self._shapes = None
        self._arena.drop()
        self._output_memory.drop()
        if self._staged is not None:
            self._staged.trim()
        if self._segments is not None:
            self._segments.drop()
        self._claim(0, "")

    @property
    def hosts(self) -> tuple[HostCall, ...]:
        """The functions of Python that its runs call."""
        return tuple(self._loaded.hosts.values())

    def run(self, inputs: Sequence[Array], out: Values | None = None, context: bytes | None = None) -> RunOutputs:
        """The outputs: new arrays, in the forms that the model gives them, or the arrays of ``out``. ``context`` is the
        executor's, if not given."""
        context = self._context if context is None else self._with_segments(context)
        outputs = self._run(inputs, out, context)
        if self._segments is not None:
            self._segments.count_run()
        if out is not None or not (self._shown or self._grouped):
            return outputs
        return self._presented(outputs)

    def run_placed(self, inputs: Sequence[Array], place: Place, context: bytes | None = None) -> list[Array]:
        """All outputs, with those where ``place`` says; they may share memory with inputs."""
        context = self._context if context is None else self._with_segments(context)
        return self._run(inputs, _Placed(place), context)

    def _with_segments(self, context: bytes) -> bytes:
        """The context with the table of segments, if the model has any."""
        return context if self._segments is None else self._segments.context(context)

    def _run(self, inputs: Sequence[Array], out: Values | _Placed | None, context: bytes) -> RunOutputs:
        if self._shapes is None or (self._symbolic and [array.shape for array in inputs] != self._shapes):
            self._lay_out([array.shape for array in inputs])
        if self._staged is not None:
            return self._run_stages(self._staged, inputs, out, context)
        if self._arena.is_ample and self._arena.count_run():
            self._renew_arena([array.shape for array in inputs])
        outputs = self._fresh() if out is None else self._given(out, inputs)
        slots = self._pack(*addresses_of((*inputs, *outputs))) + self._fixed
        if code := self._entry(context, slots):
            self._fail(code, slots)
        return outputs

    def _fail(self, code: int, slots: bytes) -> NoReturn:
        """Raise the error of a run of one stage that left these slots."""
        cause = None if self._segments is None else self._segments.take_error()
        self._loaded.fail(code, numbers_of(slots), cause)

    def _presented(self, outputs: RunOutputs) -> RunOutputs:
        shown = outputs if self._shown is None else self._shown(outputs)
        values = shown if self._grouped is None else self._grouped.values(shown)
        return RunOutputs(values, self._signature.output_positions)

    def bind(self, inputs: Sequence[Array], outputs: RunOutputs | None) -> Callable[[], RunOutputs]:
        """A run on arrays that stay where they are, and are kept; of a model whose outputs only a run knows, each run
        gives new ones."""
        if outputs is None:
            return lambda: self.run(inputs)
        shapes = [array.shape for array in inputs]
        fixed: bytes | None = None
        slots, grouped = b"", self._grouped

        def run() -> RunOutputs:
            nonlocal fixed, slots
            if self._arena.is_ample and shapes == self._shapes and self._arena.count_run():
                self._renew_arena(shapes)
            if self._fixed is not fixed:  # the first run, or one on other shapes came between
                if shapes != self._shapes:
                    self._lay_out(shapes)
                fixed, slots = self._fixed, self._slots(inputs, outputs)
            if code := self._entry(self._context, slots):
                self._fail(code, slots)
            if self._segments is not None:
                self._segments.count_run()
            return outputs if grouped is None else RunOutputs(grouped.values(outputs), grouped.positions)

        return run

    def new_outputs(self, inputs: Sequence[Array]) -> RunOutputs | None:
        """Arrays for the outputs of a run on inputs of these shapes; None where only a run knows how large they are."""
        if self._staged is not None:
            return None
        if [array.shape for array in inputs] != self._shapes:
            self._lay_out([array.shape for array in inputs])
        return self._fresh()

    def time_steps(self, inputs: Sequence[Array]) -> tuple[float, ...]:
        """Seconds that each step takes by itself."""
        return self.by_steps(inputs, lambda calls, _: time_steps(calls))

    def seconds_in_code(self, run: Callable[[], object]) -> float:
        """Seconds that the compiled code takes of ``run``, which runs this executor."""
        entry, taken = self._entry, 0.0

        def timed(context: bytes, slots: bytes | int) -> int:
            nonlocal taken
            start = time.perf_counter()
            code = entry(context, slots)
            taken += time.perf_counter() - start
            return code

        self._entry = timed
        try:
            run()
        finally:
            self._entry = entry
        return taken

    def by_steps(
        self, inputs: Sequence[Array], look: Callable[[Sequence[Callable[[], None]], Sequence[int]], Result]
    ) -> Result:
        """What ``look`` gives for a function for each step, to be called in order, and the addresses and dimensions in
        the slots; of a model of several stages as a whole run leaves them."""
        outputs = self.new_outputs(inputs) or self.run(inputs)
        if self._staged is not None:
            slots = self._staged.slots
        else:
            slots = [slot for (slot,) in struct.iter_unpack("q", self._slots(inputs, outputs))]
        calls = step_calls(self._loaded, slots, self._context)
        found = self._on_cores(lambda: look(calls, slots))
        del outputs  # alive until here, since the steps wrote to them
        return found

    def _slots(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> bytes:
        return self._pack(*addresses_of((*inputs, *outputs))) + self._fixed

    def _pinned(self, context: bytes, slots: bytes | int) -> int:
        return self._on_cores(lambda: int(self._loaded.entry(context, slots)))

    def _on_cores(self, run: Callable[[], Result]) -> Result:
        """What ``run`` gives, with the calling thread on the executor's cores, if it has any; workers that it makes
        inherit them. No context manager: a KeyboardInterrupt on the way into its end would leave the thread there."""
        if not self.config.cores:
            return run()
        before = os.sched_getaffinity(0)
        try:
            os.sched_setaffinity(0, self.config.cores)
            return run()
        finally:
            os.sched_setaffinity(0, before)

    def _run_stages(
        self, staged: StagedRun, inputs: Sequence[Array], out: Values | _Placed | None, context: bytes
    ) -> RunOutputs:
        """A run that allocates what only it knows the size of."""
        buffers = self._known_outputs() if out is None else self._given(out, inputs)
        found = staged.run(self._entry, context, inputs, buffers, are_given=out is not None)
        return RunOutputs(found, self._signature.output_positions)

    def _fresh(self) -> RunOutputs:
        """New arrays for all outputs whose size is known."""
        try:
            return RunOutputs(
                [each.make(each.shape, each.kind) for each in self._known], self._signature.output_positions
            )
        except (MemoryError, ValueError):
            raise self._no_memory(self._known) from None

    def _no_memory(self, outputs: Sequence[_Output]) -> OutOfMemoryError:
        shown = ", ".join(str(each.shape) for each in outputs)
        return OutOfMemoryError(f"{self._loaded.model.name}: there is no memory for outputs of {shown}")

    def _known_outputs(self) -> Sequence[Array | None]:
        """New arrays for the outputs, None for those whose size only a run knows."""
        if not self._known:
            return self._unknown
        if len(self._known) == len(self._outputs):
            return self._fresh()
        made = iter(self._fresh())
        return [None if each is None else next(made) for each in self._outputs]

    def _given(self, out: Values | _Placed, inputs: Sequence[Array]) -> RunOutputs:
        """The callers' buffers; where they say where some outputs are to be, new arrays for the others."""
        signature = self._signature
        shapes = [None if each is None else each.shape for each in self._outputs]
        if isinstance(out, _Placed):
            return RunOutputs(self._completed(out.place(shapes)), signature.output_positions)
        return RunOutputs(signature.output_arrays(out, shapes, inputs), signature.output_positions)

    def _completed(self, buffers: Sequence[Array | None]) -> list[Any]:
        """The buffers, with new arrays in the place of those that are missing; None for what the run allocates."""
        completed = list(buffers)
        for number, each in enumerate(self._outputs):
            if completed[number] is None and each is not None:
                try:
                    completed[number] = each.make(each.shape, each.kind)
                except (MemoryError, ValueError):
                    raise self._no_memory([each]) from None
        return completed

    def _arena_bytes(self, plan: Plan) -> int:
        """The bytes that runs by this plan take for the arena; 0 where stages ask for theirs."""
        return 0 if self._staged is not None else max(self._arena.nbytes, self._arena_size(plan) + ARENA_ALIGNMENT)

    def _freed_bytes(self, plan: Plan) -> int:
        """The bytes that a run by this plan takes anew, and that are freed behind it: for outputs, and in kernels."""
        states = {state.output for state in self._loaded.model.states}  # sessions claim these
        shapes = enumerate(zip(plan.outputs, self._kinds, strict=True))
        outputs = sum(math.prod(s) * kind.itemsize for n, (s, kind) in shapes if s is not None and n not in states)
        return outputs + self._loaded.most_heap(plan.dims, self.config.threads or 1)

    def _arena_size(self, plan: Plan) -> int:
        """The bytes of the arena for a plan, and for all others at once, where dimensions have largest values."""
        return max(plan.arena_bytes, self._largest_arena)

    def _claim_stages(self, size: int) -> None:
        """Ask for the memory of stages and of the outputs that they allocate."""
        self._claim(self._other_bytes + self._grown_bytes + size, self._dims_text)

    def _claim_segments(self, size: int) -> None:
        """Ask for the memory of the segments that loops have grow."""
        staged = 0 if self._staged is None else self._staged.claimed
        self._claim(self._other_bytes + staged + size, self._dims_text)

    def _lay_out(self, shapes: list[Shape]) -> None:
        """What does not change between runs on these shapes: the outputs' shapes, and the slots of constants,
        intermediates and dimensions."""
        plan = self._plans.plan(tuple(shapes))
        self._shapes = None  # what a failure leaves behind is not taken for laid out
        freed = self._freed_bytes(plan)
        self._other_bytes, self._dims_text = self._arena_bytes(plan) + freed, plan_text(self._loaded.model, plan)
        if self._staged is not None:
            self._claim_stages(self._staged.claimed)
            self._staged.lay_out(plan.dims)
        else:
            self._claim_segments(self._grown_bytes)
            self._fixed = self._planned(plan)
        keep_freed(freed)
        self._outputs = [
            None if shape is None else _Output(self._allocator(shape, kind), shape, kind)
            for shape, kind in zip(plan.outputs, self._kinds, strict=True)
        ]
        self._known = [each for each in self._outputs if each is not None]
        self._output_memory.lay_out(each.nbytes for each in self._known)
        self._shapes = shapes

    def _allocator(self, shape: Shape, kind: np.dtype[Any]) -> Callable[..., Array]:
        """What makes a new output of this type."""
        size = math.prod(shape) * kind.itemsize
        if size >= KEPT_FROM:
            return self._output_memory.empty
        return aligned_empty if size >= _LARGE else np.empty

    def _renew_arena(self, shapes: list[Shape]) -> None:
        """Have no more memory than runs on these shapes need, in the place of more."""
        self._shapes = None
        self._arena.drop()
        self._lay_out(shapes)

    def _planned(self, plan: Plan) -> bytes:
        """The slots of constants, dimensions and intermediates, which lie in the arena."""
        arena = self._arena.reserve(self._arena_size(plan))
        places = (arena + offset for offset in plan.offsets)
        slots = (*self._loaded.constant_addresses, *plan.dims, *plan.derived, *places)
        return struct.pack(f"{len(slots)}q", *slots)


@dataclass(frozen=True, slots=True)
class _Placed:
    """What says where outputs are to be."""

    place: Place


@dataclass(frozen=True, slots=True)
class _Output:
    """What makes a new array for an output, by its shape and dtype."""

    make: Callable[..., Array]
    shape: Shape
    kind: np.dtype[Any]

    @property
    def nbytes(self) -> int:
        """The bytes of its elements."""
        return math.prod(self.shape) * self.kind.itemsize


def numbers_of(slots: bytes) -> list[int]:
    """The frame of a run as numbers."""
    return [number for (number,) in struct.iter_unpack("q", slots)]


def context_of(threads: int) -> bytes:
    """What the entry is told of a run: the most threads to use."""
    return _CONTEXT.pack(threads)

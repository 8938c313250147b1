"""An executor runs one request at a time: it owns an arena, a set of threads, and their number.

Mutable: the arena and what is laid out in it. Whoever has taken the executor from its engine uses it alone.
"""

from __future__ import annotations

import math
import os
import struct
import time
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, TypeVar

import numpy as np

from ..artifact.extents import evaluate
from ..artifact.model import slots_of
from ..base.aligned import ARENA_ALIGNMENT, PAGE_BYTES, aligned_empty
from ..base.errors import OutOfMemoryError
from ..base.quantities import bytes_text
from .arrays import Array, address_of, addresses_of
from .dimensions import MAX_PLANS, Plan, Plans, Shape, plan_text
from .executor_config import ExecutorConfig
from .functions.host_call import HostCall
from .loaded_model import LoadedModel
from .outputs import RunOutputs
from .signature import Signature, Values
from .steps import step_calls, time_steps
from .threads.thread_pool import PoolLease

_CONTEXT = struct.Struct("q")
_LARGE = 4 * PAGE_BYTES
"""Of smaller outputs, what stores take at any address is less than it takes to find a better one."""
Claim: TypeAlias = Callable[[int, str], None]
"""Asks for so many bytes of what the model may take, in the place of those it had; the text says for what dimensions.
Raises ``OutOfMemoryError``."""
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
        self._context = context_of(config.threads or 1)
        self._symbolic = bool(model.dims)
        self._plans = Plans(model)
        self._kinds = [spec.dtype.to_numpy() for spec in model.outputs]
        self._shapes: list[Shape] | None = None
        self._outputs: list[tuple[Callable[..., Array], Shape, np.dtype[Any]]] = []
        self._arena = np.empty(0, np.uint8)
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
        return self._arena.nbytes

    @property
    def hosts(self) -> tuple[HostCall, ...]:
        """The functions of Python that its runs call."""
        return tuple(self._loaded.hosts.values())

    def run(self, inputs: Sequence[Array], out: Values | None = None, context: bytes | None = None) -> RunOutputs:
        """The outputs: new arrays, or those of ``out``. ``context`` is the executor's, if not given."""
        if self._symbolic and [array.shape for array in inputs] != self._shapes:
            self._lay_out([array.shape for array in inputs])
        outputs = self._fresh() if out is None else self._given(out, inputs)
        slots = self._pack(*addresses_of((*inputs, *outputs))) + self._fixed
        if code := self._entry(context or self._context, slots):
            self._loaded.fail(code)
        return outputs

    def new_outputs(self, inputs: Sequence[Array]) -> RunOutputs:
        """Arrays for the outputs of a run on inputs of these shapes."""
        if [array.shape for array in inputs] != self._shapes:
            self._lay_out([array.shape for array in inputs])
        return self._fresh()

    def bind(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> Callable[[], None]:
        """A run on arrays that stay where they are, and are kept."""
        shapes = [array.shape for array in inputs]
        fixed: bytes | None = None
        slots = b""

        def run() -> None:
            nonlocal fixed, slots
            if self._fixed is not fixed:  # the first run, or one on other shapes came between
                if shapes != self._shapes:
                    self._lay_out(shapes)
                fixed, slots = self._fixed, self._slots(inputs, outputs)
            if code := self._entry(self._context, slots):
                self._loaded.fail(code)

        return run

    def time_steps(self, inputs: Sequence[Array]) -> tuple[float, ...]:
        """Seconds that each step takes by itself."""
        return self.by_steps(inputs, lambda calls, _: time_steps(calls))

    def seconds_in_code(self, run: Callable[[], object]) -> float:
        """Seconds that the compiled code takes of ``run``, which runs this executor."""
        entry, taken = self._entry, 0.0

        def timed(context: bytes, slots: bytes) -> int:
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
        """What ``look`` gives for a function for each step, to be called in order, and the addresses in the slots."""
        outputs = self.new_outputs(inputs)
        slots = [slot for (slot,) in struct.iter_unpack("q", self._slots(inputs, outputs))]
        calls = step_calls(self._loaded, slots, self._context)
        found = self._on_cores(lambda: look(calls, slots))
        del outputs  # alive until here, since the steps wrote to them
        return found

    def _slots(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> bytes:
        return self._pack(*addresses_of((*inputs, *outputs))) + self._fixed

    def _pinned(self, context: bytes, slots: bytes) -> int:
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

    def _fresh(self) -> RunOutputs:
        try:
            return RunOutputs(
                [make(shape, kind) for make, shape, kind in self._outputs], self._signature.output_positions
            )
        except (MemoryError, ValueError):
            shown = ", ".join(str(shape) for _, shape, _ in self._outputs)
            raise OutOfMemoryError(f"{self._loaded.model.name}: there is no memory for outputs of {shown}") from None

    def _given(self, out: Values, inputs: Sequence[Array]) -> RunOutputs:
        signature = self._signature
        arrays = signature.output_arrays(out, [shape for _, shape, _ in self._outputs], inputs)
        return RunOutputs(arrays, signature.output_positions)

    def _needed(self, plan: Plan) -> int:
        """The bytes that runs by this plan take beside the weights."""
        outputs = sum(math.prod(shape) * kind.itemsize for shape, kind in zip(plan.outputs, self._kinds, strict=True))
        arena = max(self._arena.nbytes, plan.arena_bytes + ARENA_ALIGNMENT)
        return arena + outputs + self._loaded.most_heap(plan.dims, self.config.threads or 1)

    def _lay_out(self, shapes: list[Shape]) -> None:
        """What does not change between runs on these shapes: the outputs' shapes, and the slots of constants,
        intermediates and dimensions."""
        plan = self._plans.plan(tuple(shapes))
        self._shapes = None  # what a failure leaves behind is not taken for laid out
        self._claim(self._needed(plan), plan_text(self._loaded.model, plan))
        if self._arena.nbytes < plan.arena_bytes + ARENA_ALIGNMENT:
            self._arena = np.empty(0, np.uint8)
            try:
                self._arena = np.empty(plan.arena_bytes + ARENA_ALIGNMENT, np.uint8)
            except MemoryError:
                raise OutOfMemoryError(f"{self._loaded.model.name}: there is no memory for its arena") from None
        arena = -(-address_of(self._arena) // ARENA_ALIGNMENT) * ARENA_ALIGNMENT
        places = [arena + offset for offset in plan.offsets]
        slots = slots_of((), self._loaded.constant_addresses, places, (*plan.dims, *plan.derived))
        self._fixed = struct.pack(f"{len(slots)}q", *slots)
        self._outputs = [
            (_allocator(shape, kind), shape, kind) for shape, kind in zip(plan.outputs, self._kinds, strict=True)
        ]
        self._shapes = shapes


def context_of(threads: int) -> bytes:
    """What the entry is told of a run: the most threads to use."""
    return _CONTEXT.pack(threads)


def _allocator(shape: Shape, kind: np.dtype[Any]) -> Callable[..., Array]:
    """What makes a new output of this type."""
    return aligned_empty if math.prod(shape) * kind.itemsize >= _LARGE else np.empty

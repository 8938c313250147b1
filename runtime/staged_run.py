"""Runs of models some extents of which are known only when a part has run: on a frame of their own, with the outputs
that the entry allocates.

Mutable: the frame. It belongs to one executor.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from struct import Struct
from typing import TypeAlias

import numpy as np

from ..artifact.extents import dimensions_in, evaluate
from .arrays import Array, address_of, addresses_of
from .growing_segments import GrowingSegments
from .loaded_model import LoadedModel
from .stage_memory import Claim, StageSegments, owned_array, release

Entry: TypeAlias = Callable[[bytes, int], int]


class StagedRun:
    """``run`` gives all outputs, those that stages allocate among them."""

    def __init__(self, loaded: LoadedModel, claim: Claim, growing: GrowingSegments | None) -> None:
        self._loaded = loaded
        model = loaded.model
        self._outputs = model.outputs
        self._segments = StageSegments(model, claim)
        self._growing = growing
        self._layout = model.layout
        self._kinds = [output.dtype.to_numpy() for output in model.outputs]
        frame = np.zeros(model.frame_slots, np.int64)
        self._frame_address = address_of(frame)
        self._frame = frame.data  # whose elements are read and written faster than an array's
        self._arrays = Struct(f"{len(model.inputs) + len(model.outputs)}q")
        needed = {dim for output in model.outputs for extent in output.shape for dim in dimensions_in(extent)}
        self._dim_slots = {dim: slot for slot, dim in model.numbers.items() if isinstance(dim, str) and dim in needed}
        self._born = frozenset(output.number for stage in model.body.stages for output in stage.outputs)

    @property
    def nbytes(self) -> int:
        """The memory that is held, whether a run is on or not."""
        return self._segments.nbytes

    @property
    def used(self) -> int:
        """What of that the last run needed."""
        return self._segments.used

    def trim(self) -> None:
        """Give all of it back; the next run has it anew."""
        self._segments.drop()

    @property
    def claimed(self) -> int:
        """The bytes that its memory and new outputs may take by now."""
        return self._segments.claimed

    @property
    def slots(self) -> list[int]:
        """The frame as the last run has left it."""
        return self._frame.tolist()

    def lay_out(self, dims: Sequence[int]) -> None:
        """Set what does not change between runs on these dimensions."""
        layout = self._layout
        fixed = (*self._loaded.constant_addresses, *dims, self._segments.table)
        for slot, number in enumerate(fixed, layout.tensors):
            self._frame[slot] = number

    def run(
        self, entry: Entry, context: bytes, inputs: Sequence[Array], buffers: Sequence[Array | None]
    ) -> list[Array]:
        """``buffers`` are those of the outputs, None for one to be allocated. One for an output whose size only the run
        knows may be larger: what comes back is a part of it."""
        outputs = [0 if buffer is None else address_of(buffer) for buffer in buffers]
        self._arrays.pack_into(self._frame, 0, *addresses_of(inputs), *outputs)
        self._segments.give(buffers)
        if code := entry(context, self._frame_address):
            release([self._frame[self._layout.output(k)] for k in self._born if buffers[k] is None])
            cause = self._segments.take_error() or (None if self._growing is None else self._growing.take_error())
            self._loaded.fail(code, self.slots, cause)
        return self._results(buffers)

    def _results(self, buffers: Sequence[Array | None]) -> list[Array]:
        frame = self._frame
        dims = {dim: frame[slot] for dim, slot in self._dim_slots.items()}
        results: list[Array] = []
        for number, (spec, buffer) in enumerate(zip(self._outputs, buffers, strict=True)):
            if buffer is not None and number not in self._born:
                results.append(buffer)
                continue
            shape = tuple([evaluate(extent, dims) for extent in spec.shape])
            if buffer is None:
                results.append(owned_array(frame[self._layout.output(number)], shape, self._kinds[number]))
            else:
                results.append(buffer.reshape(-1)[: prod(shape)].reshape(shape))
        return results

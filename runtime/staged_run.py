"""Runs of models some extents of which are known only when a part has run: on a frame of their own, with the outputs
that the entry asks memory for.

Mutable: the frame. It belongs to one executor.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from operator import itemgetter
from struct import Struct
from typing import TypeAlias

import numpy as np

from ..artifact.extents import Extent, dimensions_in, evaluate
from ..base.addresses import address_of, addresses_of
from .arrays import Array
from .dimensions import Shape
from .growing_segments import GrowingSegments
from .loaded_model import LoadedModel
from .stage_memory import Claim, StageSegments

Entry: TypeAlias = Callable[[bytes, int], int]
_Frame: TypeAlias = "memoryview[int]"


class StagedRun:
    """``run`` gives all outputs, those that stages have memory for among them."""

    def __init__(self, loaded: LoadedModel, claim: Claim, growing: GrowingSegments | None) -> None:
        self._loaded = loaded
        model = loaded.model
        self._segments = StageSegments(model, claim)
        self._growing = growing
        self._layout = model.layout
        frame = np.zeros(model.frame_slots, np.int64)
        self._frame_address = address_of(frame)
        self._frame: _Frame = frame.data  # whose elements are read and written faster than an array's
        self._arrays = Struct(f"{len(model.inputs) + len(model.outputs)}q")
        slots = {dim: slot for slot, dim in model.numbers.items() if isinstance(dim, str)}
        born = [output.number for stage in model.body.stages for output in stage.outputs]
        places = {number: place for place, number in enumerate(born)}
        self._born = [
            (places.get(number, -1), _shape_reader(output.shape, slots)) for number, output in enumerate(model.outputs)
        ]
        self._all_known = not born

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
        self,
        entry: Entry,
        context: bytes,
        inputs: Sequence[Array],
        buffers: Sequence[Array | None],
        are_given: bool = False,
    ) -> list[Array]:
        """``buffers`` are those of the outputs, None for one whose size only the run knows, unless they ``are_given``
        by a caller: such a one may be larger, and what comes back is a part of it."""
        frame, segments = self._frame, self._segments
        known = [buffer for buffer in buffers if buffer is not None]
        if self._all_known:
            self._arrays.pack_into(frame, 0, *addresses_of((*inputs, *known)))
        else:
            outputs = [0 if buffer is None else address_of(buffer) for buffer in buffers]
            self._arrays.pack_into(frame, 0, *addresses_of(inputs), *outputs)
        if are_given:
            segments.give(buffers)
        else:
            segments.give_new()
        if code := entry(context, self._frame_address):
            segments.forget_large()
            cause = segments.take_error() or (None if self._growing is None else self._growing.take_error())
            self._loaded.fail(code, self.slots, cause)
        if self._all_known:
            return known
        results: list[Array] = []
        for (place, shape_in), buffer in zip(self._born, buffers, strict=True):
            if buffer is None:
                results.append(segments.taken(place, shape_in(frame)))
            elif place < 0:
                results.append(buffer)
            else:
                shape = shape_in(frame)
                results.append(buffer.reshape(-1)[: prod(shape)].reshape(shape))
        return results


def _shape_reader(shape: Sequence[Extent], slots: Mapping[str, int]) -> Callable[[_Frame], Shape]:
    """What reads a shape from the frame of a run; ``slots`` are those of dimensions."""
    names = [extent for extent in shape if isinstance(extent, str)]
    numbers = [extent for extent in shape if isinstance(extent, int)]
    if len(names) == len(shape) > 1:
        return itemgetter(*(slots[name] for name in names))
    if len(names) + len(numbers) == len(shape):
        parts = [(extent, -1) if isinstance(extent, int) else (0, slots[str(extent)]) for extent in shape]
        return lambda frame: tuple([number if slot < 0 else frame[slot] for number, slot in parts])
    needed = {dim: slots[dim] for extent in shape for dim in dimensions_in(extent)}

    def evaluated(frame: _Frame) -> Shape:
        dims = {dim: frame[slot] for dim, slot in needed.items()}
        return tuple([evaluate(extent, dims) for extent in shape])

    return evaluated

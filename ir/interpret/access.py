"""Loads and stores of the interpreter: where an access goes, and whether it may.

An ``Access`` is made once per Load or Store while the program is compiled; it finds all it needs (indices, extents,
strides, mask, memory) in slots of the frame.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from ...base.dataclass import dataclass
from ...base.errors import InterpretError
from ..buffer import Buffer
from ..faults import at_place, out_of_bounds
from .memory import Memory, Race, RaceTracker
from .values import from_memory

if TYPE_CHECKING:
    from ...base.dtype import DType
    from ..expr import Load
    from ..stmt import Stmt, Store

Frame: TypeAlias = list[Any]
"""The values of one call of a function, by slot. Slot 0 holds the list of running race trackers."""


@dataclass(frozen=True, slots=True)
class Site:
    """A place in the program, for messages: its statement, and the loops around it with their variables' slots."""

    statement: Stmt
    loops: tuple[tuple[str, int], ...]

    def error(self, frame: Frame, message: str) -> InterpretError:
        """An error at this place, with the current values of the loops around it."""
        loops = [(name, str(frame[slot])) for name, slot in self.loops]
        return InterpretError(at_place(message, self.statement, loops))


@dataclass(frozen=True, slots=True, eq=False)
class Access:
    """One Load or Store. ``dims`` has a triple of slots per dimension: index, extent, stride.

    ``is_vector`` says that the index has lanes: of a buffer of vectors, the index is scalar.
    """

    node: Load | Store
    dtype: DType
    site: Site
    memory: int
    offset: int
    dims: tuple[tuple[int, int, int], ...]
    mask: int | None
    is_vector: bool

    @property
    def buffer(self) -> Buffer:
        """The buffer that is loaded from or stored to."""
        return self.node.buffer

    def load(self, frame: Frame) -> Any:
        """The value at the indices that the frame holds; lanes that the mask leaves out are 0. Raises
        ``InterpretError`` for an element out of bounds, never written, or written by another iteration of a parallel
        or vectorized loop."""
        memory: Memory = frame[self.memory]
        if self.is_vector:
            lanes = self._active_lanes(frame)
            elements = [self._element(frame, memory, lane) for lane in lanes]
            for element in elements:
                self._check_read(frame, memory, element)
            result = self._zeros()
            result[lanes] = from_memory(self.dtype, memory.array[elements])
            return result
        if self.mask is not None and not frame[self.mask]:
            return self._zeros()[()] if self.dtype.lanes == 1 else self._zeros()
        element = self._element(frame, memory, None)
        self._check_read(frame, memory, element)
        return from_memory(self.dtype, memory.array[element])

    def store(self, frame: Frame, value: Any) -> None:
        """Write a value at the indices that the frame holds, in the lanes that the mask leaves in. Raises
        ``InterpretError`` for an element out of bounds, in memory that is not writable, touched by another iteration of
        a parallel or vectorized loop, or written by two lanes of this store."""
        memory: Memory = frame[self.memory]
        if not self.is_vector:
            if self.mask is None or frame[self.mask]:
                self._write(frame, memory, self._element(frame, memory, None), value)
            return
        lanes = self._active_lanes(frame)
        elements = [self._element(frame, memory, lane) for lane in lanes]
        owners: dict[int, int] = {}
        for lane, element in zip(lanes, elements, strict=True):
            first = owners.setdefault(element, lane)
            if first != lane:
                where = self._indices_text(frame, lane)
                raise self.site.error(frame, f"race: lanes {first} and {lane} of one store write {where}")
            self._write(frame, memory, element, value[lane])

    def _zeros(self) -> Any:
        shape = self.dtype.lanes if self.dtype.lanes > 1 else ()
        return np.zeros(shape, object if self.dtype.is_index else self.dtype.to_numpy())

    def _active_lanes(self, frame: Frame) -> list[int]:
        lanes = range(self.dtype.lanes)
        return list(lanes) if self.mask is None else [k for k in lanes if frame[self.mask][k]]

    def _indices(self, frame: Frame, lane: int | None) -> Iterable[int]:
        for slot, _, _ in self.dims:
            index = frame[slot]
            yield index if lane is None or isinstance(index, int) else index[lane]

    def _element(self, frame: Frame, memory: Memory, lane: int | None) -> int:
        """The element of the memory that the access touches, in bounds of the buffer and of the memory."""
        element: int = frame[self.offset]
        for slot, extent, stride in self.dims:
            index = frame[slot]
            if lane is not None and not isinstance(index, int):
                index = index[lane]
            if not 0 <= index < frame[extent]:
                raise self._out_of_bounds(frame, lane)
            element += index * frame[stride]
        if not 0 <= element < len(memory.array):
            raise self.site.error(
                frame,
                f"out of bounds: {self._indices_text(frame, lane)} is element {element} of its memory, "
                f"which has {len(memory.array)}; {self.buffer.name} is a view with shape {self._shape_text(frame)}",
            )
        return element

    def _check_read(self, frame: Frame, memory: Memory, element: int) -> None:
        if memory.written is not None and not memory.written[element]:
            where = self._where(frame, memory, element)
            raise self.site.error(frame, f"read of memory never written: {where}")
        trackers: list[RaceTracker] = frame[0]
        if len(trackers) > memory.depth:
            for tracker in trackers[memory.depth :]:
                try:
                    tracker.read(memory, element)
                except Race as race:
                    raise self._race(frame, memory, element, race, "reads") from None

    def _write(self, frame: Frame, memory: Memory, element: int, value: Any) -> None:
        if not memory.writable:
            raise self.site.error(frame, f"store into {self.buffer.name}, whose array is read-only")
        trackers: list[RaceTracker] = frame[0]
        if len(trackers) > memory.depth:
            for tracker in trackers[memory.depth :]:
                try:
                    tracker.write(memory, element)
                except Race as race:
                    raise self._race(frame, memory, element, race, "writes") from None
        memory.array[element] = value
        if memory.written is not None:
            memory.written[element] = True

    def _out_of_bounds(self, frame: Frame, lane: int | None) -> InterpretError:
        indices = enumerate(self._indices(frame, lane))
        dimension, extent = next((k, frame[self.dims[k][1]]) for k, i in indices if not 0 <= i < frame[self.dims[k][1]])
        found = [str(index) for index in self._indices(frame, lane)]
        shape = [str(frame[slot]) for _, slot, _ in self.dims]
        lane_text = None if lane is None else str(lane)
        message = out_of_bounds(self.node, found, shape, str(dimension), str(extent), lane_text)
        return self.site.error(frame, message)

    def _race(self, frame: Frame, memory: Memory, element: int, race: Race, does: str) -> InterpretError:
        did = "wrote" if race.wrote else "read"
        return self.site.error(
            frame,
            f"race: {race.tracker.label} {race.tracker.iteration} {does} {self._where(frame, memory, element)}, "
            f"which {race.tracker.label} {race.other} {did}",
        )

    def _where(self, frame: Frame, memory: Memory, element: int) -> str:
        """The indices that lead to the element, found by trying the lanes."""
        lanes = self._active_lanes(frame) if self.is_vector else [None]
        lane = next(k for k in lanes if self._element(frame, memory, k) == element)
        return self._indices_text(frame, lane)

    def _indices_text(self, frame: Frame, lane: int | None) -> str:
        return f"{self.buffer.name}[{', '.join(map(str, self._indices(frame, lane)))}]"

    def _shape_text(self, frame: Frame) -> str:
        return "(" + ", ".join(str(frame[extent]) for _, extent, _ in self.dims) + ")"

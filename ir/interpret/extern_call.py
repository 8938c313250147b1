"""Calls of functions of C in the interpreter: their references in Python run instead, on copies of their regions.

Each element of a region counts as an access, which is checked like any other. What a function is to write comes to its
reference as NaN, or -1, so that a reference, or a declaration, that is wrong shows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from ...base.dataclass import dataclass
from ...base.errors import InterpretError
from ..build import buffer_strides
from ..extern import ExternFunction, ExternParam, Region
from ..faults import region_out_of_bounds
from ..stmt import CallExtern
from .access import Frame, Site
from .compile import ExprCompiler, run
from .memory import Memory, Race

Elements = npt.NDArray[np.int64]


def extern_call(compiler: ExprCompiler, call: CallExtern) -> Callable[[Frame], None]:
    """The call as a closure. Raises ``InterpretError`` when it runs, where the function has no reference."""
    args = list(zip(call.args, call.function.params, strict=True))
    boxes = [_Box.compiled(compiler, a, p, call.function) for a, p in args if isinstance(a, Region)]
    scalars = [compiler.evaluator(a) for a, _ in args if not isinstance(a, Region)]
    site, reference = compiler.site(), call.function.reference

    def execute(frame: Frame) -> None:
        if reference is None:
            symbol = call.function.symbol
            problem = f"{symbol} is a function of C without a reference in Python, so that it cannot be interpreted"
            raise site.error(frame, f"{problem}: give extern_function its `reference`")
        elements = [box.elements(frame) for box in boxes]
        _require_apart(frame, boxes, elements)
        arrays = [box.read(frame, found) for box, found in zip(boxes, elements, strict=True)]
        numbers, regions = iter([evaluate(frame) for evaluate in scalars]), iter(arrays)
        reference(*(next(regions) if p.is_region else _number(next(numbers)) for _, p in args))
        for box, found, array in zip(boxes, elements, arrays, strict=True):
            box.write(frame, found, array)

    return execute


def _number(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


@dataclass(frozen=True, slots=True)
class _Box:
    """One region of a call; its numbers are found in slots of the frame, after ``code`` has run."""

    region: Region
    param: ExternParam
    function: ExternFunction
    site: Site
    memory: int
    code: Any
    slots: tuple[tuple[int, ...], ...]
    offset: int

    @staticmethod
    def compiled(compiler: ExprCompiler, region: Region, param: ExternParam, function: ExternFunction) -> _Box:
        buffer, strides = region.buffer, buffer_strides(region.buffer)
        steps = strides if region.strides is None else region.strides
        parts = (region.begin, buffer.shape, strides, region.extents, steps)
        code, found = compiler.program([*(e for part in parts for e in part), buffer.elem_offset])
        numbers = iter(found)
        slots = tuple(tuple(next(numbers) for _ in part) for part in parts)
        memory = compiler.memory_slot(buffer)
        return _Box(region, param, function, compiler.site(), memory, code, slots, next(numbers))

    def elements(self, frame: Frame) -> Elements:
        """The numbers of the region's elements in its memory, all in bounds, in the shape of its box."""
        run(self.code, frame)
        begin, shape, strides, extents, steps = ([frame[slot] for slot in part] for part in self.slots)
        if any(extent <= 0 for extent in extents):
            return np.empty([max(extent, 0) for extent in extents], np.int64)
        if self.region.strides is None:
            for k, (low, count, extent) in enumerate(zip(begin, extents, shape, strict=True)):
                if low < 0 or low + count > extent:
                    raise self._out_of_bounds(frame, begin, extents, shape, k)
        first: int = frame[self.offset] + sum(i * s for i, s in zip(begin, strides, strict=True))
        found = np.full(extents, first, np.int64)
        for axis, step in enumerate(steps):
            found += np.arange(extents[axis]).reshape([-1 if k == axis else 1 for k in range(len(steps))]) * step
        size = len(frame[self.memory].array)
        if found.min() < 0 or found.max() >= size:
            problem = f"elements {found.min()} to {found.max()} of its memory, which has {size}"
            raise self._error(frame, f"out of bounds: {self.function.symbol} reaches {problem}")
        return found

    def read(self, frame: Frame, elements: Elements) -> npt.NDArray[Any]:
        """What the function finds in the region."""
        memory: Memory = frame[self.memory]
        if self.param.passing == "write":
            unknown = np.full((*elements.shape, memory.array.itemsize), 0xFF, np.uint8)
            return unknown.view(memory.array.dtype)[..., 0]
        for element in map(int, elements.flat):
            if memory.written is not None and not memory.written[element]:
                raise self._error(frame, f"{self.function.symbol} reads memory never written: {self._name(element)}")
            self._track(frame, memory, element, "reads")
        return memory.array[elements]

    def write(self, frame: Frame, elements: Elements, values: npt.NDArray[Any]) -> None:
        """Put back what the function has written."""
        memory: Memory = frame[self.memory]
        if self.param.passing == "read":
            return
        if not memory.writable:
            raise self._error(frame, f"{self.function.symbol} writes {self.region.buffer.name}, which is read-only")
        for element in map(int, elements.flat):
            self._track(frame, memory, element, "writes")
            if memory.written is not None:
                memory.written[element] = True
        memory.array[elements] = values

    def _track(self, frame: Frame, memory: Memory, element: int, does: str) -> None:
        for tracker in frame[0][memory.depth :]:
            try:
                (tracker.read if does == "reads" else tracker.write)(memory, element)
            except Race as race:
                did = "wrote" if race.wrote else "read"
                here, other = f"{tracker.label} {tracker.iteration}", f"{tracker.label} {race.other}"
                message = f"race: in {here} {self.function.symbol} {does} {self._name(element)}, which {other} {did}"
                raise self._error(frame, message) from None

    def _name(self, element: int) -> str:
        return f"element {element} of {self.region.buffer.name}"

    def _out_of_bounds(
        self, frame: Frame, begin: list[int], extents: list[int], shape: list[int], dimension: int
    ) -> InterpretError:
        found = [(str(low), str(low + count)) for low, count in zip(begin, extents, strict=True)]
        extent, sizes = str(shape[dimension]), [str(size) for size in shape]
        return self._error(
            frame, region_out_of_bounds(self.function, self.region, found, sizes, str(dimension), extent)
        )

    def _error(self, frame: Frame, message: str) -> InterpretError:
        return self.site.error(frame, message)


def _require_apart(frame: Frame, boxes: list[_Box], elements: list[Elements]) -> None:
    """What a call writes is in no other of its regions: code behind the symbol may rely on it."""
    for k, box in enumerate(boxes):
        for other, found in zip(boxes[k + 1 :], elements[k + 1 :], strict=True):
            only_read = box.param.passing == other.param.passing == "read"
            if only_read or frame[box.memory] is not frame[other.memory]:
                continue
            shared = np.intersect1d(elements[k], found)
            if shared.size:
                name = f"element {shared[0]} of {box.region.buffer.name}"
                raise box.site.error(frame, f"{box.function.symbol} writes {name}, which two of its arguments share")

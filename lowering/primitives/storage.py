"""Primitives that say how a stage's elements lie in memory: set_scope, storage_align, transform_layout.

They speak of memory of our own: inputs and outputs are the caller's, and lie as the caller has them.
"""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType
from typing import ClassVar, cast, get_args

from ...base.choices import is_one_of
from ...base.dataclass import dataclass
from ...base.errors import ScheduleError
from ...ir.buffer import Scope
from ..index_map import index_map
from ..nest.scans import scan_of
from ..report import schedule_error
from ..stage import Inlined, Stage, StrideAlignment
from ..state import ScheduleState
from ..step import StageStep

MAX_ALIGNMENT = 4096
"""Largest factor of ``storage_align``, in elements."""


def check_scope(scope: str) -> Scope:
    """The scope of that name."""
    if not is_one_of(scope, Scope):
        raise ScheduleError(f"there is no scope {scope!r}; there are {', '.join(get_args(Scope))}")
    return cast(Scope, scope)


def _own_memory(state: ScheduleState, name: str, verb: str) -> Stage:
    """The stage, after a check that its memory is neither the caller's nor nowhere."""
    stage = state.stage(name)
    if stage.is_input:
        problem, advice = "is an input, whose memory is the caller's", "Take a copy of it that cache_read makes."
    elif stage.name in state.outputs:
        problem, advice = (
            "is an output, whose memory is the caller's",
            "Take the stage that cache_write puts before it.",
        )
    elif (scan := scan_of(state, stage)) is not None:
        problem, advice = f"has no memory but that of the scan {scan.name}", f"Say it of {scan.name}."
    elif isinstance(stage.place, Inlined):
        problem, advice = "is inlined: it has no memory", f"s[{name!r}].compute_root() takes the inlining back."
    else:
        return stage
    raise schedule_error(state, f"cannot {verb} {name}: it {problem}", advice)


def _laid_out_by_loops(state: ScheduleState, name: str, verb: str) -> Stage:
    """The stage, after a check that only loops of computes write and read it: others know where its elements lie."""
    stage = _own_memory(state, name, verb)
    others = [s.name for s in (stage, *state.consumers(stage)) if not s.is_compute]
    if others:
        raise schedule_error(
            state,
            f"cannot {verb} {name}: {others[0]} is an extern or a scan, which reads and writes elements where they are",
            f"Put a copy between: cache_read({name!r}, …) for its other readers.",
        )
    return stage


@dataclass(frozen=True, slots=True, repr=False)
class SetScope(StageStep):
    """Say in which kind of memory a stage's elements are kept.

    Arguments: ``scope``. ``"global"`` is the heap; ``"local"`` the stack, if the size is constant and at most 16 KiB,
    else the heap; ``"register"`` a small array of its own for each place in the nest, of at most 256 elements, which
    stays in registers where all subscripts are constants in the end, by unrolling and vectorizing; ``"tile"`` registers
    that hold small matrices, of a block that tensor intrinsics of ``ir/tiles.py`` access, and nothing else. A stage
    without a scope is ``"local"``.
    Preconditions: the stage is no input, no output, and not inlined.

    Rewrite, ``s[B].set_scope("global")``::

        B: float32[8] = allocate('local')   →   B: float32[8] = allocate('global')
    """

    primitive: ClassVar[str] = "set_scope"

    scope: str

    def apply(self, state: ScheduleState) -> ScheduleState:
        stage = _own_memory(state, self.stage, "set_scope")
        return state.with_stage(replace(stage, scope=check_scope(self.scope)))


@dataclass(frozen=True, slots=True, repr=False)
class StorageAlign(StageStep):
    """Pad a stage's memory so that the stride of a dimension is a multiple of a factor, plus an offset.

    Rows that begin on cache lines, or that do not all fall into the same cache sets. ``dim`` counts the dimensions of
    the memory, after transform_layout if there is one; ``factor`` and ``offset`` count elements.
    Preconditions: the stage is no input, no output, and not inlined; ``dim`` is not the last dimension, whose elements
    stay side by side; ``0 <= offset < factor <= 4096``.

    Rewrite, ``s[B].storage_align(0, factor=16)``::

        B: float32[4, 9] = allocate('local')   →   B: float32[4, 9, strides=(16, 1)] = allocate('local')
    """

    primitive: ClassVar[str] = "storage_align"

    dim: int
    factor: int
    offset: int = 0

    def apply(self, state: ScheduleState) -> ScheduleState:
        stage = _laid_out_by_loops(state, self.stage, "storage_align")
        rank = len(stage.layout.results) if stage.layout is not None else stage.tensors[0].ndim
        if type(self.dim) is not int or not 0 <= self.dim < rank - 1:
            wanted = f"0 to {rank - 2}" if rank > 1 else "none, for it has a single row"
            raise schedule_error(
                state,
                f"storage_align of {stage.name}: there is no stride to choose for dimension {self.dim!r}; "
                f"dimensions of which there is: {wanted}",
                "Give the number of a dimension before the last, whose elements stay side by side.",
            )
        numbers = type(self.factor) is int and type(self.offset) is int
        if not numbers or not 0 <= self.offset < self.factor <= MAX_ALIGNMENT:
            raise schedule_error(
                state,
                f"storage_align of {stage.name}: expected integers with 0 <= offset < factor <= {MAX_ALIGNMENT}, "
                f"found factor {self.factor!r} and offset {self.offset!r}",
                "For rows that begin on cache lines of 64 bytes, the factor is 16 for float32.",
            )
        alignments = {**stage.alignments, self.dim: StrideAlignment(self.factor, self.offset)}
        return state.with_stage(replace(stage, alignments=MappingProxyType(alignments)))


@dataclass(frozen=True, slots=True, repr=False)
class TransformLayout(StageStep):
    """Choose where each element of a stage is stored. The loops stay as they are.

    Arguments: ``index_map``, a function of the indices or its text, that gives the indices in memory. It is made of the
    indices, integers, ``+ - * // %``; what it divides by are positive constants. Of a stage computed at a loop, indices
    count from the first element that is computed there. Memory has room for the box of all results: where a divisor
    does not divide the extent, there is padding.
    Preconditions: the stage is no input, no output, and not inlined; no storage_align came before; no result is
    negative, and no two elements get one place. That is proved for maps that write down the digits of the indices,
    whatever the extents; others are tried out, for constant extents and at most 65536 elements.

    Rewrite, ``s[B].transform_layout(lambda i, j: (j // 4, i, j % 4))``::

        B: float32[6, 8] = allocate('local')          B: float32[2, 6, 4] = allocate('local')
        for i in range(6):                       →    for i in range(6):
            for j in range(8):                            for j in range(8):
                B[i, j] = …                                   B[j // 4, i, j % 4] = …
    """

    primitive: ClassVar[str] = "transform_layout"

    index_map: str

    def apply(self, state: ScheduleState) -> ScheduleState:
        stage = _laid_out_by_loops(state, self.stage, "transform_layout")
        if stage.alignments:
            raise schedule_error(
                state,
                f"cannot transform_layout {stage.name}: storage_align has chosen strides of its layout as it is",
                "Call transform_layout first, then storage_align.",
            )
        try:
            layout = index_map(self.index_map, stage.tensors[0].ndim)
        except ScheduleError as error:
            advice = "An index map is such as lambda i, j: (i // 8, j, i % 8)."
            raise schedule_error(state, f"cannot transform_layout {stage.name}: {error}", advice) from None
        return state.with_stage(replace(stage, layout=layout))

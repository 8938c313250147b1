"""What native functions of control flow are emitted from, as plain data: numbers of arguments and slots, and formulas.

A function takes, as a kernel does, addresses of operands and results, of a workspace last, and the values of
dimensions. A body has slots for its values, as a model has, and is run in stages as one: slots of parameters and
results are bound by what is around it, the others are addresses in the workspace, or extents.
"""

from __future__ import annotations

from collections.abc import Mapping

from ...artifact.extents import Extent
from ...base.dataclass import dataclass

NUMBER_OFFSET, CONDITION_OFFSET, HEAD_BYTES = 0, 8, 64
"""Where the number of the iteration, an int64, and the condition that the body gave stand in a loop's workspace; and
the bytes of what stands there."""


@dataclass(frozen=True, slots=True)
class BodyCall:
    """A call of a kernel: its symbol, the slots of the body that hold its arguments, and ``messages``, the texts of its
    errors 1, 2, …; a function that is ``foreign`` returns numbers of its own."""

    symbol: str
    operands: tuple[int, ...]
    messages: tuple[str, ...]
    foreign: bool = False


@dataclass(frozen=True, slots=True)
class BodyBirth:
    """Numbers that become dimensions: int64, one behind the other, at the address in slot ``values``. Of each its name,
    the most that it may be, and what is said where it is negative or more."""

    values: int
    dims: tuple[tuple[str, Extent, str], ...]


@dataclass(frozen=True, slots=True)
class BodyMemory:
    """A segment that the values of a stage lie in, and how many bytes they take."""

    segment: int
    size: Extent


@dataclass(frozen=True, slots=True)
class BodyPlace:
    """Where a value of a body lies: an offset in the segment of a stage, by the stage's number, or, where that is None,
    in the workspace."""

    stage: int | None
    offset: Extent


@dataclass(frozen=True, slots=True)
class BodyStage:
    """What a body runs when ``births`` are known, and the slots that are filled then: of values by their ``places``,
    and of ``extents``. ``checks`` are extents that may not be negative, with what is said of them otherwise.
    ``memory`` is that of a stage which nothing bounds; None where its values lie in the workspace."""

    births: tuple[BodyBirth, ...]
    memory: BodyMemory | None
    places: Mapping[int, BodyPlace]
    extents: Mapping[int, Extent]
    checks: tuple[tuple[Extent, str], ...]
    calls: tuple[BodyCall, ...]


@dataclass(frozen=True, slots=True)
class BodyCode:
    """The stages of a body, the first of which has no births, and the slots of its parameters and results."""

    params: tuple[int, ...]
    results: tuple[int, ...]
    stages: tuple[BodyStage, ...]


@dataclass(frozen=True, slots=True)
class IfCode:
    """Arguments by number: the condition, what the parameters of both bodies are, and the results."""

    condition: int
    operands: tuple[int, ...]
    results: tuple[int, ...]
    bodies: tuple[BodyCode, ...]


@dataclass(frozen=True, slots=True)
class CarriedCode:
    """A carried value: the arguments that hold its first and its last value, of ``size`` bytes, and the offset of its
    second buffer in the workspace."""

    first: int
    last: int
    second: Extent
    size: Extent


@dataclass(frozen=True, slots=True)
class RowsCode:
    """An argument whose rows of ``size`` bytes are read or written one by one, from the last one on if ``reverse``."""

    argument: int
    size: Extent
    reverse: bool


@dataclass(frozen=True, slots=True)
class LoopCode:
    """Arguments by number, None where they are left out; ``trips`` are the most iterations, None if that is not known.

    Parameters of the body are the number, what is carried, rows of what is sliced, and what is captured; its results
    the condition if there is one, what is carried next, and rows of what is stacked.
    """

    limit: int | None
    condition: int | None
    carried: tuple[CarriedCode, ...]
    sliced: tuple[RowsCode, ...]
    captured: tuple[int, ...]
    stacked: tuple[RowsCode, ...]
    trips: Extent | None
    count: int
    body: BodyCode

    @property
    def bodies(self) -> tuple[BodyCode, ...]:
        """The body, as the only one of a tuple, since conditions have two."""
        return (self.body,)

    @property
    def extents(self) -> tuple[Extent, ...]:
        """The formulas beside those of the body."""
        carried = (extent for each in self.carried for extent in (each.second, each.size))
        return (*carried, *(rows.size for rows in (*self.sliced, *self.stacked)))


@dataclass(frozen=True, slots=True)
class SegmentCode:
    """Arguments by number: the handle of the segment ``number``, which is written."""

    number: int
    result: int


@dataclass(frozen=True, slots=True)
class AppendCode:
    """Arguments by number: a handle, values of ``size`` bytes, and the handle behind these, which is written."""

    handle: int
    values: int
    size: Extent
    result: int


@dataclass(frozen=True, slots=True)
class ReadCode:
    """Arguments by number: a handle, and where the first ``size`` bytes of its segment are written."""

    handle: int
    size: Extent
    result: int


ControlCode = IfCode | LoopCode | SegmentCode | AppendCode | ReadCode

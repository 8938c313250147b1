"""The words for faults at run time, which the interpreter and debug builds of kernels find alike.

Numbers come as text: the interpreter has them, native code leaves placeholders for what it will record.
"""

from __future__ import annotations

from collections.abc import Sequence

from .expr import Binary, Load
from .extern import ExternFunction, Region
from .stmt import Stmt, Store


def out_of_bounds(
    access: Load | Store,
    found: Sequence[str],
    shape: Sequence[str],
    dimension: str,
    extent: str,
    lane: str | None = None,
) -> str:
    """``found`` are the values of the indices, ``dimension`` is the one that is out of bounds, ``lane`` that of a
    vector access."""
    name = access.buffer.name
    written = f"{name}[{', '.join(map(str, access.indices))}]"
    actual = f"{name}[{', '.join(found)}]"
    verb = "reads" if isinstance(access, Load) else "writes"
    what = actual if written == actual else f"{written} {verb} {actual}"
    in_lane = "" if lane is None else f" in lane {lane}"
    return (
        f"out of bounds: {what}{in_lane}, but dimension {dimension} of {name} has extent {extent}; "
        f"its shape is ({', '.join(shape)})"
    )


def division_by_zero(node: Binary) -> str:
    """The message for an index expression whose divisor is 0 at run time."""
    return f"division of an index by 0: {node}"


def at_place(message: str, statement: Stmt, loops: Sequence[tuple[str, str]]) -> str:
    """The message with the statement, and the loops around it with the values of their variables."""
    around = ", ".join(f"{name} = {value}" for name, value in loops)
    text = str(statement).splitlines()[0]
    return f"{message}\n  in `{text}`" + (f"\n  at {around}" if around else "")


def region_out_of_bounds(
    function: ExternFunction,
    region: Region,
    found: Sequence[tuple[str, str]],
    shape: Sequence[str],
    dimension: str,
    extent: str,
) -> str:
    """``found`` are begin and end of the region in each dimension, ``dimension`` is one that it leaves."""
    name = region.buffer.name
    box = ", ".join(f"{low}:{high}" for low, high in found)
    return (
        f"out of bounds: {function.symbol} gets {name}[{box}], but dimension {dimension} of {name} has extent "
        f"{extent}; its shape is ({', '.join(shape)})"
    )

"""What an engine has in memory at this moment, of what it may have: what ``engine.memory()`` gives."""

from __future__ import annotations

from dataclasses import fields

from ..base.dataclass import dataclass
from ..base.html.table import facts
from ..base.html.view import view
from ..base.quantities import bytes_text


@dataclass(frozen=True, slots=True)
class HeldMemory:
    """The memory of an engine, in bytes: of weights, of the intermediates of all executors, of the states of all
    sessions, and what is kept for large outputs to come. ``held`` is what it has, ``used`` what of that the weights,
    the last run of each executor, and the states need: the rest is room for more. ``largest`` is the most that it ever
    claimed at once, with new outputs and what kernels take while they run; ``limit`` bounds that."""

    held: int
    used: int
    largest: int
    limit: int

    def __str__(self) -> str:
        return ", ".join(f"{field.name} {bytes_text(getattr(self, field.name))}" for field in fields(self))

    def _repr_html_(self) -> str:
        named = {field.name: bytes_text(getattr(self, field.name)) for field in fields(self)}
        return view("Memory of an engine", facts(named))
